import { type IncomingMessage, STATUS_CODES } from 'node:http';
import { ApiError } from '../errors.ts';
import type { ByteText } from '../json/encoder.ts';
import { maxBodyBytes } from '../operations.ts';
import { ClientGone, type Reply } from '../pipeline.ts';
import type { HttpExchange } from './connection.ts';
import type { HttpLimits } from './node-server.ts';

/** The maximum size of a body, and the error for a larger one. */
export interface BodyBound {
  readonly maxBytes: number;
  readonly tooLarge: () => ApiError;
}

/** What was read of a body. `isWhole`: all of it. */
export interface ReadBody {
  readonly bytes: Buffer;
  readonly isWhole: boolean;
}

export const messageBound: BodyBound = {
  maxBytes: maxBodyBytes,
  tooLarge: () => new ApiError('request_too_large', { message: 'The body must have at most 16,384 bytes.' }),
};

/** Raised on a request when its body stops being valid HTTP. */
export const malformedEvent = 'malformed';

/** More headers than any client sends. The server limits their bytes. */
const maxHeaders = 100;

/** The characters of a host and a port (RFC 3986). An empty `Host` is allowed. */
const hostValue = /^[\w.~!$&'()*+,;=%:[\]-]*$/;

/** A request whose head was read. `authorization`, `contentType` and `traceParent`: undefined if absent or repeated. */
export class HttpRequest {
  readonly path: string;
  readonly query: string;
  readonly authorization: string | undefined;
  readonly idempotencyKeys: readonly string[];
  readonly contentType: string | undefined;
  readonly isEncoded: boolean;
  /** All values in the order sent, joined as one list. */
  readonly forwardedFor: string | undefined;
  readonly traceParent: string | undefined;
  readonly #contentLength: number;
  readonly #hasBody: boolean;

  /** Throws if it is no valid HTTP request. */
  constructor(
    readonly exchange: HttpExchange,
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
    // HTTP/1.0 has no chunks, so proxies may disagree about where such a request ends (RFC 9112, 6.1).
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
   * Reads the whole body within the time for bodies. A body that the head announces as too large is not asked for. Throws
   * the bound's error, `invalid_request` or ClientGone, and leaves the rest unread.
   */
  async readBody({ maxBytes, tooLarge }: BodyBound = messageBound): Promise<Buffer> {
    if (this.#contentLength > maxBytes) throw tooLarge();
    const { bytes, isWhole } = await this.#read(maxBytes);
    if (!isWhole) throw tooLarge();
    return bytes;
  }

  /**
   * Reads the whole body, or only the first `startBytes` of one that is larger than `maxBytes`, or what has come of them in the time for
   * bodies. Otherwise as `readBody`.
   */
  async readBodyOrStart(maxBytes: number, startBytes: number): Promise<ReadBody> {
    const isLarge = this.#contentLength > maxBytes;
    const { bytes, isWhole } = await this.#read(isLarge ? startBytes : maxBytes, isLarge);
    return isWhole ? { bytes, isWhole } : { bytes: Buffer.from(bytes.subarray(0, startBytes)), isWhole };
  }

  /** Reads at most `maxBytes`, and a chunk more of a larger body. `isCut`: what has come in time is enough. */
  async #read(maxBytes: number, isCut = false): Promise<ReadBody> {
    const { exchange, limits } = this;
    const { request, response } = exchange;
    if (exchange.awaitsContinue) response.writeContinue();
    exchange.awaitsContinue = false;
    // A large body gets its memory at once, because joining pieces would need it twice.
    const isLarge = this.#contentLength > maxBodyBytes && this.#contentLength <= maxBytes;
    const whole = isLarge ? Buffer.allocUnsafeSlow(this.#contentLength) : undefined;
    const chunks: Buffer[] = [];
    let bytes = 0;
    const body = await new Promise<ReadBody>((resolve, reject) => {
      const onData = (chunk: Buffer) => {
        if (whole === undefined) chunks.push(chunk);
        else chunk.copy(whole, bytes);
        bytes += chunk.length;
        if (bytes > maxBytes) settle(cut);
      };
      const onEnd = () => settle(() => resolve({ bytes: whole ?? Buffer.concat(chunks), isWhole: true }));
      const onGone = () => settle(() => reject(new ClientGone()));
      const onMalformed = () => settle(() => reject(invalid('The body is not properly framed.')));
      const seconds = Math.ceil(limits.bodyTimeoutMs / 1_000);
      const cut = () => resolve({ bytes: Buffer.concat(chunks), isWhole: false });
      const tooLate = () => reject(invalid(`The body did not arrive whole within ${seconds} seconds.`));
      const late = () => settle(isCut ? cut : tooLate);
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
    exchange.hasUnreadBody = !body.isWhole;
    return body;
  }

  /** Drops an unwanted body: a small one is read, for a larger one the connection ends with the answer. */
  passOver(): void {
    const { exchange, limits } = this;
    if (!this.#hasBody || exchange.awaitsContinue || this.#contentLength > limits.passedOverBytes) return;
    const { request } = exchange;
    let bytes = 0;
    exchange.hasUnreadBody = false;
    request.on('error', ignore).on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes <= maxBodyBytes) return;
      // The answer must not be lost to a reset: it becomes the connection's last.
      if (exchange.response.headersSent) request.socket.destroySoon();
      else exchange.hasUnreadBody = true;
    });
  }
}

/** A request's path and query. */
export function readTarget({ url = '' }: IncomingMessage): { path: string; query: string } {
  const target = originForm(url);
  const mark = target.indexOf('?');
  return mark === -1 ? { path: target, query: '' } : { path: target.slice(0, mark), query: target.slice(mark + 1) };
}

/** Clients of a proxy send absolute URLs, which HTTP requires every server to accept. */
function originForm(target: string): string {
  if (target.startsWith('/')) return target;
  const authority = /^https?:\/\/[^/?]*/i.exec(target);
  if (authority === null) return target;
  const rest = target.slice(authority[0].length);
  return rest.startsWith('/') ? rest : `/${rest}`;
}

/**
 * The headers as sent, by lower-case name. Node's own views join or drop repeated ones, and `headersDistinct` fails on
 * a header named like a member of `Object.prototype`.
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

  /** The value of a header that was sent exactly once. */
  only(name: string): string | undefined {
    const values = this.all(name);
    return values.length === 1 ? values[0] : undefined;
  }
}

/** The error for bytes that Node's parser rejected. */
export function unreadable({ code }: NodeJS.ErrnoException): ApiError {
  if (code === 'HPE_HEADER_OVERFLOW') {
    return new ApiError('request_too_large', { message: 'The request line and headers are too large.' });
  }
  const isLate = code === 'ERR_HTTP_REQUEST_TIMEOUT';
  return invalid(isLate ? 'The request did not arrive whole in time.' : 'The request is not proper HTTP.');
}

const requestLine = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,64} (\/[^ ?#]*)[^ ]* HTTP\/1\.[01]\r?\n/;

/** The path of a request with a method unknown to Node's parser; undefined for any other parser error. */
export function pathOfUnknownMethod({
  code,
  rawPacket,
}: NodeJS.ErrnoException & { rawPacket?: Buffer }): string | undefined {
  if (code !== 'HPE_INVALID_METHOD' || rawPacket === undefined) return undefined;
  return requestLine.exec(rawPacket.toString('latin1', 0, 8_192))?.[1];
}

/** For `error` on an aborted request: `close` is handled. */
function ignore(): void {}

function invalid(message: string): ApiError {
  return new ApiError('invalid_request', { message });
}

/** An answer's head, without the headers of every answer. */
export interface ResponseHead {
  readonly status: number;
  /** Names and values alternate. */
  readonly headers: readonly string[];
  /** JSON if absent. */
  readonly contentType?: string;
  /** `no-store` if absent. */
  readonly cacheControl?: string;
}

export interface Answer extends ResponseHead {
  readonly body: ByteText | Buffer;
}

export interface StreamAnswer extends ResponseHead {
  /** The messages, until the controller is aborted. */
  readonly messages: (ending: AbortController) => AsyncIterable<Buffer>;
  /** The last bytes, which say how it ended. */
  readonly end: (error?: ApiError) => Buffer;
}

/** Tells browsers that an answer is what its Content-Type says, so that none is run as a script or shown as a page. */
const noSniff = ['X-Content-Type-Options', 'nosniff'] as const;

/** The headers of every answer, with `Cache-Control` and the request id for support. */
export function answerHeaders(answer: Answer | StreamAnswer, requestId: string): string[] {
  const { contentType = 'application/json', cacheControl = 'no-store', headers } = answer;
  const all = ['Content-Type', contentType, ...noSniff, 'Cache-Control', cacheControl, 'x-request-id', requestId];
  all.push(...headers);
  // A 304 has no body, so its length is not known.
  if ('body' in answer && answer.status !== 304) all.push('Content-Length', String(answer.body.length));
  return all;
}

/** A whole answer as bytes, for a connection on which Node has no request. It is the connection's last. */
export function rawAnswer(answer: Answer, requestId: string): ByteText {
  const headers = [...answerHeaders(answer, requestId), 'Connection', 'close', 'Date', new Date().toUTCString()];
  let text = `HTTP/1.1 ${answer.status} ${STATUS_CODES[answer.status]}\r\n`;
  for (let at = 0; at < headers.length; at += 2) text += `${headers[at]}: ${headers[at + 1]}\r\n`;
  return `${text}\r\n${answer.body.toString('latin1')}` as ByteText;
}

export function replyHeaders({ location, replayed }: Reply): string[] {
  const headers = location === undefined ? [] : ['Location', location];
  if (replayed) headers.push('Idempotent-Replayed', 'true');
  return headers;
}

export function errorHeaders({ status, allow, retryAfterSeconds, location }: ApiError): string[] {
  const headers: string[] = [];
  if (status === 401) headers.push('WWW-Authenticate', 'Bearer realm="marina"');
  if (allow !== undefined) headers.push('Allow', allow.join(', '));
  if (retryAfterSeconds !== undefined) headers.push('Retry-After', String(retryAfterSeconds));
  if (location !== undefined) headers.push('Location', location);
  return headers;
}
