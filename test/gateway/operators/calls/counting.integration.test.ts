import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import fc from 'fast-check';
import { statement } from '../../../../src/gateway/store/statement.ts';
import { lagosDay } from '../../../../src/kit/clock.ts';
import { adminClient } from '../../../support/admin.ts';
import { eventually } from '../../../support/eventually.ts';
import { startGateway, type TestGateway, type TestPartner } from '../../../support/gateway.ts';

const symbols = [
  'SIM-REST',
  'SIM-FILL',
  'SIM-PARTS',
  'SIM-HALF',
  'SIM-LAPSE',
  'SIM-KILLED',
  'SIM-REJECT',
  'SIM-RESET',
  'SIM-RESETAFTER',
];

type Step =
  | {
      readonly kind: 'place';
      symbol: string;
      side: string;
      type: string;
      quantity: number;
      price: number;
      gtc: boolean;
    }
  | { readonly kind: 'cancel'; which: number }
  | { readonly kind: 'advance'; minutes: number };

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('place' as const),
      symbol: fc.constantFrom(...symbols),
      side: fc.constantFrom('buy', 'sell'),
      type: fc.constantFrom('limit', 'market'),
      quantity: fc.integer({ min: 1, max: 5_000 }),
      price: fc.integer({ min: 950, max: 1_050 }),
      gtc: fc.boolean(),
    }),
  },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('cancel' as const), which: fc.nat(50) }) },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('advance' as const), minutes: fc.integer({ min: 1, max: 2_000 }) }),
  },
);

/** Amounts the simulated broker rejects, or whose connection it resets before or after it took them. */
const magicAmounts = [999_001, 999_003, 999_008, 999_009];

type MoneyStep = { readonly kind: 'allocate'; amount: number } | { readonly kind: 'advance'; minutes: number };

const moneyStep: fc.Arbitrary<MoneyStep> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('allocate' as const),
      amount: fc.oneof(fc.integer({ min: 1, max: 5_000 }), fc.constantFrom(...magicAmounts)),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('advance' as const), minutes: fc.integer({ min: 1, max: 2_000 }) }),
  },
);

