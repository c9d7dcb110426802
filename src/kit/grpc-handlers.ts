import type { DescMethod, MessageInitShape, MessageShape } from '@bufbuild/protobuf';
import type { ServerUnaryCall, ServiceError, status } from '@grpc/grpc-js';
import type { TypedService } from './grpc-service.ts';

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
  /** Called with an error that is no `RpcError`, and the call's name. Returns its status. */
  readonly failed: (error: unknown, rpc: string) => Partial<ServiceError>;
}

/** Converts promise handlers for grpc-js, and their errors into statuses. */
export function unaryCalls<S extends TypedService, Context, NoAnswer = never>(
  service: S,
  handlers: UnaryHandlers<S, Context, NoAnswer>,
  { context, answer, failed }: Conversion<Context, NoAnswer>,
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
        .catch((error: unknown) => callback(statusOf(error) ?? failed(error, method.name)));
    };
  }
  return calls;
}

/** The status of an `RpcError`; undefined for other errors. */
export function statusOf(error: unknown): Partial<ServiceError> | undefined {
  return error instanceof RpcError ? { code: error.code, details: error.message } : undefined;
}
