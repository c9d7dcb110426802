import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { JsonObject } from '@bufbuild/protobuf';
import {
  AccountActivity,
  AccountRestrictionCode,
  AccountState,
} from '../../../src/gen/marina/broker/v1/accounts_pb.ts';
import { WithdrawalRejectReason, WithdrawalReportKind } from '../../../src/gen/marina/broker/v1/withdrawals_pb.ts';
import { Call, WireFault, WithdrawalOutcome } from '../../../src/gen/marina/simulator/v1/controls_pb.ts';
import { eventually } from '../eventually.ts';
import { callTimeout, type RestAnswer } from '../gateway.ts';
import { fc } from '../properties.ts';
import { timeOf } from './environment.ts';
import { dutyOn, type ModelWithdrawal, type PartnerModel } from './partner-model.ts';
import {
  ask,
  assertAnswer,
  boundMs,
  type Choice,
  type Command,
  idOf,
  type Outcome,
  outcomesOf,
  settledAs,
  type Whole,
} from './surroundings.ts';

/** How a withdrawal ends if the account has the money. */
interface End {
  readonly state: string;
  /** Its reason, if the broker rejects it whatever the account has. */
  readonly rejectReason?: string;
  /** The answer to its request has the outcome; else it is lost, and may have the outcome all the same if a report is faster. */
  readonly isAnswered: boolean;
  /** Whether the broker takes it at all. */
  readonly isTaken?: boolean;
}

const paid: End = { state: 'completed', isAnswered: true };
const held: End = { state: 'processing', isAnswered: true };
const lostAnswer: End = { state: 'completed', isAnswered: false };
const neverTaken: End = { state: 'refused', isAnswered: false, isTaken: false };

/** The end of a withdrawal by the last digits of its amount. */
const magicAmounts: Readonly<Record<number, End>> = {
  998001: paid,
  998002: paid,
  998003: { state: 'rejected', rejectReason: 'insufficient_withdrawable_funds', isAnswered: true },
  998005: { state: 'rejected', rejectReason: 'no_bank_account', isAnswered: true },
  998010: held,
  998012: { state: 'refused', isAnswered: false, isTaken: false },
  998013: { state: 'completed', isAnswered: false },
  998014: { state: 'rejected', rejectReason: 'rejected_by_broker', isAnswered: false },
  998016: { state: 'completed', isAnswered: false },
  998018: { state: 'completed', isAnswered: false },
  998019: { state: 'refused', isAnswered: true, isTaken: false },
};

/** The outcomes that the simulated broker can be told, each with the end that it leads to. */
const forcedOutcomes: readonly (readonly [WithdrawalOutcome, End])[] = [
  [WithdrawalOutcome.PAY_AT_ONCE, paid],
  [WithdrawalOutcome.PAY_LATER, paid],
  [WithdrawalOutcome.HOLD, held],
  [WithdrawalOutcome.REJECT, { state: 'rejected', rejectReason: 'bank_account_mismatch', isAnswered: true }],
];

/** The faults on the way to the broker and back, each with the end of a withdrawal that meets it. */
const faults: readonly (readonly [WireFault, End])[] = [
  [WireFault.LOSE_ANSWER, lostAnswer],
  [WireFault.RESET_AFTER, lostAnswer],
  [WireFault.UNAVAILABLE_AFTER, lostAnswer],
  [WireFault.NONSENSE, lostAnswer],
  [WireFault.RESET_BEFORE, neverTaken],
  [WireFault.HANG, neverTaken],
];
const lookUpFaults = [WireFault.HANG, WireFault.LOSE_ANSWER, WireFault.RESET_BEFORE, WireFault.NONSENSE];

type Body = ModelWithdrawal['body'];

const notSent = { status: 503, code: 'withdrawal_not_sent' };

/** A request for a withdrawal, its answer, and how the withdrawal must end. */
interface Sent {
  readonly key: string;
  readonly body: Body;
  readonly end: End;
  readonly answer: RestAnswer;
  readonly isUnclear: boolean;
  readonly replica: number;
}

