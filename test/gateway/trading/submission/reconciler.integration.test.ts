import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { createConnection } from 'mysql2/promise';
import { ApiError } from '../../../../src/gateway/edge/errors.ts';
import { statement } from '../../../../src/gateway/store/statement.ts';
import { insertAccount } from '../../../../src/gateway/trading/accounts/store.ts';
import { allocations } from '../../../../src/gateway/trading/allocations/table.ts';
import type { LookedUp } from '../../../../src/gateway/trading/broker/broker.ts';
import type { StoredOrder } from '../../../../src/gateway/trading/orders/table.ts';
import { type CreatedKind, newRow, preparedAs } from '../../../../src/gateway/trading/submission/kind.ts';
import { Notes } from '../../../../src/gateway/trading/submission/notes.ts';
import { StartGate } from '../../../../src/gateway/trading/submission/start-gate.ts';
import { Submitter } from '../../../../src/gateway/trading/submission/submit.ts';
import { lookUps, type Submission } from '../../../../src/gateway/trading/submission/table.ts';
import { AllocationOutcome, AllocationRecordSchema } from '../../../../src/gen/marina/broker/v1/allocations_pb.ts';
import {
  ApplicationReportKind,
  ApplicationReportSchema,
} from '../../../../src/gen/marina/broker/v1/applications_pb.ts';
import { type Report, ReportKind, ReportSchema } from '../../../../src/gen/marina/broker/v1/orders_pb.ts';
import { KeyedDigest, onlyKey, Seal } from '../../../../src/kit/key-ring.ts';
import { linkAccount } from '../../../../src/sandbox/provision.ts';
import { whileRunning } from '../../../support/database.ts';
import { eventually } from '../../../support/eventually.ts';
import { creditWallet } from '../../../support/ledger.ts';
import { plainOrder } from '../../../support/plain-order.ts';
import {
  clockSkewMs,
  nothingStopped,
  openSettling,
  type Settling,
  submitTimeoutMs,
} from '../../../support/settling.ts';

const hourMs = 3_600_000;

