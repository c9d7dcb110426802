import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { create } from '@bufbuild/protobuf';
import { audit } from '../../../../../src/gateway/edge/auth/audit-store.ts';
import { firstIdAt } from '../../../../../src/gateway/edge/ids.ts';
import { auditSealer } from '../../../../../src/gateway/operators/audit/sealer.ts';
import { AuditSeals, auditSealUse } from '../../../../../src/gateway/operators/audit/seals.ts';
import { accountExportCalls } from '../../../../../src/gateway/operators/calls/account-export/service.ts';
import { auditProofCalls, oneAuditExport } from '../../../../../src/gateway/operators/calls/audit-export.ts';
import type { AdminCall } from '../../../../../src/gateway/operators/calls/call.ts';
import { proposals, type StoredProposal } from '../../../../../src/gateway/operators/calls/proposals/table.ts';
import { ReportsUnderWay } from '../../../../../src/gateway/operators/calls/reports/parts.ts';
import type { Database } from '../../../../../src/gateway/store/database.ts';
import { type Statement, statement } from '../../../../../src/gateway/store/statement.ts';
import { accounts } from '../../../../../src/gateway/trading/accounts/store.ts';
import { allocations, type StoredAllocation } from '../../../../../src/gateway/trading/allocations/table.ts';
import { applications, type StoredApplication } from '../../../../../src/gateway/trading/applications/table.ts';
import { keptBulkCancels } from '../../../../../src/gateway/trading/orders/bulk-cancels/retention.ts';
import { bulkCancelOrders, bulkCancels } from '../../../../../src/gateway/trading/orders/bulk-cancels/table.ts';
import { orderHistory, orders, type StoredOrder } from '../../../../../src/gateway/trading/orders/table.ts';
import { type StoredStop, stops } from '../../../../../src/gateway/trading/stops/table.ts';
import { objectHistory } from '../../../../../src/gateway/trading/submission/table.ts';
import { type StoredWithdrawal, withdrawals } from '../../../../../src/gateway/trading/withdrawals/table.ts';
import {
  ExportAccountRequestSchema,
  VerifyEntriesRequestSchema,
} from '../../../../../src/gen/marina/admin/v1/audit_pb.ts';
import { keysFor, parseKeyRing } from '../../../../../src/kit/key-ring.ts';
import { createLogger } from '../../../../../src/kit/log.ts';
import { fixed } from '../../../../../src/kit/watched-files.ts';
import { whileRunning, withDatabase } from '../../../../support/database.ts';
import { eventually } from '../../../../support/eventually.ts';
import type { Found } from '../../../../support/operator.ts';
import { filledOrder } from '../../../../support/reports.ts';
import { TestClock } from '../../../../support/settling.ts';

const [one, other] = [`par_${'a'.repeat(20)}`, `par_${'b'.repeat(20)}`];
const account = 'C777';
const dayMs = 86_400_000;
/** The first instant of the day, and the first one after it. */
const from = Date.parse('2026-03-02T00:00:00+01:00');
const until = from + dayMs;
const day = '2026-03-02';
const seals = new AuditSeals(keysFor(fixed(parseKeyRing('ab'.repeat(32))), auditSealUse), 'sandbox');

