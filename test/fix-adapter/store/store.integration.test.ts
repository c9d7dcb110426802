import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { setRestored, settleFinding, settleOrder } from '../../../src/fix-adapter/store/operator-writes.ts';
import { setNumbers } from '../../../src/fix-adapter/store/set-numbers.ts';
import { FixStore, type Kept, LeaseLost } from '../../../src/fix-adapter/store/store.ts';
import type { FixOrder, FixReport } from '../../../src/fix-adapter/store/table.ts';
import type { Database } from '../../../src/gateway/store/database.ts';
import { statement } from '../../../src/gateway/store/statement.ts';
import { openFixDatabase } from '../../support/fix/adapter.ts';
import { fixOrder } from '../../support/fix-order.ts';

describe("the record of an adapter's session", () => {
  let opened: Awaited<ReturnType<typeof openFixDatabase>>;
  let database: Database;
  let fence = 0n;
  before(async () => {
    opened = await openFixDatabase(4);
    ({ database } = opened);
    await database.write(
      statement(
        "INSERT INTO leases (name, holder, fence, expires_at) VALUES ('s', 'a', 0, NOW(3)), ('fix-session', 'a', 0, NOW(3))",
      ),
    );
  });
  after(() => opened.close());

  /** A record of the next holder of the lease. */
  async function next(): Promise<FixStore> {
    fence += 1n;
    await database.write(statement("UPDATE leases SET fence = ? WHERE name = 's'", fence));
    const store = new FixStore(database, { name: 's', fence });
    await store.take();
    return store;
  }

  let count = 0;
  function row(): FixOrder {
    count += 1;
    const market = { type: 'market', priceKobo: null } as const;
    return fixOrder({ id: `ord_${count}`, quantity: 10n, ...market, startedAt: 0, number: 0n });
  }
  const kept = (order: FixOrder) => ({ kind: 'order', row: order }) as const;
  const nextOut = async (store: FixStore) => Number((await store.numbers()).nextOut);

  /** Accepts an order. */
  function accept(store: FixStore, id: string, execId: string, nextIn: number) {
    const subjects = { orderIds: [id], numbers: [] };
    return store.received(nextIn, false, subjects, ({ orders, executed }) => {
      const [order] = orders;
      const isNew = order !== undefined && !executed.get(id)?.has(execId);
      const received: Omit<FixReport, 'number'> = {
        ...{ orderId: id, exchangeOrderId: 'X', kind: 'accepted', at: 0, quantity: null, priceKobo: null },
        ...{ rejectReason: null, execId, counted: null, exchangeReason: null, exchangeText: null },
      };
      const changes = {
        orders: isNew ? [{ before: order, after: { ...order, state: 'open' as const } }] : [],
        cancels: [],
        reports: isNew ? [received] : [],
        findings: [],
        tradeChanges: [],
        passedOver: false,
      };
      return { changes, result: undefined };
    });
  }

  it('is written by the last holder of the lease alone', async () => {
    const former = await next();
    const one = row();
    await former.sending([{ number: await nextOut(former), kept: kept(one) }], (await nextOut(former)) + 1, 1);
    const latter = await next();
    const two = row();
    const at = await nextOut(latter);
    await assert.rejects(former.sending([{ number: at, kept: kept(two) }], at + 1, 1), LeaseLost);
    await assert.rejects(former.unsent([one.id], []), LeaseLost);
    await latter.sending([{ number: at, kept: kept(two) }], at + 1, 1);
    assert.equal((await latter.order(two.id))?.number, BigInt(at));
    assert.equal(await nextOut(latter), at + 1);
  });

  it('has the next number of the exchange with each message of ours, and goes back to no lower one', async () => {
    const store = await next();
    const expected = async () => Number((await store.numbers()).nextIn);
    const [at, from] = [await nextOut(store), await expected()];
    await store.sending([{ number: at, kept: kept(row()) }], at + 1, from + 3);
    assert.equal(await expected(), from + 3);
    await store.sending([{ number: at + 1, kept: kept(row()) }], at + 2, from + 1);
    assert.equal(await expected(), from + 3);
  });

  it('cannot be taken back by a former holder', async () => {
    await next();
    const former = new FixStore(database, { name: 's', fence: fence - 1n });
    await assert.rejects(former.take(), LeaseLost);
  });

  it('refuses an order that it has, and stores those that came with it', async () => {
    const store = await next();
    const [one, two] = [row(), row()];
    const at = await nextOut(store);
    assert.deepEqual(await store.sending([{ number: at, kept: kept(one) }], at + 1, 1), new Set());
    const both = [
      { number: at + 1, kept: kept({ ...one, quantity: 99n }) },
      { number: at + 2, kept: kept(two) },
    ];
    assert.deepEqual(await store.sending(both, at + 3, 1), new Set([one.id]));
    assert.equal((await store.order(one.id))?.quantity, 10n);
    assert.equal((await store.order(two.id))?.number, BigInt(at + 2));
    assert.equal(await nextOut(store), at + 3);
  });

  for (const known of [[0], [1], [2], [0, 1], [0, 2], [1, 2], [0, 1, 2]]) {
    it(`the record stores all else of a batch if it has the orders ${known.map((at) => at + 1).join(' and ')} of three`, async () => {
      const store = await next();
      const [orders, asked] = [[row(), row(), row()], row()];
      const had = [asked, ...orders.filter((_, at) => known.includes(at))];
      const at = await nextOut(store);
      await store.sending(
        had.map((order, index) => ({ number: at + index, kept: kept(order) })),
        at + had.length,
        1,
      );
      const from = at + had.length;
      const cancel = { id: `${asked.id}.c1`, orderId: asked.id, requestedAt: 0, startedAt: 0, number: 0n };
      const cancelled = {
        kind: 'cancel',
        row: { ...cancel, state: 'sending', exchangeReason: null, exchangeText: null },
      };
      const question = { kind: 'question', orderId: asked.id } as const;
      const batch = [...orders.map((order) => kept({ ...order, quantity: 99n })), cancelled as Kept, question];
      const listedBefore = (await store.submissions(0n, 1_000)).length;
      const refused = await store.sending(
        batch.map((each, index) => ({ number: from + index, kept: each })),
        from + batch.length,
        1,
      );
      assert.deepEqual([...refused].sort(), known.map((each) => orders[each]?.id).sort());
      for (const [index, { id }] of orders.entries()) {
        const stored = await store.order(id);
        if (known.includes(index)) assert.equal(stored?.quantity, 10n, 'as it was stored before');
        else assert.deepEqual([stored?.quantity, stored?.number], [99n, BigInt(from + index)]);
      }
      assert.deepEqual(
        (await store.cancelsOf(asked.id)).map(({ id, number }) => [id, number]),
        [[cancel.id, BigInt(from + 3)]],
      );
      assert.equal((await store.order(asked.id))?.asked, true);
      assert.equal((await store.submissions(0n, 1_000)).length, listedBefore + 3 - known.length);
      assert.equal(await nextOut(store), from + batch.length);
    });
  }

  it('numbers reports without a gap and once, over processes and whatever was committed without an answer', async () => {
    const store = await next();
    const [one, two] = [row(), row()];
    const at = await nextOut(store);
    await store.sending(
      [one, two].map((order, index) => ({ number: at + index, kept: kept(order) })),
      at + 2,
      1,
    );
    const first = await accept(store, one.id, 'e1', 5);
    // As a write of this process would that was committed after its answer was lost.
    await database.write(statement('UPDATE fix_numbers SET last_report = last_report + 1, version = version + 1'));
    const second = await accept(store, two.id, 'e2', 6);
    assert.equal((second.reports[0]?.number ?? 0n) - (first.reports[0]?.number ?? 0n), 2n);
    const again = await accept(await next(), one.id, 'e1', 7);
    assert.deepEqual(again.reports, []);
  });

  it('lists an order from when it is stored, once, and none that was refused unsent', async () => {
    const store = await next();
    const [one, two, three] = [row(), row(), row()];
    const at = await nextOut(store);
    await store.sending(
      [one, two].map((order, index) => ({ number: at + index, kept: kept(order) })),
      at + 2,
      1,
    );
    await store.refuse(three);
    await accept(store, two.id, 'e3', 8);
    await store.unsent([one.id], []);
    const listed = await store.submissions(0n, 1_000);
    const ids = [one.id, two.id, three.id];
    assert.deepEqual(
      listed.filter(({ clientId }) => ids.includes(clientId)).map(({ clientId, note }) => [clientId, String(note)]),
      [
        [one.id, String(one.note)],
        [two.id, String(two.note)],
      ],
    );
    assert.deepEqual(
      listed.map(({ number }) => number),
      listed.map((_, at) => BigInt(at + 1)),
    );
    assert.equal((await store.order(one.id))?.state, 'unsent');
  });

  it('is said to be restored from a backup, and released, by an operator, while an adapter runs', async () => {
    const store = await next();
    const at = await nextOut(store);
    await store.sending([{ number: at, kept: kept(row()) }], at + 1, 1);
    assert.ok(await setRestored(database, true));
    assert.ok(!(await setRestored(database, true)));
    await store.sending([{ number: at + 1, kept: kept(row()) }], at + 2, 1);
    assert.ok((await store.numbers()).restored);
    assert.ok(await setRestored(database, false));
    assert.ok(!(await store.numbers()).restored);
  });

  it('notes a finding once for a key, and counts it until an operator has settled it', async () => {
    const store = await next();
    const one = row();
    const at = await nextOut(store);
    await store.sending([{ number: at, kept: kept(one) }], at + 1, 1);
    const before = (await store.counts()).findings;
    const finding = { what: 'absence_unproven', at: 1, orderId: one.id, execId: '', detail: '', facts: null } as const;
    assert.ok(await store.note({ ...finding, bytes: null }, 'k'));
    assert.ok(!(await store.note({ ...finding, bytes: null }, 'k')));
    assert.equal((await store.counts()).findings, before + 1);
    const [found] = await database.read(statement('SELECT MAX(id) AS id FROM fix_findings'));
    const settlement = { findingId: BigInt(String(found?.id)), at: 2, operator: 'ada', note: 'the desk has it' };
    await settleFinding(database, settlement);
    assert.equal((await store.counts()).findings, before);
    await assert.rejects(settleFinding(database, settlement), /ada has settled/);
    await assert.rejects(settleFinding(database, { ...settlement, findingId: 999n }), /there is no finding/);
  });

  it('lists orders of an ended day that are still open, those of the day that ended last first', async () => {
    const store = await next();
    const ofDays = [1, 3, 2].map((day) => ({ ...row(), receivedAt: day * 86_400_000 }));
    const at = await nextOut(store);
    const rows = ofDays.map((order, index) => ({ number: at + index, kept: kept(order) }));
    await store.sending(rows, at + rows.length, 1);
    for (const [index, { id }] of ofDays.entries()) await accept(store, id, `new-${id}`, 10 + index);
    const days = (orders: readonly FixOrder[]) => orders.map(({ receivedAt }) => receivedAt / 86_400_000);
    assert.deepEqual(days(await store.notEnded(4 * 86_400_000, 2)), [3, 2]);
    assert.deepEqual(days(await store.notEnded(3 * 86_400_000, 2)), [2, 1]);
  });

  it('an order of an ended day is listed once a session day: again on the next one, and whatever else was found of it', async () => {
    const store = await next();
    const dayStart = 9 * 86_400_000;
    const kinds = { plain: {}, gtc: { timeInForce: 'gtc' }, found: {}, before: {}, other: {}, settled: {} } as const;
    const rows = Object.values(kinds).map((more) => ({ ...row(), receivedAt: dayStart - 1, ...more }));
    const today = { ...row(), receivedAt: dayStart };
    const at = await nextOut(store);
    const all = [...rows, today];
    const sent = all.map((order, index) => ({ number: at + index, kept: kept(order) }));
    await store.sending(sent, at + all.length, 1);
    for (const [index, { id }] of all.entries()) await accept(store, id, `listed-${id}`, 40 + index);
    const [, , found, before, other, settled] = rows.map(({ id }) => id);
    const about = { execId: '', detail: '', facts: null, bytes: null };
    for (const [orderId = '', what, when] of [
      [found, 'not_ended', dayStart],
      [before, 'not_ended', dayStart - 1],
      [other, 'restated', dayStart],
    ] as const) {
      await store.note({ ...about, orderId, what, at: when }, `key-${orderId}`);
    }
    await settleOrder(database, settled ?? '', { at: 2, operator: 'ada', note: 'the desk says so' });
    const listed = async (day: number) => {
      const ids = (await store.notEnded(day, 1_000)).map(({ id }) => id);
      return all.map(({ id }) => id).filter((id) => ids.includes(id));
    };
    const [plain] = rows.map(({ id }) => id);
    assert.deepEqual(await listed(dayStart), [plain, before, other]);
    assert.deepEqual(await listed(dayStart + 1), [plain, found, before, other, today.id]);
  });

  it('the orders that must be asked about are counted in both states, and those that were settled are not', async () => {
    const store = await next();
    const counts = async () => {
      const { inDoubt, open, unasked } = await store.counts();
      return [inDoubt, open, unasked];
    };
    const [doubted, live, settled] = [row(), row(), row()];
    const at = await nextOut(store);
    const none = { orders: [], cancels: [], reports: [], tradeChanges: [], findings: [], passedOver: false };
    const nothingMore = { changes: none, result: undefined };
    const [doubtsBefore = 0, openBefore = 0] = await counts();
    await store.sending(
      [doubted, live, settled].map((order, index) => ({ number: at + index, kept: kept(order) })),
      at + 3,
      1,
    );
    await accept(store, live.id, `live-${live.id}`, 60);
    await store.received(61, true, { orderIds: [], numbers: [] }, () => nothingMore);
    assert.deepEqual(await counts(), [doubtsBefore + 2, openBefore + 1, doubtsBefore + openBefore + 3]);
    await settleOrder(database, settled.id, { at: 2, operator: 'ada', note: 'the desk says so' });
    // Settled orders are marked too.
    await store.received(62, true, { orderIds: [], numbers: [] }, () => nothingMore);
    assert.deepEqual(await counts(), [doubtsBefore + 1, openBefore + 1, doubtsBefore + openBefore + 2]);
    const asked = (await store.mustAsk(1_000)).map(({ id }) => id);
    assert.deepEqual(
      [doubted, live, settled].map(({ id }) => asked.includes(id)),
      [true, true, false],
    );
    const paged: string[] = [];
    for (let page = await store.mustAsk(2); page.length > 0; page = await store.mustAsk(2, page.at(-1))) {
      paged.push(...page.map(({ id }) => id));
    }
    assert.deepEqual(paged, asked, 'pages have the same orders, each once');
  });

  it('asks no more about an order that an operator has settled, and settles its findings', async () => {
    const store = await next();
    const one = row();
    const at = await nextOut(store);
    await store.sending([{ number: at, kept: kept(one) }], at + 1, 1);
    const finding = { what: 'absence_unproven', at: 1, orderId: one.id, execId: '', detail: '', facts: null } as const;
    await store.note({ ...finding, bytes: null }, 'k');
    const before = await store.counts();
    await settleOrder(database, one.id, { at: 2, operator: 'ada', note: 'the desk does not have it' });
    const after = await store.counts();
    assert.deepEqual([after.findings, after.inDoubt], [before.findings - 1, before.inDoubt - 1]);
    assert.ok((await store.inDoubt(1_000)).every(({ id }) => id !== one.id));
    await accept(store, one.id, 'e9', 30);
    assert.equal((await store.order(one.id))?.state, 'open');
    await assert.rejects(settleOrder(database, 'ord_none', { at: 2, operator: 'ada', note: '' }), /there is no order/);
  });

  it('proves an order absent only while nothing has become known of it', async () => {
    const store = await next();
    const [one, two, three] = [row(), row(), row()];
    const at = await nextOut(store);
    await store.sending(
      [one, two, three].map((order, index) => ({ number: at + index, kept: kept(order) })),
      at + 3,
      1,
    );
    assert.ok(await store.absent(one.id));
    assert.ok(!(await store.absent(one.id)));
    const none = { orders: [], cancels: [], reports: [], tradeChanges: [], findings: [], passedOver: false };
    await store.received(20, false, { orderIds: [two.id], numbers: [] }, ({ orders }) => ({
      changes: { ...none, orders: orders.map((order) => ({ before: order, after: { ...order, acknowledged: true } })) },
      result: undefined,
    }));
    assert.ok(!(await store.absent(two.id)));
    await store.received(22, true, { orderIds: [], numbers: [] }, () => ({ changes: none, result: undefined }));
    assert.ok(!(await store.absent(three.id)));
    const asked = (await store.mustAsk(1_000)).map(({ id }) => id);
    assert.ok(asked.includes(two.id) && asked.includes(three.id) && !asked.includes(one.id));
  });

  it('has its numbers set by an operator, while nobody has the session', async () => {
    const store = await next();
    const at = await nextOut(store);
    const by = { at: 5, operator: 'ada', reason: 'agreed with the desk' };
    const former = await setNumbers(database, { nextOut: 70, nextIn: 80 }, by);
    assert.equal(former.nextOut, at);
    assert.deepEqual([await nextOut(store), Number((await store.numbers()).nextIn)], [70, 80]);
    const one = row();
    await store.sending([{ number: 70, kept: kept(one) }], 71, 1);
    assert.equal((await store.order(one.id))?.number, 70n);
    await database.write(
      statement("UPDATE leases SET expires_at = NOW(3) + INTERVAL 4 SECOND WHERE name = 'fix-session'"),
    );
    await assert.rejects(setNumbers(database, { nextOut: 1, nextIn: 1 }), /stop all of them first/);
  });
});