describe('an outcome that is unknown', () => {
  let settling: Settling;
  let partnerId: string;
  before(async () => {
    settling = await openSettling();
  });
  after(() => settling.close());
  beforeEach(async () => {
    settling.broker.honoursNotAfter = async () => true;
    partnerId = await settling.newPartner();
  });

  const notFound = (completeUntil?: number): LookedUp<never> => ({
    found: false,
    completeUntil,
    brokerTime: settling.clock.realNow(),
  });

  /** The exchange's record, and how long it takes to answer: the answer is as the record was when it was asked. */
  function recordSays(answer: LookedUp<readonly Report[]>, takesMs = 0): { readonly times: () => number } {
    let times = 0;
    settling.broker.lookUpOrder = async () => {
      times += 1;
      const brokerTime = settling.clock.realNow();
      settling.clock.advance(takesMs);
      return answer.found ? answer : { ...answer, brokerTime };
    };
    return { times: () => times };
  }

  function reportOf({ id }: StoredOrder, number: bigint, kind: ReportKind, quantity = 0n): Report {
    return create(ReportSchema, {
      number,
      clientOrderId: id,
      exchangeOrderId: 'X1',
      kind,
      at: timestampFromMs(settling.clock.now()),
      quantity,
      priceKobo: quantity === 0n ? 0n : 1_000n,
    });
  }

  async function ask(order: StoredOrder, fence: 'fence' | 'no fence' = 'fence') {
    settling.broker.honoursNotAfter = async () => fence === 'fence';
    return settling.newReconciler(settling.order).reconcileNow(partnerId, order.id);
  }

  /** An order whose time is over, and which the record has been without for long. */
  async function missingOrder(fields: Partial<StoredOrder> = {}): Promise<StoredOrder> {
    const missingSince = settling.clock.realNow() - 1;
    return settling.storeOrder({ partnerId, missingSince, checks: 1, ...fields });
  }

  it('is no refusal when the record does not have the order the first time, however late it is', async () => {
    const order = await settling.storeOrder({ partnerId });
    settling.clock.moveTo(order.notAfter + clockSkewMs + hourMs);
    recordSays(notFound());
    const first = await ask(order);
    assert.equal(first.after.state, 'uncertain', 'the record lacked the order once, and the order is not uncertain');
    assert.equal(first.after.missingSince, settling.clock.realNow());
    settling.clock.advance(1);
    const second = await ask(order);
    assert.equal(second.after.state, 'refused', 'the record lacked the order twice, and its time was over');
    assert.equal(second.isSettled, true);
    assert.deepEqual((await settling.stepsOf(order)).slice(-2), [
      "the exchange's record does not have it yet",
      "the exchange's record does not have it, and it can no longer be taken",
    ]);
  });

  it('is looked up also when it was put off by a clock that was a day ahead', async () => {
    const { clock, order: kind } = settling;
    const ahead = clock.realNow() + 24 * hourMs;
    const order = await settling.storeOrder({ partnerId, notAfter: ahead, checkAt: ahead });
    recordSays({ found: true, answer: [reportOf(order, 1n, ReportKind.ACCEPTED)] });
    await whileRunning(settling.newReconciler(kind).worker, async () => {
      await eventually(async () => assert.equal((await settling.readOrder(order)).state, 'pending'), 5_000);
    });
  });

  it('is found out also of what a replica sent whose clock was a day ahead, and which ended then', async () => {
    const { clock, order: kind } = settling;
    const ahead = clock.realNow() + 24 * hourMs;
    const order = await settling.storeOrder({ partnerId, state: 'sending', notAfter: ahead, checkAt: ahead });
    const asked = recordSays({ found: true, answer: [reportOf(order, 1n, ReportKind.ACCEPTED)] });
    await whileRunning(settling.newReconciler(kind).worker, async () => {
      // It may live, and is given five minutes.
      const latest = clock.realNow() + 300_000;
      await eventually(async () => assert.equal((await settling.readOrder(order)).checkAt, latest), 5_000);
      assert.equal((await settling.readOrder(order)).state, 'sending');
      assert.equal(asked.times(), 0, 'it is asked about while its sender may be sending');
      clock.advance(300_000);
      await eventually(async () => assert.equal((await settling.readOrder(order)).state, 'pending'), 5_000);
    });
  });

  it('is settled while the query about another order gets no answer', async () => {
    const { clock, order: kind } = settling;
    const slow = await settling.storeOrder({ partnerId, checkAt: clock.realNow() });
    const answers = new Map<string, () => void>();
    settling.broker.lookUpOrder = async (id) => {
      if (id !== slow.id) return { found: true, answer: [reportOf({ ...slow, id }, 1n, ReportKind.ACCEPTED)] };
      assert.ok(!answers.has(id), 'it is asked about again while it is asked about');
      await new Promise<void>((resolve) => answers.set(id, resolve));
      return { found: true, answer: [reportOf(slow, 1n, ReportKind.ACCEPTED)] };
    };
    await whileRunning(settling.newReconciler(kind).worker, async () => {
      try {
        await eventually(() => assert.ok(answers.has(slow.id)), 5_000);
        for (const _ of [1, 2]) {
          const other = await settling.storeOrder({ partnerId, checkAt: clock.realNow() });
          await eventually(async () => assert.equal((await settling.readOrder(other)).state, 'pending'), 5_000);
        }
        assert.equal((await settling.readOrder(slow)).state, 'uncertain');
      } finally {
        answers.get(slow.id)?.();
      }
      await eventually(async () => assert.equal((await settling.readOrder(slow)).state, 'pending'), 5_000);
    });
  });

  it('is settled while the row of a partner with many others is locked, and those are once it is free', async () => {
    const { clock, order: kind, database } = settling;
    await database.write(statement('DELETE FROM orders'));
    const found: Promise<StoredOrder>[] = Array.from({ length: 20 }, () => settling.storeOrder({ partnerId }));
    const locked = await Promise.all(found);
    clock.moveTo(Math.max(...locked.map(({ checkAt }) => checkAt ?? 0)) + 1);
    settling.broker.lookUpOrder = async (id) => {
      const report = reportOf({ ...(locked[0] as StoredOrder), id }, 1n, ReportKind.ACCEPTED);
      return { found: true, answer: [report] };
    };
    const countPending = async () => {
      const count = statement(
        `SELECT COUNT(*) AS pending FROM orders WHERE state = 'pending' AND partner_id = ?`,
        partnerId,
      );
      return Number((await database.read(count))[0]?.pending);
    };
    const locking = await createConnection(settling.url);
    try {
      await locking.query('START TRANSACTION');
      await locking.query('SELECT * FROM partners WHERE id = ? FOR UPDATE', [partnerId]);
      await whileRunning(settling.newReconciler(kind).worker, async () => {
        for (const _ of [1, 2, 3]) {
          const other = await settling.storeOrder({ partnerId: await settling.newPartner(), checkAt: clock.realNow() });
          await eventually(async () => {
            assert.equal((await settling.readOrder(other)).state, 'pending', "another partner's order");
          }, 15_000);
        }
        assert.equal(await countPending(), 0);
        await locking.query('ROLLBACK');
        await eventually(
          async () => assert.equal(await countPending(), locked.length, 'orders of the locked partner'),
          30_000,
        );
      });
    } finally {
      await locking.end();
    }
  });

  for (const outcome of ['gets no answer', 'does not have it', 'says less'] as const) {
    it(`an order that a report settles while the record ${outcome} is not asked about again`, async () => {
      const order = await settling.storeOrder({ partnerId });
      settling.broker.lookUpOrder = async () => {
        await settling.applyReports(order, [
          reportOf(order, 1n, ReportKind.ACCEPTED),
          reportOf(order, 2n, ReportKind.TRADE, order.quantity),
        ]);
        if (outcome === 'gets no answer') throw new ApiError('exchange_unavailable');
        if (outcome === 'does not have it') return notFound();
        return { found: true, answer: [reportOf(order, 1n, ReportKind.ACCEPTED)] };
      };
      await ask(order);
      const { state, checkAt, missingSince } = await settling.readOrder(order);
      assert.deepEqual({ state, checkAt, missingSince }, { state: 'filled', checkAt: null, missingSince: null });
    });
  }

  it('is asked about again within 30 s, however late it may still be taken', async () => {
    const { clock } = settling;
    const ahead = clock.realNow() + 24 * hourMs;
    const order = await missingOrder({ notAfter: ahead, checkAt: ahead });
    recordSays(notFound());
    const { after: asked } = await ask(order);
    assert.equal(asked.state, 'uncertain');
    const againAfterMs = (asked.checkAt ?? Number.POSITIVE_INFINITY) - clock.realNow();
    assert.ok(againAfterMs <= 30_000, `it is asked about again after ${againAfterMs} ms`);
  });

  it('is proven by when the record was asked, not by when it answered', async () => {
    const order = await missingOrder();
    const provableFrom = order.notAfter + clockSkewMs;
    // Asked while the exchange may still take the order; answered when it may not any more.
    settling.clock.moveTo(provableFrom - 100);
    recordSays(notFound(), 5_000);
    const { after: asked } = await ask(order);
    assert.ok(settling.clock.realNow() > provableFrom);
    assert.equal(
      asked.state,
      'uncertain',
      `the record was asked 100 ms before the order's time was over, and the order is ${asked.state}`,
    );
    const [row = {}] = await settling.database.read(lookUps.find({ partnerId: partnerId, objectId: order.id }));
    assert.equal(lookUps.all.read(row).lastAt, provableFrom - 100, 'the look-up is noted with when it was asked');
  });

  it('is noted as missing since the record was asked, not since it answered', async () => {
    const order = await settling.storeOrder({ partnerId });
    const askedAt = order.notAfter + clockSkewMs + 1;
    settling.clock.moveTo(askedAt);
    recordSays(notFound(), 3_000);
    assert.equal((await ask(order)).after.missingSince, askedAt);
  });

  it('is proven only past the whole time by which clocks may differ', async () => {
    for (const [lateMs, state] of [
      [clockSkewMs, 'uncertain'],
      [clockSkewMs + 1, 'refused'],
    ] as const) {
      const order = await missingOrder();
      settling.clock.moveTo(order.notAfter + lateMs);
      recordSays(notFound());
      const { after: asked } = await ask(order);
      assert.equal(asked.state, state, `asked ${lateMs} ms after not_after, and the order is ${asked.state}`);
    }
  });

  it('an order without a fence needs a record that is complete for an hour after the order was made', async () => {
    const order = await missingOrder();
    settling.clock.moveTo(order.notAfter + 10 * hourMs);
    for (const [completeUntil, state] of [
      [undefined, 'uncertain'],
      [order.createdAt + 1, 'uncertain'],
      [order.createdAt + hourMs, 'uncertain'],
      [order.createdAt + hourMs + 1, 'refused'],
    ] as const) {
      recordSays(notFound(completeUntil));
      const { after: asked } = await ask(order, 'no fence');
      const sinceMs = completeUntil === undefined ? 'not known to be complete' : completeUntil - order.createdAt;
      assert.equal(asked.state, state, `record complete until ${sinceMs} ms after the order: it is ${asked.state}`);
      settling.clock.advance(1);
    }
  });

  it('an order without a fence needs a record that is complete for an hour after it was first asked for, whatever clock made the order', async () => {
    const { clock } = settling;
    // Made now by a replica whose clock was two hours behind. The order may arrive for an hour.
    const [behind, realBehind] = [clock.now() - 2 * hourMs, clock.realNow() - 2 * hourMs];
    const order = await missingOrder({ createdAt: behind, updatedAt: behind, notAfter: realBehind });
    recordSays(notFound(clock.now() - hourMs / 2));
    const { after: early } = await ask(order, 'no fence');
    assert.equal(early.state, 'uncertain', `the order may still arrive, and is ${early.state}`);
    recordSays(notFound(clock.now() + hourMs));
    assert.equal((await ask(order, 'no fence')).after.state, 'refused');
  });

  it('a complete record before the time of the order is over does not settle an order without a fence', async () => {
    const order = await missingOrder();
    settling.clock.moveTo(order.notAfter + clockSkewMs);
    recordSays(notFound(order.createdAt + 24 * hourMs));
    assert.equal((await ask(order, 'no fence')).after.state, 'uncertain');
  });

  it('stays unknown while the broker does not say whether it keeps to not_after', async () => {
    const order = await missingOrder();
    settling.clock.moveTo(order.notAfter + hourMs);
    recordSays(notFound());
    settling.broker.honoursNotAfter = async () => {
      throw new ApiError('exchange_unavailable');
    };
    const { after: asked } = await settling.newReconciler(settling.order).reconcileNow(partnerId, order.id);
    assert.equal(asked.state, 'uncertain');
    assert.equal(asked.checks, 2);
    const [row = {}] = await settling.database.read(lookUps.find({ partnerId: partnerId, objectId: order.id }));
    const { outcome, errorClass } = lookUps.all.read(row);
    assert.deepEqual([outcome, errorClass], ['unanswered', 'exchange_unavailable']);
  });

  it('the outcome of an allocation whose wallet has a wrong seal is noted as answered, and the allocation stays as it is', async () => {
    const { allocation: kind, database, clock } = settling;
    await creditWallet(database, { partnerId, amountKobo: 5_000n, bankReference: `seal ${partnerId}` });
    await database.write(statement('UPDATE wallets SET available_kobo = 9000 WHERE partner_id = ?', partnerId));
    const { requestId, traceParent, keyId, requestDigest, account, countedDay } = plainOrder;
    const row = newRow(
      kind,
      settling.ids.object('alc'),
      { partnerId, requestId, traceParent, keyId, requestDigest, idempotencyKey: 'k' },
      { ...kind.blank, state: 'uncertain', account, amountKobo: 4_000n, clientReference: null, countedDay },
      { now: clock.now(), notAfter: clock.realNow(), checkAt: clock.realNow() },
    );
    await database.write(allocations.insert(row));
    clock.advance(hourMs);
    settling.broker.lookUpAllocation = async () => ({
      found: true,
      answer: create(AllocationRecordSchema, {
        clientAllocationId: row.id,
        outcome: AllocationOutcome.BOOKED,
        brokerReference: 'B1',
        at: timestampFromMs(clock.now()),
      }),
    });
    const { after: asked } = await settling.newReconciler(kind).reconcileNow(partnerId, row.id);
    assert.deepEqual([asked.state, asked.checks], ['uncertain', 1]);
    const [found = {}] = await database.read(lookUps.find({ partnerId, objectId: row.id }));
    const { outcome, errorClass } = lookUps.all.read(found);
    assert.deepEqual([outcome, errorClass], ['found', null], 'the broker did answer');
  });

  it('is not asked about while its sender may still send it', async () => {
    const order = await settling.storeOrder({ partnerId, state: 'sending' });
    const record = recordSays(notFound());
    settling.clock.moveTo(order.notAfter + clockSkewMs - 1);
    const early = await ask(order);
    assert.deepEqual([early.after.state, early.asked, early.isSettled], ['sending', false, false]);
    assert.equal(record.times(), 0, 'the record was asked while the order may be on its way');
    settling.clock.advance(1);
    const late = await ask(order);
    assert.deepEqual([late.after.state, late.asked, late.isSettled], ['uncertain', true, false]);
  });

  it('is left to the sender for its whole time, and for what clocks may differ by', async () => {
    const { order, application, allocation, database, clock, ids, recorder } = settling;
    await creditWallet(database, { partnerId, amountKobo: 1n, bankReference: 'B1' });
    await database.write(insertAccount(partnerId, plainOrder.account, clock.now()));
    const notes = new Notes(new Seal(onlyKey(Buffer.alloc(32, 1))));
    const gate = new StartGate();
    gate.open();
    const submitter = new Submitter({
      ...{ database, recorder, clock, ids, notes, submitTimeoutMs, clockSkewMs, gate },
      environment: nothingStopped,
    });
    const rows: Submission[] = [];
    /** Submits an object whose sender learns nothing, and keeps it as it was when it was sent. */
    async function submit(kind: object, draft: object): Promise<void> {
      const send = async (row: Submission) => {
        rows.push(row);
        return { outcome: 'unclear', evidence: 'no answer' };
      };
      Object.assign(kind, { prepare: () => preparedAs(draft as never), send });
      await submitter.submit(kind as CreatedKind<never, never, object>, {
        origin: { partnerId, requestId: null, traceParent: null },
        keyId: 'key_1',
        idempotencyKey: 'k',
        digest: new KeyedDigest(onlyKey(Buffer.alloc(32)), (hmac) => hmac),
        request: {},
        permission: { renew: async () => {}, isLatest: () => true },
        log: () => settling.log,
      });
      for (const replaced of ['prepare', 'send']) Reflect.deleteProperty(kind, replaced);
    }
    const { account, symbol, side, type, timeInForce, quantity, priceKobo, countedDay, countedPriceKobo } = plainOrder;
    const placed = { account, symbol, side, type, timeInForce, quantity, priceKobo, countedPriceKobo };
    await submit(order, { ...placed, clientReference: null, countedDay });
    await submit(application, {});
    await submit(allocation, { account, amountKobo: 1n, clientReference: null, countedDay });
    assert.equal(rows.length, 3, 'each is sent once');
    const until = clock.realNow() + submitTimeoutMs;
    for (const { id, notAfter, checkAt } of rows) {
      assert.deepEqual([notAfter - until, (checkAt ?? 0) - until], [0, clockSkewMs], id);
    }
  });

  for (const [name, missingFor] of [
    ['for the first time', null],
    ['again', 1],
  ] as const) {
    it(`an order that a report settles while the record is read, and lacks it ${name}, stays as the report left it`, async () => {
      const missingSince = missingFor === null ? null : settling.clock.realNow() - missingFor;
      const order = await settling.storeOrder({ partnerId, missingSince, checks: 1 });
      settling.clock.moveTo(order.notAfter + hourMs);
      settling.broker.lookUpOrder = async () => {
        await settling.applyReports(order, [reportOf(order, 1n, ReportKind.ACCEPTED)]);
        return notFound();
      };
      const { after: asked, isSettled } = await ask(order);
      assert.deepEqual([asked.state, isSettled], ['pending', true]);
      assert.deepEqual([asked.checkAt, asked.checks], [null, 1], 'nobody need look at it any more');
      assert.deepEqual(
        await settling.stepsOf(order),
        ['the exchange accepted the order'],
        'what was read is out of date',
      );
    });
  }

  it('an order that stays missing says so once in its history, and since when', async () => {
    const order = await settling.storeOrder({ partnerId });
    const since = settling.clock.realNow();
    recordSays(notFound(), 100);
    for (let times = 0; times < 3; times += 1) await ask(order);
    assert.deepEqual(await settling.stepsOf(order), ["the exchange's record does not have it yet"]);
    const { missingSince, checks } = await settling.readOrder(order);
    assert.deepEqual([missingSince, checks], [since, 3]);
  });

  it('an order that the record has, without anything new to say of it, is asked about again later', async () => {
    const order = await missingOrder();
    settling.clock.moveTo(order.notAfter + hourMs);
    recordSays({ found: true, answer: [] });
    const { after: asked } = await ask(order);
    assert.deepEqual([asked.state, asked.checks], ['uncertain', 2]);
    assert.ok((asked.checkAt ?? 0) > settling.clock.realNow(), 'it is asked about again');
  });

  it('an order that a failover takes reports from while the record is read is asked about again, from the report it has', async () => {
    const order = await settling.storeOrder({ partnerId, lastReport: 4n });
    settling.clock.moveTo(order.notAfter + hourMs);
    settling.broker.lookUpOrder = async () => {
      await settling.database.write(
        statement('UPDATE orders SET last_report = 2, checks = checks + 1 WHERE id = ?', order.id),
      );
      return { found: true, answer: [reportOf(order, 5n, ReportKind.CANCELLED)] };
    };
    const { after: asked } = await ask(order);
    assert.deepEqual(
      [asked.state, asked.lastReport],
      ['uncertain', 2n],
      'reports 3 and 4 would never be applied again',
    );
    assert.ok((asked.checkAt ?? 0) > settling.clock.realNow(), 'it is asked about again');
  });

  it('an order that the record has is settled with all its reports, and counted for its day', async () => {
    const order = await missingOrder();
    const realCreatedAt = settling.clock.realNow();
    settling.clock.moveTo(order.notAfter + 1);
    const reports = [
      reportOf(order, 3n, ReportKind.ACCEPTED),
      reportOf(order, 5n, ReportKind.TRADE, 40n),
      reportOf(order, 9n, ReportKind.CANCELLED),
    ];
    recordSays({ found: true, answer: reports });
    const wakes = settling.wakes();
    settling.reportedAfterMs.length = 0;
    const { after: asked } = await ask(order);
    assert.equal(settling.wakes(), wakes + 1, 'nobody told the relay that there are events');
    assert.deepEqual(
      settling.reportedAfterMs,
      [order.notAfter + 1 - realCreatedAt],
      "the times of the record's reports are evidence about the broker's clock",
    );
    assert.deepEqual(
      [asked.state, asked.filledQuantity, asked.lastReport, asked.checkAt],
      ['cancelled', 40n, 9n, null],
    );
    const rows = await settling.database.read(
      statement('SELECT type FROM outbox WHERE partner_id = ? ORDER BY version', partnerId),
    );
    assert.deepEqual(
      rows.map(({ type }) => type),
      ['order.pending', 'order.partially_filled', 'order.cancelled'],
    );
  });

  it('an order that the record has tells by its reports that a clock is wrong, also if it was refused', async () => {
    const order = await settling.storeOrder({ partnerId });
    const before = { at: timestampFromMs(order.createdAt - 120_000) };
    const accepted = { ...reportOf(order, 1n, ReportKind.ACCEPTED), ...before };
    recordSays({ found: true, answer: [accepted, reportOf(order, 2n, ReportKind.TRADE, 10n)] });
    settling.reportedAfterMs.length = 0;
    await ask(order);
    assert.deepEqual(settling.reportedAfterMs, [-120_000]);
    const refused = await settling.storeOrder({ partnerId, state: 'refused' });
    await settling.applyReports(refused, [{ ...reportOf(refused, 1n, ReportKind.ACCEPTED), ...before }]);
    assert.deepEqual(settling.reportedAfterMs, [-120_000, -120_000]);
  });

  it('is asked about after 0.5 s, then after twice as long each time, and every 30 s in the end', async () => {
    const order = await settling.storeOrder({ partnerId });
    settling.clock.moveTo(order.notAfter + clockSkewMs + 1);
    settling.broker.lookUpOrder = async () => {
      throw new ApiError('exchange_unavailable');
    };
    const waits: number[] = [];
    for (let times = 0; times < 9; times += 1) {
      const { after: row } = await ask(order);
      waits.push((row.checkAt ?? 0) - settling.clock.realNow());
      settling.clock.advance(1);
    }
    assert.deepEqual(waits, [500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 30_000]);
    const [row = {}] = await settling.database.read(lookUps.find({ partnerId: partnerId, objectId: order.id }));
    const { asked, firstAt, lastAt } = lookUps.all.read(row);
    assert.deepEqual([asked, lastAt - firstAt], [9, 8], 'each look-up is counted, and the first keeps its time');
  });

  it('an application that stays missing says so once in its history, and since when', async () => {
    const { id } = await settling.storeApplication({ partnerId });
    const since = settling.clock.realNow();
    settling.broker.lookUpApplication = async () => {
      settling.clock.advance(100);
      return notFound();
    };
    const reconciler = settling.newReconciler(settling.application);
    for (let times = 0; times < 3; times += 1) await reconciler.reconcileNow(partnerId, id);
    const steps = await settling.database.read(statement('SELECT detail FROM object_steps WHERE object_id = ?', id));
    assert.deepEqual(
      steps.map(({ detail }) => detail),
      ["the broker's record does not have it yet"],
    );
    const { missingSince, checks } = await settling.readApplication({ partnerId, id });
    assert.deepEqual([missingSince, checks], [since, 3]);
  });

  it('an order that is missing is asked about again as soon as absence can be proof, and not before', async () => {
    const order = await missingOrder();
    settling.clock.moveTo(order.notAfter);
    recordSays(notFound());
    const { after: asked } = await ask(order);
    assert.equal(asked.checkAt, order.notAfter + clockSkewMs + 1);
  });

  it('one hundred and twenty orders that are due are all found out, each once', async () => {
    await settling.database.write(statement('DELETE FROM orders'));
    const orders: StoredOrder[] = [];
    for (let count = 0; count < 120; count += 1) orders.push(await settling.storeOrder({ partnerId }));
    settling.clock.moveTo((orders.at(-1)?.checkAt ?? 0) + 1);
    const asked: string[] = [];
    settling.broker.lookUpOrder = async (id) => {
      asked.push(id);
      const order = orders.find((each) => each.id === id);
      assert.ok(order !== undefined);
      return { found: true, answer: [reportOf(order, 1n, ReportKind.ACCEPTED)] };
    };
    await whileRunning(settling.newReconciler(settling.order).worker, async () => {
      await eventually(async () => {
        const [row] = await settling.database.read(
          statement(`SELECT COUNT(*) AS pending FROM orders WHERE partner_id = ? AND state = 'pending'`, partnerId),
        );
        assert.equal(Number(row?.pending), 120, `${row?.pending} of 120 orders were settled`);
      }, 30_000);
    });
    assert.deepEqual([asked.length, new Set(asked).size], [120, 120], 'each is asked about once');
  });

  it("an application is not settled with another partner's account, when a look-up tells of it", async () => {
    const other = await settling.newPartner();
    const account = `F${partnerId.slice(-8).toUpperCase()}`;
    await linkAccount(settling.database, { partnerId: other, account });
    const { clock } = settling;
    const application = await settling.storeApplication({ partnerId });
    clock.advance(submitTimeoutMs + clockSkewMs + 1);
    const said = {
      clientApplicationId: application.id,
      reference: 'REF-1',
      at: timestampFromMs(clock.now()),
    };
    settling.broker.lookUpApplication = async () => ({
      found: true,
      answer: [
        create(ApplicationReportSchema, { ...said, number: 1n, kind: ApplicationReportKind.ACCEPTED }),
        create(ApplicationReportSchema, { ...said, number: 2n, kind: ApplicationReportKind.OPENED, account }),
      ],
    });
    await settling.newReconciler(settling.application).reconcileNow(partnerId, application.id);
    const settled = await settling.readApplication(application);
    assert.deepEqual(
      [settled.state, settled.account],
      ['documents_required', null],
      `the application is ${settled.state} with the account ${settled.account}, which is another partner's`,
    );
    assert.deepEqual(
      settling.contradictions.map(({ objectId }) => objectId).filter((id) => id.startsWith('app_')),
      [application.id],
      'a person is told',
    );
    const owners = await settling.database.read(
      statement('SELECT partner_id FROM accounts WHERE account = ?', account),
    );
    assert.deepEqual(
      owners.map(({ partner_id: owner }) => owner),
      [other],
    );
  });
});
