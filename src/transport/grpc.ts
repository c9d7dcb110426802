import type { DescService } from '@bufbuild/protobuf';
import { type MethodDefinition, Server, ServerCredentials, type UntypedServiceImplementation } from '@grpc/grpc-js';
import { Health } from '../gen/grpc/health/v1/health_pb.ts';
import { atMost } from '../lib/at-most.ts';
import { addReflection } from '../lib/grpc-reflection.ts';
import { maxBodyBytes } from './body-limit.ts';
import { ConnectionLimits } from './connection-limits.ts';
import { GrpcDoor, type GrpcDoorOptions, type RawCall, type RawStream, type Respond } from './grpc-door.ts';
import { HealthService } from './grpc-health.ts';
import { guardServer, type Listener } from './grpc-listener.ts';
import { type Operation, rpcPath } from './operations.ts';

export interface GrpcServerOptions extends GrpcDoorOptions {
  readonly operations: readonly Operation[];
  /** Without them the door speaks plain text, behind a proxy that ends TLS. */
  readonly credentials?: ServerCredentials;
  /** How long a call's message may take to arrive. */
  readonly messageTimeoutMs?: number;
  /** Bounds the connections of all partners' ports together. */
  readonly connectionLimits?: ConnectionLimits;
}

/** The gRPC door, with reflection and health. */
export interface GrpcServer {
  /** Starts to serve, and returns the port. */
  listen(port: number, host: string): Promise<number>;
  /** What health answers, for every service and over all. */
  setServing(isServing: boolean): void;
  /** Says NOT_SERVING, ends streams, and tells each client to connect anew for its next call; goes on serving. */
  drain(): void;
  /** Says NOT_SERVING, takes no more calls, answers what is under way for at most `graceMs`, and closes. */
  close(graceMs: number): Promise<void>;
}

/** Above our own bound, so that our own error answers; what is above this one never reaches us. */
const mostMessageBytes = 4 * maxBodyBytes;
/** How many calls one connection may have open. */
const callsPerConnection = 200;

const serverSettings = {
  'grpc.max_concurrent_streams': callsPerConnection,
  // In megabytes, of one connection: what nghttp2 holds for it, and what waits to be sent.
  'grpc-node.max_session_memory': 32,
  // What it counts of every call nobody here reads.
  'grpc.enable_channelz': 0,
  'grpc.keepalive_time_ms': 60_000,
  'grpc.keepalive_timeout_ms': 20_000,
  'grpc.max_connection_idle_ms': 300_000,
};

/** What stands before a message on the wire. */
const messageHeadBytes = 5;
/** How long answers that were given may take to be written out when the server closes. */
const flushMs = 500;

/** Makes the gRPC door over grpc-js. */
export function createGrpcServer(options: GrpcServerOptions): GrpcServer {
  const files = options.operations.flatMap((operation) => (operation.file === undefined ? [] : [operation]));
  // One bound for all methods; to those without a file their own is kept below.
  const mostFileBytes = Math.max(0, ...files.map(({ file }) => file?.maxBytes ?? 0));
  const server = new Server({
    ...serverSettings,
    'grpc.max_receive_message_length': mostFileBytes + mostMessageBytes,
  });
  const door = new GrpcDoor(options);
  const services = byService(options.operations);
  for (const [, operations] of services) addService(server, door, operations);
  addReflection(server, [...services.keys(), Health]);
  const health = new HealthService([...services.keys()].map(({ typeName }) => typeName));
  health.addTo(server);
  const connections = options.connectionLimits ?? new ConnectionLimits();
  let listener: Listener | undefined;
  return {
    listen: async (port, host) => {
      const bound = await bind(server, host, port, options.credentials ?? ServerCredentials.createInsecure());
      listener = guardServer(server, {
        methods: new Map(
          options.operations.map((operation) => [rpcPath(operation), { maxBytes: mostBytes(operation) }]),
        ),
        authorize: (arrival) => door.authorize(arrival),
        clientOf: (arrival) => door.clientOf(arrival),
        connections,
        messageTimeoutMs: options.messageTimeoutMs ?? 30_000,
        callsPerConnection,
      });
      return bound;
    },
    setServing: (isServing) => health.setServing(isServing),
    drain: () => {
      health.setServing(false);
      door.endStreams();
      listener?.sendAway();
    },
    close: async (graceMs) => {
      health.setServing(false);
      const drained = new Promise<void>((resolve) => server.tryShutdown(() => resolve()));
      await atMost(graceMs, Promise.race([drained, door.drain()]));
      await atMost(flushMs, drained);
      listener?.close();
      server.forceShutdown();
    },
  };
}

/** How many bytes a call may send, with what stands before its message on the wire. */
function mostBytes({ file }: Operation): number {
  return (file?.maxBytes ?? 0) + mostMessageBytes + messageHeadBytes;
}

function byService(operations: readonly Operation[]): Map<DescService, Operation[]> {
  const services = new Map<DescService, Operation[]>();
  for (const operation of operations) {
    const service = operation.method.parent;
    services.set(service, [...(services.get(service) ?? []), operation]);
  }
  return services;
}

function addService(server: Server, door: GrpcDoor, operations: readonly Operation[]): void {
  const definition: Record<string, MethodDefinition<Buffer, Buffer>> = {};
  const handlers: UntypedServiceImplementation = {};
  for (const operation of operations) {
    const name = operation.method.localName;
    definition[name] = {
      path: rpcPath(operation),
      requestStream: false,
      responseStream: operation.kind === 'stream',
      requestSerialize: asIs,
      requestDeserialize: asIs,
      responseSerialize: asIs,
      responseDeserialize: asIs,
    };
    handlers[name] =
      operation.kind === 'stream'
        ? (call: RawStream) => void door.serveStream(operation, call)
        : (call: RawCall, respond: Respond) => void door.serve(operation, call, respond);
  }
  server.addService(definition, handlers);
}

function asIs(bytes: Buffer): Buffer {
  return bytes;
}

function bind(server: Server, host: string, port: number, credentials: ServerCredentials): Promise<number> {
  const address = `${host.includes(':') ? `[${host}]` : host}:${port}`;
  return new Promise((resolve, reject) => {
    server.bindAsync(address, credentials, (error, bound) => (error === null ? resolve(bound) : reject(error)));
  });
}
