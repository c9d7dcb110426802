import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { reconciliationBreaks, reconciliationRuns } from '../../../../src/gateway/operators/reconciliation/table.ts';
import { type CrashPoint, reconciliationPoints } from '../../../../src/gateway/store/crash.ts';
import { statement } from '../../../../src/gateway/store/statement.ts';
import {
  Call,
  type LieInStatementsRequest,
  StatementLie,
} from '../../../../src/gen/marina/simulator/v1/controls_pb.ts';
import { lagosDay, nextLagosMidnight } from '../../../../src/kit/clock.ts';
import { adminClient } from '../../../support/admin.ts';
import { Cluster, callTimeout, type GatewayProcess, type Partner } from '../../../support/cluster.ts';
import { eventually } from '../../../support/eventually.ts';
import { crashPoints } from '../../../support/fault/crash-points.ts';
import { inPart } from '../../../support/part.ts';
import { patient } from '../../../support/patience.ts';

const cases = [false, true].flatMap((hasPeer) => reconciliationPoints.map((point) => ({ point, hasPeer })));

/** The breaks of each comparison: one that was acknowledged, two that are open, and one that only this comparison finds. */
const breaksOfEach = 4;

/** Calls that change something at the broker. */
const changing: readonly Call[] = [
  Call.SUBMIT_ORDER,
  Call.CANCEL_ORDER,
  Call.SUBMIT_APPLICATION,
  Call.SEND_DOCUMENT,
  Call.SUBMIT_ALLOCATION,
];

