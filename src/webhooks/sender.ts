import { isIP, type Socket } from 'node:net';
import { createSecureContext, rootCertificates, type SecureContext } from 'node:tls';
import { buildConnector, type Dispatcher } from 'undici';
import type { Clock } from '../lib/clock.ts';
import { dialableLookup, mayDial, type ResolverOptions } from './addresses.ts';
import { type Connection, Connections, mostBodyBytes } from './connections.ts';
import { type ErrorClass, judgeError, judgeStatus, SendFailure, type SendResult } from './rules.ts';
import { type SigningKey, sign } from './signature.ts';

/** What is sent once to an endpoint. */
export interface SendRequest {
  /** Whose connections are used. Those of one endpoint serve no other, though both may be at the same host. */
  readonly endpointId: string;
  /** As `checkEndpointUrl` answered it. */
  readonly url: string;
  /** The event's id, the same in every attempt. */
  readonly id: string;
  /** The bytes of the event, the same in every attempt. */
  readonly body: Buffer;
  /** The keys it is signed with, the newest first. */
  readonly keys: readonly SigningKey[];
}

export interface SenderOptions extends ResolverOptions {
  readonly clock: Clock;
  /** Certificates of authorities trusted in addition to the known ones, in PEM, for tests. */
  readonly extraAuthorities?: string;
  /** How long an attempt may take in all, in milliseconds; 10 seconds by the contract. */
  readonly timeoutMs?: number;
  /** How many endpoints' connections are kept. */
  readonly mostEndpoints?: number;
}

const contractTimeoutMs = 10_000;
const usualEndpoints = 1_000;

const unreadableUrl: SendResult = {
  outcome: 'endpoint-failed',
  status: null,
  errorClass: 'invalid_url',
  durationMs: 0,
};

/**
 * Makes attempts to deliver events. Each dials only addresses that may be dialled, follows no redirect, uses no proxy,
 * unpacks nothing and ends in time, whatever the endpoint does. How many are under way at once is the caller's business.
 */
export class Sender {
  /** By endpoint, the one used last stands last. Idle connections close by themselves. */
  readonly #connections = new Map<string, Connections>();
  readonly #connect: buildConnector.connector;
  readonly #dialling = new Set<Socket>();
  readonly #timeoutMs: number;

  constructor(private readonly options: SenderOptions) {
    this.#timeoutMs = options.timeoutMs ?? contractTimeoutMs;
    this.#connect = guardedConnector(options, this.#timeoutMs, this.#dialling);
  }

  /** How many endpoints' connections are kept. */
  get endpoints(): number {
    return this.#connections.size;
  }

