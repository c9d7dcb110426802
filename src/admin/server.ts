import { randomUUID } from 'node:crypto';
import { create, type DescMessage, type DescMethod, type Message, type MessageInitShape } from '@bufbuild/protobuf';
import { Metadata, type ServerCredentials, status } from '@grpc/grpc-js';
import { file_google_rpc_error_details } from '../gen/google/rpc/error_details_pb.ts';
import { LineSampler } from '../lib/line-sampler.ts';
import type { Logger } from '../lib/log.ts';
import { addressShower } from '../lib/network.ts';
import { ConnectionLimits } from '../transport/bounds.ts';
import { compileFieldRules } from '../transport/field-rules.ts';
import type { Arrival, GrpcStatus } from '../transport/grpc/arrival.ts';
import { compressed, isCompressed } from '../transport/grpc/listener.ts';
import {
  GrpcServer,
  type Respond,
  type ServedMethod,
  type StreamCall,
  type UnaryCall,
} from '../transport/grpc/server.ts';
import { rpcPath } from '../transport/operations.ts';
import { decodeProtobuf, encodeProtobuf } from '../transport/rpc.ts';
import { deliver, OpenStreams, slowEndMs } from '../transport/streams.ts';
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

const mostMessageBytes = 64 * 1024;
const connectionBounds = { total: 200, reserve: 50, perAddress: 50 };
/** Streams of all operators together. */
const mostStreams = 20;

/**
 * The operators' port: gRPC with reflection and health, every call under a named operator's token. A message is looked at
 * after the token, and a handler runs after its fields were checked.
 */
export function createAdminServer(options: AdminServerOptions) {
  const { services, log, shownAddress = addressShower('full') } = options;
  const strangersCalls = new LineSampler(log, 'an operator call failed', shownAddress);
  const identify = identifyOperators(options.operators);
  const streams = new OpenStreams();
  const connections = new ConnectionLimits(connectionBounds);
  let openStreams = 0;
  const served = services.flatMap(({ service, handlers }) =>
    service.methods.map((method): ServedMethod => {
      const handler = handlers[method.localName];
      if (handler === undefined) throw new Error(`${method.parent.typeName}.${method.name} has no handler`);
      const what = { method, maxBytes: mostMessageBytes };
      return method.methodKind === 'server_streaming'
        ? { ...what, serveStream: streamServer(method, handler as AdminStreamHandler) }
        : { ...what, serve: unaryServer(method, handler as AdminHandler) };
    }),
  );
  const methods = new Map(served.map(({ method }) => [rpcPath(method), method]));
  const server = new GrpcServer({
    methods: served,
    moreFiles: [file_google_rpc_error_details],
    authorize,
    connections,
    credentials: options.credentials,
    callsPerConnection: 100,
    connectionMegabytes: 16,
  });

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
    return undefined;
  }

  function unaryServer(method: DescMethod, handler: AdminHandler) {
    const read = requestReader(method);
    return async (arrival: Arrival, call: UnaryCall, respond: Respond) => {
      const visit = begin(actionOf(method), arrival.values('authorization'), arrival.peer);
      try {
        const operator = visit.operator();
        const answer = await handler(read(call.request) as never, operator);
        call.sendMetadata(visit.metadata());
        respond(null, encodeProtobuf(method.output, create(method.output, answer as MessageInitShape<DescMessage>)));
        visit.answered();
      } catch (error) {
        respond(visit.refused(error));
      } finally {
        arrival.answered();
      }
    };
  }

  function streamServer(method: DescMethod, handler: AdminStreamHandler) {
    const read = requestReader(method);
    return async (arrival: Arrival, call: StreamCall) => {
      const visit = begin(actionOf(method), arrival.values('authorization'), arrival.peer);
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
          new Promise<void>((resolve) => call.write(encodeProtobuf(method.output, message), () => resolve()));
        await deliver(handler(request as never, operator, ending.signal), ending, write);
        call.end();
        visit.answered();
      } catch (error) {
        if (isGone) visit.answered();
        else call.emit('error', visit.refused(error));
      } finally {
        openStreams -= 1;
        streams.ended(ending);
        arrival.answered(slowEndMs);
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
    listen: (port: number, host: string) => server.listen(port, host),
    /** Says NOT_SERVING, ends streams, answers what is under way for at most `graceMs`, and closes. */
    close: (graceMs: number) => {
      streams.close();
      return server.close(graceMs);
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

/** A call's name in logs, metrics and the audit. */
function actionOf({ parent, name }: DescMethod): string {
  return `${parent.name}.${name}`;
}
