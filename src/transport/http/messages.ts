import { type IncomingMessage, STATUS_CODES } from 'node:http';
import { ApiError } from '../../lib/errors.ts';
import { maxBodyBytes } from '../operations.ts';
import { ClientGone, type Reply } from '../pipeline.ts';
import type { Exchange } from './connection.ts';
import type { HttpLimits } from './node-server.ts';

/** How large a body may be, and what a larger one is answered with. */
export interface BodyBound {
  readonly maxBytes: number;
  readonly tooLarge: () => ApiError;
}

export const messageBound: BodyBound = {
  maxBytes: maxBodyBytes,
  tooLarge: () => new ApiError('request_too_large', { message: 'The body must have at most 16,384 bytes.' }),
};

/** Event of a request whose bytes stopped being HTTP while its body was read; the server raises it. */
export const malformedEvent = 'malformed';

/** More headers than any client sends. Their bytes are bounded by the server itself. */
const maxHeaders = 100;

/** The characters of a host and a port (RFC 3986); an empty `Host` is allowed. */
const hostValue = /^[\w.~!$&'()*+,;=%:[\]-]*$/;

/** A request whose first line and headers were read. */
export class HttpRequest {
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
  /** All X-Forwarded-For headers in the order sent, joined as one list. */
  readonly forwardedFor: string | undefined;
  /** The one traceparent; undefined when it is absent or repeated. */
  readonly traceParent: string | undefined;
  readonly #contentLength: number;
  readonly #hasBody: boolean;

  /** Throws what makes it no proper HTTP request, whatever it asks for. */
  constructor(
    readonly exchange: Exchange,
    private readonly limits: HttpLimits,
  ) {
    const { rawHeaders, httpVersion } = exchange.request;
    // Node's parser also takes 0.9 and 2.0 here.
    if (httpVersion !== '1.1' && httpVersion !== '1.0') throw invalid('The request must be HTTP/1.1 or HTTP/1.0.');
    if (rawHeaders.length > 2 * maxHeaders) throw new ApiError('request_too_large');
    const headers = new Headers(rawHeaders);
    const hosts = headers.all('host');
    if (hosts.length > 1 || (hosts.length === 0 && httpVersion === '1.1') || !hostValue.test(hosts[0] ?? '')) {
      throw new ApiError('invalid_request', { param: 'Host', message: 'The request must have one `Host` header.' });
    }
    // HTTP/1.0 has no chunks, so the proxies on the way may disagree about where such a request ends (RFC 9112, 6.1).
    const transferEncoding = headers.joined('transfer-encoding');
    const isChunked = transferEncoding?.toLowerCase() === 'chunked' && httpVersion === '1.1';
    if (transferEncoding !== undefined && !isChunked)
      throw new ApiError('invalid_request', { param: 'Transfer-Encoding' });
    const { path, query } = readTarget(exchange.request);
    this.path = path;
    this.query = query;
    this.authorization = headers.only('authorization');
    this.idempotencyKeys = headers.all('idempotency-key');
    this.contentType = headers.only('content-type');
    this.isEncoded = headers.all('content-encoding').length > 0;
    this.forwardedFor = headers.joined('x-forwarded-for');
    this.traceParent = headers.only('traceparent');
    this.#contentLength = Number(headers.only('content-length') ?? 0);
    this.#hasBody = isChunked || this.#contentLength > 0;
    exchange.hasUnreadBody = this.#hasBody;
  }

  get method(): string {
    return this.exchange.request.method ?? '';
  }

  /**
   * Reads the body whole, within the time for bodies. If the head says that it is too large, that is thrown before any of
   * it is asked for. Throws what the bound says, `invalid_request` or ClientGone, and leaves the rest unread.
   */
  async readBody({ maxBytes, tooLarge }: BodyBound = messageBound): Promise<Buffer> {
    const { exchange, limits } = this;
    const { request, response } = exchange;
    if (this.#contentLength > maxBytes) throw tooLarge();
    if (exchange.awaitsContinue) response.writeContinue();
    // A large body is put together at once: to keep its pieces until it is whole would take its memory twice.
    const whole = this.#contentLength > maxBodyBytes ? Buffer.allocUnsafeSlow(this.#contentLength) : undefined;
    const chunks: Buffer[] = [];
    let bytes = 0;
    const body = await new Promise<Buffer>((resolve, reject) => {
      const onData = (chunk: Buffer) => {
        if (bytes + chunk.length > maxBytes) settle(() => reject(tooLarge()));
        else if (whole === undefined) chunks.push(chunk);
        else chunk.copy(whole, bytes);
        bytes += chunk.length;
      };
      const onEnd = () => settle(() => resolve(whole ?? Buffer.concat(chunks)));
      const onGone = () => settle(() => reject(new ClientGone()));
      const onMalformed = () => settle(() => reject(invalid('The body is not properly framed.')));
      const seconds = Math.ceil(limits.bodyTimeoutMs / 1_000);
      const late = () => settle(() => reject(invalid(`The body did not arrive whole within ${seconds} seconds.`)));
      const timer = setTimeout(late, limits.bodyTimeoutMs);
      const settle = (then: () => void) => {
        clearTimeout(timer);
        request.off('data', onData).off('end', onEnd).off('close', onGone).off(malformedEvent, onMalformed);
        then();
      };
      request
        .on('data', onData)
        .on('end', onEnd)
        .on('close', onGone)
        .on('error', ignore)
        .on(malformedEvent, onMalformed);
      if (exchange.isMalformed) onMalformed();
      if (request.destroyed && !request.readableEnded) onGone();
    });
    exchange.hasUnreadBody = false;
    return body;
  }

  /** A body where none belongs: taken off the connection if it is small, else the connection ends with the answer. */
  passOver(): void {
    const { exchange, limits } = this;
    if (!this.#hasBody || exchange.awaitsContinue || this.#contentLength > limits.passedOverBytes) return;
    const { request } = exchange;
    let bytes = 0;
    exchange.hasUnreadBody = false;
    request.on('error', ignore).on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes > maxBodyBytes) request.socket.destroy();
    });
  }
}

