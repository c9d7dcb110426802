/** The objects in an account's export, over rows that the test holds. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { firstIdAt } from '../../../../../src/gateway/edge/ids.ts';
import { objectLines } from '../../../../../src/gateway/operators/calls/account-export/objects.ts';
import { daysOf } from '../../../../../src/gateway/operators/calls/reports/days.ts';
import type { SqlRow } from '../../../../../src/gateway/store/statement.ts';
import { allocations } from '../../../../../src/gateway/trading/allocations/table.ts';
import { documents } from '../../../../../src/gateway/trading/applications/documents/store.ts';
import { applications } from '../../../../../src/gateway/trading/applications/table.ts';
import { orderSteps, orders } from '../../../../../src/gateway/trading/orders/table.ts';
import { objectSteps } from '../../../../../src/gateway/trading/submission/table.ts';
import { transfers } from '../../../../../src/gateway/trading/wallet/store.ts';
import { withdrawals } from '../../../../../src/gateway/trading/withdrawals/table.ts';
import { RowsDatabase } from '../../../../support/rows-database.ts';
import { anyRow } from '../../../../support/stored-row.ts';

const days = daysOf('2026-03-03', '2026-03-04');
const { from, until } = days;
const rowOf = (table: unknown, values: object): SqlRow => anyRow(table as never, values as never);
const own = { partnerId: 'par_a', account: 'A1', keyId: 'key_a' };
const order = (id: string, createdAt: number, more: object = {}) =>
  rowOf(orders, { ...own, id, createdAt, updatedAt: createdAt, ...more });
const step = (orderId: string, sequence: number, at: number, more: object = {}) =>
  rowOf(orderSteps, { partnerId: 'par_a', orderId, sequence, at, kind: 'report', state: 'pending', ...more });

async function exported(tables: Readonly<Record<string, readonly SqlRow[]>>) {
  const nothing = { orders: [], applications: [], allocations: [], withdrawals: [], order_steps: [], object_steps: [] };
  const database = new RowsDatabase({ ...nothing, documents: [], wallet_transfers: [], ...tables });
  const lines: Readonly<Record<string, unknown>>[] = [];
  for await (const page of objectLines(database as never, 'par_a', 'A1', days)) lines.push(...page);
  return lines;
}

const named = (lines: readonly Readonly<Record<string, unknown>>[]) =>
  lines.map(
    (line) => `${line.line} ${line.line === 'object' ? line.id : `${line.object_id} ${line.sequence ?? line.type}`}`,
  );

describe("the objects in an account's export", () => {
  it('an object is exported if it was created or changed on the days, or if a step of it is on them', async () => {
    const early = from - 90_000_000;
    for (const [name, row, steps, isShown] of [
      ['created on the first instant', order('ord_1', from), [], true],
      ['created right before', order('ord_1', from - 1), [], false],
      ['created on the last instant', order('ord_1', until - 1), [], true],
      ['created right after', order('ord_1', until), [], false],
      ['changed on the days', order('ord_1', early, { updatedAt: from }), [], true],
      ['changed before', order('ord_1', early, { updatedAt: from - 1 }), [], false],
      ['a step on the days', order('ord_1', early, { steps: 1 }), [step('ord_1', 1, from)], true],
      ['a step before the days', order('ord_1', early, { steps: 1 }), [step('ord_1', 1, from - 1)], false],
      [
        'a step of the days before a later one',
        order('ord_1', early, { steps: 2 }),
        [step('ord_1', 1, until - 1), step('ord_1', 2, until)],
        true,
      ],
      [
        'a step with another clock',
        order('ord_1', early, { steps: 2 }),
        [step('ord_1', 1, from), step('ord_1', 2, from - 60_000)],
        true,
      ],
      [
        'a step of another partner',
        order('ord_1', early, { steps: 1 }),
        [step('ord_1', 1, from, { partnerId: 'par_b' })],
        false,
      ],
      ['another account', order('ord_1', from, { account: 'A2' }), [], false],
      ['another partner', order('ord_1', from, { partnerId: 'par_b' }), [], false],
    ] as const) {
      const lines = await exported({ orders: [row], order_steps: steps });
      assert.equal(named(lines).includes('object ord_1'), isShown, name);
    }
  });

  it('an object comes with the steps of the days alone, however many there are, and first of all', async () => {
    for (const count of [1, 99, 100, 101, 250]) {
      const rows = Array.from({ length: count }, (_, at) => step('ord_1', at + 1, from + at));
      const outside = step('ord_1', count + 1, until);
      const lines = await exported({
        orders: [order('ord_1', from - 1, { updatedAt: from, steps: count + 1 })],
        order_steps: [...rows, outside],
      });
      assert.deepEqual(
        named(lines),
        ['object ord_1', ...rows.map(({ sequence }) => `step ord_1 ${sequence}`)],
        `${count}`,
      );
    }
    const late = Array.from({ length: 101 }, (_, at) => step('ord_1', at + 1, at === 100 ? from : from - 1));
    const lines = await exported({
      orders: [order('ord_1', 1, { updatedAt: from - 1, steps: 101 })],
      order_steps: late,
    });
    assert.deepEqual(
      named(lines),
      ['object ord_1', 'step ord_1 101'],
      'the first step of the days is on the second page',
    );
  });

  it('all objects of the account are exported, kind by kind and oldest first, many at a time', async () => {
    const ids = Array.from({ length: 401 }, (_, at) => firstIdAt('ord', from + at));
    const lines = await exported({ orders: ids.toReversed().map((id) => order(id, from)) });
    assert.deepEqual(
      lines.map(({ id }) => id),
      ids,
    );
    const kinds = await exported({
      orders: [order('ord_1', from)],
      applications: [rowOf(applications, { ...own, id: 'app_1', createdAt: from, updatedAt: from })],
      allocations: [rowOf(allocations, { ...own, id: 'alc_1', createdAt: from, updatedAt: from })],
      withdrawals: [rowOf(withdrawals, { ...own, id: 'wdr_1', createdAt: from, updatedAt: from })],
    });
    assert.deepEqual(named(kinds), ['object ord_1', 'object app_1', 'object alc_1', 'object wdr_1']);
    assert.deepEqual(
      kinds.map(({ object, partner_id: partnerId, key_id: keyId }) => `${object} ${partnerId} ${keyId}`),
      ['order', 'application', 'allocation', 'withdrawal'].map((kind) => `${kind} par_a key_a`),
    );
  });

  it('an object whose id was made long after the days is not read', async () => {
    const lines = await exported({
      orders: [order(firstIdAt('ord', until + 60_000), from), order(firstIdAt('ord', until + 59_999), from)],
    });
    assert.equal(lines.length, 1);
  });

  it('an object tells how many of its first steps are in the archive alone', async () => {
    for (const [sequences, steps, archived] of [
      [[1, 2], 2, 0],
      [[3, 4], 4, 2],
      [[], 4, 4],
    ] as const) {
      const [line] = await exported({
        orders: [order('ord_1', from, { steps })],
        order_steps: sequences.map((sequence) => step('ord_1', sequence, from)),
      });
      assert.equal(line?.archived_steps, archived);
    }
  });

  it('an order is as its partner sees it, and a step as it is stored', async () => {
    const [line, first] = await exported({
      orders: [order('ord_1', from, { symbol: 'SIM', quantity: 7n, state: 'filled' })],
      order_steps: [step('ord_1', 1, from, { quantity: 7n, priceKobo: 5n, detail: 'd' })],
    });
    assert.deepEqual(
      [line?.symbol, line?.quantity, line?.state, line?.created_at],
      ['SIM', '7', 'filled', new Date(from).toISOString()],
    );
    assert.ok(!('request_digest' in (line ?? {})), 'only what partners see');
    assert.deepEqual([first?.object_id, first?.quantity, first?.price_kobo, first?.detail], ['ord_1', '7', '5', 'd']);
    assert.ok(!('order_id' in (first ?? {})));
  });

  it('an application comes with the documents that were there on the days, and with its own steps', async () => {
    const document = (type: string, createdAt: number, updatedAt: number, more: object = {}) =>
      rowOf(documents, {
        partnerId: 'par_a',
        applicationId: 'app_1',
        type,
        state: 'delivered',
        attempt: 2,
        createdAt,
        updatedAt,
        ...more,
      });
    const lines = await exported({
      applications: [rowOf(applications, { ...own, id: 'app_1', createdAt: 1, updatedAt: from, steps: 1 })],
      object_steps: [rowOf(objectSteps, { partnerId: 'par_a', objectId: 'app_1', sequence: 1, at: from })],
      documents: [
        document('a', from - 9, from - 1),
        document('b', from - 9, from),
        document('c', until - 1, until),
        document('d', until, until),
        document('e', from, from, { applicationId: 'app_2' }),
      ],
    });
    assert.deepEqual(named(lines), ['object app_1', 'document app_1 b', 'document app_1 c', 'step app_1 1']);
    assert.deepEqual([lines[1]?.sends, lines[1]?.created_at], [2, new Date(from - 9).toISOString()]);
  });

  it('an allocation or a withdrawal comes with its entries of the ledger of the days', async () => {
    const entry = (sequence: number, objectId: string, type: string, createdAt: number) =>
      rowOf(transfers, {
        ...{ partnerId: 'par_a', sequence: BigInt(sequence), id: `wtr_${sequence}`, type, amountKobo: 5n },
        ...{ allocationId: objectId, createdAt },
      });
    const lines = await exported({
      allocations: [rowOf(allocations, { ...own, id: 'alc_1', createdAt: 1, updatedAt: until })],
      withdrawals: [rowOf(withdrawals, { ...own, id: 'wdr_1', createdAt: from, updatedAt: from })],
      wallet_transfers: [
        entry(1, 'alc_1', 'reserve', from - 1),
        entry(2, 'alc_1', 'reserve', from),
        entry(3, 'alc_1', 'reserve', until),
        entry(4, 'wdr_1', 'withdrawal', until - 1),
      ],
    });
    assert.deepEqual(named(lines), ['object alc_1', 'ledger alc_1 2', 'object wdr_1', 'ledger wdr_1 4']);
    const { object_id: objectId, sequence, id, at, type, amount_kobo: amount } = lines[1] ?? {};
    assert.deepEqual(
      [objectId, sequence, id, at, type, amount],
      ['alc_1', '2', 'wtr_2', new Date(from).toISOString(), 'reserve', '5'],
    );
  });

  it('each object comes with what is its own, and once, however many steps it has', async () => {
    const entry = (sequence: number, objectId: string) =>
      rowOf(transfers, {
        ...{ partnerId: 'par_a', sequence: BigInt(sequence), id: `wtr_${sequence}`, type: 'reserve', amountKobo: 5n },
        ...{ allocationId: objectId, createdAt: from },
      });
    const stepOf = (objectId: string, sequence: number) =>
      rowOf(objectSteps, { partnerId: 'par_a', objectId, sequence, at: from });
    const ids = ['alc_1', 'alc_2', 'alc_3'];
    const lines = await exported({
      allocations: ids.map((id) => rowOf(allocations, { ...own, id, createdAt: from, updatedAt: from })),
      wallet_transfers: ids.map((id, at) => entry(at + 1, id)),
      object_steps: [
        stepOf('alc_1', 1),
        ...Array.from({ length: 101 }, (_, at) => stepOf('alc_2', at + 1)),
        stepOf('alc_3', 1),
      ],
    });
    const steps = Array.from({ length: 101 }, (_, at) => `step alc_2 ${at + 1}`);
    assert.deepEqual(named(lines), [
      ...['object alc_1', 'ledger alc_1 1', 'step alc_1 1', 'object alc_2', 'ledger alc_2 2', ...steps],
      ...['object alc_3', 'ledger alc_3 3', 'step alc_3 1'],
    ]);
  });
});