describe("a gateway that is killed while it compares a day with the broker's statement", () => {
  let cluster: Cluster;
  let partner: Partner;
  let day: string;
  const filled: string[] = [];
  let untraded: string;
  let acknowledged: string;
  before(async () => {
    cluster = await Cluster.start();
    partner = await cluster.newPartner();
    await cluster.fund(partner, 1_000_000n);
    const gateway = await cluster.startGateway();
    // One order for each case, so that each comparison finds a break that none before it did.
    for (let quantity = 1; quantity <= cases.length; quantity += 1) {
      const { body } = await gateway.place(partner, { symbol: 'SIM-FILL', quantity });
      filled.push(body.id);
    }
    untraded = (await gateway.place(partner, { symbol: 'SIM-REST' })).body.id;
    assert.equal((await gateway.allocate(partner, { amount_kobo: 5_000 })).status, 201);
    await eventually(async () => {
      const query = statement("SELECT COUNT(*) AS count FROM orders WHERE state = 'filled'");
      const [row] = await cluster.database.read(query);
      assert.equal(Number(row?.count), filled.length);
    }, 30_000);
    const now = await nowAt(gateway);
    day = lagosDay(now);
    await advance(gateway, nextLagosMidnight(now) - now + 1_800_000);
    await eventually(async () => assert.deepEqual(await ended(), [1, 'complete', 0]), 30_000);
    await lie(0);
    await reconcile(gateway);
    assert.deepEqual(await ended(), [2, 'complete', breaksOfEach]);
    const extra = (await breaks()).find(({ kind }) => kind === 'order_extra');
    acknowledged = extra?.id ?? assert.fail('no order is extra');
    const admin = adminClient(gateway.adminPort);
    await admin.diagnostics.acknowledgeBreak({ id: acknowledged, reason: 'a test order of the desk' }, admin.options);
    admin.close();
    await gateway.stop();
  });
  after(() => cluster.stop());

  it('has a test at each crash point of the comparison', () => {
    assert.deepEqual(
      crashPoints.filter((point) => point.startsWith('reconciliation.')),
      reconciliationPoints,
    );
  });

  for (const [at, { point, hasPeer }] of inPart([...cases.entries()])) {
    const next = hasPeer ? 'the other gateway' : 'the next one';
    it(`killed at ${point}, ${next} goes on, keeps each break once, and sends the broker nothing`, async () => {
      const brokersBefore = await brokersSide();
      const runsBefore = await runs();
      await cluster.controls.clearDirectives({}, callTimeout);
      await lie(at);
      const dying = await cluster.startGateway({ MARINA_CRASH_POINT: point });
      if (hasPeer) await cluster.holdsLeases(dying);
      const peer = hasPeer ? await cluster.startGateway() : undefined;
      // The call may die with its gateway: then its run is there all the same.
      const asked = reconcile(peer ?? dying).catch((error: unknown) => assert.equal(peer, undefined, String(error)));
      assert.ok(await isKilled(dying, point));
      const survivor = peer ?? (await cluster.startGateway());
      await eventually(
        async () => assert.deepEqual(await ended(), [runsBefore.length + 1, 'complete', breaksOfEach]),
        30_000,
      );
      await asked;
      await survivor.stop();

      const made = (await runs()).slice(runsBefore.length);
      assert.equal(made.length, 1, 'there is one run, and not a second one');
      assert.deepEqual([made[0]?.tries, made[0]?.nextAt, made[0]?.problem], [1, null, '']);
      await assertBreaks(made[0]?.number, filled[at]);
      const [left] = await cluster.database.read(statement('SELECT COUNT(*) AS count FROM reconciliation_items'));
      assert.equal(Number(left?.count), 0, "the statement's records are removed");
      assert.deepEqual(await brokersSide(), brokersBefore, 'nothing was sent but reads, and nothing changed');
    });
  }

  /** Each break is there once; those of this run are found, those of an order that nobody lies about any more are gone. */
  async function assertBreaks(run: number | undefined, lied: string | undefined): Promise<void> {
    const all = await breaks();
    const subjects = all.map(({ kind, objectId, account }) => `${kind} ${objectId} ${account}`);
    assert.equal(new Set(subjects).size, subjects.length, 'a break is kept twice');
    const found = all.filter((one) => one.run === run);
    assert.deepEqual(found.map(({ kind, objectId }) => `${kind} ${kind === 'order_filled' ? objectId : ''}`).sort(), [
      'cash ',
      'order_extra ',
      `order_filled ${lied}`,
      'order_missing ',
    ]);
    const its = found.find(({ id }) => id === acknowledged);
    assert.deepEqual(
      [its?.isOpen, its?.acknowledgedBy, its?.acknowledgedReason],
      [false, 'tester', 'a test order of the desk'],
    );
    for (const one of found.filter(({ id }) => id !== acknowledged)) {
      assert.deepEqual([one.isOpen, one.goneAt, one.acknowledgedAt], [true, null, null], one.kind);
    }
    for (const one of all.filter((each) => each.run !== run)) {
      assert.deepEqual([one.kind, one.isOpen, one.goneAt === null], ['order_filled', false, false]);
    }
  }

  /** Makes the statement wrong: about an order that nobody sent, one that expired, the money, and one that was filled. */
  async function lie(at: number): Promise<void> {
    const { account } = partner;
    const lies: readonly Partial<Pick<LieInStatementsRequest, 'lie' | 'clientId' | 'account' | 'symbol'>>[] = [
      { lie: StatementLie.ORDER_EXTRA, account, symbol: 'SIM-REST' },
      { lie: StatementLie.ORDER_MISSING, clientId: untraded },
      { lie: StatementLie.CASH, account },
      { lie: StatementLie.ORDER_FILLED, clientId: filled[at] ?? '' },
    ];
    for (const one of lies) await cluster.controls.lieInStatements({ ...one, day }, callTimeout);
  }

  async function isKilled(dying: GatewayProcess, point: CrashPoint): Promise<boolean> {
    const exit = await Promise.race([dying.exited, delay(patient(20_000), undefined)]);
    assert.equal(exit?.signal, 'SIGKILL', `it passed ${point}`);
    return true;
  }

  async function brokersSide() {
    const { messages, hasMore } = await cluster.controls.listMessages({}, callTimeout);
    const { orders, hasMore: hasMoreOrders } = await cluster.controls.listExchangeOrders({}, callTimeout);
    assert.deepEqual([hasMore, hasMoreOrders], [false, false]);
    return {
      sent: messages.filter(({ call }) => changing.includes(call)).map(({ number }) => number),
      orders: orders.map(({ clientOrderId, filledQuantity }) => [clientOrderId, filledQuantity]),
      ours: await cluster.database.read(statement('SELECT id, state, updated_at FROM orders ORDER BY id')),
    };
  }

  async function runs() {
    const query = statement('SELECT * FROM reconciliation_runs WHERE day = ? ORDER BY number', day);
    return (await cluster.database.read(query)).map(reconciliationRuns.all.read);
  }

  async function ended() {
    const all = await runs();
    const last = all.at(-1);
    return [all.length, last?.state, Number(last?.breaks)];
  }

  async function breaks() {
    const query = statement('SELECT * FROM reconciliation_breaks WHERE day = ? ORDER BY id', day);
    return (await cluster.database.read(query)).map(reconciliationBreaks.all.read);
  }

  async function reconcile({ adminPort }: GatewayProcess): Promise<void> {
    const admin = adminClient(adminPort);
    try {
      await admin.diagnostics.reconcileDay({ day, reason: 'a test' }, admin.options);
    } finally {
      admin.close();
    }
  }

  async function nowAt({ adminPort }: GatewayProcess): Promise<number> {
    const admin = adminClient(adminPort);
    const { now } = await admin.diagnostics.getStatus({}, admin.options);
    admin.close();
    return Number(now?.seconds) * 1_000;
  }

  async function advance({ adminPort }: GatewayProcess, ms: number): Promise<void> {
    const admin = adminClient(adminPort);
    const by = { seconds: BigInt(Math.ceil(ms / 1_000)), nanos: 0 };
    await admin.clock.advanceClock({ by }, admin.options);
    admin.close();
  }
});
