import type { IncomingMessage } from 'node:http';
import type { ReceivedFile } from '../../auth/call.ts';
import { ApiError } from '../../lib/errors.ts';
import { maxBodyBytes } from '../body-limit.ts';
import { checkFileType, type FileBody, fileTooLarge, wholeFile } from '../file-body.ts';
import { ClientGone } from '../pipeline.ts';
import type { Exchange } from './connection.ts';
import type { RequestHead } from './head.ts';
import type { Incoming } from './incoming.ts';

const token = "[!#$%&'*+.^_`|~0-9a-z-]{1,64}";
const charset = 'charset=(?:utf-8|"utf-8")';
const other = `(?!charset=)${token}=(?:${token}|"[^"\\\\]{0,64}")`;
/** JSON, with any parameters but another charset; a parameter may be empty. */
const json = new RegExp(`^application/json(?:[ \\t]*;(?:[ \\t]*(?:${charset}|${other}))?){0,8}[ \\t]*$`, 'i');

/** Refuses a body that is not JSON in UTF-8 as it stands. */
export function checkMediaType({ contentType, isEncoded }: RequestHead): void {
  if (isEncoded || contentType === undefined) throw new ApiError('unsupported_media_type');
  if (contentType !== 'application/json' && !json.test(contentType)) throw new ApiError('unsupported_media_type');
}

/** How large a body may be, and what a larger one is answered with. */
export interface BodyBound {
  readonly maxBytes: number;
  readonly tooLarge: () => ApiError;
}

export const jsonBound: BodyBound = {
  maxBytes: maxBodyBytes,
  tooLarge: () => new ApiError('request_too_large', { message: 'The body must have at most 16,384 bytes.' }),
};

/** Refuses a body that says it is too large, before any of it is read or asked for. */
export function checkSize({ contentLength }: RequestHead, { maxBytes, tooLarge }: BodyBound): void {
  if (contentLength !== undefined && contentLength > maxBytes) throw tooLarge();
}

/** Receives a file that is the body. */
export async function receiveBody(file: FileBody, incoming: Incoming): Promise<ReceivedFile> {
  const { contentType, isEncoded } = incoming.head;
  const mediaType = checkFileType(file, isEncoded ? undefined : contentType);
  const content = await incoming.readBody({ maxBytes: file.maxBytes, tooLarge: () => fileTooLarge(file) });
  return wholeFile(file, mediaType, content);
}

/** Event of a request whose bytes stopped being HTTP while its body was read; the server raises it. */
export const malformedEvent = 'malformed';

/**
 * Reads a body whole. Throws what is said of one that is too large, `invalid_request` or ClientGone, and leaves the rest
 * unread.
 */
export function readBody(
  { request, isMalformed }: Exchange,
  timeoutMs: number,
  { maxBytes, tooLarge }: BodyBound,
): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const body = new BodyBuffer(request.headers['content-length']);
    const late = () =>
      settle(() => reject(invalid(`The body did not arrive whole within ${Math.ceil(timeoutMs / 1_000)} seconds.`)));
    const timer = setTimeout(late, timeoutMs);
    const onData = (chunk: Buffer) => {
      if (body.bytes + chunk.length > maxBytes) settle(() => reject(tooLarge()));
      else body.add(chunk);
    };
    const onEnd = () => settle(() => resolve(body.whole()));
    const onGone = () => settle(() => reject(new ClientGone()));
    const onMalformed = () => settle(() => reject(invalid('The body is not properly framed.')));
    const settle = (then: () => void) => {
      clearTimeout(timer);
      request.off('data', onData).off('end', onEnd).off('close', onGone).off(malformedEvent, onMalformed);
      then();
    };
    request.on('data', onData).on('end', onEnd).on('close', onGone).on('error', ignore).on(malformedEvent, onMalformed);
    if (isMalformed) onMalformed();
    if (request.destroyed && !request.readableEnded) onGone();
  });
}

/**
 * A body as it arrives. One of a size that is known and not small is put together at once: to keep its pieces until it is
 * whole would take its memory twice.
 */
class BodyBuffer {
  bytes = 0;
  readonly #chunks: Buffer[] = [];
  readonly #whole: Buffer | undefined;

  /** The size was found to be within its bound. */
  constructor(contentLength: string | undefined) {
    const size = Number(contentLength ?? 0);
    if (size > maxBodyBytes) this.#whole = Buffer.allocUnsafeSlow(size);
  }

  add(chunk: Buffer): void {
    if (this.#whole === undefined) this.#chunks.push(chunk);
    else chunk.copy(this.#whole, this.bytes);
    this.bytes += chunk.length;
  }

  whole(): Buffer {
    if (this.#whole !== undefined) return this.#whole;
    const [first] = this.#chunks;
    return this.#chunks.length === 1 && first !== undefined ? first : Buffer.concat(this.#chunks);
  }
}

/** Takes a body nobody asked for off the connection, so that the next request on it can be read. */
export function discardBody(request: IncomingMessage): void {
  let bytes = 0;
  request.on('error', ignore).on('data', (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > maxBodyBytes) request.socket.destroy();
  });
}

/** An aborted request raises an error beside `close`, which tells all there is to know. */
function ignore(): void {}

function invalid(message: string): ApiError {
  return new ApiError('invalid_request', { message });
}
