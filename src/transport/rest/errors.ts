import { ApiError } from '../../lib/errors.ts';
import { docUrl } from '../doc-url.ts';

/** An answer as HTTP carries it, before the headers that every answer has. */
export interface Answer {
  readonly status: number;
  /** Names and values in turn. */
  readonly headers: readonly string[];
  readonly body: string;
}

/** The one place where an error of the catalogue becomes HTTP. */
export function errorAnswer(error: ApiError, baseUrl: string): Answer {
  const { status, type, code, message, param, rejectReason, retryAfterSeconds, location, allow } = error;
  const headers: string[] = [];
  if (status === 401) headers.push('WWW-Authenticate', 'Bearer realm="marina"');
  if (allow !== undefined) headers.push('Allow', allow.join(', '));
  if (retryAfterSeconds !== undefined) headers.push('Retry-After', String(retryAfterSeconds));
  if (location !== undefined) headers.push('Location', location);
  const body = JSON.stringify({
    error: { type, code, message, doc_url: docUrl(baseUrl, code), param, reject_reason: rejectReason },
  });
  return { status, headers, body };
}

/** What is said of a request that Node's parser gave up on. */
export function unreadable({ code }: NodeJS.ErrnoException): ApiError {
  if (code === 'HPE_HEADER_OVERFLOW') {
    return new ApiError('request_too_large', { message: 'The request line and headers are too large.' });
  }
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') {
    return new ApiError('invalid_request', { message: 'The request did not arrive whole in time.' });
  }
  return new ApiError('invalid_request', { message: 'The request is not proper HTTP.' });
}
