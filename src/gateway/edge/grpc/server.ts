import type { DescFile, DescMethod } from '@bufbuild/protobuf';
import {
  type MethodDefinition,
  Server,
  ServerCredentials,
  type ServerUnaryCall,
  type ServerWritableStream,
  type sendUnaryData,
  type UntypedServiceImplementation,
} from '@grpc/grpc-js';
import { Health } from '../../../gen/grpc/health/v1/health_pb.ts';
import { atMost } from '../../../kit/at-most.ts';
import { addReflection } from '../../../kit/grpc-reflection.ts';
import { rpcPath } from '../operations.ts';
import { ClientGone } from '../pipeline.ts';
import { type OpenStreams, slowEndMs } from '../streams.ts';
import type { Arrival, RichStatus } from './arrival.ts';
import { guardServer, type Listener, type ListenerRules } from './listener.ts';
import { messageHeadBytes } from './message-bound.ts';
import { HealthService } from './public.ts';
import { type RefuseMessage, refusePlainly } from './refusals.ts';

/** A call of grpc-js with its message as bytes, and its callback. */
export type UnaryCall = ServerUnaryCall<Buffer, Buffer>;
export type Respond = sendUnaryData<Buffer>;
export type StreamCall = ServerWritableStream<Buffer, Buffer>;

/** A method that needs a key or an operator's token. */
export type ServedMethod = {
  readonly method: DescMethod;
  /** Messages up to this size are kept and given to the handler. */
  readonly maxBytes: number;
  /** By default the statuses without details. */
  readonly refuse?: RefuseMessage;
} & (
  | { readonly serve: (arrival: Arrival, call: UnaryCall, respond: Respond) => Promise<void> }
  | { readonly serveStream: (arrival: Arrival, call: StreamCall) => Promise<void> }
);

export interface GrpcServerOptions extends Omit<ListenerRules, 'methods'> {
  readonly methods: readonly ServedMethod[];
  /** Without them the server speaks plain text, for a proxy that ends TLS. */
  readonly credentials?: ServerCredentials | undefined;
  /** Memory per connection: nghttp2's own, and data that waits to be sent. */
  readonly connectionMegabytes: number;
  /** Further files for reflection, which no method names, such as the details of errors. */
  readonly moreFiles?: readonly DescFile[];
}

/** How long given answers may take to be written when the server closes. */
const flushMs = 500;

/** A gRPC server over grpc-js with messages as bytes, health checks and reflection. */
export class GrpcServer {
  readonly #options: GrpcServerOptions;
  readonly #server: Server;
  readonly #health: HealthService;
  #listener: Listener | undefined;
  /** Undefined: it does not listen yet. */
  #address: string | undefined;

