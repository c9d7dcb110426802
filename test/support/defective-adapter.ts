import type { DescMethod, MessageShape } from '@bufbuild/protobuf';
import {
  type handleServerStreamingCall,
  type handleUnaryCall,
  Server,
  ServerCredentials,
  status,
  type UntypedServiceImplementation,
} from '@grpc/grpc-js';
import { services } from '../../src/broker-check/session.ts';
import type { StreamApplicationReportsResponse } from '../../src/gen/marina/broker/v1/applications_pb.ts';
import type { StreamReportsResponse } from '../../src/gen/marina/broker/v1/orders_pb.ts';
import type { StreamWithdrawalReportsResponse } from '../../src/gen/marina/broker/v1/withdrawals_pb.ts';
import { createGrpcClient, type GrpcClient } from '../../src/kit/grpc-client.ts';
import { serviceDefinition, type TypedService } from '../../src/kit/grpc-service.ts';
import { pause } from '../../src/kit/worker.ts';

type Services = typeof services;
type UnaryName<S extends TypedService> = {
  [Name in keyof S['method']]: S['method'][Name]['methodKind'] extends 'unary' ? Name : never;
}[keyof S['method']];

/** A call that came to the adapter. */
export interface Call<Request, Answer> {
  readonly request: Request;
  readonly adapter: DefectiveAdapter;
  /** Asks the broker, with the same request or another. */
  next(request?: Request): Promise<Answer>;
}

type Handlers<S extends TypedService> = {
  readonly [Name in UnaryName<S>]?: (
    call: Call<MessageShape<S['method'][Name]['input']>, MessageShape<S['method'][Name]['output']>>,
  ) => Promise<MessageShape<S['method'][Name]['output']>>;
};

/** A stream that is open. */
export interface OpenStream {
  readonly adapter: DefectiveAdapter;
  readonly service: keyof Services;
  readonly afterNumber: bigint;
  /** How many streams of its kind were open when it was opened. */
  readonly others: number;
  /** Which stream of its kind it is, from 0. The kit follows 1, and opens 0 only to see where reports end. */
  readonly opened: number;
  /** Which message of the stream it is, from 0. */
  readonly at: number;
}

/** The calls and messages that an adapter answers wrongly. All other calls and messages it passes on as they are. */
export interface Defect {
  readonly orders?: Handlers<Services['Orders']>;
  readonly applications?: Handlers<Services['Applications']>;
  readonly allocations?: Handlers<Services['Allocations']>;
  readonly withdrawals?: Handlers<Services['Withdrawals']>;
  readonly accounts?: Handlers<Services['Accounts']>;
  readonly reference?: Handlers<Services['Reference']>;
  readonly submissions?: Handlers<Services['Submissions']>;
  readonly statements?: Handlers<Services['Statements']>;
  /** Changes a message of the stream of reports about orders. Undefined: it is not sent. */
  readonly reports?: (message: StreamReportsResponse, stream: OpenStream) => StreamReportsResponse | undefined;
  readonly applicationReports?: (
    message: StreamApplicationReportsResponse,
    stream: OpenStream,
  ) => StreamApplicationReportsResponse | undefined;
  readonly withdrawalReports?: (
    message: StreamWithdrawalReportsResponse,
    stream: OpenStream,
  ) => StreamWithdrawalReportsResponse | undefined;
  /** Whether a stream ends at once, with OUT_OF_RANGE. */
  readonly refusesStream?: (stream: OpenStream) => boolean;
  /** A stream has its first message at once, and then everything that came, so often. */
  readonly holdsStreamMs?: { readonly Orders?: number; readonly Applications?: number; readonly Withdrawals?: number };
  /** Called directly before the adapter goes away at a restart. */
  readonly stopping?: (adapter: DefectiveAdapter) => void;
  /** It does not come back from a restart, or from a cut. */
  readonly staysAway?: 'restart' | 'cut';
}

/** Ends a call with a status. */
export class Status extends Error {
  constructor(
    readonly code: status,
    readonly details = 'a seeded defect',
  ) {
    super(details);
  }
}

/** How long an adapter goes on before it goes away at a restart. */
const stoppingMs = 200;
const dayMs = 86_400_000;
const never = new AbortController().signal;

/** An adapter in front of a simulator, with a defect. */
export class DefectiveAdapter {
  restarts = 0;
  isCut = false;
  /** It will go away at once, and does not know it. */
  isStopping = false;
  /** Values that it remembers over restarts; everything else it forgets. */
  readonly kept = new Map<string, unknown>();
  port = 0;
  readonly #clients: { readonly [Name in keyof Services]: GrpcClient<Services[Name]> };
  readonly #open = new Map<TypedService, number>();
  readonly #opened = new Map<TypedService, number>();
  #server = new Server();

