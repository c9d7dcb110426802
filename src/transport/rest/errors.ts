import { ApiError } from '../../lib/errors.ts';
import { docUrl } from '../doc-url.ts';
import type { Answer } from './protocol.ts';

/** The one place where an error of the catalogue becomes HTTP. */
export function errorAnswer(error: ApiError, baseUrl: string): Answer {
  const { status, type, code, message, param, rejectReason } = error;
  const body = JSON.stringify({
    error: { type, code, message, doc_url: docUrl(baseUrl, code), param, reject_reason: rejectReason },
  });
  return { status, headers: errorHeaders(error), body };
}

/** What an error says beside its body. */
export function errorHeaders({ status, allow, retryAfterSeconds, location }: ApiError): string[] {
  const headers: string[] = [];
  if (status === 401) headers.push('WWW-Authenticate', 'Bearer realm="marina"');
  if (allow !== undefined) headers.push('Allow', allow.join(', '));
  if (retryAfterSeconds !== undefined) headers.push('Retry-After', String(retryAfterSeconds));
  if (location !== undefined) headers.push('Location', location);
  return headers;
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

const requestLine = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,64} (\/[^ ?#]*)[^ ]* HTTP\/1\.[01]\r?\n/;

/** The path of a request whose method Node's parser does not know; undefined for every other reason to give up. */
export function pathOfUnknownMethod({ code, rawPacket }: ParseError): string | undefined {
  if (code !== 'HPE_INVALID_METHOD' || rawPacket === undefined) return undefined;
  return requestLine.exec(rawPacket.toString('latin1', 0, 8_192))?.[1];
}

/** What Node says of bytes it could not read as a request. */
interface ParseError extends NodeJS.ErrnoException {
  readonly rawPacket?: Buffer;
}
