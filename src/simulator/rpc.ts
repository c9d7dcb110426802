import { create, type DescMethod, type MessageInitShape, type MessageShape } from '@bufbuild/protobuf';
import type { Timestamp } from '@bufbuild/protobuf/wkt';
import { type ServerUnaryCall, type ServiceError, status } from '@grpc/grpc-js';
import type { TypedService } from '../lib/grpc-service.ts';
import type { Logger } from '../lib/log.ts';

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

/** A handler's result for a call that gets no answer. */
export const unanswered = Symbol('unanswered');

/** The facts of a call that a fault needs. */
export type WireCall = Pick<ServerUnaryCall<unknown, unknown>, 'cancelled' | 'getPeer' | 'metadata'> & {
  on(event: 'cancelled', listener: () => void): unknown;
};

type UnaryHandler<M extends DescMethod> = (
  request: MessageShape<M['input']>,
  call: WireCall,
) => Promise<MessageInitShape<M['output']> | typeof unanswered>;

/** A handler for each unary call of a service. */
export type UnaryHandlers<S extends TypedService> = {
  [K in keyof S['method'] as S['method'][K]['methodKind'] extends 'unary' ? K : never]: UnaryHandler<S['method'][K]>;
};

type GrpcHandler = (
  call: ServerUnaryCall<MessageShape<DescMethod['input']>, MessageShape<DescMethod['output']>>,
  callback: (error: Partial<ServiceError> | null, value?: MessageShape<DescMethod['output']>) => void,
) => void;

/** Converts promise handlers for grpc-js, and their errors into statuses. `brokerTime` is stated in each answer. */
export function unaryCalls<S extends TypedService>(
  service: S,
  handlers: UnaryHandlers<S>,
  log: Logger,
  brokerTime?: () => Timestamp | undefined,
): Record<string, GrpcHandler> {
  const byName = handlers as unknown as Record<string, UnaryHandler<DescMethod>>;
  const calls: Record<string, GrpcHandler> = {};
  for (const method of service.methods) {
    const handler = byName[method.localName];
    if (method.methodKind !== 'unary' || handler === undefined) continue;
    calls[method.localName] = (call, callback) => {
      handler(call.request, call)
        .then((answer) => {
          if (answer === unanswered) return;
          const stated = brokerTime === undefined ? {} : { brokerTime: brokerTime() };
          callback(null, create(method.output, { ...answer, ...stated }));
        })
        .catch((error: unknown) => {
          if (!(error instanceof RpcError)) log.error({ err: error, rpc: method.name }, 'a call failed');
          callback(statusOf(error));
        });
    };
  }
  return calls;
}

function statusOf(error: unknown): Partial<ServiceError> {
  if (error instanceof RpcError) return { code: error.code, details: error.message };
  return { code: status.INTERNAL, details: 'The simulator failed.' };
}
