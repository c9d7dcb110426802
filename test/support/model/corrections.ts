import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { status } from '@grpc/grpc-js';
import { fc } from '../properties.ts';
import { type Choice, type Command, operate, type Whole } from './surroundings.ts';

/** Records a payment into the wallet. */
function fund(amountKobo: number): Command {
  return {
    toString: () => `fund ${amountKobo}`,
    check: () => true,
    run: async (model, whole) => {
      const bankReference = randomUUID();
      const credit = { bank_reference: bankReference, amount_kobo: String(amountKobo) };
      const before = whole.unclear();
      const { recorded } = await operate(whole, 'Wallets.CreditWallet', { partner_id: whole.partner.id, ...credit });
      assert.ok(recorded || whole.unclear() > before, 'the payment is recorded');
      model.fundedKobo += amountKobo;
      model.credits.push({ bankReference, amountKobo, reversedKobo: 0 });
    },
  };
}

/** Makes a call that takes money out of the wallet, twice: it is recorded once. Or it is refused, and nothing moves. */
async function take(whole: Whole, call: string, amountKobo: number, more: object, isPossible: boolean) {
  const { partner, operators } = whole;
  const bank_reference = randomUUID();
  const request = {
    partner_id: partner.id,
    amount_kobo: String(amountKobo),
    bank_reference,
    reason: 'the model',
    ...more,
  };
  if (!isPossible) {
    assert.equal((await operators.refused('ada', call, request)).code, status.FAILED_PRECONDITION, call);
    return;
  }
  const before = whole.unclear();
  const first = await operators.as('ada', call, request);
  assert.ok(first.recorded === true || whole.unclear() > before, call);
  const again = await operators.as('bola', call, request);
  assert.equal(again.recorded === true, false, call);
  assert.deepEqual(again.correction, first.correction);
}

/** Pays money back to the partner: all that is available and no more. */
function debit(amountKobo: number): Command {
  return {
    toString: () => `debit ${amountKobo}`,
    check: () => true,
    run: async (model, whole) => {
      const isPossible = amountKobo <= model.availableKobo();
      await take(whole, 'Wallets.DebitWallet', amountKobo, {}, isPossible);
      if (isPossible) model.takenKobo += amountKobo;
    },
  };
}

/** Reverses a part of a credit, all of it, or one kobo more than is left of it. */
function reverse([at = 0, part = 0]: Choice): Command {
  return {
    toString: () => `reverse ${part} thousandths of credit ${at}`,
    check: ({ credits }) => credits.length > 0,
    run: async (model, whole) => {
      const credit = model.credits[at % model.credits.length];
      assert.ok(credit !== undefined);
      const leftKobo = credit.amountKobo - credit.reversedKobo;
      const amountKobo = part > 900 ? leftKobo + 1 : Math.max(1, Math.ceil((leftKobo * part) / 900));
      const isPossible = amountKobo <= leftKobo && amountKobo <= model.availableKobo();
      const more = { credit_bank_reference: credit.bankReference };
      await take(whole, 'Wallets.ReverseCredit', amountKobo, more, isPossible);
      if (!isPossible) return;
      credit.reversedKobo += amountKobo;
      model.takenKobo += amountKobo;
    },
  };
}

/** Payments into the wallet, and what takes them out again. */
export const correctionCommands = [
  fc.integer({ min: 1, max: 3_000_000 }).map(fund),
  fc.integer({ min: 1, max: 1_500_000 }).map(debit),
  fc.array(fc.nat(1_000), { minLength: 2, maxLength: 2 }).map(reverse),
];
