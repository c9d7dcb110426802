import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import { createPartner } from '../../src/admin/provision.ts';
import { type Database, openDatabase } from '../../src/db/database.ts';
import { migrate } from '../../src/db/migrate.ts';
import { statement, toBigInt } from '../../src/db/statement.ts';
import {
  findOrder,
  insertOrder,
  type StoredOrder,
  toStoredOrder,
  updateOrder,
  updateOrderAssumed,
} from '../../src/orders/store.ts';
import { plainOrder } from '../support/plain-order.ts';
import { createTestDatabase, type TestDatabase } from '../support/servers.ts';

describe("a partner's work whose reads are known", () => {
  let test: TestDatabase;
  let [database, replica]: Database[] = [];
  let partnerId: string;
  before(async () => {
    test = await createTestDatabase();
    await migrate(test.url);
    const open = () => openDatabase({ url: test.url, environment: 'sandbox', poolSize: 4 });
    [database, replica] = [await open(), await open()];
    const columns = 'partner_id VARCHAR(24) NOT NULL, number INT NOT NULL, note VARCHAR(20) NOT NULL';
    await database.write(statement(`CREATE TABLE notes (${columns}) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin`));
  });
  after(async () => {
    await Promise.all([database?.close(), replica?.close()]);
    await test.drop();
  });
  beforeEach(async () => {
    partnerId = await createPartner(of(database), { name: 'Assumed', limits: {}, features: [] });
    await of(database).write(statement("INSERT INTO notes VALUES (?, 0, 'first')", partnerId));
  });

  function of(one: Database | undefined): Database {
    assert.ok(one !== undefined, 'it is open');
    return one;
  }

  /** Takes a version and writes what the first note said, once for each, and answers how it was decided. */
  async function work(by: Database | undefined, believed: string): Promise<'assumed' | 'read'> {
    const write = (version: bigint, note: string) =>
      statement('INSERT INTO notes VALUES (?, ?, ?)', partnerId, version, note);
    return of(by).inPartner<'assumed' | 'read'>(partnerId, {
      touches: [],
      reads: [statement('SELECT note FROM notes WHERE partner_id = ? AND number = 0', partnerId)],
      decide: (partner, [notes]) => ({
        writes: [write(partner.takeVersions(1), String(notes?.[0]?.note))],
        result: 'read',
      }),
      decideAssumed: (partner) => {
        const stillSo = 'UPDATE notes SET number = IF(note = ?, 0, NULL) WHERE partner_id = ? AND number = 0';
        const writes = [statement(stillSo, believed, partnerId), write(partner.takeVersions(1), believed)];
        return { writes, result: 'assumed' };
      },
    });
  }

  async function assertWritten(notes: readonly string[]): Promise<void> {
    const [row] = await of(database).read(statement('SELECT version FROM partners WHERE id = ?', partnerId));
    assert.equal(toBigInt(row?.version), BigInt(notes.length), 'each took one version');
    const rows = await of(database).read(
      statement('SELECT number, note FROM notes WHERE partner_id = ? AND number > 0 ORDER BY number', partnerId),
    );
    assert.deepEqual(
      rows.map(({ number, note }) => ({ number, note })),
      notes.map((note, at) => ({ number: at + 1, note })),
    );
  }

  it('is done without them, once the partner is known', async () => {
    assert.equal(await work(database, 'first'), 'read');
    assert.equal(await work(database, 'first'), 'assumed');
    assert.equal(await work(database, 'first'), 'assumed');
    await assertWritten(['first', 'first', 'first']);
  });

  it('is done with them when what was known is not so any more', async () => {
    await work(database, 'first');
    await of(database).write(
      statement("UPDATE notes SET note = 'second' WHERE partner_id = ? AND number = 0", partnerId),
    );
    assert.equal(await work(database, 'first'), 'read');
    await assertWritten(['first', 'second']);
  });

  it('is not said to be done when what was known is gone', async () => {
    await work(database, 'first');
    await of(database).write(statement('DELETE FROM notes WHERE partner_id = ? AND number = 0', partnerId));
    await assert.rejects(work(database, 'first'), { code: 'service_unavailable' });
  });

  it('is done with them when another replica worked for the partner', async () => {
    await work(database, 'first');
    await work(replica, 'first');
    assert.equal(await work(database, 'first'), 'read');
    assert.equal(await work(database, 'first'), 'read', 'what was wrong is not assumed again at once');
    await assertWritten(['first', 'first', 'first', 'first']);
  });

  it('is done with them when a limit was changed, by however little', async () => {
    const limit = (kobo: bigint) =>
      of(database).write(statement('UPDATE partners SET orders_kobo_per_day = ? WHERE id = ?', kobo, partnerId));
    await limit(2n ** 60n + 1n);
    await work(database, 'first');
    assert.equal(await work(database, 'first'), 'assumed');
    await limit(2n ** 60n);
    assert.equal(await work(database, 'first'), 'read');
    await assertWritten(['first', 'first', 'first']);
  });

  it('waits for the lock that another has', async () => {
    await work(database, 'first');
    const waiting = of(replica).transaction(
      [statement('SELECT id FROM partners WHERE id = ? FOR UPDATE', partnerId)],
      () => {
        const started = work(database, 'first');
        return { writes: [statement('DO SLEEP(0.3)')], result: { started } };
      },
    );
    const { started } = await waiting;
    assert.equal(await started, 'read');
    await assertWritten(['first', 'first']);
  });

  it('uses of a day no more than may be used, and exactly that', async () => {
    const use = (kobo: bigint) =>
      of(database).inPartner<'assumed' | 'read'>(partnerId, {
        touches: [],
        reads: [],
        decide: () => ({ writes: [], result: 'read' }),
        decideAssumed: (partner) => {
          partner.addUsage('orders', '2026-11-20', kobo, 10n);
          return { writes: [], result: 'assumed' };
        },
      });
    await work(database, 'first');
    assert.equal(await use(4n), 'assumed');
    assert.equal(await use(6n), 'assumed');
    assert.equal(await use(1n), 'read');
    const [day] = await of(database).read(
      statement('SELECT used_kobo FROM usage_days WHERE partner_id = ?', partnerId),
    );
    assert.equal(toBigInt(day?.used_kobo), 10n);
  });

  it('takes each version once, whichever replica does it and whoever waits with it', async () => {
    const all = Array.from({ length: 200 }, (_, at) => work(at % 3 === 0 ? replica : database, 'first'));
    await Promise.all(all);
    await assertWritten(all.map(() => 'first'));
  });

  it('is done with what waits beside it, and shares its transaction', async () => {
    await work(database, 'first');
    const done = await Promise.all([1, 2, 3, 4].map(() => work(database, 'first')));
    assert.deepEqual(done, ['assumed', 'assumed', 'assumed', 'assumed']);
    await assertWritten(['first', 'first', 'first', 'first', 'first']);
  });

  for (const came of ['a step', 'a check', 'another state']) {
    it(`leaves an order to which something came alone: ${came}`, async () => {
      const order = { ...plainOrder, partnerId, id: `ord_${came.replaceAll(' ', '')}` };
      const answered = { ...order, state: 'pending', exchangeOrderId: 'X1', steps: 3 } as const;
      await of(database).write(insertOrder(order));
      const set = { 'a step': 'steps = 2', 'a check': 'checks = 1', 'another state': "state = 'uncertain'" }[came];
      await of(database).write(statement(`UPDATE orders SET ${set} WHERE id = ?`, order.id));
      await assert.rejects(of(database).write(updateOrderAssumed(order, answered)), { errno: 1048 });
      const [row = {}] = await of(database).read(findOrder(partnerId, order.id));
      assert.equal(toStoredOrder(row).exchangeOrderId, null);
    });
  }

  it('saves what changed of an order that is as it was stored, and nothing else of it', async () => {
    const origin = { ...plainOrder.origin, partnerId };
    const order = { ...plainOrder, partnerId, origin, id: 'ord_unmoved' };
    const answered = {
      ...order,
      state: 'pending',
      exchangeOrderId: 'X1',
      lastReport: 7n,
      steps: 3,
      checkAt: null,
    } as const;
    await of(database).write(insertOrder(order));
    assert.equal(await of(database).write(updateOrderAssumed(order, answered)), 1);
    const [row = {}] = await of(database).read(findOrder(partnerId, order.id));
    assert.deepEqual(toStoredOrder(row), answered);
  });

  const moved: Partial<StoredOrder> = {
    state: 'cancelled',
    filledQuantity: 7n,
    filledValueKobo: 2n ** 60n + 1n,
    exchangeOrderId: 'X2',
    reason: 'a reason',
    rejectReason: 'market_closed',
    updatedAt: plainOrder.updatedAt + 1,
    filledAt: plainOrder.updatedAt + 2,
    idempotencyKey: 'a key ',
    firstAnswer: 'rejected',
    lastReport: 2n ** 53n + 1n,
    checkAt: null,
    checks: 9,
    missingSince: plainOrder.updatedAt + 3,
    cancelUntil: plainOrder.updatedAt + 4,
    missedReport: 5n,
    steps: 2,
  };
  for (const [field, value] of Object.entries(moved)) {
    it(`saves ${field} of an order when nothing else of it changed`, async () => {
      const order = { ...plainOrder, partnerId, origin: { ...plainOrder.origin, partnerId } };
      for (const [id, update] of [
        ['ord_read', updateOrder],
        ['ord_known', updateOrderAssumed],
      ] as const) {
        const before = { ...order, id };
        const changed = { ...before, [field]: value };
        await of(database).write(insertOrder(before));
        await of(database).write(update(before, changed));
        const [row = {}] = await of(database).read(findOrder(partnerId, id));
        assert.deepEqual(toStoredOrder(row), changed);
        await of(database).write(update(changed, before));
        const [back = {}] = await of(database).read(findOrder(partnerId, id));
        assert.deepEqual(toStoredOrder(back), before, 'and back');
        await of(database).write(statement('DELETE FROM orders WHERE id = ?', id));
      }
    });
  }
});
