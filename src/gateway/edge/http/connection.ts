import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { ByteText } from '../json/encoder.ts';
import { ClientGone } from '../pipeline.ts';
import { deliver, slowEndMs } from '../streams.ts';
import { type LingerRules, lingerOn, watchLastChunk } from './linger.ts';

export interface HttpExchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** The client waits for `100 Continue` before it sends the body, and did not get it yet. */
  awaitsContinue: boolean;
  /** The client sends a body that is not read yet. */
  hasUnreadBody: boolean;
  /** Invalid HTTP came after the head, before the request was complete. */
  isMalformed: boolean;
}

/**
 * The client asks for another protocol. Node then drops the rest of the packet and reads the next packet as a new
 * request, so the start of a further request is not known.
 */
function asksForUpgrade({ headers }: IncomingMessage): boolean {
  return headers.upgrade !== undefined;
}

/** How many pipelined requests may wait on one connection. */
const maxWaiting = 32;
/** How often reading is begun again before Node's parser lets go. It never is while the client reads no answer. */
const maxResumes = 3;
/** How long a new connection has for its first request when the port closes, because one may be on its way. */
const firstRequestMs = 500;

/**
 * One client's connection. Pipelined requests are served one after the other. So a client sees its effects in order. If
 * its connection closes, it knows that no unanswered request after the first was started.
 */
export class HttpConnection {
  current: HttpExchange | undefined;
  /** A request with a valid key came on it. */
  isKnown = false;
  isEnding = false;
  /** Bytes received when the last answer was given. More than these are an unfinished request. */
  #answeredBytes = 0;
  #last: HttpExchange | undefined;
  #waiting: HttpExchange[] = [];
  /** The last answer was given, or the client has left. */
  isOver = false;
  /** The last answer was written, and the client has not closed yet. */
  isLingering = false;
  /** The last request has come: later bytes are never read as a request. */
  #isSealed = false;
  #isDetached = false;

  constructor(
    readonly socket: Socket,
    readonly serve: (connection: HttpConnection, exchange: HttpExchange) => void,
    /** How long data is read and dropped after the last answer was written. */
    public lingers: LingerRules,
    private readonly onFlood: () => void = () => undefined,
  ) {
    // Node calls this to end a connection after its last answer.
    socket.destroySoon = () => this.#linger();
    socket.once('close', () => this.#end());
  }

  take(exchange: HttpExchange): void {
    if (this.isOver || this.isEnding || this.#isSealed) {
      this.#stopParsing();
      return;
    }
    if (asksForUpgrade(exchange.request)) this.#isSealed = true;
    if (this.current === undefined) {
      this.#begin(exchange);
    } else if (this.#waiting.length < maxWaiting) {
      this.#waiting.push(exchange);
    } else {
      // All requests of one packet are read before the first is answered.
      this.onFlood();
      this.isEnding = true;
      this.#stopParsing();
    }
  }

  /** The current request's answer was handed over, with `Connection: close` if it is the last. */
  answered(isLast: boolean): void {
    this.current = undefined;
    this.#answeredBytes = this.socket.bytesRead;
    if (isLast) this.#end();
    const next = this.isEnding ? undefined : this.#waiting.shift();
    if (next !== undefined) this.#begin(next);
  }

  /** Whether pipelined requests wait. */
  get hasWaiting(): boolean {
    return this.#waiting.length > 0;
  }

  /** Whether the client is sending a request that has no answer yet. */
  get owesAnswer(): boolean {
    const isMidBody = this.#last?.request.complete === false;
    return !this.isOver && !isMidBody && this.socket.bytesRead > this.#answeredBytes;
  }

  /** Writes the last answer directly, because Node has no request to answer. */
  endWith(text: ByteText): void {
    this.#end();
    this.socket.write(text, 'latin1');
    this.socket.destroySoon();
  }

  /** Closes a connection without a request. A new one gets `firstRequestMs`. */
  closeIfIdle(): void {
    if (this.#last === undefined) {
      const timer = setTimeout(() => this.#closeIfIdle(), firstRequestMs);
      this.socket.once('close', () => clearTimeout(timer));
    } else this.#closeIfIdle();
  }

  #closeIfIdle(): void {
    if (this.current === undefined && !this.isOver && !this.owesAnswer) this.socket.destroy();
  }

  #begin(exchange: HttpExchange): void {
    this.current = exchange;
    this.#last = exchange;
    if (asksForUpgrade(exchange.request)) this.isEnding = true;
    this.serve(this, exchange);
  }

  #end(): void {
    this.isOver = true;
    this.#waiting = [];
  }

  /** Detaches Node's parser: further data is dropped. Served requests are complete, or their body is not wanted. */
  #stopParsing(onStopped?: () => void): void {
    if (this.#isDetached) return;
    this.#isDetached = true;
    this.#detach(maxResumes, onStopped);
  }

  /** Lets go of Node's parser once the socket is read: if Node has stopped that, nothing begins it again without the parser. */
  #detach(triesLeft: number, onStopped?: () => void): void {
    const { socket } = this;
    socket.resume();
    process.nextTick(() => {
      // Node stops again for the body of a further request in the same packet.
      if (socket.isPaused() && triesLeft > 0) {
        this.#detach(triesLeft - 1, onStopped);
        return;
      }
      // A new `data` listener makes Node's parser let go. Then Node's own listener is removed too.
      socket.on('data', drop).removeAllListeners('data').on('data', drop);
      onStopped?.();
    });
  }

  /**
   * Reads on after the last answer. If the request's body is still on its way, our side stays open until it has come: a
   * proxy that sees the connection end within a request resets its client, which loses the answer.
   */
  #linger(): void {
    const { socket } = this;
    if (socket.destroyed || this.isLingering) return;
    this.isLingering = true;
    const endSide = () => {
      socket.end();
      this.#stopParsing();
    };
    const last = this.#last;
    if (last === undefined || last.request.complete || last.awaitsContinue || last.isMalformed) endSide();
    else {
      last.request.once('end', endSide);
      // Parsing each small chunk would cost more than dropping them.
      if (last.request.headers['content-length'] === undefined) {
        this.#stopParsing(() => watchLastChunk(socket, endSide));
      }
    }
    lingerOn(socket, this.lingers);
  }
}

function drop(): void {}

/** Writes a stream's head at once, then its messages as the client reads them. Throws the reason of its end. */
export async function writeStream(
  response: ServerResponse,
  answer: { readonly status: number; messages(ending: AbortController): AsyncIterable<Buffer> },
  headers: string[],
  ending: AbortController,
  slowMs: number | undefined,
): Promise<void> {
  const { socket } = response.req;
  // If a client half-closes, its stream ends, because nothing else shows that it has left.
  const leave = () => socket.destroy();
  if (socket.readableEnded) leave();
  socket.once('end', leave);
  response.once('close', () => {
    socket.off('end', leave);
    ending.abort(new ClientGone());
  });
  if (response.destroyed) ending.abort(new ClientGone());
  response.writeHead(answer.status, headers);
  response.flushHeaders();
  const write = (bytes: Buffer) => new Promise<void>((resolve) => response.write(bytes, () => resolve()));
  await deliver(answer.messages(ending), ending, write, slowMs);
}

/** Writes the end, and closes the connection if it was the last answer or if the client does not read the end. */
export function endStream(response: ServerResponse, end: Buffer, isLast: boolean): void {
  const { socket } = response.req;
  const timer = setTimeout(() => socket.destroy(), slowEndMs);
  response.once('close', () => clearTimeout(timer));
  response.end(end, () => {
    if (isLast) socket.destroySoon();
  });
}
