import { isIP, type Socket } from 'node:net';
import { createSecureContext, rootCertificates, type SecureContext } from 'node:tls';
import type { buildConnector, Dispatcher } from 'undici';
import type { Clock } from '../../../../kit/clock.ts';
import { type ErrorClass, judgeError, judgeStatus, SendFailure, type SendResult } from '../rules.ts';
import { dialableLookup, mayDial, type ResolverOptions } from './addresses.ts';
import { type EndpointConnection, EndpointConnections, maxBodyBytes, undici } from './connections.ts';
import { type SigningKey, sign } from './signature.ts';

/** One sending of an event to an endpoint. */
export interface SendRequest {
  /** Each endpoint has its own connections, also if two are at the same host. */
  readonly endpointId: string;
  /** As `checkEndpointUrl` returned it. */
  readonly url: string;
  /** The event's id, the same in every attempt. */
  readonly id: string;
  /** The bytes of the event, the same in every attempt. */
  readonly body: Buffer;
  /** The signing keys, newest first. */
  readonly keys: readonly SigningKey[];
}

export interface WebhookSenderOptions extends ResolverOptions {
  readonly clock: Clock;
  /** Additional trusted certificate authorities in PEM, for tests. */
  readonly extraAuthorities?: string;
  /** The longest duration of an attempt, in milliseconds; 10 s by the contract. */
  readonly timeoutMs?: number;
  /** The number of endpoints whose connections are kept. */
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
 * Makes attempts to deliver events. Each dials only permitted addresses, follows no redirect, uses no proxy, decompresses
 * nothing and ends in time, whatever the endpoint does. The caller bounds the number of concurrent attempts.
 */
export class WebhookSender {
  /** By endpoint, the last used one last. Idle connections close by themselves. */
  readonly #connections = new Map<string, EndpointConnections>();
  readonly #connect: buildConnector.connector;
  readonly #dialling = new Set<Socket>();
  readonly #timeoutMs: number;

  constructor(private readonly options: WebhookSenderOptions) {
    this.#timeoutMs = options.timeoutMs ?? contractTimeoutMs;
    this.#connect = guardedConnector(options, this.#timeoutMs, this.#dialling);
  }

  /** The number of endpoints whose connections are kept. */
  get endpoints(): number {
    return this.#connections.size;
  }

  /**
   * Makes one attempt. Never throws: every failure is an outcome. It ends when the answer was read, cut at 64 KiB, or at the
   * time limit. The status alone decides, so a slow rest of the answer is no failure. If a reused connection breaks before a
   * byte of the answer has come, the attempt is repeated once on a new one, because an endpoint may close an idle connection
   * at any moment.
   *
   * @param onAhead Called when later requests arrive after this one: it is written to a reused connection, or answered on a
   * new one, where the endpoint may still be busy with the handshake. Not always called.
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

  /** Breaks off all attempts and closes all connections. */
  async close(): Promise<void> {
    const closing = [...this.#connections.values()];
    this.#connections.clear();
    for (const socket of this.#dialling) socket.destroy();
    await Promise.all(closing.map((connections) => connections.destroy(closed)));
  }

  /** An endpoint's connections. Those to a former URL close after their attempts. Undefined if the URL cannot be used. */
  #connectionsTo(endpointId: string, text: string): EndpointConnections | undefined {
    const kept = this.#connections.get(endpointId);
    this.#connections.delete(endpointId);
    if (kept?.address === text) {
      this.#connections.set(endpointId, kept);
      return kept;
    }
    kept?.close();
    const url = URL.canParse(text) ? new URL(text) : undefined;
    if (url?.protocol !== 'https:') return undefined;
    const made = new EndpointConnections(text, url, this.#connect);
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
  #connection: EndpointConnection;
  /** Bytes of earlier answers on the connection when the request was written to it. */
  #receivedBefore = 0;
  #bodyBytes = 0;
  #isSecondTry = false;
  #isOver = false;

  constructor(
    private readonly request: Dispatcher.DispatchOptions,
    timeoutMs: number,
    private readonly connections: EndpointConnections,
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
    // A spread takes many times as long, and this runs for each attempt.
    const { outcome, errorClass } = judgeStatus(status);
    this.#result = { outcome, status, errorClass, durationMs: this.#elapsedMs() };
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#bodyBytes += chunk.length;
    if (this.#bodyBytes > maxBodyBytes) this.#breakOff('invalid_response');
  }

  onResponseEnd(): void {
    if (this.#isOver) return;
    this.#end('invalid_response');
    this.connections.giveBack(this.#connection);
  }

  onResponseError(_controller: Dispatcher.DispatchController | undefined, error: Error): void {
    if (this.#isOver) return;
    if (!this.#isStaleConnection(error)) {
      this.#breakOff(judgeError(error));
      return;
    }
    this.#isSecondTry = true;
    void this.connections.discard(this.#connection, error);
    this.#connection = this.connections.takeNew();
    this.begin();
  }

  /** Whether an error only means that the endpoint closed an idle connection. */
  #isStaleConnection(error: Error): boolean {
    const isKept = this.#receivedBefore > 0 && this.#connection.bytesReceived === this.#receivedBefore;
    // The sender does not repeat an attempt that it broke off itself.
    const isTheirs = !(error instanceof SendFailure) && judgeError(error) === 'unreachable';
    return isKept && isTheirs && !this.#isSecondTry && !this.connections.isClosing;
  }

  /** Discards the connection, because its answer was not read to the end. A queued request is never sent. */
  #breakOff(errorClass: ErrorClass): void {
    if (this.#isOver) return;
    this.#end(errorClass);
    void this.connections.discard(this.#connection, new SendFailure(errorClass, 'the attempt is over'));
  }

  /** A status that was received stands, even if an error follows. */
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

/** undici's connector behind the address guard. `dialling` holds the sockets that are being connected. */
function guardedConnector(
  options: WebhookSenderOptions,
  timeoutMs: number,
  dialling: Set<Socket>,
): buildConnector.connector {
  const makeDial = () =>
    undici().buildConnector({
      secureContext: trusting(options.extraAuthorities),
      rejectUnauthorized: true,
      lookup: dialableLookup(options),
      timeout: timeoutMs,
      // Every connection verifies the endpoint's certificate again.
      maxCachedSessions: 0,
    }) as (...args: Parameters<buildConnector.connector>) => Socket;
  let dial: ReturnType<typeof makeDial> | undefined;
  return (target, callback) => {
    // The socket resolves a name through the guard, but dials an address directly.
    if (isIP(target.hostname) !== 0 && !mayDial(target.hostname, options)) {
      return callback(new SendFailure('blocked_address', `${target.hostname} is not a public address`), null);
    }
    let isConnected = false;
    dial ??= makeDial();
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
  // Made once, because reading all authorities takes milliseconds.
  return createSecureContext(extraAuthorities === undefined ? {} : { ca: [...rootCertificates, extraAuthorities] });
}
