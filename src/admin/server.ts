import { randomUUID } from 'node:crypto';
import {
  create,
  type DescMessage,
  type DescMethod,
  type Message,
  type MessageInitShape,
  toBinary,
} from '@bufbuild/protobuf';
import {
  Metadata,
  type MethodDefinition,
  Server,
  ServerCredentials,
  type ServerUnaryCall,
  type ServerWritableStream,
  type sendUnaryData,
  status,
  type UntypedServiceImplementation,
} from '@grpc/grpc-js';
import { file_google_rpc_error_details } from '../gen/google/rpc/error_details_pb.ts';
import { Health } from '../gen/grpc/health/v1/health_pb.ts';
import { atMost } from '../lib/at-most.ts';
import { addReflection } from '../lib/grpc-reflection.ts';
import { LineSampler } from '../lib/line-sampler.ts';
import type { Logger } from '../lib/log.ts';
import { addressShower } from '../lib/network.ts';
import { ConnectionLimits } from '../transport/connection-limits.ts';
import { compileFieldRules } from '../transport/field-rules.ts';
import { type Arrival, arrivalId, type GrpcStatus } from '../transport/grpc-arrival.ts';
import { HealthService } from '../transport/grpc-health.ts';
import { compressed, guardServer, isCompressed, type Listener } from '../transport/grpc-listener.ts';
import { decodeProtobuf } from '../transport/protobuf-wire.ts';
import { deliver, OpenStreams } from '../transport/streams.ts';
import { AdminError, type AdminHandler, type AdminService, type AdminStreamHandler, type Operator } from './call.ts';
import { identifyOperators } from './operators.ts';
import { toRefusal } from './refusals.ts';

export interface AdminServerOptions {
  readonly services: readonly AdminService[];
  /** Each operator's name by its token. */
  readonly operators: ReadonlyMap<string, Operator>;
  readonly log: Logger;
  /** Hears of each call that ended, by its service and method and the name of its gRPC status. */
  readonly onCalled?: (call: string, code: string) => void;
  /** Without them the port speaks plain text. */
  readonly credentials?: ServerCredentials;
  /** How a client's address is logged; undefined: not at all. By default it is logged whole. */
  readonly shownAddress?: (address: string) => string | undefined;
}

type UnaryCall = ServerUnaryCall<Buffer, Buffer>;
type StreamCall = ServerWritableStream<Buffer, Buffer>;

const mostMessageBytes = 64 * 1024;
const callsPerConnection = 100;
const connectionBounds = { total: 200, reserve: 50, perAddress: 50 };
/** Streams of all operators together. */
const mostStreams = 20;
const messageTimeoutMs = 30_000;
/** How long the end of a stream that is read too slowly may take to be written out. */
const slowEndMs = 5_000;
/** How long an operator may take to read an answer. */
const answerMs = 30_000;
const flushMs = 500;
/** What stands before a message on the wire. */
const messageHeadBytes = 5;

/**
 * The operators' port: gRPC with reflection and health, every call under a named operator's token. A message is looked at
 * after the token, and a handler runs after its fields were checked.
 */
