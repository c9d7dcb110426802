import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { AllocationOutcome } from '../../../../src/gen/marina/broker/v1/allocations_pb.ts';
import { Call, Outcome, type StatementLie, WireFault } from '../../../../src/gen/marina/simulator/v1/controls_pb.ts';
import { daysBefore } from '../../../../src/kit/clock.ts';
import { eventually } from '../../../support/eventually.ts';
import { callTimeout, type TestPartner } from '../../../support/gateway.ts';
import type { Found } from '../../../support/operator.ts';
import { Reconciling } from '../../../support/reconciliation.ts';

type LieName = keyof typeof StatementLie;

/** A day with everything that can happen to an order and to an allocation, seen by the gateway and by the broker. */
class BusyDay {
  private constructor(
    readonly days: Reconciling,
    readonly day: string,
    readonly partner: TestPartner,
    readonly other: TestPartner,
    /** Objects by what happened to them. */
    readonly ids: Readonly<Record<string, string>>,
  ) {}

  static async make(days: Reconciling): Promise<BusyDay> {
    const { gateway } = days;
    const { controls } = gateway;
    const day = await days.toNextDay(9 * 60);
    const [partner, other] = [await gateway.newPartner({ accounts: 2 }), await gateway.newPartner()];
    await gateway.fund(partner, 1_000_000n);
    const ids: Record<string, string> = {};
    const place = async (name: string, order: Record<string, unknown>, by = partner) => {
      const { body } = await gateway.place(by, order);
      ids[name] = body.id ?? body.error?.order_id ?? '';
      return String(body.id);
    };
    const state = (id: string, wanted: string, by = partner) =>
      eventually(async () => {
        const { body } = await gateway.rest('GET', `/v1/orders/${id}`, { key: by.key });
        assert.equal(body.state, wanted);
      });
    const force = (outcome: Outcome, parts = 1) =>
      controls.forceOutcome({ symbol: 'SIM-REST', outcome, parts }, callTimeout);

    await force(Outcome.FILL, 3);
    await state(await place('parts', { symbol: 'SIM-REST', quantity: 90 }), 'filled');
    await force(Outcome.FILL);
    await state(await place('sale', { symbol: 'SIM-REST', side: 'sell', quantity: 20 }), 'filled');
    await force(Outcome.FILL_HALF);
    const half = await place('half', { symbol: 'SIM-REST', quantity: 100 });
    await state(half, 'partially_filled');
    const cancelled = await place('cancelled', { symbol: 'SIM-REST' });
    await gateway.rest('DELETE', `/v1/orders/${cancelled}`, { key: partner.key });
    await state(cancelled, 'cancelled');
    await controls.fillOrder({ clientOrderId: cancelled, quantity: 10n }, callTimeout);
    await eventually(async () => {
      const { body } = await gateway.rest('GET', `/v1/orders/${cancelled}`, { key: partner.key });
      assert.equal(body.filled_quantity, 10, 'a late fill');
    });
    await place('gtc', { symbol: 'SIM-REST', time_in_force: 'gtc', quantity: 50 });
    await controls.fillOrder({ clientOrderId: ids.gtc ?? '', quantity: 5n }, callTimeout);
    await place('rejected', { symbol: 'SIM-REJECT' });
    const expired = await place('expired', { symbol: 'SIM-REST', quantity: 7 });
    await controls.expireOrder({ clientOrderId: expired }, callTimeout);
    await state(expired, 'expired');
    await place('at the close', { symbol: 'SIM-REST', quantity: 8 });
    await state(await place('lost', { symbol: 'SIM-LOSTFILL', quantity: 30 }), 'filled');
    await place('late', { symbol: 'SIM-UNSENT' });
    await state(await place('of another', { symbol: 'SIM-FILL' }, other), 'filled', other);

    const allocate = async (name: string, amount: number) => {
      const { body } = await gateway.allocate(partner, { amount_kobo: amount });
      ids[name] = body.id;
    };
    await allocate('booked', 1_000);
    await controls.forceAllocation({ outcome: AllocationOutcome.REJECTED }, callTimeout);
    await allocate('allocation rejected', 2_000);
    await controls.injectFault({ call: Call.SUBMIT_ALLOCATION, fault: WireFault.LOSE_ANSWER }, callTimeout);
    await allocate('allocation lost', 3_000);
    await eventually(async () => {
      const { body } = await gateway.rest('GET', `/v1/allocations/${ids['allocation lost']}`, { key: partner.key });
      assert.equal(body.state, 'booked');
    });
    return new BusyDay(days, day, partner, other, ids);
  }