describe('the lines of an export of one account', () => {
  let database: Database;
  let clock: TestClock;
  withDatabase((opened) => {
    database = opened;
  });

  beforeEach(async () => {
    clock = new TestClock();
    const tables = ['audit_entries', 'audit_seals', 'accounts', 'orders', 'order_steps', 'object_steps'];
    for (const table of [
      ...tables,
      'allocations',
      'applications',
      'withdrawals',
      'stops',
      'bulk_cancels',
      'bulk_cancel_orders',
      'leases',
    ]) {
      await store(statement(`DELETE FROM ${table}`));
    }
    await store(accounts.insert({ partnerId: one, account, applicationId: null, createdAt: from - 30 * dayMs }));
  });

  const store = (...writes: Statement[]) => database.transaction([], () => ({ writes, result: undefined }));
  const order = (at: number, number = 0, more: Partial<StoredOrder> = {}) =>
    filledOrder(one, at, number, { account, ...more });
  const entry = (at: number, more: Partial<Parameters<typeof audit>[2]> = {}, action = 'Diagnostics.ReconcileNow') =>
    audit({ operator: 'ada', action }, at, { subject: account, detail: { reason: 'asked' }, ...more });
  /** A step of an order, which has so many with it. */
  const step = (of: StoredOrder, at: number) =>
    orderHistory.append(of, [{ kind: 'cancel', at, state: of.state, detail: 'a cancel is sent' }]);

  async function exported(request: { account?: string; fromDay?: string; toDay?: string } = {}) {
    const { exportAccount } = accountExportCalls({ database, clock, seals }, new ReportsUnderWay(), oneAuditExport());
    const asked = create(ExportAccountRequestSchema, { account, fromDay: day, ...request });
    let text = '';
    let last: Found = {};
    for await (const part of exportAccount(asked, { operator: 'ada' } as AdminCall, new AbortController().signal)) {
      if ('text' in part) text += part.text;
      else last = part;
    }
    assert.equal(last.complete, true);
    const lines: Found[] = text
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line));
    return { lines, last, of: (kind: string) => lines.filter(({ line }) => line === kind) };
  }

  /** Seals all entries, as a replica does. */
  async function seal(): Promise<void> {
    let rounds = 0;
    const log = createLogger({ name: 'test', level: 'silent' });
    const worker = auditSealer({
      ...{ database, clock, log, holder: 'test', settleMs: 0, betweenRoundsMs: 5, seals },
      checked: () => {
        rounds += 1;
      },
    });
    await whileRunning(worker, () => eventually(() => assert.ok(rounds > 4)));
  }

  it('an export has what happened at the first and the last instant of its days, and nothing before and after', async () => {
    const inside = [order(from), order(until - 1)];
    const outside = [order(from - 1), order(until)];
    const old = order(from - dayMs, 0, { steps: 4 });
    await store(
      orders.insert(...inside, ...outside, old),
      ...[from - 1, from, until - 1, until].flatMap((at, index) => step({ ...old, steps: index + 1 }, at)),
      ...[from - 1, from, until - 1, until].map((at) => entry(at)),
    );
    const { of } = await exported();
    assert.deepEqual(
      of('object').map(({ id }) => id),
      [old, ...inside].map(({ id }) => id),
    );
    const instants = [from, until - 1].map((at) => new Date(at).toISOString());
    assert.deepEqual(
      of('step').map(({ object_id: id, at }) => [id, at]),
      instants.map((at) => [old.id, at]),
    );
    assert.deepEqual(
      of('entry').map(({ at }) => at),
      instants,
    );
    const two = await exported({ fromDay: '2026-03-01', toDay: '2026-03-03' });
    assert.deepEqual([two.of('object').length, two.of('step').length, two.of('entry').length], [5, 4, 4]);
  });

  it('an order that a cancel left as it was is in the export, by the step of the cancel', async () => {
    const resting = order(from - dayMs, 0, { state: 'pending', steps: 1 });
    await store(orders.insert(resting, order(from - dayMs, 1)), ...step(resting, from + 5));
    const { of } = await exported();
    assert.deepEqual(
      of('object').map(({ id, state }) => [id, state]),
      [[resting.id, 'pending']],
    );
  });

  for (const more of [0, 1]) {
    it(`an export is whole with ${200 + more} orders, entries and stops, and ${100 + more} steps of one order`, async () => {
      const count = 200 + more;
      const numbers = Array.from({ length: count }, (_, number) => number);
      const stepped = order(from + 9, 7, { steps: 100 + more });
      await store(
        orders.insert(...numbers.map((number) => order(from, number, { steps: 0 })), stepped),
        ...numbers.map(() => entry(from + 1)),
        ...numbers.map((number) => entry(from + 2, { subject: `S${number}` })),
        stops.insert(...numbers.map((number) => aStop(number, { endedAt: null }))),
        stops.insert(...numbers.map((number) => aStop(1_000 + number, { endedAt: until + 5 }))),
        ...Array.from({ length: 100 + more }, (_, at) => step({ ...stepped, steps: at + 1 }, from + at)).flat(),
      );
      const { of, last } = await exported();
      assert.equal(new Set(of('object').map(({ id }) => id)).size, count + 1);
      assert.deepEqual(
        of('step').map(({ sequence }) => sequence),
        Array.from({ length: 100 + more }, (_, at) => at + 1),
      );
      assert.equal(new Set(of('entry').map(({ id }) => id)).size, count);
      assert.equal(new Set(of('stop').map(({ id }) => id)).size, 2 * count);
      assert.deepEqual(Object.fromEntries(last.counts.map(({ kind, count: some }: Found) => [kind, some])), {
        ...{ partner: 1, stop: 2 * count, object: count + 1, step: 100 + more, entry: count },
      });
    });
  }

  it('the last message names the batch of an entry that was changed or removed, and the last batch of the days', async () => {
    await store(...Array.from({ length: 450 }, (_, at) => entry(from + at, at === 250 ? {} : { subject: `S${at}` })));
    await seal();
    const whole = await exported();
    assert.deepEqual([whole.last.faults, whole.last.unsealed, whole.of('entry').length], [[], 0, 1]);
    assert.equal(whole.of('entry')[0].batch_state, 'right');
    const verified = await auditProofCalls(database, seals).verifyEntries(create(VerifyEntriesRequestSchema));
    assert.deepEqual(
      [whole.last.lastBatch, whole.last.lastId, whole.last.lastHash],
      [verified.lastBatch, verified.lastId, verified.lastHash],
    );
    const faults = async () => (await exported()).last.faults.map(({ batch, kind }: Found) => `${batch} ${kind}`);
    await store(statement(`UPDATE audit_entries SET subject = 'another' WHERE subject = ?`, account));
    assert.deepEqual(await faults(), ['2 changed'], 'also if it no longer names the account');
    await store(statement(`DELETE FROM audit_entries WHERE subject = 'another'`));
    assert.deepEqual(await faults(), ['2 removed']);
    await store(entry(from + 1_000));
    const { of, last } = await exported();
    assert.deepEqual([of('entry')[0].batch_state, last.unsealed], ['not sealed yet', 1]);
  });

  it('the partners that had the account come with when, who linked it and who unlinked it', async () => {
    const linked = (at: number, partnerId: string) =>
      entry(at, { partnerId, after: { partner: partnerId } }, 'Accounts.LinkAccount');
    const unlinked = (at: number, partnerId: string, before: Record<string, unknown>) =>
      entry(at, { partnerId, before: { partner: partnerId, ...before } }, 'Accounts.UnlinkAccount');
    const application = `app_${'c'.repeat(20)}`;
    await store(
      unlinked(from - 50, other, { application, createdAt: new Date(from - 90).toISOString() }),
      linked(from - 40, other),
      unlinked(from + 10, other, { application: null, createdAt: new Date(from - 40).toISOString() }),
      linked(from + 20, one),
      accounts.set({ account }, { createdAt: from + 20 }),
      orders.insert({ ...order(from + 1), partnerId: other }, order(from + 30)),
      ...[from + 5, from + 30].map((at) => stopEntry(at, 'partner', other)),
      ...[from + 5, from + 30].map((at) => stopEntry(at, 'partner', one)),
    );
    const { of } = await exported();
    assert.deepEqual(
      of('partner').map((line) => [
        line.partner_id,
        Date.parse(line.from) - from,
        line.until && Date.parse(line.until) - from,
      ]),
      [
        [other, -90, -50],
        [other, -40, 10],
        [one, 20, null],
      ],
    );
    assert.deepEqual(
      of('partner').map((line) => [line.application, line.linked_by, line.unlinked_by]),
      [
        [application, null, 'ada'],
        [null, 'ada', 'ada'],
        [null, 'ada', null],
      ],
    );
    assert.deepEqual(
      of('object').map(({ partner_id: id }) => id),
      [other, one],
    );
    const ofStops = of('entry').filter(({ action }) => action === 'Trading.AddStop');
    assert.deepEqual(
      ofStops.map(({ at, detail }) => [Date.parse(at) - from, detail.value]),
      [
        [5, other],
        [30, one],
      ],
      'a stop of a partner is about the account only while that partner had it',
    );
    await assert.rejects(exported({ account: 'C7777' }), /no partner has this account, or had it/);
    const earlier = await exported({ fromDay: '2026-01-05' });
    assert.deepEqual(earlier.of('partner'), [], 'nobody had it by then');
  });

  it('the stops and the pause in which the days began are in the export, and those that were over are not', async () => {
    const early = { startedAt: from - 10 };
    const shown = [
      aStop(1, { ...early, endedAt: null }),
      aStop(2, { ...early, endedAt: from + 1, target: 'everything', value: '' }),
      aStop(3, { ...early, endedAt: null, target: 'partner', value: one }),
      aStop(4, { startedAt: until - 1, endedAt: null }),
    ];
    const hidden = [
      aStop(11, { ...early, endedAt: from }),
      aStop(12, { ...early, endedAt: null, endsAt: from }),
      aStop(13, { startedAt: until, endedAt: null }),
      aStop(14, { ...early, endedAt: null, target: 'partner', value: other }),
      aStop(15, { ...early, endedAt: null, target: 'symbol', value: account }),
      aStop(16, { ...early, endedAt: null, value: 'C77' }),
    ];
    const pause = (at: number, action: string) => entry(at, { subject: undefined }, `Trading.${action}`);
    await store(
      stops.insert(...shown, ...hidden),
      stopEntry(from + 1, 'symbol', account),
      pause(from - 9, 'PauseTrading'),
    );
    const { of } = await exported();
    assert.deepEqual(
      of('stop')
        .map(({ id }) => id)
        .toSorted(),
      shown.map(({ id }) => id).toSorted(),
    );
    assert.deepEqual(
      of('pause').map(({ at, operator }) => [Date.parse(at) - from, operator]),
      [[-9, 'ada']],
    );
    assert.deepEqual(of('entry'), []);
    await store(pause(from - 5, 'ResumeTrading'), pause(from + 5, 'PauseTrading'));
    const resumed = await exported();
    assert.deepEqual([resumed.of('pause').length, resumed.of('entry').length], [0, 1]);
  });

  it('an entry is about the account if it names it or one of its objects, and not because a reason does', async () => {
    const [own, foreign] = [order(from), order(from, 1, { account: 'C77' })];
    const link = { proposal: 'prp_x', request: { partner_id: one, account } };
    const allocation = anAllocation();
    const application = { ...allocation, id: `app_${'a'.repeat(20)}`, reference: 'R1', param: null };
    const withdrawal = { ...allocation, id: `wdr_${'a'.repeat(20)}`, destination: 'wallet', heldUntil: null };
    await store(
      orders.insert(own, foreign),
      allocations.insert(allocation),
      applications.insert(application as unknown as StoredApplication),
      withdrawals.insert({ ...withdrawal, releasedAt: null } as unknown as StoredWithdrawal),
      entry(from + 7, { subject: allocation.id }),
      entry(from + 8, { subject: application.id }),
      entry(from + 9, { subject: withdrawal.id }),
      entry(from + 1, { partnerId: one, subject: one, detail: link }, 'Accounts.LinkAccount'),
      entry(
        from + 2,
        { subject: 'brk_1', detail: { object_id: own.id, account: null } },
        'Diagnostics.AcknowledgeBreak',
      ),
      entry(from + 3, { subject: own.id }),
      entry(from + 4, { subject: 'C77', detail: { reason: `not ${account}`, evidence: own.id } }),
      entry(from + 5, { subject: foreign.id, detail: { reason: own.id, value: account, request: { account: 'C77' } } }),
      entry(from + 6, { subject: account.toLowerCase() }),
      ...[account, 'C77'].flatMap((proposed, index) => anExpiredLink(`prp_${index}`, proposed)),
    );
    const { of } = await exported();
    assert.deepEqual(
      of('entry').map(({ at }) => Date.parse(at) - from),
      [7, 8, 9, 1, 2, 3, 6, 10],
    );
  });

  it('a job that cancelled orders is about the account if it took one of its orders, or may have when it is removed', async () => {
    const others = Array.from({ length: 2_001 }, (_, number) => order(from, number, { account: 'C77' }));
    const last = order(from + 1);
    await store(orders.insert(...others, last));
    const taken: [string, readonly StoredOrder[], object?][] = [
      ['bcl_took', [...others, last]],
      ['bcl_others', others],
      ['bcl_named', [last], { account }],
      ['bcl_of_other', [], { partnerId: other }],
    ];
    for (const [id, items, more] of taken) await store(...aJob(id, items, more));
    for (const [id, detail] of [
      ['bcl_removed', { partnerId: one, account: null }],
      ['bcl_removed_other', { partnerId: other, account: null }],
      ['bcl_removed_account', { partnerId: one, account: 'C77' }],
    ] as const) {
      await store(entry(from + 2, { subject: id, detail }, 'Trading.CancelOpenOrders'));
    }
    await store(entry(from + 3, { subject: 'bcl_removed' }, 'Trading.StopBulkCancel'));
    const { of } = await exported();
    assert.deepEqual(
      of('entry').map(({ subject, action }) => [subject, action.split('.')[1]]),
      [
        ['bcl_took', 'CancelOpenOrders'],
        ['bcl_named', 'CancelOpenOrders'],
        ['bcl_removed', 'CancelOpenOrders'],
        ['bcl_removed', 'StopBulkCancel'],
      ],
    );
    // Its orders may be removed in part by then.
    clock.advance(keptBulkCancels.keptMs);
    const later = await exported();
    assert.ok(later.of('entry').some(({ subject }) => subject === 'bcl_others'));
  });

  it('an object says how many steps of its history are in the archive alone', async () => {
    const booked = anAllocation({ steps: 3 });
    await store(
      allocations.insert(booked),
      ...objectHistory.append(booked, [{ kind: 'report', at: from, state: 'booked', detail: 'booked' }]),
    );
    const { of, last } = await exported();
    assert.deepEqual([of('object')[0].archived_steps, of('step')[0].sequence, last.archivedSteps], [2, 3, 2]);
  });

  function anAllocation(more: Partial<StoredAllocation> = {}): StoredAllocation {
    const { id, ...shared } = order(from);
    const own = { id: id.replace('ord', 'alc'), state: 'booked', amountKobo: 5n, brokerReference: null, evidence: '' };
    return { ...shared, ...own, ...more } as unknown as StoredAllocation;
  }

  /** A proposal to link an account that expired, and the entry of its end. */
  function anExpiredLink(id: string, proposed: string): Statement[] {
    const action = 'Accounts.LinkAccount';
    const row: StoredProposal = {
      ...{ partnerId: one, id, action, objectId: one, seen: '{}', evidence: '', reference: '' },
      ...{
        state: 'expired',
        request: JSON.stringify({ partner_id: one, account: proposed }),
        about: `account ${proposed}`,
      },
      ...{ proposedBy: 'ada', proposedAt: from, expiresAt: from + 9 },
      ...{ decidedBy: null, decidedAt: null, decisionReason: null },
    };
    const detail = { proposal: id, action, proposedBy: 'ada' };
    return [
      proposals.insert(row),
      entry(from + 10, { partnerId: one, subject: one, detail }, 'gateway.ExpireProposal'),
    ];
  }

  function aStop(number: number, more: Partial<StoredStop>): StoredStop {
    return {
      ...{ id: `${firstIdAt('stp', from).slice(0, -5)}${String(22_222 + number)}`, partnerId: null, target: 'account' },
      ...{ value: account, actions: 'buy', reason: 'asked', startedBy: 'ada', startedAt: from, endsAt: null },
      ...{ endedBy: null, endReason: null, endedAt: null, ...more },
    };
  }

  function stopEntry(at: number, target: string, value: string): Statement {
    return entry(at, { subject: 'stp_1', detail: { target, value, reason: 'asked' } }, 'Trading.AddStop');
  }

  /** A job that has ended, with its orders, and the entry of its begin. */
  function aJob(id: string, items: readonly StoredOrder[], more: object = {}): Statement[] {
    const filter = { partnerId: null, account: null, symbol: 'SIM-REST', side: null, keyId: null, ...more };
    const job = {
      ...{ id, ...filter, reason: 'a halt', startedBy: 'ada', requestId: 'r', createdAt: from, giveUpAt: from },
      ...{ matched: items.length, cancelled: 0, notCancelable: 0, unconfirmed: 0, waitsFor: null, updatedAt: from },
      ...{ endedAt: clock.now() - 1_000, endedBy: null, endReason: null },
    };
    const rows = items.map(({ id: orderId }) => ({
      ...{ partnerId: one, bulkCancelId: id, orderId, result: null, detail: null, sentAt: null, dueAt: null },
    }));
    return [
      bulkCancels.insert(job),
      ...(rows.length === 0 ? [] : [bulkCancelOrders.insert(...rows)]),
      entry(from + 1, { subject: id, detail: filter }, 'Trading.CancelOpenOrders'),
    ];
  }
});
