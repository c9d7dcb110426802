import { randomUUID } from 'node:crypto';
import { create, type DescMethod, type Message } from '@bufbuild/protobuf';
import { Metadata, type ServerCredentials, status } from '@grpc/grpc-js';
import { BadRequestSchema, file_google_rpc_error_details } from '../../../gen/google/rpc/error_details_pb.ts';
import { Counts } from '../../../kit/counts.ts';
import { LineSampler } from '../../../kit/line-sampler.ts';
import type { Logger } from '../../../kit/log.ts';
import { type IdentifiedOperator, identifyOperators, type OperatorToken } from '../../../kit/operator-tokens.ts';
import { isVisibleLine, isVisibleText } from '../../../kit/visible-text.ts';
import type { Live } from '../../../kit/watched-files.ts';
import { ConnectionLimits } from '../../edge/bounds.ts';
import { ApiError, asApiError } from '../../edge/errors.ts';
import { compileFieldRules, type TextProblem } from '../../edge/field-rules.ts';
import { type Arrival, type GrpcStatus, type RichStatus, richStatus } from '../../edge/grpc/arrival.ts';
import { isCompressed } from '../../edge/grpc/listener.ts';
import { compressed } from '../../edge/grpc/refusals.ts';
import {
  GrpcServer,
  type Respond,
  type ServedMethod,
  type StreamCall,
  serveStream,
  type UnaryCall,
} from '../../edge/grpc/server.ts';
import { rpcPath } from '../../edge/operations.ts';
import { decodeProtobuf, encodeProtobuf, retryDetails, rpcStatus } from '../../edge/rpc.ts';
import { deliver, OpenStreams } from '../../edge/streams.ts';
import { answerMessage } from './answer.ts';
import type { AdminCall, AdminService } from './call.ts';
import { AdminError } from './errors.ts';
import { callName, callRules, requireReason, requireRole } from './roles.ts';

interface AdminServerOptions {
  readonly services: readonly AdminService[];
  readonly tokens: Live<readonly OperatorToken[]>;
  readonly log: Logger;
  /** Called at a call's end, with its service and method and the name of its gRPC status. */
  readonly onCalled: (call: string, code: string) => void;
  /** Without them the port uses plain text. */
  readonly credentials: ServerCredentials | undefined;
  /** Whether each call that changes something must say why. */
  readonly needsReason: boolean;
  /** Writes the audit entry of a read of money, before it is answered. Absent: no call of these services shows money. */
  readonly auditRead?: (call: AdminCall, method: DescMethod, request: Message) => Promise<void>;
  /** Counts connections that are refused. */
  readonly metrics?: { readonly connectionsRefused: { inc(): void } };
  /** How a client's address is logged; undefined: not at all. */
  readonly shownAddress: (address: string) => string | undefined;
}

type Handle<Answered> = (request: Message, call: AdminCall, signal?: AbortSignal) => Answered;

const maxMessageBytes = 64 * 1024;
/** An address with a valid token may have four times as many: few addresses cannot take all. */
const connectionBounds = { total: 200, reserve: 50, perAddress: 12 };
/** How long calls may go on over a connection whose certificate may be revoked. */
const reconnectMs = 1_000;
/** Open streams of all operators together, and of one operator, over all of its tokens. */
const maxStreams = 20;
const maxStreamsOfOne = 5;

