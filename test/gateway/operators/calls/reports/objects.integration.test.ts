import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { JsonObject } from '@bufbuild/protobuf';
import { type ServiceError, status } from '@grpc/grpc-js';
import { orders, type StoredOrder } from '../../../../../src/gateway/trading/orders/table.ts';
import { lagosDay } from '../../../../../src/kit/clock.ts';
import { eventually } from '../../../../support/eventually.ts';
import { operatorToken, type TestGateway, type TestPartner } from '../../../../support/gateway.ts';
import { assertNothingInUse } from '../../../../support/metrics.ts';
import { type Found, TestOperator } from '../../../../support/operator.ts';
import { csvOf, filledOrder, reported, reportParts } from '../../../../support/reports.ts';

/** Midnight in Lagos, at the begin of Monday 2 March 2026. */
const monday = Date.parse('2026-03-02T00:00:00+01:00');
const dayMs = 86_400_000;
const page = 200;
/** Another token of the tester, and those of two other operators. */
const [sameToken, secondToken, thirdToken] = ['same', 'second', 'third'].map((name) => `${name}-${'x'.repeat(24)}`) as [
  ...[string, string, string],
];

describe('an export of the orders of a period', () => {
  let operator: TestOperator;
  let gateway: TestGateway;
  let partners: TestPartner[];
  before(async () => {
    const others = `Tester:${sameToken},second:${secondToken},third:${thirdToken}`;
    operator = await TestOperator.start({ MARINA_OPERATOR_TOKENS: `tester:${operatorToken},${others}` });
    gateway = operator.gateway;
    partners = [await gateway.newPartner(), await gateway.newPartner(), await gateway.newPartner()];
    partners.sort((one, other) => (one.id < other.id ? -1 : 1));
  });
  // The test stores orders itself, which nobody placed and of which no event tells.
  after(() => operator.stop(['feed', 'objects', 'usage', 'exchange']));

  const partnerId = (index: number) => partners[index]?.id ?? '';
  const exported = async (request: JsonObject): Promise<Found[]> =>
    reported(operator, 'ExportOrders', 'orders', { from_day: '2026-03-02', ...request });
  const idsOf = (found: readonly Found[]) => found.map(({ order }) => order.id);
  const store = (...rows: StoredOrder[]) => gateway.database.writeAll([orders.insert(...rows)]);

  it('has each order of the period once, partner by partner, oldest first, and those at its first and last instant', async () => {
    const at = (ms: number, partner: number, number = 0) => filledOrder(partnerId(partner), monday + ms, number);
    // Made at the last instant of the day, with an id of the next one.
    const late = { ...at(dayMs + 3, 1), createdAt: monday + dayMs - 1, countedDay: '2026-03-02' };
    const inside = [at(0, 0), at(5, 0), at(5, 0, 1), at(dayMs - 1, 0), at(0, 1), late, at(dayMs - 1, 2)];
    const outside = [at(-1, 0), at(dayMs, 0), at(-1, 1), at(dayMs, 2), { ...at(4, 2), createdAt: monday - 1 }];
    await store(...inside, ...outside);
    assert.deepEqual(
      idsOf(await exported({})),
      inside.map(({ id }) => id),
    );
    const two = await exported({ from_day: '2026-03-01', to_day: '2026-03-03' });
    assert.equal(two.length, inside.length + outside.length);
    const [first] = await exported({ partner_id: partnerId(2) });
    assert.equal(first.partner_id, partnerId(2));
    assert.deepEqual([first.order.quantity, first.order.state], ['100', 'ORDER_STATE_FILLED']);
  });

  it('finds by state and symbol, and no order that differs in one of them', async () => {
    const at = Date.parse('2026-04-01T12:00:00+01:00');
    const wanted = { state: 'cancelled', symbol: 'SIM-ONE' } as const;
    await store(
      filledOrder(partnerId(0), at, 0, wanted),
      filledOrder(partnerId(0), at, 1, { ...wanted, symbol: 'SIM-ON' }),
      filledOrder(partnerId(0), at, 2, { ...wanted, state: 'expired' }),
      filledOrder(partnerId(1), at, 0, wanted),
      filledOrder(partnerId(1), at, 1),
    );
    const count = async (request: JsonObject) => (await exported({ from_day: '2026-04-01', ...request })).length;
    const state = 'ORDER_STATE_CANCELLED';
    assert.deepEqual(
      [
        await count({}),
        await count({ state }),
        await count({ symbol: 'sim-one' }),
        await count({ state, symbol: 'SIM-ONE' }),
      ],
      [5, 3, 3, 2],
    );
    assert.equal(await count({ state, symbol: 'SIM-ONE', partner_id: partnerId(1) }), 1);
    assert.equal(await count({ state, partner_id: partnerId(2) }), 0);
  });

  for (const more of [-1, 0, 1]) {
    it(`a report is whole when each of two partners has ${page + more} orders`, async () => {
      const day = `2026-05-${String(10 + more).padStart(2, '0')}`;
      const at = Date.parse(`${day}T09:00:00+01:00`);
      const rows = [0, 1].flatMap((partner) =>
        Array.from({ length: page + more }, (_, number) => filledOrder(partnerId(partner), at, number)),
      );
      await store(...rows);
      const found = idsOf(await exported({ from_day: day }));
      assert.deepEqual(
        found,
        rows.map(({ id }) => id),
      );
    });
  }

  it('has the same lines as CSV, with the values that the messages have', async () => {
    const { body: order } = await gateway.place(partners[0] as TestPartner, {
      symbol: 'SIM-REST',
      client_reference: '=1+1, "quoted"',
    });
    const today = lagosDay(Date.now());
    const lines = await csvOf(operator, 'ExportOrders', { from_day: today });
    assert.equal(lines.length, 1);
    const [columns] = await reportParts(operator, 'ExportOrders', { from_day: today, format: 'REPORT_FORMAT_CSV' });
    assert.match(
      columns.text,
      /^partner_id,key_id,id,state,account,symbol,side,type,time_in_force,quantity,price_kobo,/,
    );
    const line = lines[0] ?? '';
    assert.ok(line.startsWith(`${partnerId(0)},${partners[0]?.keyId},${order.id},pending,`), line);
    assert.ok(line.includes(`"'=1+1, ""quoted"""`), line);
    await gateway.rest('DELETE', `/v1/orders/${order.id}`, { key: partners[0]?.key ?? '' });
  });

  it('refuses days that are none, too many of them, and filters that cannot be, by their field', async () => {
    const cases: [JsonObject, status, string][] = [
      [{ from_day: '' }, status.INVALID_ARGUMENT, 'from_day'],
      [{ from_day: '2026-02-29' }, status.INVALID_ARGUMENT, 'from_day'],
      [{ to_day: '2026-02-30' }, status.INVALID_ARGUMENT, 'to_day'],
      [{ to_day: '2026-03-01' }, status.INVALID_ARGUMENT, 'to_day'],
      [{ to_day: '2026-04-02' }, status.INVALID_ARGUMENT, 'to_day'],
      [{ state: 99 }, status.INVALID_ARGUMENT, 'state'],
      [{ format: 9 }, status.INVALID_ARGUMENT, 'format'],
      [{ partner_id: `par_${'a'.repeat(20)}` }, status.NOT_FOUND, ''],
    ];
    for (const [request, code, field] of cases) {
      const error = await exported(request).catch((thrown) => thrown);
      assert.equal(error.code, code, JSON.stringify(request));
      if (field !== '')
        assert.deepEqual(
          operator.client.violations(error).map((one) => one.field),
          [field],
        );
    }
    assert.ok((await exported({ to_day: '2026-04-01' })).length > 0, '31 days');
  });

  it('lets go of everything when its caller cancels; one of an operator and two of all are under way at once', async () => {
    const at = Date.parse('2026-06-01T09:00:00+01:00');
    await store(...Array.from({ length: 6_000 }, (_, number) => filledOrder(partnerId(1), at, number)));
    const request = { from_day: '2026-06-01' };
    const path = 'marina.admin.v1.Reports.ExportOrders';
    const open = async (token: string) => {
      const ending = new AbortController();
      const stream = operator.client.stream(path, request, token, ending.signal);
      assert.equal(((await stream.next()).value as Found).orders.length, page);
      return { ending, stream };
    };
    const refused = (token: string, message: RegExp) =>
      assert.rejects(operator.client.stream(path, request, token).next(), (error: ServiceError) => {
        assert.equal(error.code, status.RESOURCE_EXHAUSTED);
        assert.match(error.details, message);
        return true;
      });
    const one = await open(operatorToken);
    await refused(operatorToken, /a report of yours is under way/);
    await refused(sameToken, /a report of yours is under way/);
    const two = await open(secondToken);
    await refused(thirdToken, /2 other reports are under way/);
    one.ending.abort();
    two.ending.abort();
    await assert.rejects(async () => {
      for (const { stream } of [one, two]) for await (const _ of stream);
    });
    await eventually(() => assertNothingInUse(gateway.app.opsPort));
    await eventually(async () => assert.equal((await exported(request)).length, 6_000));
  });

  it('is in the audit, with who asked for it and what for', async () => {
    for (const objects of ['orders', 'allocations', 'withdrawals']) {
      const call = `Export${objects.replace(/^./, (letter) => letter.toUpperCase())}`;
      await reported(operator, call, objects, { from_day: '2026-03-02', partner_id: partnerId(1) });
      const { entries } = await operator.call('Audit.ListEntries', { action: `Reports.${call}`, limit: 1 });
      assert.deepEqual([entries[0].operator, entries[0].partner_id], ['tester', partnerId(1)]);
      assert.deepEqual(JSON.parse(entries[0].detail).asked, { from_day: '2026-03-02', partner_id: partnerId(1) });
    }
  });

  it('has allocations and withdrawals in the same way', async () => {
    const partner = partners[2] as TestPartner;
    await gateway.fund(partner, 10_000n);
    const { body: allocation } = await gateway.allocate(partner, { amount_kobo: 700 });
    const { body: withdrawal } = await gateway.withdraw(partner, { amount_kobo: 300 });
    const request = { from_day: lagosDay(Date.now()) };
    const [allocated, ...none] = await reported(operator, 'ExportAllocations', 'allocations', request);
    assert.deepEqual(
      [allocated.partner_id, allocated.key_id, allocated.allocation.id, allocated.allocation.amount_kobo, none],
      [partner.id, partner.keyId, allocation.id, '700', []],
    );
    const [withdrawn] = await reported(operator, 'ExportWithdrawals', 'withdrawals', request);
    const refused = { ...request, state: 'WITHDRAWAL_STATE_REFUSED' };
    assert.deepEqual(await reported(operator, 'ExportWithdrawals', 'withdrawals', refused), []);
    assert.deepEqual([withdrawn.withdrawal.id, withdrawn.withdrawal.amount_kobo], [withdrawal.id, '300']);
    assert.deepEqual(
      await reported(operator, 'ExportAllocations', 'allocations', { ...request, state: 'ALLOCATION_STATE_REFUSED' }),
      [],
    );
    assert.match((await csvOf(operator, 'ExportAllocations', request)).join(), /,booked,.*,700,/);
    assert.match((await csvOf(operator, 'ExportWithdrawals', request)).join(), /,300,wallet,/);
  });
});
