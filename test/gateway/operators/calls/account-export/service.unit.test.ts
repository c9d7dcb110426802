/** The export of an account, over rows that the test holds. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { create } from '@bufbuild/protobuf';
import { status } from '@grpc/grpc-js';
import { accountExportCalls } from '../../../../../src/gateway/operators/calls/account-export/service.ts';
import { oneAuditExport } from '../../../../../src/gateway/operators/calls/audit-export.ts';
import { daysOf } from '../../../../../src/gateway/operators/calls/reports/days.ts';
import { accounts } from '../../../../../src/gateway/trading/accounts/store.ts';
import { orderSteps, orders } from '../../../../../src/gateway/trading/orders/table.ts';
import { ExportAccountRequestSchema } from '../../../../../src/gen/marina/admin/v1/audit_pb.ts';
import { auditRows, firstSecret, sealsUnder } from '../../../../support/audit-rows.ts';
import { RowsDatabase } from '../../../../support/rows-database.ts';
import { anyRow } from '../../../../support/stored-row.ts';

const seals = sealsUnder(firstSecret);
const { from, until } = daysOf('2026-03-03');
const order = (at: number) =>
  anyRow(orders, {
    ...{ partnerId: 'par_a', account: 'A1', steps: 3 },
    id: `ord_${1_000 + at}`,
    createdAt: from,
    updatedAt: from,
  });
const step = (at: number) =>
  anyRow(orderSteps, { partnerId: 'par_a', orderId: `ord_${1_000 + at}`, sequence: 3, at: from });

/** An account of one partner with so many orders, each with two steps in the archive alone, and one with a step in the table. */
function open({ count = 1, unsealed = 1, linkedAt = from - 5, isLinked = true } = {}) {
  const change = (id: number) => ({
    at: id === 1 ? from - 2 : from + id,
    subject: 'A1',
    partnerId: 'par_a',
    action: 'CustomerAccounts.GetBalance',
  });
  const { database: audit } = auditRows([2, 1], seals, { unsealed, change });
  const owner = anyRow(accounts, { partnerId: 'par_a', account: 'A1', createdAt: linkedAt });
  const all = Array.from({ length: count }, (_, at) => at);
  const database = new RowsDatabase({
    ...audit.tables,
    ...{ accounts: isLinked ? [owner] : [], orders: all.map(order), order_steps: all.map(step), object_steps: [] },
    ...{ applications: [], allocations: [], withdrawals: [], documents: [], wallet_transfers: [], stops: [] },
    ...{ proposals: [], bulk_cancels: [], bulk_cancel_orders: [] },
  });
  const operators: string[] = [];
  let checks = 0;
  const underWay = {
    bounded: (operator: string, parts: (checkTime: () => void) => AsyncIterable<object>) => {
      operators.push(operator);
      return parts(() => {
        checks += 1;
      });
    },
  };
  const calls = accountExportCalls(
    { database, clock: { now: () => until }, seals } as never,
    underWay as never,
    oneAuditExport(),
  );
  const begin = (request: object, signal = new AbortController().signal) =>
    calls.exportAccount(
      create(ExportAccountRequestSchema, { account: 'A1', fromDay: '2026-03-03', ...request }),
      { operator: 'ada' } as never,
      signal,
    ) as AsyncGenerator<Readonly<Record<string, unknown>>>;
  return { begin, operators, checks: () => checks };
}

async function exported(opened: ReturnType<typeof open>, request: object = {}) {
  const texts: string[] = [];
  let end: Readonly<Record<string, unknown>> | undefined;
  for await (const part of opened.begin(request)) {
    if ('text' in part) texts.push(String(part.text));
    else end = part;
  }
  const lines = texts
    .join('')
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line));
  return { texts, lines: lines.map(({ line }) => line as string), end };
}

describe("an account's export", () => {
  it('an export has the partners, the objects and the entries of the days, in this order, and ends with what it has', async () => {
    const opened = open();
    const { lines, end } = await exported(opened);
    assert.deepEqual(lines, ['partner', 'object', 'step', 'entry', 'entry', 'entry']);
    const { counts, unsealed, archivedSteps, complete, lastBatch, lastId, faults } = end ?? {};
    assert.deepEqual(
      (counts as { kind: string; count: number }[]).map(({ kind, count }) => `${kind} ${count}`),
      ['partner 1', 'object 1', 'step 1', 'entry 3'],
    );
    assert.deepEqual([unsealed, archivedSteps, complete, lastBatch, lastId, faults], [1, 2, true, 2n, 3n, []]);
    assert.deepEqual(opened.operators, ['ada']);
    assert.ok(opened.checks() > 3, 'its time is checked at each page');
  });

  it('a link that began after the days is not shown', async () => {
    assert.equal((await exported(open({ linkedAt: until }))).lines.includes('partner'), false);
    assert.equal((await exported(open({ linkedAt: until - 1 }))).lines.includes('partner'), true);
  });

  it('a long export comes in several messages of about two hundred lines, and loses none', async () => {
    const { texts, lines, end } = await exported(open({ count: 250, unsealed: 0 }));
    assert.ok(texts.length >= 2 && texts.length <= 4, `${texts.length} messages`);
    assert.equal(lines.filter((line) => line === 'object').length, 250);
    assert.equal(end?.archivedSteps, 500);
  });

  it('an account that nobody had, and days that are none or too many, are refused', async () => {
    const unknown = open({ isLinked: false, count: 0 });
    await assert.rejects(exported(unknown), { status: status.NOT_FOUND });
    for (const [request, param] of [
      [{ fromDay: 'x' }, 'from_day'],
      [{ fromDay: '2026-03-03', toDay: '2027-03-04' }, 'to_day'],
    ] as const) {
      await assert.rejects(exported(open(), request), { param });
    }
    assert.equal((await exported(open(), { toDay: '2027-03-03' })).end?.complete, true, 'a year and a day');
  });

  it('an export that is left ends without a last message, and the next one may begin', async () => {
    const opened = open({ count: 250 });
    const stop = new AbortController();
    const parts = opened.begin({}, stop.signal);
    await parts.next();
    await assert.rejects(exported(opened), { status: status.RESOURCE_EXHAUSTED });
    stop.abort();
    assert.deepEqual(await parts.next(), { value: undefined, done: true });
    assert.equal((await exported(opened)).end?.complete, true);
  });
});
