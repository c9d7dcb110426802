import { create, type DescMethod, type MessageInitShape, type MessageShape } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { type ServerUnaryCall, type ServiceError, status } from '@grpc/grpc-js';
import type { TypedService } from '../../lib/grpc-service.ts';
import type { Logger } from '../../lib/log.ts';

/** Ends a call with a status other than OK. */
export class RpcError extends Error {
  override name = 'RpcError';

  constructor(
    readonly code: status,
    message: string,
  ) {
    super(message);
  }
}

/** What a handler needs of its call. */
export interface CallContext {
  /** Real time, in milliseconds. */
  readonly deadlineMs: number;
  readonly call: ServerUnaryCall<unknown, unknown>;
}

type UnaryHandler<M extends DescMethod> = (
  request: MessageShape<M['input']>,
  context: CallContext,
) => Promise<MessageInitShape<M['output']>>;

/** A handler for each unary call of a service. */
export type UnaryHandlers<S extends TypedService> = {
  [K in keyof S['method'] as S['method'][K]['methodKind'] extends 'unary' ? K : never]: UnaryHandler<S['method'][K]>;
};

type GrpcHandler = (
  call: ServerUnaryCall<MessageShape<DescMethod['input']>, MessageShape<DescMethod['output']>>,
  callback: (error: Partial<ServiceError> | null, value?: MessageShape<DescMethod['output']>) => void,
) => void;

/** A call without a deadline has this long. */
const usualTimeMs = 10_000;

/** Converts promise handlers for grpc-js, and their errors into statuses. Each answer states the time. */
export function unaryCalls<S extends TypedService>(
  service: S,
  handlers: UnaryHandlers<S>,
  log: Logger,
  now: () => number,
): Record<string, GrpcHandler> {
  const byName = handlers as unknown as Record<string, UnaryHandler<DescMethod>>;
  const calls: Record<string, GrpcHandler> = {};
  for (const method of service.methods) {
    const handler = byName[method.localName];
    if (method.methodKind !== 'unary' || handler === undefined) continue;
    calls[method.localName] = (call, callback) => {
      const given = Number(call.getDeadline());
      const deadlineMs = Number.isFinite(given) ? given : now() + usualTimeMs;
      handler(call.request, { deadlineMs, call })
        .then((answer) => {
          callback(null, create(method.output, { ...answer, brokerTime: timestampFromMs(now()) } as never));
        })
        .catch((error: unknown) => {
          if (!(error instanceof RpcError)) log.error({ err: error, rpc: method.name }, 'a call failed');
          callback(statusOf(error));
        });
    };
  }
  return calls;
}

/** The status that says an error. What is not ours proves nothing. */
export function statusOf(error: unknown): Partial<ServiceError> {
  if (error instanceof RpcError) return { code: error.code, details: error.message };
  return { code: status.UNAVAILABLE, details: 'the adapter failed' };
}
