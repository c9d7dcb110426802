import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { JsonObject } from '@bufbuild/protobuf';
import { type ServiceError, status } from '@grpc/grpc-js';
import { AllocationOutcome } from '../../../src/gen/marina/broker/v1/allocations_pb.ts';
import { Call, WireFault } from '../../../src/gen/marina/simulator/v1/controls_pb.ts';
import { brokerAllocations } from '../brokers-record.ts';
import { eventually } from '../eventually.ts';
import { callTimeout } from '../gateway.ts';
import { fc } from '../properties.ts';
import type { ModelAllocation, PartnerModel } from './partner-model.ts';
import { assertSums } from './sums.ts';
import {
  ask,
  assertAnswer,
  boundMs,
  type Choice,
  type Command,
  operate,
  settledAs,
  type Whole,
} from './surroundings.ts';

/** How often the broker's record is asked for at most, before the fault that spoils the answers ends. */
const forEver = 1_000_000;

/** The faults on the way to the broker and back, each with whether the broker gets the allocation. */
const faults: readonly (readonly [WireFault, boolean])[] = [
  [WireFault.LOSE_ANSWER, true],
  [WireFault.NONSENSE, true],
  [WireFault.RESET_BEFORE, false],
];

const path = '/v1/allocations';

/** Moves money while answers of the broker are spoiled: the money stays reserved, because nobody can tell what the broker did. */
function allocateUncertain(
  amount_kobo: number,
  replica: number,
  at: number,
  [fault, isTaken]: (typeof faults)[number],
  isRejected: boolean,
): Command {
  return {
    toString: () =>
      `allocate ${amount_kobo} to account ${at} over ${WireFault[fault]}${isRejected ? ', rejected' : ''}, and it stays uncertain`,
    check: (model) => !model.forbids('fund', at) && (model as PartnerModel).uncertainAllocations.length < 4,
    run: async (model, whole) => {
      const isPossible =
        amount_kobo <= model.availableKobo() &&
        model.usedByAllocations() + amount_kobo <= model.allocationsLimitKobo &&
        !model.uncertainAllocations.some((one) => one.at === at && one.amountKobo === amount_kobo);
      if (!isPossible) return;
      const account = whole.partner.accounts[at] ?? '';
      const { controls } = whole;
      const outcome = isRejected ? AllocationOutcome.REJECTED : AllocationOutcome.BOOKED;
      await controls.forceAllocation({ account, outcome }, callTimeout);
      const spoiled = { account, partner: whole.partner.id };
      await controls.injectFault({ ...spoiled, call: Call.SUBMIT_ALLOCATION, fault }, callTimeout);
      const lookUp = { call: Call.LOOK_UP_ALLOCATION, fault: WireFault.NONSENSE, times: forEver };
      await controls.injectFault({ ...spoiled, ...lookUp }, callTimeout);
      const request = { idempotencyKey: randomUUID(), body: { account, amount_kobo } };
      const before = whole.unclear();
      const answer = await ask(whole, replica, 'POST', path, request);
      const isUnclear = whole.unclear() > before;
      const again = [{ status: 200 }];
      const uncertain = { state: 'uncertain', answers: [{ status: 201 }, ...(isUnclear ? again : [])], again };
      // An allocation that provably never left needs no answer of the broker.
      const notSent = { status: 503, code: 'allocation_not_sent' };
      const refused = { state: 'refused', answers: [...uncertain.answers, notSent], again: [...again, notSent] };
      const outcomes = isUnclear ? [uncertain, refused] : [uncertain];
      const { id, state } = await settledAs(whole, 1, path, answer, outcomes);
      await controls.injectFault({ ...lookUp, clientId: id }, callTimeout);
      await controls.clearDirectives({ account }, callTimeout);
      assertAnswer(await ask(whole, 1 - replica, 'POST', path, request), ...refused.again);
      const truth = await truthOf(whole, id);
      assert.ok(isUnclear || (truth !== 'refused') === isTaken, `the broker has it: ${truth}`);
      model.allocations.push({ amountKobo: amount_kobo, id, day: model.day, state, at, truth });
      await assertSums(model, whole, replica);
    },
  };
}

/** The broker's own record of an allocation. */
async function recordOf({ controls, positions }: Whole, id: string) {
  return (await brokerAllocations(controls, positions.allocations)).get(id)?.record;
}

async function truthOf(whole: Whole, id: string): Promise<string> {
  const record = await recordOf(whole, id);
  if (record === undefined) return 'refused';
  return record.outcome === AllocationOutcome.BOOKED ? 'booked' : 'rejected';
}