/** The operators' port: gRPC with reflection and health. It checks token and role before reading the message, then fields. */
export function createAdminServer({ services, log, shownAddress, ...options }: AdminServerOptions) {
  const strangersCalls = new LineSampler(log, 'an operator call failed', shownAddress);
  const identify = identifyOperators(options.tokens, Date.now);
  const streams = new OpenStreams();
  const connections = new ConnectionLimits(connectionBounds, [], options.metrics);
  const openStreams = new Counts();
  const served = services.flatMap(({ service, calls }) =>
    service.methods.map((method): ServedMethod => {
      const handle = calls[method.localName] as Handle<unknown>;
      const what = { method, maxBytes: maxMessageBytes };
      return method.methodKind === 'server_streaming'
        ? { ...what, serveStream: streamServer(method, handle as Handle<AsyncIterable<object>>) }
        : { ...what, serve: unaryServer(method, handle as Handle<Promise<object>>) };
    }),
  );
  const methods = new Map(served.map(({ method }) => [rpcPath(method), method]));
  const rules = new Map(served.map(({ method }) => [callName(method), callRules(method)]));
  const ofAdmins = { roles: ['admin'] } as const;
  const server = new GrpcServer({
    methods: served,
    moreFiles: [file_google_rpc_error_details],
    authorize,
    connections,
    credentials: options.credentials,
    callsPerConnection: 100,
    connectionMegabytes: 16,
  });

  /** Checks the token before any byte of the message is read. */
  async function authorize(arrival: Arrival): Promise<GrpcStatus | undefined> {
    const method = methods.get(arrival.path);
    const visit = begin(method, arrival);
    try {
      visit.identify();
    } catch (error) {
      return visit.refused(error);
    }
    if (method === undefined) return undefined;
    if (isCompressed(arrival)) return compressed;
    connections.note(arrival.peer);
    return undefined;
  }

  function unaryServer(method: DescMethod, handle: Handle<Promise<object>>) {
    const read = requestReader(method, options.needsReason);
    const { showsMoney } = callRules(method);
    return async (arrival: Arrival, call: UnaryCall, respond: Respond) => {
      const visit = begin(method, arrival);
      try {
        const caller = visit.identify();
        const request = read(call.request);
        if (showsMoney) await options.auditRead?.(caller, method, request);
        const answer = await handle(request, caller);
        call.sendMetadata(visit.metadata());
        respond(null, encode(method, answer));
        visit.answered();
      } catch (error) {
        respond(visit.refused(error));
      } finally {
        arrival.answered();
      }
    };
  }

  function streamServer(method: DescMethod, handle: Handle<AsyncIterable<object>>) {
    const read = requestReader(method, options.needsReason);
    const { showsMoney } = callRules(method);
    return (arrival: Arrival, call: StreamCall) => {
      const visit = begin(method, arrival);
      const send = async (ending: AbortController, write: (bytes: Buffer) => Promise<void>) => {
        const caller = visit.identify();
        const ended = takeStream(caller.operator);
        try {
          const request = read(call.request);
          if (showsMoney) await options.auditRead?.(caller, method, request);
          call.sendMetadata(visit.metadata());
          await deliver(handle(request, caller, ending.signal), ending, (answer) => {
            visit.identify(); // Its token may have expired, or lost its role or its line, since the stream began.
            return write(encode(method, answer));
          });
        } finally {
          ended();
        }
        visit.answered();
      };
      return serveStream(streams, arrival, call, send, (error) => {
        if (!call.cancelled) return visit.refused(error);
        visit.answered();
        return undefined;
      });
    };
  }

  /** Counts an operator's open stream until the result is called. Throws `rate_limited` if there are too many. */
  function takeStream(operator: string): () => void {
    const name = operator.toLowerCase(); // Names that differ in capitals only are of one person.
    if (openStreams.of(name) >= maxStreamsOfOne)
      throw tooManyStreams(`of ${maxStreamsOfOne} open streams of an operator`);
    if (openStreams.total >= maxStreams) throw tooManyStreams(`of ${maxStreams} open streams of all operators`);
    return openStreams.add(name);
  }

  /** A call from its start until its end is logged. `method` is undefined if it does not exist. */
  function begin(method: DescMethod | undefined, arrival: Arrival) {
    const { peer } = arrival;
    const action = method === undefined ? 'unknown' : callName(method);
    const requestId = randomUUID();
    const startedAt = performance.now();
    const clientAddress = shownAddress(peer);
    let caller: IdentifiedOperator | undefined;
    const facts = () => {
      const durationMs = Math.round(performance.now() - startedAt);
      return { requestId, operator: caller?.name, clientAddress, action, durationMs };
    };
    return {
      /** Throws unless the caller's token is valid and has a role that may make the call. */
      identify: (): AdminCall => {
        const found = identify(arrival.values('authorization'));
        caller = found;
        if (found === undefined) throw new AdminError(status.UNAUTHENTICATED, 'a valid operator token is needed');
        if (method !== undefined) requireRole('the call', rules.get(action) ?? ofAdmins, found);
        return {
          operator: found.name,
          action,
          roles: found.roles,
          tokenEndsAt: found.expiresAt,
          requestId,
          clientAddress,
          requireRoleFor: (other, what) => requireRole(what, rules.get(other) ?? ofAdmins, found),
        };
      },
      metadata: () => {
        const answered = new Metadata();
        answered.set('x-request-id', requestId);
        return answered;
      },
      answered: () => {
        log.info(facts(), 'an operator called');
        options.onCalled(action, 'OK');
      },
      refused: (error: unknown) => {
        const refusal = toRefusal(error, requestId);
        if (caller !== undefined || strangersCalls.take(peer)) {
          log.warn({ err: error, ...facts(), code: status[refusal.code] }, 'an operator call failed');
        }
        options.onCalled(action, status[refusal.code] ?? 'UNKNOWN');
        return refusal;
      },
    };
  }

  return {
    listen: (port: number, host: string) => server.listen(port, host),
    /** Closes all connections within a moment, so that each client shows its certificate again. */
    reconnect: () => server.reconnect(reconnectMs),
    /** Reports NOT_SERVING, ends streams, waits at most `graceMs` for calls in progress, and closes. */
    close: (graceMs: number) => {
      streams.close();
      return server.close(graceMs);
    },
  };
}