  id(name: string): string {
    const id = this.ids[name];
    if (id === undefined || id === '') throw new Error(`nothing is ${name}`);
    return id;
  }
}

/** The fields of a break that a test expects. */
interface Expected {
  readonly kind: string;
  readonly ours: RegExp | string;
  readonly brokers: RegExp | string;
  readonly object?: string;
  readonly account?: string;
  readonly symbol?: string;
  readonly partner?: string;
}

describe("a busy day that is compared with the broker's statement", () => {
  let days: Reconciling;
  let busy: BusyDay;
  before(async () => {
    days = await Reconciling.start();
    busy = await BusyDay.make(days);
    // The day orders expire at the close, and the day ends.
    await days.toNextDay();
  });
  after(() => days.stop());

  const assertBreak = (
    found: readonly Found[],
    { kind, ours, brokers, object, account, symbol, partner }: Expected,
  ) => {
    assert.equal(found.length, 1, JSON.stringify(found));
    const [one] = found as [Found];
    const matches = (text: string, wanted: RegExp | string) =>
      typeof wanted === 'string' ? assert.equal(text, wanted) : assert.match(text, wanted);
    assert.equal(one.kind, `BREAK_KIND_${kind}`);
    matches(one.ours, ours);
    matches(one.brokers, brokers);
    assert.equal(one.day, busy.day);
    if (object !== undefined) assert.equal(one.object_id, object);
    if (account !== undefined) assert.equal(one.account, account);
    if (symbol !== undefined) assert.equal(one.symbol, symbol);
    assert.equal(one.partner_id, partner ?? busy.partner.id);
  };

  it('has no break, by itself and when an operator asks, and each run says how much was compared', async () => {
    const own = await days.untilRun(busy.day, 'COMPLETE');
    assert.deepEqual(await days.breaks({ day: busy.day }), []);
    assert.equal(own.started_by, '');
    const run = await days.complete(busy.day);
    assert.deepEqual([run.id, run.started_by, run.breaks], [`${busy.day}-2`, 'tester', '0']);
    assert.ok(Number(run.records) >= 20, run.records);
    assert.ok(Number(run.objects) >= 14, run.objects);
    assert.deepEqual(await days.breaks({ day: busy.day }), []);
  });

  const lies: readonly [lie: LieName, about: () => Record<string, string>, expected: () => Expected][] = [
    [
      'ORDER_MISSING',
      () => ({ clientId: busy.id('parts') }),
      () => ({ kind: 'ORDER_MISSING', object: busy.id('parts'), ours: /^filled, buy 90 SIM-REST/, brokers: 'nothing' }),
    ],
    [
      'ORDER_EXTRA',
      () => ({ account: busy.partner.account, symbol: 'SIM-REST' }),
      () => ({
        kind: 'ORDER_EXTRA',
        ours: 'nothing',
        brokers: /^open, buy 100 SIM-REST/,
        account: busy.partner.account,
      }),
    ],
    [
      'ORDER_STATE',
      () => ({ clientId: busy.id('gtc') }),
      () => ({ kind: 'ORDER_STATE', object: busy.id('gtc'), ours: 'partially_filled', brokers: 'expired' }),
    ],
    [
      'ORDER_FILLED',
      () => ({ clientId: busy.id('half') }),
      () => ({ kind: 'ORDER_FILLED', object: busy.id('half'), ours: '50', brokers: '51' }),
    ],
    [
      'TRADE_MISSING',
      () => ({ clientId: busy.id('parts') }),
      () => ({ kind: 'TRADE_MISSING', object: busy.id('parts'), ours: /^30 shares at 1000 kobo/, brokers: 'nothing' }),
    ],
    [
      'TRADE_EXTRA',
      () => ({ clientId: busy.id('of another') }),
      () => ({
        ...{ kind: 'TRADE_EXTRA', object: busy.id('of another'), ours: 'nothing', brokers: /^\d+ shares at 1000 kobo/ },
        partner: busy.other.id,
      }),
    ],
    [
      'TRADE_PRICE',
      () => ({ clientId: busy.id('sale') }),
      () => ({
        kind: 'TRADE_TERMS',
        object: busy.id('sale'),
        ours: /^20 shares at 1000/,
        brokers: /^20 shares at 1001/,
      }),
    ],
    [
      'TRADE_QUANTITY',
      () => ({ clientId: busy.id('cancelled') }),
      () => ({
        ...{ kind: 'TRADE_TERMS', object: busy.id('cancelled') },
        ...{ ours: /^10 shares at 1000/, brokers: /^11 shares at 1000/ },
      }),
    ],
    [
      'ALLOCATION_MISSING',
      () => ({ clientId: busy.id('booked') }),
      () => ({ kind: 'ALLOCATION_MISSING', object: busy.id('booked'), ours: /^booked, 1000 kobo/, brokers: 'nothing' }),
    ],
    [
      'ALLOCATION_EXTRA',
      () => ({ account: busy.partner.account }),
      () => ({
        kind: 'ALLOCATION_EXTRA',
        ours: 'nothing',
        brokers: /^booked, 100 kobo/,
        account: busy.partner.account,
      }),
    ],
    [
      'ALLOCATION_AMOUNT',
      () => ({ clientId: busy.id('allocation lost') }),
      () => ({
        ...{ kind: 'ALLOCATION_TERMS', object: busy.id('allocation lost') },
        ...{ ours: /^3000 kobo to/, brokers: /^3001 kobo to/ },
      }),
    ],
    [
      'POSITION',
      () => ({ account: busy.partner.account, symbol: 'SIM-REST' }),
      () => ({
        ...{ kind: 'POSITION', account: busy.partner.account, symbol: 'SIM-REST' },
        ...{ ours: /^135 shares: 0 the day before, and 135 by trades$/, brokers: '136 shares' },
      }),
    ],
    [
      'CASH',
      () => ({ account: busy.partner.account }),
      () => ({
        ...{ kind: 'CASH', account: busy.partner.account },
        ...{ ours: /^-?\d+ kobo: 0 the day before, and -?\d+ by the day's changes$/, brokers: /^-?\d+ kobo$/ },
      }),
    ],
  ];

  for (const [lie, about, expected] of lies) {
    it(`has exactly the break of ${lie}, with both sides, and it is gone when the broker no longer says so`, async () => {
      await days.lie(lie, { day: busy.day, ...about() });
      try {
        const run = await days.complete(busy.day);
        assert.equal(run.breaks, '1');
        const found = await days.open(busy.day);
        assertBreak(found, expected());
        const again = await days.complete(busy.day);
        assert.equal(again.breaks, '1');
        const seenAgain = await days.open(busy.day);
        assert.deepEqual([seenAgain.length, seenAgain[0].id], [1, found[0].id], 'a repeated run finds the same break');
        assert.equal(seenAgain[0].first_seen_at, found[0].first_seen_at);
      } finally {
        await days.tellTheTruth();
      }
      assert.equal((await days.complete(busy.day)).breaks, '0');
      assert.deepEqual(await days.open(busy.day), []);
      const gone = await days.breaks({ day: busy.day, kind: `BREAK_KIND_${expected().kind}` });
      assert.ok(gone.length >= 1 && gone.every((one) => one.gone_at !== undefined), 'it is kept, and says since when');
    });
  }

  it('keeps breaks of positions and money open while the day before is not to be had, and says so', async () => {
    await days.lie('POSITION', { day: busy.day, account: busy.partner.account, symbol: 'SIM-REST' });
    await days.lie('CASH', { day: busy.day, account: busy.partner.account });
    await days.lie('ORDER_FILLED', { day: busy.day, clientId: busy.id('half') });
    assert.equal((await days.complete(busy.day)).breaks, '3');
    await days.tellTheTruth();
    await days.lie('INCOMPLETE', { day: daysBefore(busy.day, 1) });
    const logged = days.gateway.logged.length;
    const run = await days.complete(busy.day);
    assert.match(run.problem, /^positions and money were not compared/);
    assert.equal((await days.runs(busy.day))[0]?.problem, run.problem);
    const open = (await days.open(busy.day)).map(({ kind }) => kind).sort();
    assert.deepEqual(open, ['BREAK_KIND_CASH', 'BREAK_KIND_POSITION'], 'only what was compared is gone');
    assert.ok(!days.gateway.logged.slice(logged).some((line) => line.includes('a day agrees')));
    await days.tellTheTruth();
    assert.equal((await days.complete(busy.day)).problem, '');
    assert.deepEqual(await days.open(busy.day), []);
  });

  it('keeps a break that is acknowledged once, with the reason, until a side changes', async () => {
    const { operator } = days;
    await days.lie('POSITION', { day: busy.day, account: busy.partner.account, symbol: 'SIM-REST' });
    await days.complete(busy.day);
    const [found] = await days.open(busy.day);
    assert.match((await operator.refused('Diagnostics.AcknowledgeBreak', { id: found.id })).message, /reason/);
    const reason = 'the broker corrects it tomorrow';
    const first = await operator.call('Diagnostics.AcknowledgeBreak', { id: found.id, reason });
    const again = await operator.call('Diagnostics.AcknowledgeBreak', { id: found.id, reason: 'another' });
    assert.deepEqual(again, first, 'repeated, it changes nothing');
    assert.deepEqual([first.break.acknowledged_by, first.break.acknowledged_reason], ['tester', reason]);
    const { entries } = await operator.call('Audit.ListEntries', { subject: found.id });
    assert.equal(entries.length, 1);
    assert.equal(entries[0].action, 'Diagnostics.AcknowledgeBreak');
    assert.deepEqual(await days.open(busy.day), []);
    await days.complete(busy.day);
    assert.deepEqual(await days.open(busy.day), [], 'found again with the same sides, it stays acknowledged');
    await days.lie('POSITION', { day: busy.day, account: busy.partner.account, symbol: 'SIM-REST' });
    await days.complete(busy.day);
    const [changed] = await days.open(busy.day);
    assert.deepEqual([changed?.id, changed?.brokers, changed?.acknowledged_by], [found.id, '137 shares', '']);
    const seen = { id: found.id, reason, ours: found.ours, brokers: found.brokers };
    const refused = await operator.refused('Diagnostics.AcknowledgeBreak', seen);
    assert.deepEqual(
      [refused.code, /other values/.test(refused.message)],
      [9, true],
      'what nobody has seen stays open',
    );
    assert.equal((await days.open(busy.day)).length, 1);
    await operator.call('Diagnostics.AcknowledgeBreak', { ...seen, brokers: changed?.brokers });
    assert.deepEqual(await days.open(busy.day), []);
    await days.tellTheTruth();
    await days.complete(busy.day);
    assert.equal(
      (await operator.refused('Diagnostics.AcknowledgeBreak', { id: 'brk_aaaaaaaaaaaaaaaaaaaa', reason })).code,
      5,
    );
  });

  it('lists breaks by day, partner and kind, a page at a time, and exports them as CSV', async () => {
    for (const name of ['parts', 'half', 'cancelled', 'gtc']) {
      await days.lie('ORDER_FILLED', { day: busy.day, clientId: busy.id(name) });
    }
    await days.lie('ORDER_FILLED', { day: busy.day, clientId: busy.id('of another') });
    await days.lie('CASH', { day: busy.day, account: busy.other.account });
    await days.complete(busy.day);
    const count = async (filter: Record<string, string>) =>
      (await days.breaks({ day: busy.day, open_only: true, ...filter })).length;
    assert.equal(await count({}), 6);
    assert.equal(await count({ partner_id: busy.other.id }), 2);
    assert.equal(await count({ kind: 'BREAK_KIND_CASH' }), 1);
    assert.equal(await count({ kind: 'BREAK_KIND_CASH', partner_id: busy.partner.id }), 0);
    assert.equal((await days.breaks({ day: daysBefore(busy.day, 1) })).length, 0);
    const all: string[] = [];
    let cursor = '';
    do {
      const filter = { open_only: true, limit: 4, cursor };
      const page = await days.operator.call('Diagnostics.ListReconciliationBreaks', filter);
      all.push(...page.breaks.map(({ id }: Found) => id));
      cursor = page.next_cursor;
    } while (cursor !== '');
    assert.equal(new Set(all).size, 6);
    assert.equal(all.length, 6);
    const csv = await days.exported({ day: busy.day, open_only: true });
    const lines = csv.split('\r\n');
    assert.match(lines[0] ?? '', /^id,day,kind,partner_id,object_id,account,symbol,ours,brokers,/);
    assert.equal(lines.length, 8, 'a heading, six breaks, and the end of the last line');
    assert.ok(lines.some((line) => line.includes(`,order_filled,${busy.partner.id},${busy.id('half')},`)));
    const { reconciliation } = await days.operator.call('Diagnostics.GetStatus');
    assert.deepEqual([reconciliation.open_breaks, reconciliation.is_offered], ['6', true]);
    await eventually(async () => {
      const text = await (await fetch(`http://127.0.0.1:${days.gateway.app.opsPort}/metrics`)).text();
      assert.match(text, /^marina_reconciliation_breaks\{kind="order_filled"\} 5$/m);
      assert.match(text, /^marina_reconciliation_breaks\{kind="cash"\} 1$/m);
      assert.match(text, /^marina_reconciliation_overdue_days 0$/m);
      assert.match(text, /^marina_reconciliation_not_offered 0$/m);
    });
    await days.tellTheTruth();
    await days.complete(busy.day);
  });

  it('changes no object, and sends nothing', async () => {
    const before = await days.gateway.rest('GET', '/v1/orders?limit=100', { key: busy.partner.key });
    const { messages } = await days.gateway.controls.listMessages({}, callTimeout);
    for (const name of ['parts', 'half']) await days.lie('ORDER_STATE', { day: busy.day, clientId: busy.id(name) });
    await days.complete(busy.day);
    await days.tellTheTruth();
    await days.complete(busy.day);
    const after = await days.gateway.rest('GET', '/v1/orders?limit=100', { key: busy.partner.key });
    assert.equal(after.text.replace(/"request_id":"[^"]+"/, ''), before.text.replace(/"request_id":"[^"]+"/, ''));
    assert.equal((await days.gateway.controls.listMessages({}, callTimeout)).messages.length, messages.length);
  });

  it("is followed by days on which orders that live on are compared as they were at each day's end", async () => {
    const second = await days.today();
    const { objects } = await days.complete(busy.day);
    await days.gateway.place(busy.partner, { symbol: 'SIM-FILL' });
    assert.equal((await days.complete(busy.day)).objects, objects, 'orders of later days are not looked at');
    await days.gateway.controls.fillOrder({ clientOrderId: busy.id('gtc'), quantity: 6n }, callTimeout);
    await days.toNextDay();
    await days.gateway.controls.fillOrder({ clientOrderId: busy.id('gtc'), quantity: 39n }, callTimeout);
    await eventually(async () => {
      const path = `/v1/orders/${busy.id('gtc')}`;
      assert.equal((await days.gateway.rest('GET', path, { key: busy.partner.key })).body.state, 'filled');
    });
    const third = await days.today();
    await days.toNextDay();
    for (const day of [busy.day, second, third]) {
      assert.equal((await days.complete(day)).breaks, '0', JSON.stringify(await days.open(day)));
    }
    await days.lie('POSITION', { day: second, account: busy.partner.account, symbol: 'SIM-REST' });
    assert.equal((await days.complete(third)).breaks, '1', 'the day after does not follow from it either');
    const [found] = await days.open(third);
    assert.deepEqual([found.brokers, found.ours.slice(0, 10)], ['180 shares', '181 shares']);
    await days.tellTheTruth();
    await days.complete(third);
  });
});