  private constructor(
    upstream: string,
    private readonly defect: Defect,
  ) {
    this.#clients = Object.fromEntries(
      Object.entries(services).map(([name, service]) => [name, createGrpcClient(service as TypedService, upstream)]),
    ) as never;
  }

  static async start(upstream: string, defect: Defect = {}): Promise<DefectiveAdapter> {
    const adapter = new DefectiveAdapter(upstream, defect);
    await adapter.#listen();
    return adapter;
  }

  get orders(): GrpcClient<Services['Orders']> {
    return this.#clients.Orders;
  }

  get submissions(): GrpcClient<Services['Submissions']> {
    return this.#clients.Submissions;
  }

  /** Goes away and comes back at the same port. */
  async restart(): Promise<void> {
    this.isStopping = true;
    this.defect.stopping?.(this);
    await pause(stoppingMs, never);
    this.#server.forceShutdown();
    this.isStopping = false;
    this.restarts += 1;
    if (this.defect.staysAway !== 'restart') await this.#listen();
  }

  cut(): void {
    this.isCut = true;
  }

  mend(): void {
    if (this.defect.staysAway !== 'cut') this.isCut = false;
  }

  close(): void {
    this.#server.forceShutdown();
    for (const client of Object.values(this.#clients)) client.close();
  }

  async #listen(): Promise<void> {
    this.#server = new Server();
    for (const [name, service] of Object.entries(services) as [keyof Services, TypedService][]) {
      const handlers = Object.fromEntries(
        service.methods.map((method) => [
          method.localName,
          method.methodKind === 'unary' ? this.#unary(name, method) : this.#stream(name, service, method),
        ]),
      );
      this.#server.addService(serviceDefinition(service), handlers as UntypedServiceImplementation);
    }
    this.port = await new Promise<number>((resolve, reject) => {
      const address = `127.0.0.1:${this.port}`;
      this.#server.bindAsync(address, ServerCredentials.createInsecure(), (error, port) => {
        if (error) reject(error);
        else resolve(port);
      });
    });
  }

  #unary(name: keyof Services, method: DescMethod): handleUnaryCall<never, never> {
    const handlers = this.defect[name.toLowerCase() as keyof Defect] as Record<string, unknown> | undefined;
    const handler = handlers?.[method.localName] as ((call: Call<unknown, unknown>) => Promise<unknown>) | undefined;
    const calls = this.#clients[name] as unknown as Record<string, (...args: unknown[]) => Promise<unknown>>;
    const isTrading = ['submitOrder', 'cancelOrder'].includes(method.localName);
    return (call, callback) => {
      const next = async (request: unknown = call.request) => {
        if (this.isCut && isTrading) throw new Status(status.UNAVAILABLE, 'there is no session with the exchange');
        return calls[method.localName]?.(request, { timeoutMs: 10_000, metadata: call.metadata });
      };
      const answered = handler === undefined ? next() : handler({ request: call.request, adapter: this, next });
      answered.then(
        (answer) => callback(null, answer as never),
        ({ code = status.UNKNOWN, details = '' }) => callback({ code, details }),
      );
    };
  }

  #stream(name: keyof Services, service: TypedService, method: DescMethod): handleServerStreamingCall<never, never> {
    const { reports, applicationReports, withdrawalReports } = this.defect;
    const changes: Partial<Record<keyof Services, unknown>> = {
      Orders: reports,
      Applications: applicationReports,
      Withdrawals: withdrawalReports,
    };
    const change = changes[name] as Defect['reports'];
    const calls = this.#clients[name] as unknown as Record<
      string,
      (request: unknown, options: { signal: AbortSignal }) => AsyncIterable<never>
    >;
    return (call) => {
      const { afterNumber } = call.request as { afterNumber: bigint };
      const others = this.#open.get(service) ?? 0;
      this.#open.set(service, others + 1);
      const opened = this.#opened.get(service) ?? 0;
      this.#opened.set(service, opened + 1);
      const ended = new AbortController();
      call.on('cancelled', () => ended.abort());
      const holdMs = this.defect.holdsStreamMs?.[name as 'Orders'];
      const serve = async () => {
        const stream = (at: number) => ({ adapter: this, service: name, afterNumber, others, opened, at });
        if (this.defect.refusesStream?.(stream(0))) throw new Status(status.OUT_OF_RANGE);
        let at = 0;
        let held: StreamReportsResponse | undefined;
        const flush = setInterval(() => {
          if (held !== undefined) call.write(held as never);
          held = undefined;
        }, holdMs ?? dayMs);
        ended.signal.addEventListener('abort', () => clearInterval(flush));
        for await (const message of calls[method.localName]?.(call.request, { signal: ended.signal }) ?? []) {
          const changed: StreamReportsResponse | undefined =
            change === undefined ? message : change(message, stream(at));
          at += 1;
          if (changed === undefined) continue;
          if (at === 1 || holdMs === undefined) call.write(changed as never);
          else held = { ...changed, reports: [...(held?.reports ?? []), ...changed.reports] };
        }
      };
      serve()
        .catch(({ code = status.UNKNOWN, details = '' }) => {
          if (!call.cancelled && !call.destroyed) call.emit('error', { code, details });
        })
        .finally(() => {
          ended.abort();
          this.#open.set(service, (this.#open.get(service) ?? 1) - 1);
        });
    };
  }
}