/** Asks for a withdrawal that must end in a way. */
async function sendFor(whole: Whole, replica: number, body: Body, end: End): Promise<Sent> {
  const [key, before] = [randomUUID(), whole.unclear()];
  const answer = await send(whole, replica, key, body);
  return { key, body, end, answer, isUnclear: whole.unclear() > before, replica };
}

function send(whole: Whole, replica: number, idempotencyKey: string, body: object): Promise<RestAnswer> {
  const [, account] = whole.partner.accounts;
  return ask(whole, replica, 'POST', '/v1/withdrawals', { idempotencyKey, body: { account, ...body } });
}

/** The end of a withdrawal from an account that has the model's money. */
function endOf(model: PartnerModel, body: Body, wanted: End): End {
  const { rejectReason, isTaken = true } = wanted;
  const isEnough = body.amount_kobo + dutyOn(body) <= model.withdrawableKobo();
  if (!isTaken || rejectReason !== undefined || isEnough) return wanted;
  return { ...wanted, state: 'rejected', rejectReason: 'insufficient_withdrawable_funds' };
}

/** The outcomes of a request for a withdrawal. */
function outcomes({ state, isAnswered }: End, isUnclear: boolean): Outcome[] {
  const error = { rejected: { status: 422, code: 'withdrawal_rejected' }, refused: notSent }[state];
  const known = outcomesOf('withdrawal', { state, ...(error ?? { status: 201 }) }, isUnclear);
  if (isAnswered || isUnclear || error === undefined) return known;
  return [...known, ...outcomesOf('withdrawal', { state, status: 201 }, false)];
}

/** A withdrawal that waits for its release is answered at once. */
function heldOutcomes(isUnclear: boolean): Outcome[] {
  const again = { status: 200 };
  return [{ state: 'sending', answers: [{ status: 201 }, ...(isUnclear ? [again] : [])], again: [again] }];
}

/** Compares an answer with the end of the withdrawal, and waits until the model's partner sees that end. */
async function keep(model: PartnerModel, whole: Whole, { key, body, end, answer, isUnclear, replica }: Sent) {
  const isHeld = model.mustWait(body);
  const possible = isHeld ? heldOutcomes(isUnclear) : outcomes(end, isUnclear);
  const { id, state, again } = await settledAs(whole, replica, '/v1/withdrawals', answer, possible);
  const isRejected = state === 'rejected' && answer.body.error !== undefined;
  if (isRejected) assert.equal(answer.body.error.reject_reason, end.rejectReason);
  const withdrawal: ModelWithdrawal = { key, body, id, again, state };
  model.withdrawals.push(withdrawal);
  await settled(whole, withdrawal, state === 'rejected' ? end.rejectReason : undefined);
}

/** The same for one that the broker was told about: if it never got there, the next one must not meet what was told. */
async function keepDirected(model: PartnerModel, whole: Whole, sent: Sent): Promise<void> {
  await keep(model, whole, sent);
  const account = whole.partner.accounts[1] ?? '';
  if (sent.isUnclear) await whole.controls.clearDirectives({ account }, callTimeout);
}

/** The end of a withdrawal by its amount. */
export function magicEndOf(model: PartnerModel, body: Body): End {
  return endOf(model, body, magicAmounts[body.amount_kobo % 1_000_000] ?? paid);
}

/** Waits until the withdrawal is in one of some states, and returns it. */
export function untilWithdrawalIs(
  whole: Whole,
  { id }: ModelWithdrawal,
  states: readonly string[],
  withinMs = boundMs,
): Promise<string> {
  return eventually(async () => {
    const { body } = await ask(whole, 1, 'GET', `/v1/withdrawals/${id}`);
    assert.ok(states.includes(body.state), `${id} is ${body.state}, and none of ${states}`);
    return body.state;
  }, withinMs);
}

/** Waits until the withdrawal is as the model has it. */
function settled(whole: Whole, { id, state }: ModelWithdrawal, rejectReason?: string): Promise<void> {
  return eventually(async () => {
    const { body } = await ask(whole, 1, 'GET', `/v1/withdrawals/${id}`);
    assert.deepEqual([body.state, body.reject_reason], [state, rejectReason ?? body.reject_reason], id);
  }, boundMs);
}

