import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { ClientGone } from '../pipeline.ts';
import { deliver, slowEndMs } from '../streams.ts';

/** One request on a connection. */
export interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** The client waits for leave to send the body. */
  readonly awaitsContinue: boolean;
  /** The client sends a body which nobody has taken off the connection. */
  hasUnreadBody: boolean;
  /** What came after the request's head stopped being HTTP before the request was whole. */
  isMalformed: boolean;
}

/**
 * The client asks to speak another protocol from here on. Node drops the rest of the packet behind such a request, and
 * then reads the next packet as a new request. So where a further request would begin is not known.
 */
function asksForUpgrade({ headers }: IncomingMessage): boolean {
  return headers.upgrade !== undefined;
}

/** How many requests a client may send ahead on one connection. */
const maxWaiting = 32;
/** How long a new connection may take to send its first request when the port closes: it may be on its way. */
const firstRequestMs = 500;

/**
 * One client's connection. Requests sent ahead are served one after the other: a client that pipelines sees the effects
 * in its order, and one whose connection is closed knows that the unanswered ones after the first were never begun.
 */
export class Connection {
  /** The request under way. */
  current: Exchange | undefined;
  /** A request came on it with a good key. */
  isKnown = false;
  /** The next answer is this connection's last. */
  isEnding = false;
  /** How many bytes had come when the last answer was given: more since then are an unfinished request. */
  #answeredBytes = 0;
  #last: IncomingMessage | undefined;
  #waiting: Exchange[] = [];
  /** The last answer was given, or the client is gone. */
  isOver = false;
  /** The last answer was written, and the connection waits for the client to end it. */
  isLingering = false;
  /** The last request has come: nothing that follows on this connection is ever read as a request. */
  #isSealed = false;

  constructor(
    readonly socket: Socket,
    readonly serve: (connection: Connection, exchange: Exchange) => void,
    /** How long what the client still sends is read and dropped once the last answer is written. */
    public lingerMs: number,
    /** Called when the client sends more requests ahead than it may. */
    private readonly onFlood: () => void = () => undefined,
  ) {
    // Node ends a connection with this when an answer was its last.
    socket.destroySoon = () => this.#linger();
    socket.once('close', () => this.#end());
  }

  take(exchange: Exchange): void {
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
      // Each request that comes in one packet with others is read before the first is answered.
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

  /** Whether requests wait that were sent ahead. */
  get hasWaiting(): boolean {
    return this.#waiting.length > 0;
  }

  /** Whether the client is in the middle of sending something nobody has answered yet. */
  get owesAnswer(): boolean {
    const isMidBody = this.#last !== undefined && !this.#last.complete;
    return !this.isOver && !isMidBody && this.socket.bytesRead > this.#answeredBytes;
  }

  /** Gives the connection's last answer, where Node has no request to answer. */
  endWith(text: string): void {
    this.#end();
    this.socket.write(text);
    this.socket.destroySoon();
  }

  /** Closes a connection on which nothing is asked; one that is new gets a moment for its first request. */
  closeIfIdle(): void {
    if (this.#last === undefined) {
      const timer = setTimeout(() => this.#closeIfIdle(), firstRequestMs);
      this.socket.once('close', () => clearTimeout(timer));
    } else this.#closeIfIdle();
  }

  #closeIfIdle(): void {
    if (this.current === undefined && !this.isOver && !this.owesAnswer) this.socket.destroy();
  }

  #begin(exchange: Exchange): void {
    this.current = exchange;
    this.#last = exchange.request;
    if (asksForUpgrade(exchange.request)) this.isEnding = true;
    this.serve(this, exchange);
  }

  #end(): void {
    this.isOver = true;
    this.#waiting = [];
  }

  /**
   * Takes Node's parser off the connection: what still comes is read and dropped. Every request that is served was whole
   * before this is called, or its body is no longer wanted.
   */
  #stopParsing(): void {
    const { socket } = this;
    // Node's parser lets go of the connection when somebody else listens for data. Its own listener is removed too.
    socket.on('data', drop).removeAllListeners('data').on('data', drop);
  }

  /**
   * Ends our side, and takes what the client still sends off the wire for a moment: closing at once would reset the
   * connection, and the client could lose the answer with it.
   */
  #linger(): void {
    const { socket, lingerMs } = this;
    if (socket.destroyed) return;
    this.isLingering = true;
    socket.end();
    this.#stopParsing();
    socket.resume();
    const timer = setTimeout(() => socket.destroy(), lingerMs);
    socket.once('close', () => clearTimeout(timer));
  }
}

function drop(): void {}

/** Writes a stream's head at once, then its messages as the client takes them. Throws what ended it. */
export async function writeStream(
  response: ServerResponse,
  answer: { readonly status: number; messages(ending: AbortController): AsyncIterable<Buffer> },
  headers: string[],
  ending: AbortController,
  slowMs: number | undefined,
): Promise<void> {
  const { socket } = response.req;
  // A client that ends its side of the connection ends its stream: nothing else shows that it has left.
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

/** Writes the end, and closes the connection if it was its last answer, or if the end cannot be got rid of. */
export function endStream(response: ServerResponse, end: Buffer, isLast: boolean): void {
  const { socket } = response.req;
  const timer = setTimeout(() => socket.destroy(), slowEndMs);
  response.once('close', () => clearTimeout(timer));
  response.end(end, () => {
    if (isLast) socket.destroySoon();
  });
}
