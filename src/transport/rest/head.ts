import type { IncomingMessage } from 'node:http';
import { ApiError } from '../../lib/errors.ts';

/** What REST needs of a request's first line and headers. */
export interface RequestHead {
  readonly path: string;
  /** What follows the question mark; empty when there is nothing. */
  readonly query: string;
  /** The one Authorization header; undefined when it is absent or repeated. */
  readonly authorization: string | undefined;
  readonly idempotencyKeys: readonly string[];
  /** The one Content-Type; undefined when it is absent or repeated. */
  readonly contentType: string | undefined;
  /** The body is compressed, or in another form than it says. */
  readonly isEncoded: boolean;
  readonly contentLength: number | undefined;
  readonly hasBody: boolean;
  /** All X-Forwarded-For headers in the order sent, joined as one list. */
  readonly forwardedFor: string | undefined;
  /** The one traceparent; undefined when it is absent or repeated. */
  readonly traceParent: string | undefined;
}

/** More headers than any client sends. Their bytes are bounded by the server itself. */
const maxHeaders = 100;

/** The characters of a host and a port (RFC 3986); an empty `Host` is allowed. */
const hostValue = /^[\w.~!$&'()*+,;=%:[\]-]*$/;

/** Reads the head of a request. Throws what makes it no proper HTTP request, whatever it asks for. */
export function readHead(request: IncomingMessage): RequestHead {
  const { rawHeaders, httpVersion } = request;
  // Node's parser also takes 0.9 and 2.0 here.
  if (httpVersion !== '1.1' && httpVersion !== '1.0') {
    throw new ApiError('invalid_request', { message: 'The request must be HTTP/1.1 or HTTP/1.0.' });
  }
  if (rawHeaders.length > 2 * maxHeaders) throw new ApiError('request_too_large');
  const found = collect(rawHeaders);
  if (found.hosts > 1 || (found.hosts === 0 && httpVersion === '1.1') || !hostValue.test(found.host)) {
    throw new ApiError('invalid_request', { param: 'Host', message: 'The request must have one `Host` header.' });
  }
  checkTransferEncoding(found.transferEncoding, httpVersion);
  const contentLength = found.contentLength === undefined ? undefined : Number(found.contentLength);
  const { path, query } = readTarget(request);
  return {
    path,
    query,
    authorization: found.authorizations === 1 ? found.authorization : undefined,
    idempotencyKeys: found.idempotencyKeys,
    contentType: found.contentTypes === 1 ? found.contentType : undefined,
    isEncoded: found.isEncoded,
    contentLength,
    hasBody: found.transferEncoding !== undefined || (contentLength ?? 0) > 0,
    forwardedFor: found.forwardedFor,
    traceParent: found.traceParents === 1 ? found.traceParent : undefined,
  };
}

/** HTTP/1.0 has no chunks, so the proxies on the way may disagree about where such a request ends (RFC 9112, 6.1). */
function checkTransferEncoding(value: string | undefined, httpVersion: string): void {
  if (value === undefined || (value.toLowerCase() === 'chunked' && httpVersion === '1.1')) return;
  throw new ApiError('invalid_request', { param: 'Transfer-Encoding' });
}

/** What a request asks for: the path, and what follows the question mark. */
export function readTarget({ url = '' }: IncomingMessage): { path: string; query: string } {
  const target = originForm(url);
  const mark = target.indexOf('?');
  return mark === -1 ? { path: target, query: '' } : { path: target.slice(0, mark), query: target.slice(mark + 1) };
}

class Headers {
  hosts = 0;
  host = '';
  authorization: string | undefined;
  authorizations = 0;
  idempotencyKeys: string[] = [];
  contentType: string | undefined;
  contentTypes = 0;
  isEncoded = false;
  contentLength: string | undefined;
  transferEncoding: string | undefined;
  forwardedFor: string | undefined;
  traceParent: string | undefined;
  traceParents = 0;
}

/** One pass over the headers as they came: Node's own views of them join or drop repeated ones. */
function collect(rawHeaders: readonly string[]): Headers {
  const found = new Headers();
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const value = rawHeaders[at + 1] as string;
    switch ((rawHeaders[at] as string).toLowerCase()) {
      case 'host':
        found.hosts += 1;
        found.host = value;
        break;
      case 'authorization':
        found.authorization = value;
        found.authorizations += 1;
        break;
      case 'idempotency-key':
        found.idempotencyKeys.push(value);
        break;
      case 'content-type':
        found.contentType = value;
        found.contentTypes += 1;
        break;
      case 'content-encoding':
        found.isEncoded = true;
        break;
      case 'content-length':
        found.contentLength = value;
        break;
      case 'transfer-encoding':
        found.transferEncoding = found.transferEncoding === undefined ? value : `${found.transferEncoding}, ${value}`;
        break;
      case 'traceparent':
        found.traceParent = value;
        found.traceParents += 1;
        break;
      case 'x-forwarded-for':
        found.forwardedFor = found.forwardedFor === undefined ? value : `${found.forwardedFor}, ${value}`;
        break;
    }
  }
  return found;
}

/** A target as a path and query. Clients of a proxy write whole addresses, which HTTP asks every server to take. */
function originForm(target: string): string {
  if (target.startsWith('/')) return target;
  const authority = /^https?:\/\/[^/?]*/i.exec(target);
  if (authority === null) return target;
  const rest = target.slice(authority[0].length);
  return rest.startsWith('/') ? rest : `/${rest}`;
}
