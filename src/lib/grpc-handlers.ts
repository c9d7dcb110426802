import type { DescMethod, MessageInitShape, MessageShape } from '@bufbuild/protobuf';
import type { ServerUnaryCall, ServiceError, status } from '@grpc/grpc-js';
import type { TypedService } from './grpc-service.ts';
import type { Logger } from './log.ts';

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

type UnaryHandler<M extends DescMethod, Context, NoAnswer> = (
  request: MessageShape<M['input']>,
  context: Context,
) => Promise<MessageInitShape<M['output']> | NoAnswer>;

/** A handler for each unary call of a service. `Context` is what it gets of its call. */
export type UnaryHandlers<S extends TypedService, Context, NoAnswer = never> = {
  [K in keyof S['method'] as S['method'][K]['methodKind'] extends 'unary' ? K : never]: UnaryHandler<
    S['method'][K],
    Context,
    NoAnswer
  >;
};

type Answer = MessageShape<DescMethod['output']>;

/** A unary call, as grpc-js wants it. */
export type GrpcHandler = (
  call: ServerUnaryCall<MessageShape<DescMethod['input']>, Answer>,
  callback: (error: Partial<ServiceError> | null, value?: Answer) => void,
) => void;

interface Conversion<Context, NoAnswer> {
  readonly context: (call: Parameters<GrpcHandler>[0]) => Context;
  /** Makes the message of an answer; undefined: the call gets none. */
  readonly answer: (
    method: DescMethod,
    answer: MessageInitShape<DescMethod['output']> | NoAnswer,
  ) => Answer | undefined;
  /** The status of an error that is no `RpcError`. It is logged. */
  readonly failed: Partial<ServiceError>;
  readonly log: Logger;
}

/** Converts promise handlers for grpc-js, and their errors into statuses. */
export function unaryCalls<S extends TypedService, Context, NoAnswer = never>(
  service: S,
  handlers: UnaryHandlers<S, Context, NoAnswer>,
  { context, answer, failed, log }: Conversion<Context, NoAnswer>,
): Record<string, GrpcHandler> {
  const byName = handlers as unknown as Record<string, UnaryHandler<DescMethod, Context, NoAnswer>>;
  const calls: Record<string, GrpcHandler> = {};
  for (const method of service.methods) {
    const handler = byName[method.localName];
    if (method.methodKind !== 'unary' || handler === undefined) continue;
    calls[method.localName] = (call, callback) => {
      handler(call.request, context(call))
        .then((given) => {
          const message = answer(method, given);
          if (message !== undefined) callback(null, message);
        })
        .catch((error: unknown) => {
          if (!(error instanceof RpcError)) log.error({ err: error, rpc: method.name }, 'a call failed');
          callback(statusOf(error, failed));
        });
    };
  }
  return calls;
}

/** The status of an error; `failed` if it is no `RpcError`. */
export function statusOf(error: unknown, failed: Partial<ServiceError>): Partial<ServiceError> {
  return error instanceof RpcError ? { code: error.code, details: error.message } : failed;
}