/** What a request asks for: the path, and what follows the question mark. */
export function readTarget({ url = '' }: IncomingMessage): { path: string; query: string } {
  const target = originForm(url);
  const mark = target.indexOf('?');
  return mark === -1 ? { path: target, query: '' } : { path: target.slice(0, mark), query: target.slice(mark + 1) };
}

/** A target as a path and query. Clients of a proxy write whole addresses, which HTTP asks every server to take. */
function originForm(target: string): string {
  if (target.startsWith('/')) return target;
  const authority = /^https?:\/\/[^/?]*/i.exec(target);
  if (authority === null) return target;
  const rest = target.slice(authority[0].length);
  return rest.startsWith('/') ? rest : `/${rest}`;
}

/**
 * The headers as they came, by their names in lower case. Node's own views of them join or drop repeated ones, and
 * `headersDistinct` fails on a header that is named like a member of every object.
 */
class Headers {
  readonly #values = new Map<string, string[]>();

  constructor(rawHeaders: readonly string[]) {
    for (let at = 0; at < rawHeaders.length; at += 2) {
      const name = (rawHeaders[at] as string).toLowerCase();
      const values = this.#values.get(name);
      if (values === undefined) this.#values.set(name, [rawHeaders[at + 1] as string]);
      else values.push(rawHeaders[at + 1] as string);
    }
  }

  all(name: string): readonly string[] {
    return this.#values.get(name) ?? [];
  }

  joined(name: string): string | undefined {
    return this.#values.get(name)?.join(', ');
  }

  /** The value of a header that stands once. */
  only(name: string): string | undefined {
    const values = this.all(name);
    return values.length === 1 ? values[0] : undefined;
  }
}

