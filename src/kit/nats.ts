import { connect, type Msg, type MsgHdrs, type NatsConnection } from 'nats';
import type { Logger } from './log.ts';
import { connectionOptions, type NatsAccess, plainNatsAccess } from './nats-access.ts';
import './nats-headers.ts';
import { pause } from './worker.ts';

type Receive = (message: Msg) => void;

/** Short, so that all processes reconnect to NATS at nearly the same time. */
const connectAgainMs = 100;
const connectJitterMs = 50;
/** The longest wait until a server that refuses the login or certificate is tried again: each try is a line in its log. */
const longestWaitMs = 2_000;
const flushTimeoutMs = 500;
const logAgainMs = 60_000;

/**
 * How long a stream may not answer while JetStream does, before it is made again: the server that alone had it is gone, or too
 * many of those that had it. A cluster says 404 only if it was deleted. Choosing a new leader of several copies takes up to 20 s.
 */
export function offlineMs(copies: number): number {
  return copies === 1 ? 5_000 : 30_000;
}

/** The process's one connection to NATS. It reconnects for ever, and callers continue without it meanwhile. */
export class Nats {
  readonly #subscriptions: { readonly subject: string; readonly receive: Receive }[] = [];
  readonly #watchers: ((isConnected: boolean) => void)[] = [];
  readonly #closing = new AbortController();
  #connection: NatsConnection | undefined;
  #isConnected = false;
  #running: Promise<void> | undefined;
  #refusal: string | undefined;
  /** How many tries in a row ended with a server that does not admit us. */
  #refusals = 0;
  /** When a message that could not be handled was logged last. */
  #failureLoggedAt = Number.NEGATIVE_INFINITY;

  readonly #access: () => NatsAccess;

  /**
   * `access`: how NATS is reached now, asked at each connection; `url` is enough for one without certificates.
   * `countFailure` counts a message at which its receiver threw, which is a defect.
   */
  constructor(
    private readonly options: { readonly log: Logger; readonly countFailure?: () => void } & (
      | { readonly url: string }
      | { readonly access: () => NatsAccess }
    ),
  ) {
    this.#access = 'access' in options ? options.access : () => plainNatsAccess(options.url);
  }

  /** The connection, while the server is reachable as far as is known. */
  get connection(): NatsConnection | undefined {
    // A connection that is being closed is closed before it reports that, and sending over it throws.
    const connection = this.#connection;
    const isUsable = this.#isConnected && connection?.isClosed() === false && !connection.isDraining();
    return isUsable ? connection : undefined;
  }

  /** The connection. Throws while there is none. */
  requireConnection(): NatsConnection {
    const { connection } = this;
    if (connection === undefined) throw new Error('NATS cannot be reached');
    return connection;
  }

  /**
   * Calls `receive` with each message of a subject, over all later connections too. Messages can be lost. One at which it
   * throws is logged, because the error would end nats.js's loop of messages, and the connection with it.
   */
  subscribe(subject: string, receive: Receive): void {
    const guarded = (message: Msg) => {
      try {
        receive(message);
      } catch (error) {
        this.#failed(subject, error);
      }
    };
    const subscription = { subject, receive: guarded };
    this.#subscriptions.push(subscription);
    if (this.#connection?.isClosed() === false) subscribeOn(this.#connection, subscription);
  }

  /** Publishes a message if NATS is connected. */
  publish(subject: string, text = '', headers?: MsgHdrs): void {
    this.connection?.publish(subject, text, headers && { headers });
  }

  /** Sends a question and waits for an answer, at most the given time; undefined if there is none. Never throws. */
  async ask(subject: string, text: string, timeoutMs: number, headers?: MsgHdrs): Promise<Msg | undefined> {
    return await this.connection
      ?.request(subject, text, { timeout: timeoutMs, ...(headers && { headers }) })
      .catch(() => undefined);
  }

  /** Waits until NATS has received all earlier messages, at most 500 ms. Never throws. */
  async flush(): Promise<void> {
    const flushed = this.connection?.flush().catch(() => undefined);
    await Promise.race([flushed, pause(flushTimeoutMs, this.#closing.signal)]);
  }

  /** Calls the watcher whenever the connection is restored or lost. */
  onChange(watcher: (isConnected: boolean) => void): void {
    this.#watchers.push(watcher);
  }

  /** Connects. If NATS is away, it keeps trying in the background. */
  async start(): Promise<void> {
    const connection = await this.#connect().catch((error: unknown) => {
      const message =
        'NATS cannot be reached; events go on without it, and each replica keeps to its share of the limits';
      this.options.log.warn({ err: error }, message);
      this.#changed(false);
      return undefined;
    });
    this.#running = this.#keepConnected(connection);
    await this.flush();
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#connection?.close();
    await this.#running;
  }

  async #keepConnected(first: NatsConnection | undefined): Promise<void> {
    const { signal } = this.#closing;
    for (let connection = first; ; connection = await this.#connect().catch(this.#logRefusal)) {
      if (connection !== undefined) {
        if (signal.aborted) await connection.close();
        // The connection restores itself. It ends only if the server refuses it, and that may change.
        await connection.closed();
        this.#changed(false);
      }
      await pause(Math.min(connectAgainMs * 2 ** this.#refusals, longestWaitMs), signal);
      if (signal.aborted) return;
    }
  }

  /** Once for each reason in a row, because it is tried many times a second. */
  readonly #logRefusal = (error: unknown): undefined => {
    const { code } = error as { readonly code?: string };
    if (code !== this.#refusal) this.options.log.warn({ err: error }, 'NATS cannot be connected to');
    this.#refusal = code;
    // A server that is away is found at once when it is back.
    this.#refusals = /^AUTH|CERT|SSL|TLS/.test(code ?? '') ? this.#refusals + 1 : 0;
  };

  async #connect(): Promise<NatsConnection> {
    const connection = await connect({
      ...connectionOptions(this.#access),
      maxReconnectAttempts: -1,
      reconnectTimeWait: connectAgainMs,
      reconnectJitter: connectJitterMs,
      pingInterval: 5_000,
      maxPingOut: 2,
    });
    this.#connection = connection;
    this.#refusal = undefined;
    this.#refusals = 0;
    for (const subscription of this.#subscriptions) subscribeOn(connection, subscription);
    void this.#watch(connection);
    this.#changed(true);
    return connection;
  }

  async #watch(connection: NatsConnection): Promise<void> {
    for await (const { type } of connection.status()) {
      if (type !== 'disconnect' && type !== 'reconnect') continue;
      this.options.log.warn({ status: type }, 'NATS');
      this.#changed(type === 'reconnect');
    }
  }

  /** A failure is counted each time, and logged once a minute, because messages may come fast. */
  #failed(subject: string, error: unknown): void {
    this.options.countFailure?.();
    const now = performance.now();
    if (now - this.#failureLoggedAt < logAgainMs) return;
    this.#failureLoggedAt = now;
    this.options.log.error({ err: error, subject }, 'a message of NATS could not be handled');
  }

  #changed(isConnected: boolean): void {
    this.#isConnected = isConnected;
    for (const watch of this.#watchers) watch(isConnected);
  }
}

function subscribeOn(connection: NatsConnection, { subject, receive }: { subject: string; receive: Receive }): void {
  connection.subscribe(subject, {
    callback: (error, message) => {
      if (error === null) receive(message);
    },
  });
}