  constructor(options: GrpcServerOptions) {
    const { methods, moreFiles } = options;
    this.#options = options;
    this.#server = new Server({
      // The listener enforces each method's own limit. grpc-js would answer without details, behind the listener's back.
      'grpc.max_receive_message_length': -1,
      'grpc.max_concurrent_streams': options.callsPerConnection,
      'grpc-node.max_session_memory': options.connectionMegabytes,
      // Nobody reads channelz here, and it counts every call.
      'grpc.enable_channelz': 0,
      'grpc.keepalive_time_ms': 60_000,
      'grpc.keepalive_timeout_ms': 20_000,
      'grpc.max_connection_idle_ms': 300_000,
    });
    const services = [...new Set(methods.map(({ method }) => method.parent))];
    for (const service of services) this.#addService(methods.filter(({ method }) => method.parent === service));
    this.#health = new HealthService(services.map(({ typeName }) => typeName));
    this.#health.addTo(this.#server);
    addReflection(this.#server, [...services, Health], moreFiles);
  }

  async listen(port: number, host: string): Promise<number> {
    const { methods, credentials = ServerCredentials.createInsecure(), ...rules } = this.#options;
    const addressOf = (at: number) => `${host.includes(':') ? `[${host}]` : host}:${at}`;
    const bound = await new Promise<number>((resolve, reject) => {
      this.#server.bindAsync(addressOf(port), credentials, (error, found) =>
        error === null ? resolve(found) : reject(error),
      );
    });
    const bytes = methods.map(
      ({ method, maxBytes, refuse = refusePlainly }) =>
        [rpcPath(method), { maxBytes: maxBytes + messageHeadBytes, refuse }] as const,
    );
    this.#address = addressOf(bound);
    this.#listener = guardServer(this.#server, { ...rules, methods: new Map(bytes) });
    return bound;
  }

  /** Answers health checks with NOT_SERVING and makes clients reconnect for their next call. Goes on serving. */
  drain(): void {
    this.#health.stopServing();
    this.#listener?.sendAway();
  }

  /** Closes all connections when their calls have ended, at the latest after `graceMs`. Takes new ones. */
  reconnect(graceMs: number): void {
    if (this.#address !== undefined) this.#server.drain(this.#address, graceMs);
  }

  /** Also refuses new calls. Closes when all calls have ended, `idle` resolves or `graceMs` is over. */
  async close(graceMs: number, idle?: Promise<void>): Promise<void> {
    this.#health.stopServing();
    const drained = new Promise<void>((resolve) => this.#server.tryShutdown(() => resolve()));
    await atMost(graceMs, Promise.race(idle === undefined ? [drained] : [drained, idle]));
    await atMost(flushMs, drained);
    this.#listener?.close();
    this.#server.forceShutdown();
  }

  #addService(methods: readonly ServedMethod[]): void {
    const definition: Record<string, MethodDefinition<Buffer, Buffer>> = {};
    const handlers: UntypedServiceImplementation = {};
    for (const served of methods) {
      const { method } = served;
      const isStream = 'serveStream' in served;
      definition[method.localName] = rawMethod(rpcPath(method), isStream);
      handlers[method.localName] = isStream
        ? (call: StreamCall) => this.#withArrival(call, (arrival) => served.serveStream(arrival, call))
        : (call: UnaryCall, respond: Respond) =>
            this.#withArrival(call, (arrival) => served.serve(arrival, call, respond));
    }
    this.#server.addService(definition, handlers);
  }

  /** A call whose client has left is not served. */
  #withArrival({ metadata }: UnaryCall | StreamCall, serve: (arrival: Arrival) => Promise<void>): void {
    const arrival = this.#listener?.arrivalOf(metadata);
    if (arrival !== undefined) void serve(arrival);
  }
}

/**
 * Serves a stream: `send` sends its messages, encoded, until it returns or throws, or `ending` is aborted. `refuse` returns the
 * status of what it threw; undefined if nobody can be answered. `endMs`: how long its client may take to read its end.
 */
export async function serveStream(
  streams: OpenStreams,
  arrival: Arrival,
  call: StreamCall,
  send: (ending: AbortController, write: (bytes: Buffer) => Promise<void>) => Promise<void>,
  refuse: (error: unknown) => RichStatus | undefined,
  endMs = slowEndMs,
): Promise<void> {
  const ending = streams.open();
  call.on('cancelled', () => ending.abort(new ClientGone()));
  try {
    await send(ending, (bytes) => new Promise((resolve) => call.write(bytes, () => resolve())));
    call.end();
  } catch (error) {
    const refusal = refuse(error);
    if (refusal !== undefined) call.emit('error', refusal);
  } finally {
    streams.ended(ending);
    // A client that reads nothing does not read the end of its stream either.
    arrival.answered(endMs);
  }
}

function rawMethod(path: string, responseStream: boolean): MethodDefinition<Buffer, Buffer> {
  const codecs = {
    requestSerialize: asIs,
    requestDeserialize: asIs,
    responseSerialize: asIs,
    responseDeserialize: asIs,
  };
  return { path, requestStream: false, responseStream, ...codecs };
}

function asIs(bytes: Buffer): Buffer {
  return bytes;
}
