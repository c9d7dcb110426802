import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { StatementPeriod } from '../../../../src/gateway/operators/reconciliation/order-history.ts';
import { clockMarginMs, OurObjects } from '../../../../src/gateway/operators/reconciliation/ours.ts';
import { startRun } from '../../../../src/gateway/operators/reconciliation/run-store.ts';
import { reconciliationItems, reconciliationRuns } from '../../../../src/gateway/operators/reconciliation/table.ts';
import { ReconciliationWorker } from '../../../../src/gateway/operators/reconciliation/worker.ts';
import { type Database, openDatabase } from '../../../../src/gateway/store/database.ts';
import type { SqlRow, Statement } from '../../../../src/gateway/store/statement.ts';
import { statement } from '../../../../src/gateway/store/statement.ts';
import { firstBroker } from '../../../../src/gateway/trading/broker/broker.ts';
import { createGrpcBroker } from '../../../../src/gateway/trading/broker/grpc-broker.ts';
import { orderSteps, orders, type StoredOrder, type StoredStep } from '../../../../src/gateway/trading/orders/table.ts';
import { daysBefore, nextLagosMidnight } from '../../../../src/kit/clock.ts';
import { createLogger } from '../../../../src/kit/log.ts';
import { withDatabase } from '../../../support/database.ts';
import { eventually } from '../../../support/eventually.ts';
import type { TestPartner } from '../../../support/gateway.ts';
import { plainOrder } from '../../../support/plain-order.ts';
import { Reconciling, unqueued } from '../../../support/reconciliation.ts';
import { examine } from '../../../support/rows-read.ts';

const dayMs = 86_400_000;
const hourMs = 3_600_000;
const ofTheDay = 4_000;
const ofLaterDays = 6_000;
/** More than the gateway lists of an order: of these only the sums are compared. */
const tradesOfTheBusiest = 5_100;
const idOf = (at: number) => `ord_${String(at).padStart(20, '0')}`;
const busiest = idOf(ofTheDay + ofLaterDays);

/** Steps as an earlier version wrote them. */
const notSettled = { tradeSequence: null, filledChange: null, valueChangeKobo: null };

/** An order that traded in part on its day, and again a month later. */
function madeOrder(partnerId: string, at: number, placedAt: number, changedAt: number): [StoredOrder, StoredStep[]] {
  const id = idOf(at);
  const order: StoredOrder = {
    ...{ ...plainOrder, id, partnerId, state: 'filled', filledQuantity: 100n, filledValueKobo: 100_000n },
    ...{ createdAt: placedAt, updatedAt: changedAt, checkAt: null, exchangeOrderId: `X${at}`, steps: 3 },
  };
  const step = { partnerId, orderId: id, detail: '', kind: 'report', priceKobo: 1_000n, ...notSettled } as const;
  return [
    order,
    [
      {
        ...step,
        sequence: 1,
        at: placedAt,
        state: 'pending',
        reportNumber: null,
        upstreamAt: placedAt,
        quantity: null,
      },
      { ...step, sequence: 2, at: placedAt, state: 'partially_filled', ...reported(1n, placedAt, 60n) },
      { ...step, sequence: 3, at: changedAt, state: 'filled', ...reported(2n, changedAt, 40n) },
    ],
  ];
}

function reported(reportNumber: bigint, upstreamAt: number, quantity: bigint) {
  return { reportNumber, upstreamAt, quantity };
}

async function insertAll(database: Database, made: readonly (readonly [StoredOrder, readonly StoredStep[]])[]) {
  for (let from = 0; from < made.length; from += 1_000) {
    const batch = made.slice(from, from + 1_000);
    await database.write(orders.insert(...batch.map(([order]) => order)));
    await database.write(orderSteps.insert(...batch.flatMap(([, steps]) => steps)));
  }
}

/** Inserts an order with very many trades within some seconds. */
async function insertBusiest(database: Database, partnerId: string, placedAt: number): Promise<void> {
  const [order] = madeOrder(partnerId, ofTheDay + ofLaterDays, placedAt, placedAt + hourMs);
  const filledQuantity = BigInt(tradesOfTheBusiest);
  await database.write(orders.insert({ ...order, state: 'partially_filled', quantity: 10_000n, filledQuantity }));
  const steps = Array.from({ length: tradesOfTheBusiest }, (_, index): StoredStep => {
    const at = placedAt + index;
    const step = { partnerId, orderId: busiest, detail: '', kind: 'report', priceKobo: 1_000n, ...notSettled } as const;
    return { ...step, sequence: index + 1, at, state: 'partially_filled', ...reported(BigInt(index + 1), at, 1n) };
  });
  for (let from = 0; from < steps.length; from += 1_500) {
    await database.write(orderSteps.insert(...steps.slice(from, from + 1_500)));
  }
}

