import type { DescMessage, DescMethod, Message, MessageInitShape, MessageShape } from '@bufbuild/protobuf';
import { type Timestamp, timestampMs } from '@bufbuild/protobuf/wkt';
import { Client, Metadata, status } from '@grpc/grpc-js';
import {
  channelDefaults,
  codeOf,
  createGrpcClient,
  type GrpcClient,
  isConnected,
  statusOf,
  type UnaryCallOptions,
  untilConnected,
} from '../../../kit/grpc-client.ts';
import type { TypedService } from '../../../kit/grpc-service.ts';
import { channelTls, type LinkTls } from '../../../kit/link.ts';
import type { Logger } from '../../../kit/log.ts';
import { passingTracer, type Tracer, traceIdOf } from '../../../kit/trace.ts';
import type { Live } from '../../../kit/watched-files.ts';
import { ApiError, type ErrorCode } from '../../edge/errors.ts';
import type { Metrics } from '../../edge/metrics.ts';
import type { Origin } from '../../edge/origin.ts';
import type { LookedUp, Sent } from './broker.ts';
import { BrokerClock } from './clock.ts';
import { withRightTexts, wrongText } from './rules.ts';

const channelOptions = {
  'grpc.initial_reconnect_backoff_ms': 100,
  'grpc.max_reconnect_backoff_ms': 1_000,
  'grpc.keepalive_time_ms': 10_000,
  'grpc.keepalive_timeout_ms': 5_000,
};

/** How long a call waits for a link before it counts as never sent: longer than the pause between two tries. */
const connectTimeoutMs = 1_500;
/** How long a connection with new certificates may take that is made to try them. */
const proofTimeoutMs = 5_000;
/** A stream of reports has a message every second. One that is silent for this long counts as dead. */
const longestSilenceMs = 5_000;

/** A call's context. */
export interface CallAbout {
  /** Undefined: the gateway's own. */
  readonly origin?: Origin | undefined;
  readonly objectId?: string | undefined;
  /** Absent: as long as a read. */
  readonly timeoutMs?: number | undefined;
}

/** What connecting to the broker needs. */
export interface BrokerAccess {
  readonly tls: LinkTls | undefined;
}

/** How the broker is reached. */
export interface BrokerOptions {
  /** `host:port` of the broker's services. */
  readonly address: string;
  /** Absent: it speaks plain text. */
  readonly access?: Live<BrokerAccess>;
  /** The longest submission or cancel. */
  readonly submitTimeoutMs: number;
  /** The longest read. */
  readonly readTimeoutMs: number;
  readonly clock?: BrokerClock;
  readonly log?: Logger;
  readonly tracer?: Tracer;
  readonly metrics?: Pick<Metrics, 'upstreamCalls'>;
}

/** A part with connections of its own. */
export interface Closable {
  close(): void;
}

export function closeAll(parts: readonly Closable[]): void {
  for (const part of parts) part.close();
}

/** Throws if no connection comes about in time. */
export async function proveAccess(addresses: readonly string[], { tls }: BrokerAccess): Promise<void> {
  const { options, credentials } = channelTls(tls);
  const proofs = addresses.map(async (address) => {
    const client = new Client(address, credentials, { ...channelDefaults, ...channelOptions, ...options });
    try {
      await untilConnected(client, Date.now() + proofTimeoutMs);
    } finally {
      client.close();
    }
  });
  await Promise.all(proofs);
}

/** The names of a service's unary calls. */
type UnaryName<Service extends TypedService> = {
  [Name in keyof Service['method']]: Service['method'][Name]['methodKind'] extends 'unary' ? Name & string : never;
}[keyof Service['method']];

type Request<S extends TypedService, Name extends UnaryName<S>> = MessageInitShape<S['method'][Name]['input']>;
type Answer<S extends TypedService, Name extends UnaryName<S>> = MessageShape<S['method'][Name]['output']>;

type AnyUnaryCall<M extends DescMethod> = (
  request: MessageInitShape<M['input']>,
  options: UnaryCallOptions,
) => Promise<MessageShape<M['output']>>;

