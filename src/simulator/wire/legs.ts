import { type Timestamp, timestampFromMs } from '@bufbuild/protobuf/wkt';
import { status } from '@grpc/grpc-js';
import type { Call } from '../../gen/marina/simulator/v1/controls_pb.ts';
import { nextLagosMidnight } from '../../kit/clock.ts';
import type { Fault } from '../magic.ts';
import type { SubmissionResult } from '../model.ts';
import type { UnitOfWork } from '../store/unit-of-work.ts';
import type { Needs, SimulatorWriter } from '../store/writer.ts';
import type { World } from '../world.ts';
import { RpcError, type unanswered, type WireCall } from './rpc.ts';
import type { Wire } from './wire.ts';

const dayMs = 86_400_000;
const seenBefore = { outcome: 'seen_before' } as const;

/** A call that changes nothing is not recorded. */
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

/** A message that submits something. */
export interface SubmissionLeg<Request, Checked, Result, Answer> {
  readonly call: Call;
  readonly kind: 'order' | 'application' | 'allocation' | 'withdrawal';
  readonly id: string;
  readonly account: string;
  readonly request: Request;
  readonly needs: Needs;
  readonly magicFault: Fault | undefined;
  /** Throws an invalid argument for a request that makes no sense. That is no rejection. */
  readonly check: (request: Request) => Checked;
  readonly submit: (unit: UnitOfWork, checked: Checked) => SubmissionResult<Result>;
  readonly answer: (result: Result) => Answer;
  readonly nonsense: () => Answer;
}

/** Handles one submission, with the faults on its way. Its message is recorded whatever the outcome. */
export function carrySubmission<Request extends { readonly note: Uint8Array }, Checked, Result, Answer>(
  { writer, wire, world }: { readonly writer: SimulatorWriter; readonly wire: Wire; readonly world: World },
  wireCall: WireCall,
  leg: SubmissionLeg<Request, Checked, Result, Answer>,
): Promise<Answer | typeof unanswered> {
  const { call, kind, id, account, request, needs } = leg;
  const received = receipt(world, call, id, wireCall);
  const take = async (recorded: number | undefined) => {
    const submitted = await writer.runOn(needs, (unit) => {
      const checked = attempt(() => leg.check(request));
      const outcome =
        checked instanceof RpcError ? checked : unit.isRefused(id) ? seenBefore : leg.submit(unit, checked);
      const isTaken = !(outcome instanceof RpcError) && outcome.outcome === 'taken';
      received(unit, account, isTaken, recorded);
      if (isTaken) unit.submitted(id, request.note);
      if (!(outcome instanceof RpcError) && outcome.outcome === 'too_late') unit.refuse(id);
      return outcome;
    });
    if (submitted instanceof RpcError) throw submitted;
    if (submitted.outcome === 'taken') return leg.answer(submitted.result);
    throw submitted.outcome === 'seen_before'
      ? new RpcError(status.ALREADY_EXISTS, `The client ${kind} id was received before.`)
      : new RpcError(status.FAILED_PRECONDITION, `not_after has passed; the ${kind} was not taken.`);
  };
  return wire.carry<Answer>(wireCall, {
    call,
    clientId: id,
    account: () => account,
    magicFault: leg.magicFault,
    record: () => writer.run([], (unit) => received(unit, account, false)),
    refuse: () =>
      writer.run([], (unit) => {
        received(unit, account, false);
        unit.refuse(id);
      }),
    take,
    nonsense: leg.nonsense,
  });
}

/** The record is complete for all days before this Lagos day. */
export function completeUntil(world: World): Timestamp {
  return timestampFromMs(nextLagosMidnight(world.clock.shownNow()) - dayMs);
}

/** The result of a check, or the refusal it throws. */
export function attempt<T>(work: () => T): T | RpcError {
  try {
    return work();
  } catch (error) {
    if (error instanceof RpcError) return error;
    throw error;
  }
}
