import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { type ServerUnaryCall, type ServiceError, status } from '@grpc/grpc-js';
import * as handlers from '../../kit/grpc-handlers.ts';
import type { TypedService } from '../../kit/grpc-service.ts';
import type { Logger } from '../../kit/log.ts';

export { RpcError } from '../../kit/grpc-handlers.ts';

/** The data of its call that a handler needs. */
export interface CallContext {
  /** Real time, in milliseconds. */
  readonly deadlineMs: number;
  readonly call: ServerUnaryCall<unknown, unknown>;
}

/** A handler for each unary call of a service. */
export type BrokerHandlers<S extends TypedService> = handlers.UnaryHandlers<S, CallContext>;

/** A call without a deadline has this long. */
const usualTimeMs = 10_000;

/** An error that is not ours proves nothing. */
const failed = { code: status.UNAVAILABLE, details: 'the adapter failed' };

/** Converts promise handlers for grpc-js, and their errors into statuses. Each answer states the time. */
export function unaryCalls<S extends TypedService>(
  service: S,
  given: BrokerHandlers<S>,
  log: Logger,
  now: () => number,
): Record<string, handlers.GrpcHandler> {
  return handlers.unaryCalls<S, CallContext>(service, given, {
    context: (call) => {
      const deadlineMs = Number(call.getDeadline());
      return { deadlineMs: Number.isFinite(deadlineMs) ? deadlineMs : now() + usualTimeMs, call };
    },
    answer: ({ output }, answer) => create(output, { ...answer, brokerTime: timestampFromMs(now()) } as never),
    failed: (error, rpc) => {
      log.error({ err: error, rpc }, 'a call failed');
      return failed;
    },
  });
}

/** The status of an error. */
export function statusOf(error: unknown): Partial<ServiceError> {
  return handlers.statusOf(error) ?? failed;
}