export function createAdminServer(options: AdminServerOptions) {
  const { services, log, shownAddress = addressShower('full') } = options;
  const strangersCalls = new LineSampler(log, 'an operator call failed', shownAddress);
  const server = new Server({
    'grpc.max_receive_message_length': mostMessageBytes,
    'grpc.max_concurrent_streams': callsPerConnection,
    // In megabytes, of one connection.
    'grpc-node.max_session_memory': 16,
    'grpc.keepalive_time_ms': 60_000,
    'grpc.keepalive_timeout_ms': 20_000,
    'grpc.enable_channelz': 0,
  });
  const identify = identifyOperators(options.operators);
  const streams = new OpenStreams();
  const connections = new ConnectionLimits(connectionBounds);
  const methods = new Map(services.flatMap(({ service }) => service.methods).map((method) => [pathOf(method), method]));
  const arrivals = new Map<string, Arrival>();
  let listener: Listener | undefined;
  let openStreams = 0;
  for (const { service, handlers } of services) {
    const definition: Record<string, MethodDefinition<Buffer, Buffer>> = {};
    const implementation: UntypedServiceImplementation = {};
    for (const method of service.methods) {
      const handler = handlers[method.localName];
      if (handler === undefined) throw new Error(`${method.parent.typeName}.${method.name} has no handler`);
      definition[method.localName] = rawMethod(method);
      implementation[method.localName] = isStream(method)
        ? serveStream(method, handler as AdminStreamHandler)
        : serveUnary(method, handler as AdminHandler);
    }
    server.addService(definition, implementation);
  }
  const health = new HealthService(services.map(({ service }) => service.typeName));
  health.addTo(server);
  addReflection(server, [...services.map(({ service }) => service), Health], [file_google_rpc_error_details]);

  /** Looks at the token before any byte of the message is read. */
  async function authorize(arrival: Arrival): Promise<GrpcStatus | undefined> {
    const method = methods.get(arrival.path);
    const action = method === undefined ? 'unknown' : actionOf(method);
    const visit = begin(action, arrival.values('authorization'), arrival.peer);
    try {
      visit.operator();
    } catch (error) {
      return visit.refused(error);
    }
    if (method === undefined) return undefined;
    if (isCompressed(arrival)) return compressed;
    connections.note(arrival.peer);
    if (arrival.isGone) return undefined;
    arrivals.set(arrival.id, arrival);
    arrival.stream.once('close', () => arrivals.delete(arrival.id));
    return undefined;
  }

  function peerOf({ metadata }: UnaryCall | StreamCall): string {
    return arrivals.get(arrivalId(metadata))?.peer ?? '';
  }

  /** Cuts a call whose answer is not read. */
  function answered({ metadata }: UnaryCall | StreamCall, withinMs: number): void {
    arrivals.get(arrivalId(metadata))?.answered(withinMs);
  }

  function serveUnary(method: DescMethod, handler: AdminHandler) {
    const read = requestReader(method);
    return async (call: UnaryCall, respond: sendUnaryData<Buffer>) => {
      const visit = begin(actionOf(method), call.metadata.get('authorization'), peerOf(call));
      try {
        const operator = visit.operator();
        const answer = await handler(read(call.request) as never, operator);
        call.sendMetadata(visit.metadata());
        respond(null, encode(method, create(method.output, answer as MessageInitShape<DescMessage>)));
        visit.answered();
      } catch (error) {
        respond(visit.refused(error));
      } finally {
        answered(call, answerMs);
      }
    };
  }

  function serveStream(method: DescMethod, handler: AdminStreamHandler) {
    const read = requestReader(method);
    return async (call: StreamCall) => {
      const visit = begin(actionOf(method), call.metadata.get('authorization'), peerOf(call));
      const ending = streams.open();
      let isGone = false;
      call.on('cancelled', () => {
        isGone = true;
        ending.abort(new Error('the operator left'));
      });
      openStreams += 1;
      try {
        const operator = visit.operator();
        if (openStreams > mostStreams) throw new AdminError(status.RESOURCE_EXHAUSTED, 'too many streams are open');
        const request = read(call.request);
        call.sendMetadata(visit.metadata());
        const write = (message: Message) =>
          new Promise<void>((resolve) => call.write(encode(method, message), () => resolve()));
        await deliver(handler(request as never, operator, ending.signal), ending, write);
        call.end();
        visit.answered();
      } catch (error) {
        if (isGone) visit.answered();
        else call.emit('error', visit.refused(error));
      } finally {
        openStreams -= 1;
        streams.ended(ending);
        answered(call, slowEndMs);
      }
    };
  }

  function begin(action: string, authorization: readonly (string | Buffer)[], peer: string) {
    const requestId = randomUUID();
    const startedAt = performance.now();
    const clientAddress = shownAddress(peer);
    let operator: Operator | undefined;
    const facts = () => {
      const durationMs = Math.round(performance.now() - startedAt);
      return { requestId, operator, clientAddress, action, durationMs };
    };
    return {
      /** Who calls. Throws where nobody known does. */
      operator: (): Operator => {
        operator = identify(authorization);
        if (operator === undefined) throw new AdminError(status.UNAUTHENTICATED, 'a valid operator token is needed');
        return operator;
      },
      metadata: () => {
        const answered = new Metadata();
        answered.set('x-request-id', requestId);
        return answered;
      },
      answered: () => {
        log.info(facts(), 'an operator called');
        options.onCalled?.(action, 'OK');
      },
      refused: (error: unknown) => {
        const refusal = toRefusal(error, requestId);
        if (operator !== undefined || strangersCalls.take(peer)) {
          log.warn({ err: error, ...facts(), code: status[refusal.code] }, 'an operator call failed');
        }
        options.onCalled?.(action, status[refusal.code] ?? 'UNKNOWN');
        return refusal;
      },
    };
  }

  return {
    listen: async (port: number, host: string) => {
      const address = `${host.includes(':') ? `[${host}]` : host}:${port}`;
      const credentials = options.credentials ?? ServerCredentials.createInsecure();
      const bound = await new Promise<number>((resolve, reject) => {
        server.bindAsync(address, credentials, (error, found) => (error === null ? resolve(found) : reject(error)));
      });
      const paths = [...methods.keys()];
      listener = guardServer(server, {
        methods: new Map(paths.map((path) => [path, { maxBytes: mostMessageBytes + messageHeadBytes }])),
        authorize,
        clientOf: ({ peer }) => peer,
        connections,
        messageTimeoutMs,
        callsPerConnection,
      });
      return bound;
    },
    /** Says NOT_SERVING, ends streams, answers what is under way for at most `graceMs`, and closes. */
    close: async (graceMs: number) => {
      health.setServing(false);
      streams.close();
      const drained = new Promise<void>((resolve) => server.tryShutdown(() => resolve()));
      await atMost(Math.max(graceMs, flushMs), drained);
      listener?.close();
      server.forceShutdown();
    },
  };
}

/** Reads and checks a call's message. Throws what names the field that is at fault. */
function requestReader(method: DescMethod): (bytes: Buffer) => Message {
  const check = compileFieldRules(method.input, method.input.fields);
  return (bytes) => {
    const message = decodeProtobuf(method.input, bytes);
    check(message);
    return message;
  };
}

function rawMethod(method: DescMethod): MethodDefinition<Buffer, Buffer> {
  return {
    path: pathOf(method),
    requestStream: false,
    responseStream: isStream(method),
    requestSerialize: asIs,
    requestDeserialize: asIs,
    responseSerialize: asIs,
    responseDeserialize: asIs,
  };
}

function encode(method: DescMethod, message: Message): Buffer {
  const bytes = toBinary(method.output, message);
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/** A call's name in logs, metrics and the audit. */
function actionOf({ parent, name }: DescMethod): string {
  return `${parent.name}.${name}`;
}

function pathOf(method: DescMethod): string {
  return `/${method.parent.typeName}/${method.name}`;
}

function isStream(method: DescMethod): boolean {
  return method.methodKind === 'server_streaming';
}

function asIs(bytes: Buffer): Buffer {
  return bytes;
}
