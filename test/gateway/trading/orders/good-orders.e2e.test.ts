import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type Call, goodBody, type Members, nobodysOrder, raw } from '../../../support/e2e/calls.ts';
import { protocolsOf } from '../../../support/e2e/protocols.ts';
import type { Refusal } from '../../../support/e2e/refusals.ts';
import { useGateway } from '../../../support/e2e/suite.ts';
import { assertUntouched, noTraces, tracesOf } from '../../../support/e2e/traces.ts';

/** Values just inside the bounds; `shown` has the members of the answer that the case is about. */
const inside: readonly { name: string; body: Members; shown?: Members }[] = [
  { name: 'quantity 1', body: { quantity: 1 }, shown: { quantity: 1 } },
  { name: 'quantity 100,000,000', body: { quantity: 100_000_000 }, shown: { quantity: 100_000_000 } },
  {
    name: 'the largest quantity at the highest price of the day',
    body: { quantity: 100_000_000, price_kobo: 1_100 },
    shown: { amount_kobo: 110_000_000_000n },
  },
  { name: 'a symbol in lower case', body: { symbol: 'sim-rest' }, shown: { symbol: 'SIM-REST' } },
  { name: 'a symbol with a dot and digits', body: { symbol: 'sim-Rest' }, shown: { symbol: 'SIM-REST' } },
  {
    name: 'a market order without a price',
    body: { type: 'market', price_kobo: undefined },
    shown: { type: 'market' },
  },
  { name: 'a market order whose price is null', body: { type: 'market', price_kobo: null }, shown: { type: 'market' } },
  { name: 'a sale', body: { side: 'sell' }, shown: { side: 'sell' } },
  ...['day', 'gtc', 'ioc', 'fok', null].map((word) => ({
    name: `time_in_force ${word}`,
    body: { time_in_force: word },
  })),
  { name: 'a client_reference of 64 characters', body: { client_reference: '~'.repeat(64) } },
  { name: 'a client_reference of one space', body: { client_reference: ' ' } },
  { name: 'a client_reference that is null', body: { client_reference: null } },
  { name: 'a symbol with escapes', body: { symbol: raw('"\\u0053IM\\u002dREST"') }, shown: { symbol: 'SIM-REST' } },
  { name: 'space everywhere', body: { quantity: raw(' \r\n\t 100 \r\n\t ') }, shown: { quantity: 100 } },
];

/** Prices just inside the bounds of form, and outside the day's band: the exchange would reject them. */
const outsideBand: readonly { name: string; body: Members }[] = [
  { name: 'price_kobo 1', body: { price_kobo: 1 } },
  { name: 'the largest quantity at the largest price', body: { quantity: 100_000_000, price_kobo: 1_000_000_000 } },
];

/**
 * Orders that keep all rules of form and are refused all the same: for the account, then the symbol, then the order
 * itself.
 */
const refused: readonly { name: string; body: Members; refusal: Refusal }[] = [
  { name: 'an account of 64 letters nobody has', body: { account: 'A'.repeat(64) }, refusal: unknownAccount() },
  { name: 'an account in lower case nobody has', body: { account: 'a1' }, refusal: unknownAccount() },
  {
    name: 'a symbol of 20 characters nobody knows',
    body: { symbol: `A.-9${'Z'.repeat(16)}` },
    refusal: unknownSymbol(),
  },
  { name: 'a symbol of one hyphen', body: { symbol: '-' }, refusal: unknownSymbol() },
];

function unknownAccount(): Refusal {
  return { code: 'unknown_account', param: 'account' };
}

function unknownSymbol(): Refusal {
  return { code: 'unknown_symbol', param: 'symbol' };
}

describe('orders of which nothing is wrong in form', () => {
  const suite = useGateway();
  const call = (operation: Call['operation'], body: Members = {}, account = suite.partner.account): Call => ({
    operation,
    key: suite.partner.key,
    idempotencyKey: ['the key of a good order'],
    body: { ...goodBody(account), ...body },
  });
  const form = (body: Members): Call => ({ operation: 'estimateOrder', body: { ...goodBody('A'), ...body } });

  for (const { name, body, shown = {} } of inside) {
    for (const protocol of protocolsOf(form(body))) {
      it(`${protocol}: ${name} is estimated`, async () => {
        const { status, body: estimate } = await suite.protocols.answers(protocol, call('estimateOrder', body));
        if (protocol === 'REST')
          assert.deepEqual({ status, object: estimate.object }, { status: 200, object: 'order_estimate' });
        for (const [member, value] of Object.entries(shown)) {
          // A number above 2^53 is compared as the test's own parser reads it.
          const isWord = typeof value === 'string';
          if (!isWord) assert.equal(Number(estimate[member]), Number(value));
          else if (protocol === 'REST') assert.equal(estimate[member], value);
        }
      });
    }
  }

  for (const { name, body, refusal } of refused) {
    for (const protocol of protocolsOf(form(body))) {
      for (const operation of ['createOrder', 'estimateOrder'] as const) {
        it(`${protocol}: ${operation} with ${name} is answered ${refusal.code}`, () =>
          suite.protocols.refuses(protocol, call(operation, body), refusal));
      }
    }
  }

  for (const { name, body } of outsideBand) {
    for (const protocol of protocolsOf(form(body))) {
      it(`${protocol}: the estimate of ${name} is answered order_rejected, because the price is outside the band`, () =>
        suite.protocols.refuses(protocol, call('estimateOrder', body), {
          code: 'order_rejected',
          rejectReason: 'price_outside_band',
        }));
    }
  }

  it("another partner's account is as unknown as one that does not exist", async () => {
    const other = await suite.gateway.newPartner();
    for (const protocol of protocolsOf(form({}))) {
      for (const operation of ['createOrder', 'estimateOrder'] as const) {
        await suite.protocols.refuses(protocol, call(operation, {}, other.account), unknownAccount());
      }
    }
    assert.deepEqual(await tracesOf(suite.gateway, other), noTraces);
  });

  it("another partner's order is answered as one that does not exist is, letter by letter", async () => {
    const other = await suite.gateway.newPartner();
    const { body: order } = await suite.gateway.place(other, { symbol: 'SIM-REST' });
    const before = await tracesOf(suite.gateway, other);
    for (const operation of ['getOrder', 'getOrderHistory', 'cancelOrder'] as const) {
      const [real, none] = [order.id, nobodysOrder].map((id) => ({ operation, id, key: suite.partner.key }));
      assert.ok(real && none);
      for (const protocol of protocolsOf(real))
        await suite.protocols.refuses(protocol, real, { code: 'order_not_found' });
      assert.equal((await suite.protocols.rest(real)).text, (await suite.protocols.rest(none)).text);
    }
    assert.deepEqual(await tracesOf(suite.gateway, other), before);
  });

  it('nothing was stored or sent, and a good order is taken', () =>
    assertUntouched(suite.gateway, suite.partner, 'the key of a good order'));
});