/** Takes money out of the account, or is refused and nothing moves. */
function withdraw(body: Body, replica: number): Command {
  return {
    toString: () => `withdraw ${body.amount_kobo} to the ${body.destination}`,
    check: () => true,
    run: async (model, whole) => {
      const sent = await sendFor(whole, replica, body, magicEndOf(model, body));
      if (model.forbids('withdraw', 1)) return assertAnswer(sent.answer, { status: 503, code: 'trading_paused' });
      await keep(model, whole, sent);
    },
  };
}

/** Takes money out while the simulated broker is told what to make of it. */
function withdrawForced(body: Body, replica: number, [outcome, wanted]: (typeof forcedOutcomes)[number]): Command {
  return {
    toString: () => `withdraw ${body.amount_kobo} to the ${body.destination}, forced to ${WithdrawalOutcome[outcome]}`,
    check: (model) => !model.forbids('withdraw', 1) && !model.mustWait(body),
    run: async (model, whole) => {
      const [, account] = whole.partner.accounts;
      const rejectReason = WithdrawalRejectReason.BANK_ACCOUNT_MISMATCH;
      await whole.controls.forceWithdrawal({ account, outcome, rejectReason }, callTimeout);
      await keepDirected(model, whole, await sendFor(whole, replica, body, endOf(model, body, wanted)));
    },
  };
}

/** Takes money out while the connection to the broker fails, for the request and then for the look-up. */
function withdrawOverFault(
  body: Body,
  replica: number,
  [fault, wanted]: (typeof faults)[number],
  lookUpFault: WireFault,
): Command {
  return {
    toString: () =>
      `withdraw ${body.amount_kobo} to the ${body.destination} over ${WireFault[fault]} and ${WireFault[lookUpFault]}`,
    check: (model) => !model.forbids('withdraw', 1) && !model.mustWait(body),
    run: async (model, whole) => {
      const [, account] = whole.partner.accounts;
      const { controls } = whole;
      await controls.injectFault({ call: Call.SUBMIT_WITHDRAWAL, account, fault }, callTimeout);
      await controls.injectFault({ call: Call.LOOK_UP_WITHDRAWAL, account, fault: lookUpFault }, callTimeout);
      await keepDirected(model, whole, await sendFor(whole, replica, body, endOf(model, body, wanted)));
    },
  };
}

/** Asks for money while the account is restricted: the broker rejects it, and nothing moves. */
function withdrawRestricted(body: Body, replica: number): Command {
  return {
    toString: () => `withdraw ${body.amount_kobo} from a restricted account`,
    check: (model) => !model.forbids('withdraw', 1) && !model.mustWait(body),
    run: async (model, whole) => {
      const account = whole.partner.accounts[1] ?? '';
      const { controls } = whole;
      const restriction = { code: AccountRestrictionCode.REGULATOR, forbids: [AccountActivity.WITHDRAW] };
      const restricted = { account, state: AccountState.RESTRICTED, restrictions: [restriction] };
      await controls.setAccountState(restricted, callTimeout);
      const end = { state: 'rejected', rejectReason: 'account_restricted', isAnswered: true };
      await keep(model, whole, await sendFor(whole, replica, body, end));
      await controls.setAccountState({ account, state: AccountState.ACTIVE }, callTimeout);
    },
  };
}

/** Asks for the same money again while nobody knows whether the broker has the first withdrawal: refused, or a fresh one. */
function withdrawSimilar(destination: string, replica: number): Command {
  const body = { amount_kobo: 998_012, destination };
  return {
    toString: () => `withdraw twice to the ${destination}, and the first one is unclear`,
    check: (model) => !model.forbids('withdraw', 1) && !model.mustWait(body),
    run: async (model, whole) => {
      const first = await sendFor(whole, replica, body, neverTaken);
      const second = await sendFor(whole, 1 - replica, body, neverTaken);
      const isHeldBack = second.answer.body?.error?.code === 'similar_withdrawal_unresolved';
      if (isHeldBack) assertAnswer(second.answer, { status: 409, code: 'similar_withdrawal_unresolved' });
      await keep(model, whole, first);
      if (!isHeldBack) await keep(model, whole, second);
    },
  };
}

