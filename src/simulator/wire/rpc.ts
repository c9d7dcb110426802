import { create } from '@bufbuild/protobuf';
import type { Timestamp } from '@bufbuild/protobuf/wkt';
import { type ServerUnaryCall, status } from '@grpc/grpc-js';
import * as handlers from '../../kit/grpc-handlers.ts';
import type { TypedService } from '../../kit/grpc-service.ts';
import type { Logger } from '../../kit/log.ts';

export { RpcError } from '../../kit/grpc-handlers.ts';

/** A handler's result for a call that gets no answer. */
export const unanswered = Symbol('unanswered');

/** The facts of a call that a fault needs. */
export type WireCall = Pick<ServerUnaryCall<unknown, unknown>, 'cancelled' | 'getPeer' | 'metadata'> & {
  on(event: 'cancelled', listener: () => void): unknown;
};

/** A handler for each unary call of a service. */
export type SimulatorHandlers<S extends TypedService> = handlers.UnaryHandlers<S, WireCall, typeof unanswered>;

/** Converts promise handlers for grpc-js, and their errors into statuses. `brokerTime` is stated in each answer. */
export function unaryCalls<S extends TypedService>(
  service: S,
  given: SimulatorHandlers<S>,
  log: Logger,
  brokerTime?: () => Timestamp | undefined,
): Record<string, handlers.GrpcHandler> {
  return handlers.unaryCalls<S, WireCall, typeof unanswered>(service, given, {
    context: (call) => call,
    answer: ({ output }, answer) => {
      if (answer === unanswered) return undefined;
      return create(output, { ...answer, ...(brokerTime && { brokerTime: brokerTime() }) });
    },
    failed: (error, rpc) => {
      log.error({ err: error, rpc }, 'a call failed');
      return { code: status.INTERNAL, details: 'The simulator failed.' };
    },
  });
}
