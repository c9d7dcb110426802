import type { DescMethod, MessageInitShape, MessageShape } from '@bufbuild/protobuf';
import type { Timestamp } from '@bufbuild/protobuf/wkt';
import { connectivityState, type ServiceError, status } from '@grpc/grpc-js';
import { createGrpcClient, type GrpcClient, type UnaryCallOptions } from '../lib/grpc-client.ts';
import type { TypedService } from '../lib/grpc-service.ts';
import type { Origin } from '../lib/origin.ts';
import { type CallUnderWay, UpstreamCalls } from './calls.ts';
import type { BrokerClock } from './clock.ts';
import type { Sent } from './port.ts';

export const channelOptions = {
  'grpc.initial_reconnect_backoff_ms': 100,
  'grpc.max_reconnect_backoff_ms': 1_000,
  'grpc.keepalive_time_ms': 10_000,
  'grpc.keepalive_timeout_ms': 5_000,
};

/**
 * How long a link that is down may take to come up before a call is said never to have left: longer than the pause between
 * two tries, so that it was tried.
 */
const connectTimeoutMs = 1_500;

/** What is said of a call beside its request. */
export interface CallAbout {
  readonly timeoutMs: number;
  /** On whose behalf; undefined: the gateway's own. */
  readonly origin?: Origin | undefined;
  /** The object it is about. */
  readonly objectId?: string | undefined;
}

/** The same of a send. */
export interface SendAbout extends Omit<CallAbout, 'timeoutMs'> {
  readonly notAfterMs: number;
  readonly longestMs: number;
}

/** The names of a service's calls that have one answer. */
type UnaryName<Service extends TypedService> = {
  [Name in keyof Service['method']]: Service['method'][Name]['methodKind'] extends 'unary' ? Name & string : never;
}[keyof Service['method']];

type AnyUnaryCall<M extends DescMethod> = (
  request: MessageInitShape<M['input']>,
  options: UnaryCallOptions,
) => Promise<MessageShape<M['output']>>;

/** How a service of the broker is reached. */
export interface GrpcBrokerOptions {
  /** `host:port` of the broker's service. */
  readonly address: string;
  /** How long a submission or a cancel may take. */
  readonly submitTimeoutMs: number;
  /** How long a read may take. */
  readonly readTimeoutMs: number;
  /** Notes each call. */
  readonly calls?: UpstreamCalls;
}

/**
 * A connection to one service of the broker, replaced once a call over it got no answer in time: it may be dead and not
 * show it, and what follows is better off with a new one. Calls that are under way over the old one go on to their end.
 */
export class Connection<Service extends TypedService> {
  #client: GrpcClient<Service>;

  constructor(
    private readonly service: Service,
    private readonly address: string,
    /** What the other side is called in what proves an outcome. */
    private readonly upstream: 'exchange' | 'broker',
    private readonly calls: UpstreamCalls,
  ) {
    this.#client = createGrpcClient(service, address, channelOptions);
  }

  get connected(): boolean {
    return this.#client.grpcClient.getChannel().getConnectivityState(true) === connectivityState.READY;
  }

  /** Makes one call. Errors are grpc-js's, unchanged. */
  async call<Name extends UnaryName<Service>>(
    name: Name,
    request: MessageInitShape<Service['method'][Name]['input']>,
    about: CallAbout,
  ): Promise<MessageShape<Service['method'][Name]['output']>> {
    const underWay = this.#begin(name, about);
    try {
      const answer = await this.#call(name, request, about.timeoutMs, underWay);
      underWay.end('ok');
      return answer;
    } catch (error) {
      underWay.end(outcomeOf(error));
      throw error;
    }
  }