describe('the reads of a day whose orders have changed since', () => {
  const partnerId = 'par_large';
  const day = '2026-03-02';
  const to = nextLagosMidnight(Date.parse(`${day}T00:00:00Z`));
  const period: StatementPeriod = { from: to - dayMs, to };
  const noon = to - 12 * hourMs;
  let url = '';
  withDatabase(async (database, opened) => {
    url = opened;
    const made = Array.from({ length: ofTheDay + ofLaterDays }, (_, at) =>
      at < ofTheDay
        ? madeOrder(partnerId, at, noon + at, noon + 30 * dayMs + at)
        : madeOrder(partnerId, at, noon + 10 * dayMs + at, noon + 40 * dayMs + at),
    );
    await insertAll(database, made);
    await insertBusiest(database, partnerId, noon);
    await database.readAll([statement('ANALYZE TABLE orders, order_steps')]);
  });

  it('are pages of a hundred orders and two thousand steps, however many there are, and find each as it was', async () => {
    let mostRead = 0;
    const rowsOf = { orders: 0, order_steps: 0 };
    const examined = async (queries: readonly Statement[]): Promise<SqlRow[][]> => {
      const results = await examine(url, queries);
      for (const [at, { read, rows }] of results.entries()) {
        const table = queries[at]?.sql.includes('FROM order_steps') ? 'order_steps' : 'orders';
        rowsOf[table] += rows.length;
        mostRead = Math.max(mostRead, read);
        // A row is found in the index and read; each order that is asked for costs one more.
        const bound = table === 'orders' ? 2 * 100 + 10 : 2_000 + 2 * 100 + 10;
        assert.ok(read <= bound, `${read} rows of ${table} are read at once: ${queries[at]?.sql}`);
      }
      return results.map(({ rows }) => rows);
    };
    const database = {
      readAll: examined,
      read: async (query: Statement) => (await examined([query]))[0] ?? [],
    };
    const ours = new OurObjects({ database: database as unknown as Database, period, isShared: false, day });
    let since = { partnerId, updatedAt: period.from - clockMarginMs, id: '' };
    let [pages, count] = [0, 0];
    for (;;) {
      const page = await ours.changedOrders(since, 100);
      pages += 1;
      count += page.count;
      for (const [id, { isReported, state, filledQuantity, trades }] of page.ours) {
        const trade = id === busiest ? [tradesOfTheBusiest, BigInt(tradesOfTheBusiest)] : [1, 60n];
        const expected = [id, true, 'partially_filled', ...trade.slice(1), trade[0]];
        assert.deepEqual([id, isReported, state, filledQuantity, trades.count], expected);
      }
      if (page.next === undefined) break;
      since = page.next;
    }
    const all = ofTheDay + ofLaterDays + 1;
    assert.deepEqual([pages, count], [Math.floor(all / 100) + 1, ofTheDay + 1]);
    assert.deepEqual(
      rowsOf,
      { orders: all, order_steps: 3 * ofTheDay + tradesOfTheBusiest },
      'of later orders no step is read',
    );
    assert.ok(mostRead > 1_000, 'the pages were counted');
  });
});

