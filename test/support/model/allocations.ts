import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { fc } from '../properties.ts';
import { ask, assertAnswer, type Command, idOf, outcomesOf, settledAs } from './surroundings.ts';

/** The end of an allocation by the last digits of its amount. */
const magicAmounts: Readonly<Record<number, { state: string; status: number; code?: string }>> = {
  999003: { state: 'rejected', status: 422, code: 'allocation_rejected' },
  999006: { state: 'booked', status: 201 },
  999007: { state: 'rejected', status: 201 },
};
const booked = { state: 'booked', status: 201 };

/** Moves money to the account, or is refused and nothing moves; then the same once more. */
function allocate(amount_kobo: number, replica: number, at: number): Command {
  return {
    toString: () => `allocate ${amount_kobo} to account ${at}`,
    check: () => true,
    run: async (model, whole) => {
      const account = whole.partner.accounts[at];
      const request = { idempotencyKey: randomUUID(), body: { account, amount_kobo } };
      const before = whole.unclear();
      const answer = await ask(whole, replica, 'POST', '/v1/allocations', request);
      if (model.forbids('fund', at)) return assertAnswer(answer, { status: 503, code: 'trading_paused' });
      if (model.uncertainAllocations.some((one) => one.at === at && one.amountKobo === amount_kobo)) {
        return assertAnswer(answer, { status: 409, code: 'similar_allocation_unresolved' });
      }
      const refusals = [
        ...(amount_kobo > model.availableKobo() ? ['wallet_too_low'] : []),
        ...(model.usedByAllocations() + amount_kobo > model.allocationsLimitKobo ? ['limit_exceeded'] : []),
      ];
      if (refusals.length > 0) return assertAnswer(answer, ...refusals.map((code) => ({ status: 422, code })));
      const end = magicAmounts[amount_kobo % 1_000_000] ?? booked;
      const outcomes = outcomesOf('allocation', end, whole.unclear() > before);
      const { id, ...outcome } = await settledAs(whole, 1 - replica, '/v1/allocations', answer, outcomes);
      const again = await ask(whole, 1 - replica, 'POST', '/v1/allocations', request);
      assertAnswer(again, ...outcome.again);
      assert.equal(idOf(again), id);
      model.allocations.push({ amountKobo: amount_kobo, id, day: model.day, state: outcome.state, at });
    },
  };
}

const amounts = [fc.integer({ min: 1, max: 900_000 }), fc.constantFrom(...Object.keys(magicAmounts).map(Number))];

/** The commands of allocations. */
export const allocationCommands = amounts.map((amount) =>
  fc.tuple(amount, fc.nat(1), fc.nat(1)).map(([kobo, replica, at]) => allocate(kobo, replica, at)),
);
