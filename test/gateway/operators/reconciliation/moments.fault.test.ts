import assert from 'node:assert/strict';
import { reconciliationBreaks, reconciliationRuns } from '../../../../src/gateway/operators/reconciliation/table.ts';
import { statement } from '../../../../src/gateway/store/statement.ts';
import { Call, Outcome, StatementLie } from '../../../../src/gen/marina/simulator/v1/controls_pb.ts';
import { lagosDay, nextLagosMidnight } from '../../../../src/kit/clock.ts';
import { callTimeout, type Partner } from '../../../support/cluster.ts';
import { eventually } from '../../../support/eventually.ts';
import { checkEverything } from '../../../support/fault/checker.ts';
import { describeMoments } from '../../../support/fault/moments/cases.ts';
import type { WatchedCluster } from '../../../support/fault/moments/watched-cluster.ts';
import { patient } from '../../../support/patience.ts';

/** Longer than the call waits for the comparison, which is 15 s, and a gateway needs to start. */
const reconcileTimeoutMs = 30_000;
/** With their charges, more transactions than a page has. */
const trades = 52;

/** A day with an order, about which the broker's statement is wrong. */
interface Case {
  readonly partner: Partner;
  readonly day: string;
  /** The break that an operator has acknowledged. */
  readonly acknowledged: string;
  /** The numbers of the messages by which the broker was asked to change something. */
  readonly sent: readonly bigint[];
}

/** Calls that change something at the broker. */
const changing: readonly Call[] = [
  Call.SUBMIT_ORDER,
  Call.CANCEL_ORDER,
  Call.SUBMIT_APPLICATION,
  Call.SEND_DOCUMENT,
  Call.SUBMIT_ALLOCATION,
  Call.SUBMIT_WITHDRAWAL,
];

const days = new WeakMap<WatchedCluster, Promise<Case>>();

await describeMoments<Case>({
  name: "a day that is compared with the broker's statement",
  // Each step of a comparison saves its run, and one of them is compared in pieces.
  maxOccurrences: 20,
  async prepare(watched) {
    const one = days.get(watched) ?? endDay(watched);
    days.set(watched, one);
    return one;
  },
  async run(watched, { day }) {
    const before = (await runsOf(watched, day)).length;
    await watched.operate(({ diagnostics, options }) =>
      diagnostics.reconcileDay({ day, reason: 'a test' }, { ...options, timeoutMs: patient(reconcileTimeoutMs) }),
    );
    await eventually(async () => {
      // A gateway that was killed is followed by the next one.
      await watched.gateway();
      const runs = await runsOf(watched, day);
      // A run that failed is tried again after some minutes.
      if (runs.some(({ state, nextAt }) => state !== 'complete' && nextAt !== null)) await advance(watched, 60);
      assert.ok(runs.length > before, 'a run was made');
      assert.ok(
        runs.every(({ state }) => state === 'complete'),
        'every run has ended',
      );
    }, 30_000);
  },
  async check(watched, gateway, { partner, day, acknowledged, sent }) {
    const last = (await runsOf(watched, day)).at(-1);
    assert.equal(Number(last?.breaks), 4);
    assert.deepEqual(await sentTo(watched), sent, 'the broker was sent nothing but reads');
    const query = statement('SELECT * FROM reconciliation_breaks WHERE day = ?', day);
    const breaks = (await watched.cluster.database.read(query)).map(reconciliationBreaks.all.read);
    assert.deepEqual(
      breaks.map(({ kind }) => kind).toSorted(),
      ['cash', 'order_extra', 'order_missing', 'transaction_sum'],
      'each break is there once',
    );
    for (const { id, run, isOpen, goneAt, acknowledgedBy } of breaks) {
      assert.deepEqual([run, goneAt], [last?.number, null], 'the last run found each');
      const isSettled = id === acknowledged;
      assert.deepEqual([isOpen, acknowledgedBy], [!isSettled, isSettled ? 'tester' : null]);
    }
    const items = statement('SELECT * FROM reconciliation_items');
    assert.deepEqual(await watched.cluster.database.read(items), [], "the statement's records are removed");
    await checkEverything(watched.cluster, gateway, [partner]);
  },
});