/** The outcome that the broker's people tell on the phone. */
async function evidenceOf(whole: Whole, { id }: ModelAllocation): Promise<JsonObject> {
  const record = await recordOf(whole, id);
  if (record === undefined) return { state: 'SETTLED_ALLOCATION_STATE_REFUSED' };
  const { body } = await ask(whole, 0, 'GET', `${path}/${id}`);
  const decided = { decided_at: body.created_at };
  return record.outcome === AllocationOutcome.BOOKED
    ? { ...decided, state: 'SETTLED_ALLOCATION_STATE_BOOKED', broker_reference: record.brokerReference }
    : {
        ...decided,
        state: 'SETTLED_ALLOCATION_STATE_REJECTED',
        reject_reason: 'ALLOCATION_REJECT_REASON_REJECTED_BY_BROKER',
      };
}

/** Waits until the allocation is as the model has it, and compares the sums: the reserve was posted or returned, once. */
async function ended(model: PartnerModel, whole: Whole, allocation: ModelAllocation): Promise<void> {
  assert.ok(allocation.truth !== undefined);
  allocation.state = allocation.truth;
  await eventually(async () => {
    const { body } = await ask(whole, 0, 'GET', `${path}/${allocation.id}`);
    if (body.state === 'uncertain') await operate(whole, 'Diagnostics.ReconcileNow', { object_id: allocation.id });
    assert.equal(body.state, allocation.state, allocation.id);
  }, boundMs);
  await assertSums(model, whole, 1);
}

/** Ends one of the uncertain allocations in a way. */
function end(
  name: string,
  [at = 0]: Choice,
  by: (model: PartnerModel, whole: Whole, allocation: ModelAllocation) => Promise<void>,
): Command {
  return {
    toString: () => `${name} uncertain allocation ${at}`,
    check: (model) => (model as PartnerModel).uncertainAllocations.length > 0,
    run: async (model, whole) => {
      const all = model.uncertainAllocations;
      await by(model, whole, all[at % all.length] as ModelAllocation);
    },
  };
}

/** Two operators settle it by evidence. One alone cannot, and if the second one declines, it stays uncertain. */
function settle(isDeclined: boolean) {
  return async (model: PartnerModel, whole: Whole, allocation: ModelAllocation) => {
    const { operators } = whole;
    const id = await operators.propose(allocation.id, { allocation: await evidenceOf(whole, allocation) });
    const own = await operators.refused('ada', 'Proposals.ApproveProposal', { id, reason: 'the model' });
    assert.equal(own.code, status.PERMISSION_DENIED, 'the one who proposed it must not approve it');
    if (isDeclined) {
      await operate(whole, 'Proposals.DeclineProposal', { id }, 'bola');
      return assertSums(model, whole, 0);
    }
    const before = whole.unclear();
    const { changed } = await operators.approve(id);
    assert.ok(changed || whole.unclear() > before, 'the settlement is applied');
    await ended(model, whole, allocation);
  };
}

/** The broker's record can be read again. */
async function reveal(whole: Whole, { id: clientId }: ModelAllocation): Promise<void> {
  await whole.controls.clearDirectives({ clientId }, callTimeout);
}

async function reconcile(model: PartnerModel, whole: Whole, allocation: ModelAllocation): Promise<void> {
  await reveal(whole, allocation);
  await ended(model, whole, allocation);
}

/** Two operators settle it while the reconciler does. */
async function settleInRace(model: PartnerModel, whole: Whole, allocation: ModelAllocation): Promise<void> {
  const { operators } = whole;
  const id = await operators.propose(allocation.id, { allocation: await evidenceOf(whole, allocation) });
  await reveal(whole, allocation);
  const [approved] = await Promise.allSettled([
    operators.approve(id),
    operate(whole, 'Diagnostics.ReconcileNow', { object_id: allocation.id }),
  ]);
  if (approved.status === 'rejected') {
    const { code } = approved.reason as ServiceError;
    assert.equal(code, status.FAILED_PRECONDITION, 'an allocation that is settled cannot be settled again');
    await operate(whole, 'Proposals.DeclineProposal', { id }, 'bola');
  }
  await ended(model, whole, allocation);
}

/** Lets the broker's record of all uncertain allocations be read again: each ends as it says. */
export async function endUncertainAllocations(model: PartnerModel, whole: Whole): Promise<void> {
  for (const allocation of model.uncertainAllocations) await reconcile(model, whole, allocation);
}

const pick = fc.array(fc.nat(1_000), { minLength: 1, maxLength: 1 });

/** The commands of allocations that stay uncertain, and their ends. */
export const uncertainAllocationCommands = [
  ...[0, 1].map(() =>
    fc
      .tuple(fc.integer({ min: 1, max: 900_000 }), fc.nat(1), fc.nat(1), fc.constantFrom(...faults), fc.boolean())
      .map(([kobo, replica, at, fault, isRejected]) => allocateUncertain(kobo, replica, at, fault, isRejected)),
  ),
  pick.map((choice) => end('settle', choice, settle(false))),
  pick.map((choice) => end('decline to settle', choice, settle(true))),
  pick.map((choice) => end('reconcile', choice, reconcile)),
  pick.map((choice) => end('settle and reconcile', choice, settleInRace)),
];