/** What is answered to bytes that Node's parser gave up on. */
export function unreadable({ code }: NodeJS.ErrnoException): ApiError {
  if (code === 'HPE_HEADER_OVERFLOW') {
    return new ApiError('request_too_large', { message: 'The request line and headers are too large.' });
  }
  const isLate = code === 'ERR_HTTP_REQUEST_TIMEOUT';
  return invalid(isLate ? 'The request did not arrive whole in time.' : 'The request is not proper HTTP.');
}

const requestLine = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,64} (\/[^ ?#]*)[^ ]* HTTP\/1\.[01]\r?\n/;

/** The path of a request whose method Node's parser does not know; undefined for every other reason to give up. */
export function pathOfUnknownMethod({
  code,
  rawPacket,
}: NodeJS.ErrnoException & { rawPacket?: Buffer }): string | undefined {
  if (code !== 'HPE_INVALID_METHOD' || rawPacket === undefined) return undefined;
  return requestLine.exec(rawPacket.toString('latin1', 0, 8_192))?.[1];
}

/** An aborted request raises an error as well as `close`, which tells all there is to know. */
function ignore(): void {}

function invalid(message: string): ApiError {
  return new ApiError('invalid_request', { message });
}

/** What stands before an answer's body, without the headers that every answer has. */
export interface AnswerHead {
  readonly status: number;
  /** Names and values in turn. */
  readonly headers: readonly string[];
  /** JSON when absent. */
  readonly contentType?: string;
  /** That nothing may keep it, when absent. */
  readonly cacheControl?: string;
}

/** A whole answer as HTTP carries it. */
export interface Answer extends AnswerHead {
  readonly body: string | Buffer;
}

/** An answer that goes on. */
export interface StreamAnswer extends AnswerHead {
  /** Its messages, until the controller given is aborted. */
  readonly messages: (ending: AbortController) => AsyncIterable<Buffer>;
  /** What is written last, about how it ended. */
  readonly end: (error?: ApiError) => Buffer;
}

/** The headers of every answer: what a cache may do with it, and a name by which our support finds it. */
export function answerHeaders(answer: Answer | StreamAnswer, requestId: string): string[] {
  const { contentType = 'application/json', cacheControl = 'no-store', headers } = answer;
  const all = ['Content-Type', contentType, 'Cache-Control', cacheControl, 'x-request-id', requestId, ...headers];
  // The answer that says that nothing changed has no body whose length could be told.
  if ('body' in answer && answer.status !== 304) all.push('Content-Length', String(Buffer.byteLength(answer.body)));
  return all;
}

/** A whole answer as bytes, for a connection on which Node has no request to answer. It is the connection's last. */
export function rawAnswer(answer: Answer, requestId: string): string {
  const headers = [...answerHeaders(answer, requestId), 'Connection', 'close', 'Date', new Date().toUTCString()];
  let text = `HTTP/1.1 ${answer.status} ${STATUS_CODES[answer.status]}\r\n`;
  for (let at = 0; at < headers.length; at += 2) text += `${headers[at]}: ${headers[at + 1]}\r\n`;
  return `${text}\r\n${answer.body}`;
}

/** What an operation's answer says in addition to its body. */
export function replyHeaders({ location, replayed }: Reply): string[] {
  const headers = location === undefined ? [] : ['Location', location];
  if (replayed) headers.push('Idempotent-Replayed', 'true');
  return headers;
}

/** What an error says in addition to its body. */
export function errorHeaders({ status, allow, retryAfterSeconds, location }: ApiError): string[] {
  const headers: string[] = [];
  if (status === 401) headers.push('WWW-Authenticate', 'Bearer realm="marina"');
  if (allow !== undefined) headers.push('Allow', allow.join(', '));
  if (retryAfterSeconds !== undefined) headers.push('Retry-After', String(retryAfterSeconds));
  if (location !== undefined) headers.push('Location', location);
  return headers;
}
