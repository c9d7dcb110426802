import { createRequire } from 'node:module';
import type { Socket } from 'node:net';
import type { buildConnector, Client } from 'undici';
import { SendFailure } from './rules.ts';

const mostHeadBytes = 16_384;
export const mostBodyBytes = 65_536;

/** undici is loaded for the first connection, because that takes a tenth of the time of a start. */
export const undici = (): typeof import('undici') => require('undici');
const require = createRequire(import.meta.url);

/** A connection for one attempt at a time. It dials at its first use, and again if its socket was closed. */
export class Connection {
  readonly client: Client;
  readonly bornAt = performance.now();
  /** Bytes of answers received on its present socket: 0 if it was dialled for this attempt. */
  bytesReceived = 0;

  constructor(origin: string, connect: buildConnector.connector) {
    this.client = new (undici().Client)(origin, {
      connect: (target, callback) =>
        connect(target, (...[error, socket]) => {
          if (error !== null) return callback(error, null);
          this.bytesReceived = 0;
          limitAnswers(socket, (bytes) => {
            this.bytesReceived += bytes;
          });
          callback(null, socket);
        }),
      pipelining: 1,
      maxHeaderSize: mostHeadBytes,
      headersTimeout: 0,
      bodyTimeout: 0,
      // It stays open for the next event, unless the endpoint's Keep-Alive gives another time.
      keepAliveTimeout: 4_000,
      keepAliveMaxTimeout: 60_000,
    });
  }
}

/** The longest use of a connection, so that a name is resolved and checked again. */
const lifeMs = 60_000;

/** One endpoint's connections, last used first, so that spare ones go idle and close. undici's Pool scans all each time. */
export class Connections {
  readonly #all = new Set<Connection>();
  readonly #idle: Connection[] = [];
  /** Whether no new attempts may begin here. */
  isClosing = false;

  constructor(
    /** The URL as text, and parsed. */
    readonly address: string,
    readonly url: URL,
    private readonly connect: buildConnector.connector,
  ) {}

  get isBusy(): boolean {
    return this.#all.size > this.#idle.length;
  }

  /** A connection for one attempt. The caller gives it back or discards it. */
  take(): Connection {
    for (let kept = this.#idle.pop(); kept !== undefined; kept = this.#idle.pop()) {
      if (performance.now() - kept.bornAt < lifeMs) return kept;
      this.#remove(kept);
    }
    return this.takeNew();
  }

  /** A connection that was never used before. */
  takeNew(): Connection {
    const made = new Connection(this.url.origin, this.connect);
    made.client.on('disconnect', () => this.#drop(made));
    this.#all.add(made);
    return made;
  }

  /** Takes back a connection whose answer was read to its end. */
  giveBack(connection: Connection): void {
    if (this.isClosing) this.#remove(connection);
    else this.#idle.push(connection);
  }

  /** Breaks a connection off, with the attempt on it. */
  discard(connection: Connection, reason: Error): Promise<void> {
    this.#all.delete(connection);
    return connection.client.destroy(reason);
  }

  /** Closes the connections after their attempts have ended. */
  close(): void {
    this.isClosing = true;
    for (const connection of this.#idle.splice(0)) this.#remove(connection);
  }

  /** Breaks off all attempts, and closes the connections. */
  async destroy(reason: Error): Promise<void> {
    this.isClosing = true;
    this.#idle.length = 0;
    await Promise.all([...this.#all].map((connection) => this.discard(connection, reason)));
  }

  /** Removes an idle connection that was closed by the endpoint or because its time was over. */
  #drop(connection: Connection): void {
    const index = this.#idle.indexOf(connection);
    if (index < 0) return;
    this.#idle.splice(index, 1);
    this.#remove(connection);
  }

  #remove(connection: Connection): void {
    this.#all.delete(connection);
    connection.client.close().catch(() => undefined); // It rejects if it is closed already.
  }
}

/** The limit for all informational heads of one answer together. */
const mostInterimBytes = 8_192;
const startOfHead = 'HTTP/1.1 1';
const endOfHead = '\r\n\r\n';

/**
 * Limits what a socket's reader gets of each answer: the largest head and body, framing included, and no informational
 * answers (1xx). undici breaks off after an unrequested `100 Continue`, and does not count framing.
 */
function limitAnswers(socket: Socket, onReceived: (bytes: number) => void): void {
  const read = socket.read.bind(socket);
  let requestedBytes = -1;
  let answerBytes = 0;
  let isInterimPossible = true;
  let held: Buffer | undefined;

  socket.read = () => {
    for (;;) {
      const chunk = read() as Buffer | null;
      if (chunk === null) return null;
      // Requests are sent one at a time, so bytes after a new one belong to a new answer.
      if (socket.bytesWritten !== requestedBytes) {
        requestedBytes = socket.bytesWritten;
        answerBytes = 0;
        isInterimPossible = true;
        held = undefined;
      }
      answerBytes += chunk.length;
      onReceived(chunk.length);
      if (answerBytes > mostHeadBytes + mostBodyBytes) return fail('the answer is too long');
      if (!isInterimPossible) return chunk;
      const rest = skipInterim(held === undefined ? chunk : Buffer.concat([held, chunk]));
      if (rest.length > 0 && !mayBeInterim(rest)) {
        isInterimPossible = false;
        held = undefined;
        return rest;
      }
      held = rest;
      if (answerBytes > mostInterimBytes) return fail('informational answers do not end');
    }
  };

  function fail(message: string): null {
    socket.destroy(new SendFailure('invalid_response', message));
    return null;
  }
}

/** The bytes after complete informational heads. */
function skipInterim(bytes: Buffer): Buffer {
  let rest = bytes;
  while (rest.length > startOfHead.length && mayBeInterim(rest)) {
    const end = rest.indexOf(endOfHead);
    if (end < 0) break;
    rest = rest.subarray(end + endOfHead.length);
  }
  return rest;
}

/** Whether bytes are, or could become, an informational head. */
function mayBeInterim(bytes: Buffer): boolean {
  const start = bytes.toString('latin1', 0, Math.min(bytes.length, startOfHead.length));
  return startOfHead.startsWith(start.replace('HTTP/1.0', 'HTTP/1.1'));
}
