/** The marks of orders of which a report may be lost, on rows of every kind. */
import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import { markMisnamed, markPassedOver, markUnmatched } from '../../../src/fix-adapter/store/marks.ts';
import { type FixOrder, fixOrders } from '../../../src/fix-adapter/store/table.ts';
import type { Database } from '../../../src/gateway/store/database.ts';
import type { Statement } from '../../../src/gateway/store/statement.ts';
import { openFixDatabase } from '../../support/fix/adapter.ts';
import { fixOrder } from '../../support/fix-order.ts';

type Marks = Pick<FixOrder, 'mustAsk' | 'passedOver'>;

const dayMs = 86_400_000;
const states = ['sending', 'unsent', 'open', 'final'] as const;
const types = ['limit', 'market'] as const;
const times = ['day', 'gtc'] as const;
const sides = ['buy', 'sell'] as const;
const accounts = ['NG-1', 'NG-2'] as const;

/** Orders of every state, type, time in force, side and account, of this numbering and an earlier one, some of them settled. */
const rows: readonly FixOrder[] = states.flatMap((state) =>
  times.flatMap((timeInForce) =>
    sides.flatMap((side) =>
      accounts.flatMap((account) =>
        types.flatMap((type, at) => {
          const order = { state, timeInForce, side, account, type, ...(type === 'market' ? { priceKobo: null } : {}) };
          const id = `${state}-${timeInForce}-${side}-${account}-${type}`;
          return [
            fixOrder({ ...order, id, startedAt: 7, receivedAt: 2 * dayMs, settled: at === 1 }),
            fixOrder({ ...order, id: `${id}-before`, startedAt: 3, receivedAt: dayMs, filled: 10n }),
          ];
        }),
      ),
    ),
  ),
);

describe('the marks of orders of which a report may be lost', () => {
  let opened: Awaited<ReturnType<typeof openFixDatabase>>;
  let database: Database;
  before(async () => {
    opened = await openFixDatabase(2);
    ({ database } = opened);
  });
  after(() => opened.close());
  /** The rows of one test, beside those of the tests before it. */
  let own: FixOrder[] = [];
  let count = 0;
  beforeEach(async () => {
    count += 1;
    own = rows.map((row) => ({ ...row, id: `${count}-${row.id}`, clOrdId: `${count}-${row.id}` }));
    await database.write(fixOrders.insert(...own));
  });

  /** Checks the marks of each order, and that nothing else of it has changed. */
  async function marks(writes: readonly Statement[], expected: (order: FixOrder) => Partial<Marks>): Promise<void> {
    await database.writeAll(writes);
    const stored = await database.read(fixOrders.find({ id: own.map(({ id }) => id) }));
    const found = new Map(stored.map((row) => fixOrders.all.read(row)).map((order) => [order.id, order]));
    for (const order of own) assert.deepEqual(found.get(order.id), { ...order, ...expected(order) }, order.id);
  }

  const inDoubt = ({ state }: FixOrder) => state === 'sending';
  const lives = ({ state }: FixOrder) => state === 'sending' || state === 'open';

  it('marks are on each order that lives when messages were passed over, and absence proves nothing of those in doubt', async () => {
    await marks(markPassedOver, (order) => {
      if (inDoubt(order)) return { mustAsk: true, passedOver: true };
      return lives(order) ? { mustAsk: true } : {};
    });
  });

  for (const [what, reports] of [
    ['no report', []],
    ['a report without a statement', [{}]],
    ['a report that states its side', [{ side: 'buy' }]],
    ['a report that states its account', [{ account: 'NG-2' }]],
    ['two reports of one account each', [{ account: 'NG-1', side: 'sell' } as const, { account: 'NG-2', side: 'buy' }]],
    ['a report of an account that there is not', [{ account: 'NG-3' }]],
    ['one of two reports that states nothing', [{ account: 'NG-3' }, {}]],
    ['50 reports of an account that there is not', Array(50).fill({ account: 'NG-3' })],
    ['51 of them, which are too many to tell apart', Array(51).fill({ account: 'NG-3' })],
  ] as [string, readonly Partial<Pick<FixOrder, 'account' | 'side'>>[]][]) {
    const isMeant = (order: FixOrder) =>
      reports.length > 50 ||
      reports.some(
        ({ account = order.account, side = order.side }) => account === order.account && side === order.side,
      );

    it(`marks are on orders in doubt that may be meant, after ${what} that names no order of ours`, async () => {
      await marks(markUnmatched(reports), (order) => (inDoubt(order) && isMeant(order) ? { passedOver: true } : {}));
    });

    it(`marks are on orders that live and may be meant, after ${what} that names another one`, async () => {
      await marks(markMisnamed(reports), (order) => (lives(order) && isMeant(order) ? { mustAsk: true } : {}));
    });
  }
});
