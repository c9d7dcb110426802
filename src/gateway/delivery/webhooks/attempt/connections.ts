import { createRequire } from 'node:module';
import type { Socket } from 'node:net';
import type { buildConnector, Client } from 'undici';
import { SendFailure } from '../rules.ts';
import { AnswerHead, maxHeadBytes } from './answer-head.ts';

export const maxBodyBytes = 65_536;

/** undici is loaded for the first connection, because that takes a tenth of the time of a start. */
export const undici = (): typeof import('undici') => require('undici');
const require = createRequire(import.meta.url);

/** A connection for one attempt at a time. It dials at its first use, and again if its socket was closed. */
export class EndpointConnection {
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
      maxHeaderSize: maxHeadBytes,
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
export class EndpointConnections {
  readonly #all = new Set<EndpointConnection>();
  readonly #idle: EndpointConnection[] = [];
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
  take(): EndpointConnection {
    for (let kept = this.#idle.pop(); kept !== undefined; kept = this.#idle.pop()) {
      if (performance.now() - kept.bornAt < lifeMs) return kept;
      this.#remove(kept);
    }
    return this.takeNew();
  }

  /** A connection that was never used before. */
  takeNew(): EndpointConnection {
    const made = new EndpointConnection(this.url.origin, this.connect);
    made.client.on('disconnect', () => this.#drop(made));
    this.#all.add(made);
    return made;
  }

  /** Takes back a connection whose answer was read to its end. */
  giveBack(connection: EndpointConnection): void {
    if (this.isClosing) this.#remove(connection);
    else this.#idle.push(connection);
  }

  /** Breaks a connection off, with the attempt on it. */
  discard(connection: EndpointConnection, reason: Error): Promise<void> {
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
  #drop(connection: EndpointConnection): void {
    const index = this.#idle.indexOf(connection);
    if (index < 0) return;
    this.#idle.splice(index, 1);
    this.#remove(connection);
  }

  #remove(connection: EndpointConnection): void {
    this.#all.delete(connection);
    connection.client.close().catch(() => undefined); // It rejects if it is closed already.
  }
}

/**
 * Limits what a socket's reader gets of each answer: a strict head (`AnswerHead`) without informational answers (1xx), and the
 * largest body, framing included. undici breaks off after an unrequested `100 Continue`, refuses heads that other clients
 * read, and does not count framing.
 */
function limitAnswers(socket: Socket, onReceived: (bytes: number) => void): void {
  const read = socket.read.bind(socket);
  let requestedBytes = -1;
  let answerBytes = 0;
  let head: AnswerHead | undefined;

  socket.read = () => {
    for (;;) {
      const chunk = read() as Buffer | null;
      if (chunk === null) return null;
      // Requests are sent one at a time, so bytes after a new one belong to a new answer.
      if (socket.bytesWritten !== requestedBytes) {
        requestedBytes = socket.bytesWritten;
        answerBytes = 0;
        head = new AnswerHead();
      }
      answerBytes += chunk.length;
      onReceived(chunk.length);
      if (answerBytes > maxHeadBytes + maxBodyBytes) return fail('the answer is too long');
      if (head === undefined) return chunk;
      try {
        const answer = head.add(chunk);
        if (answer === undefined) continue;
        head = undefined;
        return answer;
      } catch (error) {
        return fail('the head could not be read', error);
      }
    }
  };

  function fail(message: string, cause?: unknown): null {
    socket.destroy(new SendFailure('invalid_response', message, cause));
    return null;
  }
}