/** Sends the request of a withdrawal again: answered as the first time, or with the withdrawal as it is. */
function repeat([at = 0, replica = 0, change = 0]: Choice): Command {
  return {
    toString: () => `repeat withdrawal ${at}${change % 4 === 0 ? ' with another amount' : ''}`,
    check: ({ withdrawals }) => withdrawals.length > 0,
    run: async ({ withdrawals }, whole) => {
      const { key, body, id, state, again } = withdrawals[at % withdrawals.length] as ModelWithdrawal;
      const isOther = change % 4 === 0;
      const asked = isOther ? { ...body, amount_kobo: body.amount_kobo + 1 } : body;
      const answer = await send(whole, replica, key, asked);
      if (isOther) return assertAnswer(answer, { status: 409, code: 'duplicate_withdrawal' });
      assertAnswer(answer, ...again);
      assert.equal(idOf(answer), id);
      if (answer.status === 200) assert.equal(answer.body.state, state);
    },
  };
}

/** The withdrawals of the model in a state, or to a destination. */
const processing = ({ withdrawals }: Pick<PartnerModel, 'withdrawals'>) =>
  withdrawals.filter(({ state }) => state === 'processing');
const paidToBank = ({ withdrawals }: Pick<PartnerModel, 'withdrawals'>) =>
  withdrawals.filter(({ state, body }) => state === 'completed' && body.destination === 'bank_account');

/** Lets the broker's operators pay or reject a withdrawal that waits for them. */
function decide([at = 0, choice = 0]: Choice): Command {
  const isPaid = choice % 2 === 0;
  return {
    toString: () => `${isPaid ? 'pay' : 'reject'} withdrawal ${at}`,
    check: (model) => processing(model).length > 0,
    run: async (model, whole) => {
      const waiting = processing(model);
      const withdrawal = waiting[at % waiting.length] as ModelWithdrawal;
      await decideAtBroker(whole, withdrawal, isPaid);
      withdrawal.state = isPaid ? 'completed' : 'rejected';
      await settled(whole, withdrawal);
    },
  };
}

async function decideAtBroker(whole: Whole, { id }: ModelWithdrawal, isPaid: boolean): Promise<void> {
  const kind = isPaid ? WithdrawalReportKind.PAID : WithdrawalReportKind.REJECTED;
  await whole.controls.decideWithdrawal({ clientWithdrawalId: id, kind }, callTimeout);
}

/** Two operators settle a withdrawal that waits; the broker says the same later, which changes nothing. */
function settle([at = 0, choice = 0]: Choice): Command {
  const isPaid = choice % 2 === 0;
  return {
    toString: () => `settle withdrawal ${at} as ${isPaid ? 'paid' : 'rejected'}`,
    check: (model) => processing(model).length > 0,
    run: async (model, whole) => {
      const waiting = processing(model);
      const withdrawal = waiting[at % waiting.length] as ModelWithdrawal;
      const { body: before } = await ask(whole, 0, 'GET', `/v1/withdrawals/${withdrawal.id}`);
      // The broker decides now, so on a day that is over the withdrawal still waited.
      const decidedAt = Math.max(Date.parse(before.created_at), await timeOf(whole, 0));
      const outcome: JsonObject = isPaid
        ? { state: 'SETTLED_WITHDRAWAL_STATE_COMPLETED' }
        : { state: 'SETTLED_WITHDRAWAL_STATE_REJECTED', reject_reason: 'WITHDRAWAL_REJECT_REASON_REJECTED_BY_BROKER' };
      const decided = { ...outcome, decided_at: new Date(decidedAt).toISOString() };
      const unclearBefore = whole.unclear();
      const { changed } = await whole.operators.settle(withdrawal.id, { withdrawal: decided });
      assert.ok(changed || whole.unclear() > unclearBefore);
      withdrawal.state = isPaid ? 'completed' : 'rejected';
      await settled(whole, withdrawal);
      await decideAtBroker(whole, withdrawal, isPaid);
    },
  };
}