describe('what is counted by day', () => {
  let gateway: TestGateway;
  let admin: ReturnType<typeof adminClient>;
  before(async () => {
    gateway = await startGateway();
    admin = adminClient(gateway.app.adminPort);
  });
  after(async () => {
    admin.close();
    await gateway.stop();
  });

  /** Reads the counted sums and the right ones, by day, from one snapshot: orders go on changing meanwhile. */
  async function counts({ id }: TestPartner) {
    const rows = await gateway.database.read(
      statement(
        `SELECT created_at, state, side, type, quantity, filled_quantity, price_kobo, counted_price_kobo, NULL AS day,
          NULL AS used_kobo FROM orders WHERE partner_id = ?
         UNION ALL SELECT NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, DATE_FORMAT(day, '%Y-%m-%d'), used_kobo
          FROM usage_days WHERE partner_id = ? AND kind = 'orders'`,
        id,
        id,
      ),
    );
    const used = new Map<string, bigint>();
    const expected = new Map<string, bigint>();
    for (const row of rows) {
      if (row.day !== null) {
        if (BigInt(String(row.used_kobo)) !== 0n) used.set(String(row.day), BigInt(String(row.used_kobo)));
        continue;
      }
      // The contract's table: which shares count, and at which price.
      const isLimitBuy = row.type === 'limit' && row.side === 'buy';
      const price = BigInt(String(isLimitBuy ? row.price_kobo : row.counted_price_kobo));
      const onlyFilled = ['rejected', 'cancelled', 'expired'].includes(String(row.state));
      const shares = row.state === 'refused' ? 0n : BigInt(String(onlyFilled ? row.filled_quantity : row.quantity));
      const day = lagosDay((row.created_at as Date).getTime());
      if (shares > 0n) expected.set(day, (expected.get(day) ?? 0n) + shares * price);
    }
    return { used, expected };
  }

  async function take(partner: TestPartner, each: Step, placed: string[]): Promise<void> {
    if (each.kind === 'advance') {
      await admin.clock.advanceClock({ by: { seconds: BigInt(each.minutes * 60) } }, admin.options);
    } else if (each.kind === 'cancel') {
      const id = placed[each.which % Math.max(1, placed.length)];
      if (id === undefined) return;
      const { status } = await gateway.rest('DELETE', `/v1/orders/${id}`, { key: partner.key });
      assert.ok([200, 409, 503].includes(status), String(status));
    } else {
      const { symbol, side, type, quantity, price, gtc } = each;
      const order = { account: partner.account, symbol, side, type, quantity, time_in_force: gtc ? 'gtc' : 'day' };
      const answer = await gateway.place(partner, { ...order, price_kobo: type === 'limit' ? price : null });
      assert.ok([201, 409, 422, 503].includes(answer.status), answer.text);
      if (answer.status === 201) placed.push(answer.body.id);
    }
  }

  it('the count of orders equals what the contract’s table makes of them, after every step of any course over several days', async () => {
    const course = fc.asyncProperty(fc.array(step, { minLength: 15, maxLength: 40 }), async (steps) => {
      const partner = await gateway.newPartner();
      const placed: string[] = [];
      for (const each of steps) {
        await take(partner, each, placed);
        const { used, expected } = await counts(partner);
        assert.deepEqual(used, expected);
      }
      await eventually(async () => {
        const { expected } = await counts(partner);
        const { body } = await gateway.rest('GET', '/v1/limits', { key: partner.key });
        assert.equal(BigInt(body.orders_kobo_per_day.used), expected.get(body.day) ?? 0n);
      });
    });
    await fc.assert(course, { numRuns: 12, endOnFailure: true });
  });

  /** Reads the counted sums of allocations and the right ones, by day, from one snapshot. */
  async function moneyCounts({ id }: TestPartner) {
    const rows = await gateway.database.read(
      statement(
        `SELECT created_at, state, amount_kobo AS kobo, NULL AS day FROM allocations WHERE partner_id = ?
         UNION ALL SELECT NULL, NULL, used_kobo, DATE_FORMAT(day, '%Y-%m-%d')
          FROM usage_days WHERE partner_id = ? AND kind = 'allocations'`,
        id,
        id,
      ),
    );
    const used = new Map<string, bigint>();
    const expected = new Map<string, bigint>();
    for (const row of rows) {
      const kobo = BigInt(String(row.kobo));
      if (row.day !== null) {
        if (kobo !== 0n) used.set(String(row.day), kobo);
      } else if (row.state !== 'rejected' && row.state !== 'refused') {
        const day = lagosDay((row.created_at as Date).getTime());
        expected.set(day, (expected.get(day) ?? 0n) + kobo);
      }
    }
    return { used, expected };
  }

  it('the count of allocations equals every one of the day but those rejected and refused, after every step of any course', async () => {
    const course = fc.asyncProperty(fc.array(moneyStep, { minLength: 10, maxLength: 20 }), async (steps) => {
      const partner = await gateway.newPartner();
      await gateway.fund(partner, 100_000_000n);
      for (const each of steps) {
        if (each.kind === 'advance') {
          await admin.clock.advanceClock({ by: { seconds: BigInt(each.minutes * 60) } }, admin.options);
        } else {
          const { status, text } = await gateway.allocate(partner, { amount_kobo: each.amount });
          assert.ok([201, 409, 422, 503].includes(status), text);
        }
        const { used, expected } = await moneyCounts(partner);
        assert.deepEqual(used, expected);
      }
      // Uncertain allocations settle, and the amounts of refused ones are given back to the day they were created on.
      await eventually(async () => {
        const { used, expected } = await moneyCounts(partner);
        assert.deepEqual(used, expected);
        const { body } = await gateway.rest('GET', '/v1/allocations?state=uncertain', { key: partner.key });
        assert.deepEqual(body.data, []);
        const limits = await gateway.rest('GET', '/v1/limits', { key: partner.key });
        assert.equal(BigInt(limits.body.allocations_kobo_per_day.used), expected.get(limits.body.day) ?? 0n);
      }, 20_000);
    });
    await fc.assert(course, { numRuns: 3, endOnFailure: true });
  });
});