  /**
   * Makes one attempt. It never throws: whatever goes wrong is an outcome. It ends when the answer was read, cut at 64
   * KiB, or the time is up; the status alone decides, so an event is delivered also when the rest of the answer is slow.
   * If a connection that served before breaks before a byte of the answer has come, the attempt goes on by a new one,
   * once: an endpoint may close an idle connection at any moment, and that says nothing about how it fares.
   *
   * @param onAhead Called when what is sent from now on arrives after it: it is written to a connection that served
   *   before, or answered on a new one, where the endpoint may be busy with the handshake still. Not always called.
   */
  send({ endpointId, url, id, body, keys }: SendRequest, onAhead: () => void = () => undefined): Promise<SendResult> {
    const connections = this.#connectionsTo(endpointId, url);
    if (connections === undefined) return Promise.resolve(unreadableUrl);
    const timestampSeconds = Math.floor(this.options.clock.realNow() / 1_000);
    const signature = sign({ id, timestampSeconds, body }, keys);
    const request: Dispatcher.DispatchOptions = {
      method: 'POST',
      path: connections.url.pathname,
      body,
      headers: [
        ...['content-type', 'application/json', 'user-agent', 'Marina-Webhooks/1.0', 'webhook-id', id],
        ...['webhook-timestamp', String(timestampSeconds), 'webhook-signature', signature],
      ],
    };
    return new Promise((resolve) => {
      new Exchange(request, this.#timeoutMs, connections, { onAhead, onOver: resolve }).begin();
    });
  }

  /** Breaks off what is under way and closes all connections. */
  async close(): Promise<void> {
    const closing = [...this.#connections.values()];
    this.#connections.clear();
    for (const socket of this.#dialling) socket.destroy();
    await Promise.all(closing.map((connections) => connections.destroy(closed)));
  }

  /**
   * The connections of an endpoint; those to where it was before are closed when they have done their work. Undefined when
   * its URL cannot be used: another version may have stored a form of URL that this one does not know.
   */
  #connectionsTo(endpointId: string, text: string): Connections | undefined {
    const kept = this.#connections.get(endpointId);
    this.#connections.delete(endpointId);
    if (kept?.address === text) {
      this.#connections.set(endpointId, kept);
      return kept;
    }
    kept?.close();
    const url = URL.canParse(text) ? new URL(text) : undefined;
    if (url?.protocol !== 'https:') return undefined;
    const made = new Connections(text, url, this.#connect);
    if (this.#connections.size >= (this.options.mostEndpoints ?? usualEndpoints)) this.#closeLeastUsed();
    this.#connections.set(endpointId, made);
    return made;
  }

  #closeLeastUsed(): void {
    for (const [endpointId, connections] of this.#connections) {
      if (connections.isBusy) continue;
      this.#connections.delete(endpointId);
      void connections.destroy(closed);
      return;
    }
  }
}

const closed = new SendFailure('unreachable', 'the sender closes its connections');

/** One attempt: a request and its answer, as undici reports them. */
class Exchange implements Dispatcher.DispatchHandler {
  readonly #startedAt = performance.now();
  readonly #timer: NodeJS.Timeout;
  #result: SendResult | undefined;
  #connection: Connection;
  /** How many bytes of earlier answers had come on the connection when the request was written to it. */
  #receivedBefore = 0;
  #bodyBytes = 0;
  #isSecondTry = false;
  #isOver = false;

  constructor(
    private readonly request: Dispatcher.DispatchOptions,
    timeoutMs: number,
    private readonly connections: Connections,
    private readonly on: { onAhead: () => void; onOver: (result: SendResult) => void },
  ) {
    this.#connection = connections.take();
    this.#timer = setTimeout(() => this.#breakOff('timeout'), timeoutMs);
  }

  begin(): void {
    this.#connection.client.dispatch(this.request, this);
  }

  onRequestStart(): void {
    this.#receivedBefore = this.#connection.bytesReceived;
    if (this.#receivedBefore > 0) this.on.onAhead();
  }

  onResponseStart(_controller: Dispatcher.DispatchController, status: number): void {
    if (this.#receivedBefore === 0) this.on.onAhead();
    this.#result = { ...judgeStatus(status), status, durationMs: this.#elapsedMs() };
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#bodyBytes += chunk.length;
    if (this.#bodyBytes > mostBodyBytes) this.#breakOff('invalid_response');
  }

  onResponseEnd(): void {
    if (this.#isOver) return;
    this.#end('invalid_response');
    this.connections.giveBack(this.#connection);
  }

  onResponseError(_controller: Dispatcher.DispatchController | undefined, error: Error): void {
    if (this.#isOver) return;
    if (!this.#isWornOut(error)) {
      this.#breakOff(judgeError(error));
      return;
    }
    this.#isSecondTry = true;
    void this.connections.discard(this.#connection, error);
    this.#connection = this.connections.takeNew();
    this.begin();
  }

  /** Whether an error says no more than that a connection that was kept is closed by now. */
  #isWornOut(error: Error): boolean {
    const isKept = this.#receivedBefore > 0 && this.#connection.bytesReceived === this.#receivedBefore;
    // What the sender itself closed is not begun again.
    const isTheirs = !(error instanceof SendFailure) && judgeError(error) === 'unreachable';
    return isKept && isTheirs && !this.#isSecondTry && !this.connections.isClosing;
  }

  /** An answer that is not read to its end takes the connection with it. What waits for a connection is never sent. */
  #breakOff(errorClass: ErrorClass): void {
    if (this.#isOver) return;
    this.#end(errorClass);
    void this.connections.discard(this.#connection, new SendFailure(errorClass, 'the attempt is over'));
  }

  /** Where a status came it stands, whatever came after. */
  #end(errorClass: ErrorClass): void {
    this.#isOver = true;
    clearTimeout(this.#timer);
    this.on.onOver(
      this.#result ?? { outcome: 'endpoint-failed', status: null, errorClass, durationMs: this.#elapsedMs() },
    );
  }

  #elapsedMs(): number {
    return Math.round(performance.now() - this.#startedAt);
  }
}

/**
 * Dials by undici's connector, with the address guard before it. What is being dialled is in `dialling`.
 */
function guardedConnector(options: SenderOptions, timeoutMs: number, dialling: Set<Socket>): buildConnector.connector {
  const dial = buildConnector({
    secureContext: trusting(options.extraAuthorities),
    rejectUnauthorized: true,
    lookup: dialableLookup(options),
    timeout: timeoutMs,
    // Every connection proves the endpoint's certificate anew.
    maxCachedSessions: 0,
  }) as (...args: Parameters<buildConnector.connector>) => Socket;
  return (target, callback) => {
    // For a name the socket asks the guard where to go; an address it would dial as it is.
    if (isIP(target.hostname) !== 0 && !mayDial(target.hostname, options)) {
      return callback(new SendFailure('blocked_address', `${target.hostname} is not a public address`), null);
    }
    let isConnected = false;
    const socket = dial(target, (error, connected) => {
      dialling.delete(socket);
      if (error !== null) {
        const isTls = isConnected && judgeError(error) !== 'timeout';
        return callback(isTls ? new SendFailure('tls', 'no secure connection', error) : error, null);
      }
      callback(null, connected);
    });
    dialling.add(socket);
    socket.once('connect', () => {
      isConnected = true;
    });
  };
}

function trusting(extraAuthorities: string | undefined): SecureContext {
  // Made once: reading all authorities takes milliseconds.
  return createSecureContext(extraAuthorities === undefined ? {} : { ca: [...rootCertificates, extraAuthorities] });
}