/** A call that is under way. */
interface CallUnderWay {
  /** The request's id and its place in a trace. */
  readonly metadata: Metadata;
  /** `ok`, `nonsense`, `never_left`, or the gRPC status in lower case. */
  readonly end: (outcome: string) => void;
}

interface Batch<Report> {
  readonly reports: readonly Report[];
  /** The number of the last existing report; 0: not stated. */
  readonly lastNumber: bigint;
  readonly brokerTime?: Timestamp | undefined;
}

/** The evidence of an answer that makes no sense. */
const nonsense = 'the answer made no sense';

/**
 * A connection to one service of the broker. It is replaced after a call without an answer in time, because it may be
 * dead without showing it. Calls under way over the old one continue. Each call makes a log line, a metric and a span.
 */
export class BrokerConnection<Service extends TypedService> {
  #client: GrpcClient<Service>;
  /** The next client, while it is connecting with new certificates. */
  #next: GrpcClient<Service> | undefined;
  readonly #clock: BrokerClock;
  readonly #log: Logger | undefined;
  /** The fields of reports whose texts were not printable, each logged once. */
  readonly #wrongFields = new Set<string>();

  constructor(
    private readonly service: Service,
    /** The other side's name in the evidence of an outcome. */
    private readonly upstream: 'exchange' | 'broker',
    private readonly options: BrokerOptions,
    /** False: the caller itself deals with texts that are not printable. */
    private readonly checksTexts = true,
  ) {
    this.#client = this.#connect();
    options.access?.onChange(() => this.#renew());
    this.#clock = options.clock ?? new BrokerClock(0);
    // This file chooses every member of the line, so the search for secrets is off.
    this.#log = options.log?.child({}, { redact: [] });
  }

  get connected(): boolean {
    return isConnected(this.#client.grpcClient);
  }

  /**
   * Makes one call. Errors are grpc-js's, unchanged. An answer with a text that is not printable is `exchange_error`, here and in
   * every other call.
   */
  async call<Name extends UnaryName<Service>>(
    name: Name,
    request: Request<Service, Name>,
    about: CallAbout,
  ): Promise<Answer<Service, Name>> {
    const underWay = this.#begin(name, about);
    try {
      const answer = await this.#call(name, request, about.timeoutMs ?? this.options.readTimeoutMs, underWay);
      underWay.end('ok');
      return answer;
    } catch (error) {
      underWay.end(outcomeOf(error));
      throw error;
    }
  }

  /**
   * A failed read changed nothing. Throws `missing` if the broker does not have it, `exchange_error` if the answer makes
   * no sense, and otherwise `exchange_unavailable`.
   */
  async read<Name extends UnaryName<Service>>(
    name: Name,
    request: Request<Service, Name>,
    about: CallAbout,
    missing: ErrorCode,
    makesSense: (answer: Answer<Service, Name>) => boolean,
  ): Promise<Answer<Service, Name>> {
    const answer = await this.call(name, request, about).catch((error: unknown) => {
      if (error instanceof ApiError) throw error;
      const code = codeOf(error);
      if (code === status.NOT_FOUND) throw new ApiError(missing, { cause: error });
      const isNonsense = code === status.INTERNAL || code === status.UNIMPLEMENTED;
      throw new ApiError(isNonsense ? 'exchange_error' : 'exchange_unavailable', { cause: error });
    });
    if (!makesSense(answer)) throw new ApiError('exchange_error');
    return answer;
  }

  /** Queries the broker's record of an object. `found` returns undefined if the record does not have it. */
  async lookUp<Name extends UnaryName<Service>, Found>(
    name: Name,
    request: Request<Service, Name>,
    about: CallAbout,
    found: (answer: Answer<Service, Name>) => Found | undefined,
  ): Promise<LookedUp<Found>> {
    const askedAt = performance.now();
    const answer = await this.call(name, request, about);
    const value = found(answer);
    if (value !== undefined) return { found: true, answer: value };
    const { completeUntil, brokerTime } = answer as {
      readonly completeUntil?: Timestamp;
      readonly brokerTime?: Timestamp;
    };
    const tookMs = performance.now() - askedAt;
    return {
      found: false,
      completeUntil: completeUntil && timestampMs(completeUntil),
      brokerTime: brokerTime && timestampMs(brokerTime) - tookMs,
    };
  }

  /**
   * Sends something once, within its time, and returns the outcome. `read` returns undefined if the answer makes no
   * sense. `refusalProves`: whether the status "too late" proves that it was not and will not be taken. Does not throw.
   */
  async send<Name extends UnaryName<Service>, Read>(
    name: Name,
    request: Request<Service, Name>,
    notAfterMs: number,
    about: CallAbout,
    read: (answer: Answer<Service, Name>) => Read | undefined,
    refusalProves = true,
  ): Promise<Sent<Read>> {
    const underWay = this.#begin(name, about);
    const neverLeft = (evidence: string): Sent<Read> => {
      underWay.end('never_left');
      return { outcome: 'never-left', evidence };
    };
    const unreachable = await this.#waitForLink();
    if (unreachable !== undefined) return neverLeft(unreachable);
    const timeoutMs = Math.min(this.options.submitTimeoutMs, notAfterMs - Date.now());
    if (timeoutMs <= 0) return neverLeft('its time had run out before it was sent');
    try {
      const answer = read(await this.#call(name, request, timeoutMs, underWay));
      underWay.end(answer === undefined ? 'nonsense' : 'ok');
      return answer === undefined ? { outcome: 'unclear', evidence: nonsense } : { outcome: 'answered', answer };
    } catch (error) {
      underWay.end(outcomeOf(error));
      if (refusalProves && codeOf(error) === status.FAILED_PRECONDITION) {
        return { outcome: 'never-left', evidence: `the ${this.upstream} refused it as too late` };
      }
      return { outcome: 'unclear', evidence: evidenceOf(error) };
    }
  }

  /**
   * The batches of a stream of reports above a number, over its own connection. The stream must have a message every few
   * seconds and end without a gap. Throws if it breaks, falls silent or ends. Also throws if the broker has fewer reports
   * than asked for: it has lost reports or restarted its numbers, so new reports would pass for old ones.
   */
  async *follow<Report extends Message & { readonly number: bigint }>(
    open: (client: GrpcClient<Service>, signal: AbortSignal) => AsyncIterable<Batch<Report>>,
    afterNumber: bigint,
    signal: AbortSignal,
  ): AsyncIterable<readonly Report[]> {
    // A broken stream may have left a dead connection that does not show it.
    const client = this.#connect();
    const silence = new AbortController();
    const timer = setTimeout(() => silence.abort(), longestSilenceMs);
    try {
      let last = afterNumber;
      const batches = open(client, AbortSignal.any([signal, silence.signal]));
      for await (const { reports, lastNumber, brokerTime } of batches) {
        timer.refresh();
        this.#clock.streamed(brokerTime);
        if (lastNumber !== 0n && lastNumber < afterNumber) {
          throw new Error(`the broker's last report is ${lastNumber}, and reports up to ${afterNumber} were applied`);
        }
        for (const { number } of reports) if (number > last) last = number;
        yield reports.map((report) => this.#withRightTexts(report));
        if (lastNumber > last) throw new Error('the stream left out its last reports');
        timer.refresh(); // The time that the consumer needed is not the broker's silence.
      }
      throw new Error('the stream of reports ended');
    } finally {
      clearTimeout(timer);
      client.close();
    }
  }

  #withRightTexts<Report extends Message>(report: Report): Report {
    const schema = reportOf(this.service);
    const field = wrongText(schema, report);
    if (field === undefined) return report;
    if (!this.#wrongFields.has(field)) {
      this.#wrongFields.add(field);
      this.#log?.warn({ service: this.service.name, field }, 'the broker reports a text that is not printable');
    }
    return withRightTexts(schema, report);
  }

  close(): void {
    this.#next?.close();
    this.#client.close();
  }

  #connect(): GrpcClient<Service> {
    const { address, access } = this.options;
    const { options, credentials } = channelTls(access?.current.tls);
    return createGrpcClient(this.service, address, { ...channelOptions, ...options }, credentials);
  }

  /** Connects with new certificates. Calls go over the former connection until the new one is up. */
  #renew(): void {
    this.#next?.close();
    const next = this.#connect();
    this.#next = next;
    const takeOver = () => {
      if (this.#next !== next) return;
      const former = this.#client;
      this.#client = next;
      this.#next = undefined;
      former.close();
    };
    // It fails only when the client is closed.
    untilConnected(next.grpcClient, Number.POSITIVE_INFINITY).then(takeOver, () => undefined);
  }

  #begin(name: UnaryName<Service>, { origin, objectId }: CallAbout): CallUnderWay {
    const { tracer = passingTracer, metrics } = this.options;
    const method = `${this.service.name}.${this.service.method[name]?.name}`;
    const startedAt = performance.now();
    const span = tracer.begin({ name: method, kind: 'client', parent: origin?.traceParent ?? null });
    const { traceParent } = span;
    const metadata = new Metadata();
    if (origin?.requestId) metadata.set('x-request-id', origin.requestId);
    if (traceParent !== null) metadata.set('traceparent', traceParent);
    const end = (outcome: string) => {
      const durationMs = Math.round((performance.now() - startedAt) * 1_000) / 1_000;
      const { requestId, partnerId } = origin ?? {};
      const traceId = traceIdOf(traceParent);
      this.#log?.info({ requestId, partnerId, objectId, method, outcome, durationMs, traceId }, 'upstream call');
      metrics?.upstreamCalls.observe({ method, outcome }, durationMs / 1_000);
      const attributes = {
        'rpc.system': 'grpc',
        'rpc.method': method,
        'marina.outcome': outcome,
        'marina.object_id': objectId,
      };
      span.end({ failed: outcome !== 'ok' && outcome !== 'not_found', attributes });
    };
    return { metadata, end };
  }

  async #call<Name extends UnaryName<Service>>(
    name: Name,
    request: Request<Service, Name>,
    timeoutMs: number,
    { metadata }: CallUnderWay,
  ): Promise<Answer<Service, Name>> {
    const used = this.#client;
    // The compiler cannot see that the client has a call for each unary method.
    const calls = used as unknown as Record<Name, AnyUnaryCall<Service['method'][Name]>>;
    const sentAt = this.#clock.now();
    try {
      const answer = await calls[name](request, { timeoutMs, metadata });
      // Every answer may state the broker's time.
      this.#clock.answered(sentAt, (answer as { readonly brokerTime?: Timestamp }).brokerTime);
      if (this.checksTexts && wrongText(this.service.method[name]?.output as DescMessage, answer) !== undefined) {
        throw new ApiError('exchange_error');
      }
      return answer;
    } catch (error) {
      if (codeOf(error) === status.DEADLINE_EXCEEDED && used === this.#client) {
        this.#client = this.#connect();
        used.close();
      }
      throw error;
    }
  }

