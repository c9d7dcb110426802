import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { JsonObject } from '@bufbuild/protobuf';
import { status } from '@grpc/grpc-js';
import { fc } from '../properties.ts';
import { callGuarded, needsSecond } from './four-eyes.ts';
import { agreed, type PartnerModel } from './partner-model.ts';
import { type Choice, type Command, operate, type Whole } from './surroundings.ts';

/** Records a payment before the first command, so that more commands move money. */
export async function fundAtFirst(model: PartnerModel, whole: Whole): Promise<void> {
  await fund(agreed.firstFundsKobo, false).run(model, whole);
}

/** Records a payment into the wallet. A large one needs a second operator, who may decline. */
function fund(amountKobo: number, isDeclined: boolean): Command {
  return {
    toString: () => `fund ${amountKobo}${isDeclined ? ', declined if it needs a second operator' : ''}`,
    check: () => true,
    run: async (model, whole) => {
      const bankReference = randomUUID();
      const payment = { bank_reference: bankReference, amount_kobo: String(amountKobo) };
      const request = { partner_id: whole.partner.id, ...payment };
      const isSecondNeeded = needsSecond(model, 'credit', amountKobo, agreed.fourEyesAboveKobo);
      const before = whole.unclear();
      const call = 'Wallets.CreditWallet';
      const { isMade, asked } = await callGuarded(whole, call, request, { isSecondNeeded, isDeclined });
      if (!isMade) return;
      assert.ok(isSecondNeeded || asked.recorded || whole.unclear() > before, 'the payment is recorded');
      model.fundedKobo += amountKobo;
      model.credits.push({ bankReference, amountKobo, reversedKobo: 0 });
      model.payments.push({ type: 'credit', day: model.day, amountKobo });
    },
  };
}

/** Money that leaves the wallet. */
interface Taken {
  readonly call: string;
  readonly type: 'debit' | 'reversal';
  readonly amountKobo: number;
  /** The amount of the request; absent: it is the same. */
  readonly askedKobo?: number;
  /** Further fields of the request. */
  readonly more?: JsonObject;
  readonly isPossible: boolean;
  readonly isDeclined: boolean;
}

/** Takes money out of the wallet, by two calls: it is recorded once. Or it is refused, and nothing moves. Whether it is taken. */
async function take(model: PartnerModel, whole: Whole, { call, type, amountKobo, more, ...how }: Taken) {
  const { partner, operators } = whole;
  const askedKobo = how.askedKobo ?? amountKobo;
  const payment = { amount_kobo: String(askedKobo), bank_reference: randomUUID() };
  const request = { partner_id: partner.id, ...payment, ...more };
  if (!how.isPossible) {
    const { code } = await operators.refused('ada', call, { ...request, reason: 'the model' });
    assert.equal(code, status.FAILED_PRECONDITION, call);
    return false;
  }
  const isSecondNeeded = needsSecond(model, type, amountKobo, agreed.fourEyesAboveKobo);
  const before = whole.unclear();
  const { isMade, asked } = await callGuarded(whole, call, request, { isSecondNeeded, isDeclined: how.isDeclined });
  if (!isMade) return false;
  assert.ok(isSecondNeeded || asked.recorded || whole.unclear() > before, call);
  const again = await operate(whole, call, request, 'bola');
  assert.deepEqual([again.recorded, again.proposal], [false, undefined], call);
  if (asked.correction !== undefined) assert.deepEqual(again.correction, asked.correction);
  const taken = [again.correction.amount_kobo, again.not_reversed_kobo ?? '0'].map(Number);
  assert.deepEqual(taken, [amountKobo, askedKobo - amountKobo], call);
  model.takenKobo += amountKobo;
  model.payments.push({ type, day: model.day, amountKobo });
  return true;
}

/** Pays money back to the partner: all that is available and no more. */
function debit(amountKobo: number, isDeclined: boolean): Command {
  return {
    toString: () => `debit ${amountKobo}`,
    check: () => true,
    run: async (model, whole) => {
      const isPossible = amountKobo <= model.availableKobo();
      await take(model, whole, { call: 'Wallets.DebitWallet', type: 'debit', amountKobo, isPossible, isDeclined });
    },
  };
}

/** Reverses a part of a credit, all of it, or one kobo more than is left of it; or as much of that as is available. */
function reverse([at = 0, part = 0]: Choice, isUpTo: boolean, isDeclined: boolean): Command {
  return {
    toString: () => `reverse ${isUpTo ? 'up to ' : ''}${part} thousandths of credit ${at}`,
    check: ({ credits }) => credits.length > 0,
    run: async (model, whole) => {
      const credit = model.credits[at % model.credits.length];
      assert.ok(credit !== undefined);
      const leftKobo = credit.amountKobo - credit.reversedKobo;
      const askedKobo = part > 900 ? leftKobo + 1 : Math.max(1, Math.ceil((leftKobo * part) / 900));
      const possibleKobo = Math.min(leftKobo, model.availableKobo());
      const amountKobo = isUpTo ? Math.min(askedKobo, possibleKobo) : askedKobo;
      const isPossible = isUpTo ? possibleKobo > 0 : askedKobo <= possibleKobo;
      const more = { credit_bank_reference: credit.bankReference, ...(isUpTo ? { up_to_available: true } : {}) };
      const reversal = { amountKobo, askedKobo, more, isPossible, isDeclined };
      const isTaken = await take(model, whole, { call: 'Wallets.ReverseCredit', type: 'reversal', ...reversal });
      if (isTaken) credit.reversedKobo += amountKobo;
    },
  };
}

/** A second operator mostly approves. */
const isDeclined = fc.nat(3).map((number) => number === 3);

/** Payments into the wallet, and what takes them out again. */
export const correctionCommands = [
  ...[3_000_000, 1_000_000].map((max) =>
    fc.tuple(fc.integer({ min: 1, max }), isDeclined).map(([amount, declined]) => fund(amount, declined)),
  ),
  fc.tuple(fc.integer({ min: 1, max: 1_500_000 }), isDeclined).map(([amount, declined]) => debit(amount, declined)),
  fc
    .tuple(fc.array(fc.nat(1_000), { minLength: 2, maxLength: 2 }), fc.boolean(), isDeclined)
    .map(([choice, isUpTo, declined]) => reverse(choice, isUpTo, declined)),
];