/** Reads and checks a call's message. Throws an error that names the field at fault. */
function requestReader(method: DescMethod, needsReason: boolean): (bytes: Buffer) => Message {
  const rules = callRules(method);
  const check = compileFieldRules(method.input, method.input.fields, visibleText);
  return (bytes) => {
    const message = decodeProtobuf(method.input, bytes);
    check(message);
    if (needsReason) requireReason(rules, message);
    return message;
  };
}

/** Texts of several lines. Any other one is a name, a reason, a reference or an id. */
const textsOfLines: ReadonlySet<string> = new Set(['marina.admin.v1.ProposeSettlementRequest.evidence']);

/** Refuses what operators cannot see in an audit entry, a list or a log line. */
const visibleText: TextProblem = (field) => {
  const hasLines = textsOfLines.has(`${field.parent.typeName}.${field.name}`);
  const isVisible = hasLines ? isVisibleText : isVisibleLine;
  const allowed = hasLines ? 'characters that can be seen, in lines' : 'one line of characters that can be seen';
  return (text) => (isVisible(text) && text.isWellFormed() ? undefined : `must be ${allowed}.`);
};

function encode({ output }: DescMethod, answer: object): Buffer {
  return encodeProtobuf(output, answerMessage(output, answer));
}

function tooManyStreams(which: string): ApiError {
  return new ApiError('rate_limited', { message: `The limit ${which} is used up. Close one first.` });
}

/** An operator's error status. A `google.rpc.BadRequest` names a field at fault, else the catalogue says how long to wait. */
function toRefusal(thrown: unknown, requestId: string): RichStatus {
  const error = asApiError(thrown) ?? thrown;
  if (error instanceof AdminError) return refusal(error.status, error.message, error.param);
  if (!(error instanceof ApiError)) {
    return richStatus(status.INTERNAL, 'something went wrong; the log has more', requestId, []);
  }
  // An unreadable message is at fault as a whole.
  return refusal(rpcStatus(error), error.message, error.param ?? (error.code === 'invalid_request' ? '' : undefined));

  function refusal(code: status, message: string, field: string | undefined): RichStatus {
    if (field === undefined)
      return richStatus(code, message, requestId, error instanceof ApiError ? retryDetails(error) : []);
    const fieldViolations = [{ field, description: message.toWellFormed() }];
    const detail = { desc: BadRequestSchema, value: create(BadRequestSchema, { fieldViolations }) };
    return richStatus(code, message, requestId, [detail]);
  }
}