describe('a day with thousands of orders', () => {
  let days: Reconciling;
  let partner: TestPartner;
  before(async () => {
    days = await Reconciling.start();
    await days.toNextDay(9 * 60);
    partner = await days.gateway.newPartner();
  });
  // Orders of an earlier day are made here by rows alone.
  after(() => days.stop(['usage']));

  /** Compares the days of runs that are begun, in turns that are over at once, until all ended. Returns the log. */
  async function compareAll(now: number, begin: (now: number) => Promise<void>): Promise<string[]> {
    const { gateway } = days;
    const url = gateway.variables.MARINA_DATABASE_URL ?? '';
    const own = await openDatabase({ url, environment: 'sandbox', poolSize: 4 });
    const lines: string[] = [];
    const log = createLogger({
      name: 'marina',
      level: 'info',
      destination: { write: (line) => void lines.push(line) },
    });
    const startedAt = performance.now();
    const clock = { now: () => Math.round(now + performance.now() - startedAt), realNow: () => Date.now() };
    const address = `127.0.0.1:${gateway.simulatorPort}`;
    const deadlines = { submitTimeoutMs: 5_000, readTimeoutMs: 5_000, clockSkewMs: 2_000 };
    const broker = createGrpcBroker(firstBroker, { address, backOfficeAddress: address, ...deadlines });
    const worker = new ReconciliationWorker({
      ...{
        database: own,
        clock,
        log,
        broker,
        reads: unqueued,
        isShared: false,
        mostRecords: 100_000,
        ended: () => undefined,
      },
      ...{ holder: 'test', minute: 18 * 60 + 30, turnMs: 0 },
    });
    await begin(clock.now());
    const stop = new AbortController();
    const running = worker.worker.run(stop.signal);
    try {
      await eventually(async () => {
        const query = statement('SELECT COUNT(*) AS count FROM reconciliation_runs WHERE next_at IS NOT NULL');
        const [row] = await gateway.database.read(query);
        assert.equal(Number(row?.count), 0);
      }, 60_000);
    } finally {
      stop.abort();
      await running;
      broker.close();
      await own.close();
    }
    return lines;
  }

  it('agrees still when the history of its allocations is in the archive', async () => {
    const day = await days.today();
    await days.gateway.fund(partner, 10_000n);
    const { body } = await days.gateway.allocate(partner, { amount_kobo: 1_000 });
    assert.equal(body.state, 'booked');
    await days.toNextDay();
    await days.untilRun(day, 'COMPLETE');
    // As the archive does. The steps of orders stay in the database.
    await days.gateway.database.write(statement('DELETE FROM object_steps WHERE object_id = ?', body.id));
    const run = await days.complete(day);
    assert.deepEqual([run.breaks, await days.breaks({ day })], ['0', []]);
  });

  it('lets other days be compared in between, and then has each of its breaks once', async () => {
    const { gateway } = days;
    const { database } = gateway;
    await days.toNextDay(9 * 60);
    const small = await days.today();
    await days.toNextDay();
    await days.untilRun(small, 'COMPLETE');
    const large = daysBefore(small, 1);
    const noon = nextLagosMidnight(Date.parse(`${large}T00:00:00Z`)) - dayMs / 2;
    // The broker has none of them: neither the order nor its trade of the day.
    const made = Array.from({ length: ofTheDay }, (_, at) =>
      madeOrder(partner.id, at, noon + at, noon + 1.5 * dayMs + 60_000 + at),
    );
    await insertAll(database, made);
    await insertBusiest(database, partner.id, noon);
    const now = await days.now();
    await gateway.app.stop();

    const lines = await compareAll(now, async (at) => {
      await startRun(database, { day: large }, { startedBy: null, now: at });
      await startRun(database, { day: small }, { startedBy: null, now: at + 5 });
    });
    const breaks = 2 * (ofTheDay + 1);
    const compared = lines.map((line) => JSON.parse(line)).filter(({ day, breaks }) => day && breaks !== undefined);
    assert.deepEqual(
      compared.map(({ day, breaks }) => [day, breaks]),
      [
        [small, 0],
        [large, breaks],
      ],
      'the small one does not wait for the large one',
    );
    const [kept] = await database.read(
      statement(
        `SELECT COUNT(*) AS count, COUNT(DISTINCT object_id) AS objects, MIN(kind) AS first, MAX(kind) AS last, MIN(is_open) AS open
          FROM reconciliation_breaks WHERE day = ?`,
        large,
      ),
    );
    assert.deepEqual(
      [Number(kept?.count), Number(kept?.objects), kept?.first, kept?.last, Number(kept?.open)],
      [breaks, ofTheDay + 1, 'order_missing', 'trade_terms', 1],
    );
  });

  it('comes to its end though a single order has more trades than are read at once', async () => {
    const { database } = days.gateway;
    const day = '2026-01-05';
    const trade = {
      day,
      objectId: idOf(0),
      section: 'trade',
      account: 'A1',
      symbol: 'ZENITHBANK',
      side: 'buy',
    } as const;
    const rest = { state: '', quantity: 1n, amountKobo: null, otherKobo: 1_000n, reference: '', at: null };
    const items = Array.from({ length: 1_200 }, (_, at) => ({ ...trade, ...rest, itemId: `T${10_000 + at}` }));
    await compareAll(Date.now(), async (now) => {
      await startRun(database, { day }, { startedBy: 'ops', now });
      await database.write(reconciliationItems.insert(...items));
      const [row] = await database.read(reconciliationRuns.find({ day }));
      assert.ok(row);
      const before = reconciliationRuns.all.read(row);
      const read = { ...before, state: 'running', step: 'statement', periodFrom: now, periodTo: now } as const;
      for (const write of reconciliationRuns.update(before, read)) await database.write(write);
    });
    const [row] = await database.read(reconciliationRuns.find({ day }));
    assert.ok(row);
    assert.equal(reconciliationRuns.all.read(row).state, 'complete');
  });
});