/** Lets the bank send the money of a withdrawal back. */
function sendBack([at = 0]: Choice): Command {
  return {
    toString: () => `return withdrawal ${at}`,
    check: (model) => paidToBank(model).length > 0,
    run: async (model, whole) => {
      const all = paidToBank(model);
      const withdrawal = all[at % all.length] as ModelWithdrawal;
      const { id: clientWithdrawalId } = withdrawal;
      const returned = { clientWithdrawalId, kind: WithdrawalReportKind.RETURNED };
      await whole.controls.decideWithdrawal(returned, callTimeout);
      withdrawal.state = 'returned';
      await settled(whole, withdrawal);
    },
  };
}

/** Compares the partner's withdrawals, those that operators find, the ledger's entries and the account's money with the model. */
export async function assertWithdrawals(model: PartnerModel, whole: Whole): Promise<void> {
  const { withdrawals } = model;
  const newestFirst = withdrawals.map(({ id, state }) => [id, state]).reverse();
  const { body: list } = await ask(whole, 0, 'GET', '/v1/withdrawals?limit=100');
  assert.deepEqual(shown(list.data), newestFirst, 'the withdrawals, newest first');
  const found = await whole.operators.as('ada', 'Diagnostics.FindWithdrawals', { partner_id: whole.partner.id });
  const seen = found.withdrawals.map(({ withdrawal }: { withdrawal: { id: string } }) => withdrawal.id);
  assert.deepEqual(
    seen,
    newestFirst.slice(0, seen.length).map(([id]) => id),
    'the withdrawals that operators find',
  );
  const { body: transfers } = await ask(whole, 1, 'GET', '/v1/wallet/transfers?limit=100');
  const credited = transfers.data.filter(({ type }: { type: string }) => type === 'withdrawal');
  const toWallet = withdrawals.filter(({ state, body }) => state === 'completed' && body.destination === 'wallet');
  assert.deepEqual(
    credited.map(({ withdrawal }: { withdrawal: string }) => withdrawal).sort(),
    toWallet.map(({ id }) => id).sort(),
    'each withdrawal that was paid to the wallet has one entry',
  );
  const [, account] = whole.partner.accounts;
  const { body: balance } = await ask(whole, 0, 'GET', `/v1/accounts/${account}/balance`);
  assert.equal(balance.withdrawable_kobo, model.withdrawableKobo(), "the account's money");
}

const shown = (data: readonly { id: string; state: string }[]) => data.map(({ id, state }) => [id, state]);

const pick = fc.array(fc.nat(1_000), { minLength: 3, maxLength: 3 });
const replica = fc.nat(1);
const destination = fc.constantFrom('wallet', 'bank_account');
const usual = fc.record({ amount_kobo: fc.integer({ min: 1, max: 900_000 }), destination });
/** To a bank account a million more is due a duty. */
const magic = fc.record({
  amount_kobo: fc
    .tuple(fc.constantFrom(...Object.keys(magicAmounts).map(Number)), fc.nat(1))
    .map(([amount, millions]) => amount + millions * 1_000_000),
  destination,
});

/** The commands of withdrawals. */
export const withdrawalCommands = [
  fc.tuple(usual, replica).map(([body, on]) => withdraw(body, on)),
  fc.tuple(magic, replica).map(([body, on]) => withdraw(body, on)),
  fc
    .tuple(usual, replica, fc.constantFrom(...forcedOutcomes))
    .map(([body, on, outcome]) => withdrawForced(body, on, outcome)),
  fc
    .tuple(usual, replica, fc.constantFrom(...faults), fc.constantFrom(...lookUpFaults))
    .map(([body, on, fault, lookUpFault]) => withdrawOverFault(body, on, fault, lookUpFault)),
  fc.tuple(usual, replica).map(([body, on]) => withdrawRestricted(body, on)),
  fc.tuple(destination, replica).map(([to, on]) => withdrawSimilar(to, on)),
  pick.map(repeat),
  pick.map(decide),
  pick.map(settle),
  pick.map(sendBack),
];