/** Trades, and lets the day end. */
async function endDay(watched: WatchedCluster): Promise<Case> {
  const partner = await watched.cluster.newPartner();
  await watched.cluster.fund(partner, 1_000_000n);
  const gateway = await watched.gateway();
  const { body } = await gateway.place(partner, { symbol: 'SIM-REST' });
  assert.equal((await gateway.allocate(partner, { amount_kobo: 5_000 })).status, 201);
  await watched.cluster.controls.forceOutcome(
    { symbol: 'SIM-REST', outcome: Outcome.FILL, parts: trades },
    callTimeout,
  );
  const filled = await gateway.place(partner, { symbol: 'SIM-REST', quantity: trades * 10 });
  await eventually(async () => {
    const { body } = await gateway.request('GET', `/v1/orders/${filled.body.id}`, { key: partner.key });
    assert.equal(body.state, 'filled');
  }, 30_000);
  const day = await watched.operate(async ({ diagnostics, clock, options }) => {
    const now = Number((await diagnostics.getStatus({}, options)).now?.seconds) * 1_000;
    const seconds = BigInt(Math.ceil((nextLagosMidnight(now) - now) / 1_000) + 1_800);
    await clock.advanceClock({ by: { seconds, nanos: 0 } }, options);
    return lagosDay(now);
  });
  const { account } = partner;
  const lies = [
    { lie: StatementLie.ORDER_EXTRA, account, symbol: 'SIM-REST' },
    { lie: StatementLie.ORDER_MISSING, clientId: body.id },
    { lie: StatementLie.CASH, account },
    { lie: StatementLie.OPENING_BALANCE, account },
  ];
  await eventually(async () => {
    const runs = await runsOf(watched, day);
    assert.deepEqual(
      runs.map(({ state }) => state),
      ['complete'],
      'the day is compared by itself',
    );
  }, 30_000);
  for (const one of lies) await watched.cluster.controls.lieInStatements({ ...one, day }, callTimeout);
  return { partner, day, acknowledged: await acknowledgeOne(watched, day), sent: await sentTo(watched) };
}

/** Compares the day, and acknowledges the order that nobody sent. */
async function acknowledgeOne(watched: WatchedCluster, day: string): Promise<string> {
  await watched.operate(({ diagnostics, options }) =>
    diagnostics.reconcileDay({ day, reason: 'a test' }, { ...options, timeoutMs: patient(reconcileTimeoutMs) }),
  );
  const query = statement("SELECT id FROM reconciliation_breaks WHERE day = ? AND kind = 'order_extra'", day);
  const id = await eventually(async () => {
    const [row] = await watched.cluster.database.read(query);
    const runs = await runsOf(watched, day);
    assert.deepEqual([row === undefined, runs.at(-1)?.state], [false, 'complete'], 'no order is extra');
    return String(row?.id);
  }, 30_000);
  await watched.operate(({ diagnostics, options }) =>
    diagnostics.acknowledgeBreak({ id, reason: 'a test order of the desk' }, options),
  );
  return id;
}

async function sentTo({ cluster }: WatchedCluster): Promise<readonly bigint[]> {
  const { messages, hasMore } = await cluster.controls.listMessages({}, callTimeout);
  assert.ok(!hasMore);
  return messages.filter(({ call }) => changing.includes(call)).map(({ number }) => number);
}

async function advance(watched: WatchedCluster, seconds: number): Promise<void> {
  const by = { seconds: BigInt(seconds), nanos: 0 };
  await watched.operate((admin) => admin.clock.advanceClock({ by }, admin.options));
}

async function runsOf({ cluster }: WatchedCluster, day: string) {
  const query = statement('SELECT * FROM reconciliation_runs WHERE day = ? ORDER BY number', day);
  return (await cluster.database.read(query)).map(reconciliationRuns.all.read);
}