  /**
   * Sends something once, in the time it has at most, and says what that came to. `read` answers undefined where the
   * answer makes no sense. `isRefusal` says whether a status proves that it was not and will not be taken. Does not throw.
   */
  async send<Name extends UnaryName<Service>, Answer>(
    name: Name,
    request: MessageInitShape<Service['method'][Name]['input']>,
    { notAfterMs, longestMs, origin, objectId }: SendAbout,
    read: (answer: MessageShape<Service['method'][Name]['output']>) => Answer | undefined,
    isRefusal: (code: status | undefined) => boolean = isTooLate,
  ): Promise<Sent<Answer>> {
    const underWay = this.#begin(name, { origin, objectId });
    const neverLeft = (evidence: string): Sent<Answer> => {
      underWay.end('never_left');
      return { outcome: 'never-left', evidence };
    };
    const unreachable = await this.#waitForLink();
    if (unreachable !== undefined) return neverLeft(unreachable);
    const timeoutMs = Math.min(longestMs, notAfterMs - Date.now());
    if (timeoutMs <= 0) return neverLeft('its time had run out before it was sent');
    try {
      const answer = read(await this.#call(name, request, timeoutMs, underWay));
      underWay.end(answer === undefined ? 'nonsense' : 'ok');
      return answer === undefined
        ? { outcome: 'unclear', evidence: 'the answer made no sense' }
        : { outcome: 'answered', answer };
    } catch (error) {
      underWay.end(outcomeOf(error));
      if (isRefusal(codeOf(error))) {
        return { outcome: 'never-left', evidence: `the ${this.upstream} refused it as too late` };
      }
      return { outcome: 'unclear', evidence: evidenceOf(error) };
    }
  }

  close(): void {
    this.#client.close();
  }

  #begin(name: UnaryName<Service>, { origin, objectId }: Pick<CallAbout, 'origin' | 'objectId'>): CallUnderWay {
    const method = `${this.service.name}.${this.service.method[name]?.name}`;
    return this.calls.begin({ method, origin, objectId });
  }

  async #call<Name extends UnaryName<Service>>(
    name: Name,
    request: MessageInitShape<Service['method'][Name]['input']>,
    timeoutMs: number,
    { metadata }: CallUnderWay,
  ): Promise<MessageShape<Service['method'][Name]['output']>> {
    const used = this.#client;
    // The compiler cannot see that the client has a call for each unary method.
    const calls = used as unknown as Record<Name, AnyUnaryCall<Service['method'][Name]>>;
    const { clock } = this.calls;
    const sentAt = clock.now();
    try {
      const answer = await calls[name](request, { timeoutMs, metadata });
      // Every answer may state the broker's time.
      clock.answered(sentAt, (answer as { readonly brokerTime?: Timestamp }).brokerTime);
      return answer;
    } catch (error) {
      if (codeOf(error) === status.DEADLINE_EXCEEDED && used === this.#client) {
        this.#client = createGrpcClient(this.service, this.address, channelOptions);
        used.close();
      }
      throw error;
    }
  }

  /** Waits until the link is up; otherwise says why a call would never leave, because there is nothing to leave by. */
  #waitForLink(): Promise<string | undefined> {
    if (this.connected) return Promise.resolve(undefined);
    return new Promise((resolve) => {
      this.#client.grpcClient.waitForReady(Date.now() + connectTimeoutMs, (error) =>
        resolve(error === undefined || error === null ? undefined : `there was no connection to the ${this.upstream}`),
      );
    });
  }
}

/** The one status that says it was not and will not be taken: its not_after had passed. */
function isTooLate(code: status | undefined): boolean {
  return code === status.FAILED_PRECONDITION;
}

export function codeOf(error: unknown): status | undefined {
  return (error as Partial<ServiceError>).code;
}

/** The status a call failed with, in a word; undefined for what is none. */
export function statusOf(error: unknown): string | undefined {
  const code = codeOf(error);
  return code === undefined ? undefined : status[code]?.toLowerCase();
}

/** What a failed call proves in a word: its status, never the broker's own text. */
export function evidenceOf(error: unknown): string {
  return codeOf(error) === undefined ? 'no answer' : `no answer: ${outcomeOf(error).replaceAll('_', ' ')}`;
}

/** A failed call's status in lower case. */
function outcomeOf(error: unknown): string {
  const code = codeOf(error);
  return code === undefined ? 'no_answer' : (status[code] ?? 'unknown').toLowerCase();
}

/**
 * One service of the broker that takes submissions. Submissions and look-ups have a connection each, so that a look-up that
 * hangs does not delay a submission.
 */
export class SubmissionService<Service extends TypedService> {
  protected readonly submissions: Connection<Service>;
  protected readonly lookUps: Connection<Service>;
  protected readonly clock: BrokerClock;

  constructor(
    service: Service,
    protected readonly options: GrpcBrokerOptions,
  ) {
    const { address, calls = new UpstreamCalls() } = options;
    this.submissions = new Connection(service, address, 'broker', calls);
    this.lookUps = new Connection(service, address, 'broker', calls);
    this.clock = calls.clock;
  }

  close(): void {
    this.submissions.close();
    this.lookUps.close();
  }
}
