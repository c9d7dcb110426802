import { type Timestamp, timestampFromMs } from '@bufbuild/protobuf/wkt';
import type { Call } from '../gen/marina/simulator/v1/controls_pb.ts';
import { nextLagosMidnight } from '../lib/clock.ts';
import { RpcError, type WireCall } from './rpc.ts';
import type { UnitOfWork } from './unit-of-work.ts';
import type { World } from './world.ts';

const dayMs = 86_400_000;

/** Calls that change nothing are not on the record. */
export function unrecorded(call: Call, account: string) {
  return { call, clientId: '', account: () => account, record: async () => 0 };
}

/** Records a message as received now, however long it then waits. */
export function receipt(world: World, call: Call, clientOrderId: string, { metadata }: WireCall) {
  const requestId = String(metadata.get('x-request-id')[0] ?? '').slice(0, 64);
  const traceParent = String(metadata.get('traceparent')[0] ?? '').slice(0, 64);
  const receivedAtMs = world.clock.realNow();
  return (unit: UnitOfWork, account: string, taken: boolean, number?: number): number =>
    unit.message({ call, clientOrderId, account, receivedAtMs, taken, requestId, traceParent }, number);
}

/** What was received before this Lagos day is settled: the record of the days before it is complete. */
export function completeUntil(world: World): Timestamp {
  return timestampFromMs(nextLagosMidnight(world.clock.shownNow()) - dayMs);
}

/** What a check gives, or the refusal it throws. */
export function attempt<T>(work: () => T): T | RpcError {
  try {
    return work();
  } catch (error) {
    if (error instanceof RpcError) return error;
    throw error;
  }
}