  /** Waits until the link is up, or returns why it is down: a call could not be sent. */
  async #waitForLink(): Promise<string | undefined> {
    const deadline = Date.now() + connectTimeoutMs;
    while (!this.connected) {
      const { grpcClient } = this.#client;
      try {
        await untilConnected(grpcClient, deadline);
      } catch {
        // One that was replaced meanwhile says nothing about the link.
        const isReplaced = grpcClient !== this.#client.grpcClient;
        if (!isReplaced) return `there was no connection to the ${this.upstream}`;
      }
    }
    return undefined;
  }
}

/** The evidence from a failed call: its status, never the broker's own text. */
export function evidenceOf(error: unknown): string {
  if (error instanceof ApiError) return nonsense;
  return codeOf(error) === undefined ? 'no answer' : `no answer: ${outcomeOf(error).replaceAll('_', ' ')}`;
}

/** The message of a service's reports, of which it has one stream. */
function reportOf({ methods }: TypedService): DescMessage {
  const stream = methods.find(({ methodKind }) => methodKind === 'server_streaming');
  const report = stream?.output.fields.find(({ name }) => name === 'reports')?.message;
  if (report === undefined) throw new Error('the service has no stream of reports');
  return report;
}

function outcomeOf(error: unknown): string {
  if (error instanceof ApiError) return 'nonsense';
  return codeOf(error) === undefined ? 'no_answer' : (statusOf(error) ?? 'unknown');
}
