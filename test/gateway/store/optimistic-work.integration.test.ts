import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import { type Database, openDatabase } from '../../../src/gateway/store/database.ts';
import { type Fact, noFact, rowsFact, sharedFact } from '../../../src/gateway/store/facts.ts';
import { migrate } from '../../../src/gateway/store/migrate.ts';
import { statement, toBigInt } from '../../../src/gateway/store/statement.ts';
import { orders, type StoredOrder } from '../../../src/gateway/trading/orders/table.ts';
import { Change } from '../../../src/gateway/trading/submission/change.ts';
import { usage } from '../../../src/gateway/trading/submission/day-limit.ts';
import { createPartner } from '../../../src/sandbox/provision.ts';
import { orderKind } from '../../support/kinds.ts';
import { plainOrder } from '../../support/plain-order.ts';
import { createTestDatabase, type TestDatabase } from '../../support/servers.ts';
import { openSettling, type Settling } from '../../support/settling.ts';

/** How work was decided. */
type Way = 'optimistic' | 'locked';

describe("a partner's work on expected values", () => {
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

  /** The first note: expected to be what is believed, and proven to be. */
  function firstNote(believed: string): Fact<{ readonly note: string; readonly way: Way }> {
    const where = 'FROM notes WHERE partner_id = ? AND number = 0';
    return {
      reads: [statement(`SELECT note ${where}`, partnerId)],
      value: ([rows]) => ({ note: String(rows?.[0]?.note), way: 'locked' }),
      expected: {
        value: { note: believed, way: 'optimistic' },
        guards: [statement(`(SELECT note = ? ${where})`, believed, partnerId)],
      },
    };
  }

  /** Takes a version and writes what the first note says, once for each, and answers how it was decided. */
  function work(by: Database | undefined, believed: string): Promise<Way> {
    return of(by).inPartnerTransaction(partnerId, {
      touches: [],
      fact: firstNote(believed),
      decide: ({ note, way }, partner) => ({
        writes: [statement('INSERT INTO notes VALUES (?, ?, ?)', partnerId, partner.takeVersions(1), note)],
        result: way,
      }),
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

  it('is done in one round trip, once the partner is known', async () => {
    assert.equal(await work(database, 'first'), 'locked');
    assert.equal(await work(database, 'first'), 'optimistic');
    assert.equal(await work(database, 'first'), 'optimistic');
    await assertWritten(['first', 'first', 'first']);
  });

  it('is decided again under the lock when what was expected is not so', async () => {
    await work(database, 'first');
    await of(database).write(
      statement("UPDATE notes SET note = 'second' WHERE partner_id = ? AND number = 0", partnerId),
    );
    assert.equal(await work(database, 'first'), 'locked');
    await assertWritten(['first', 'second']);
  });

  it('is decided again under the lock when what was expected is gone', async () => {
    await work(database, 'first');
    await of(database).write(statement('DELETE FROM notes WHERE partner_id = ? AND number = 0', partnerId));
    assert.equal(await work(database, 'first'), 'locked');
    await assertWritten(['first', 'undefined']);
  });

  it('fails as it would under the lock when a statement is wrong, and is not taken for a wrong expectation', async () => {
    await work(database, 'first');
    let decided = 0;
    const wrong = of(database).inPartnerTransaction(partnerId, {
      touches: [],
      fact: noFact,
      decide: (_, partner) => {
        decided += 1;
        const twice = statement(
          "INSERT INTO partners (id, name, state, created_at) VALUES (?, '', '', NOW())",
          partner.id,
        );
        return { writes: [twice], result: undefined };
      },
    });
    await assert.rejects(wrong, { errno: 1062 });
    assert.equal(decided, 1, 'a bug was taken for a guard that failed');
  });

  it('is decided again under the lock when it is refused, and refused then', async () => {
    await work(database, 'first');
    const ways: Way[] = [];
    const refused = of(database).inPartnerTransaction(partnerId, {
      touches: [],
      fact: firstNote('first'),
      decide: ({ way }) => {
        ways.push(way);
        throw new Error('refused');
      },
    });
    await assert.rejects(refused, /refused/);
    assert.deepEqual(ways, ['optimistic', 'locked']);
  });

  it('is decided under the lock when another replica worked for the partner', async () => {
    await work(database, 'first');
    await work(replica, 'first');
    assert.equal(await work(database, 'first'), 'locked');
    assert.equal(await work(database, 'first'), 'locked', 'what was wrong is not expected again at once');
    await assertWritten(['first', 'first', 'first', 'first']);
  });

  it('is decided under the lock when a limit was changed, by however little', async () => {
    const limit = (kobo: bigint) =>
      of(database).write(statement('UPDATE partners SET orders_kobo_per_day = ? WHERE id = ?', kobo, partnerId));
    await limit(2n ** 60n + 1n);
    await work(database, 'first');
    assert.equal(await work(database, 'first'), 'optimistic');
    await limit(2n ** 60n);
    assert.equal(await work(database, 'first'), 'locked');
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
    assert.equal(await started, 'locked');
    await assertWritten(['first', 'first']);
  });

  it('adds to what was used of a day exactly, and notices what another replica used', async () => {
    const day = () => usage(partnerId, '2026-11-20', 'orders');
    const use = (by: Database | undefined, kobo: bigint, atMost: bigint) =>
      of(by).inPartnerTransaction(partnerId, {
        touches: [],
        fact: sharedFact(day()),
        decide: (_, partner) => {
          const used = partner.get(day());
          if (used + kobo > atMost) throw new Error(`${used} are used`);
          partner.add(day(), kobo);
          return { writes: [], result: used };
        },
      });
    assert.equal(await use(database, 4n, 10n), 0n);
    assert.equal(await use(database, 5n, 10n), 4n);
    await assert.rejects(use(database, 2n, 10n), /9 are used/);
    assert.equal(await use(replica, 1n, 10n), 9n);
    await assert.rejects(use(database, 1n, 10n), /10 are used/);
    assert.equal(await use(database, -3n, 10n), 10n);
    const [row] = await of(database).read(
      statement('SELECT used_kobo FROM usage_days WHERE partner_id = ?', partnerId),
    );
    assert.equal(toBigInt(row?.used_kobo), 7n);
  });

  it('takes each version once, on every replica, and whatever waits with it', async () => {
    const all = Array.from({ length: 200 }, (_, at) => work(at % 3 === 0 ? replica : database, 'first'));
    await Promise.all(all);
    await assertWritten(all.map(() => 'first'));
  });

  it('shares a transaction with what waits at the same time', async () => {
    await work(database, 'first');
    const done = await Promise.all([1, 2, 3, 4].map(() => work(database, 'first')));
    assert.deepEqual(done, ['optimistic', 'optimistic', 'optimistic', 'optimistic']);
    await assertWritten(['first', 'first', 'first', 'first', 'first']);
  });
});

describe('an order that was stored a moment ago', () => {
  let settling: Settling;
  let partnerId: string;
  before(async () => {
    settling = await openSettling();
  });
  after(() => settling.close());
  beforeEach(async () => {
    partnerId = await settling.newPartner();
    // From now on the partner is known.
    const known = { touches: [], fact: rowsFact(), decide: () => ({ writes: [], result: undefined }) };
    await settling.database.inPartnerTransaction(partnerId, known);
  });

  /** Records something of an order as it was stored, and answers as which order it was decided, each time. */
  async function record(stored: StoredOrder, fields: Partial<StoredOrder>): Promise<StoredOrder[]> {
    const decidedOn: StoredOrder[] = [];
    await settling.recorder.changeCached(settling.order, stored, (row) => {
      decidedOn.push(row);
      return new Change(orderKind, row, settling.clock.now()).note(fields);
    });
    return decidedOn;
  }

  for (const [came, set] of [
    ['a step', 'steps = 2'],
    ['a check', 'checks = 1'],
    ['another state', "state = 'pending'"],
  ] as const) {
    it(`is read again when something came to it: ${came}`, async () => {
      const stored = await settling.storeOrder({ partnerId });
      await settling.database.write(statement(`UPDATE orders SET ${set} WHERE id = ?`, stored.id));
      const asItIs = await settling.readOrder(stored);
      const decidedOn = await record(stored, { exchangeOrderId: 'X1' });
      assert.deepEqual(decidedOn, [stored, asItIs], 'it was decided as it was, and then as it is');
      assert.deepEqual(await settling.readOrder(stored), { ...asItIs, exchangeOrderId: 'X1' });
    });
  }

  it('is not read again when nothing came to it', async () => {
    const stored = await settling.storeOrder({ partnerId });
    assert.equal((await record(stored, { exchangeOrderId: 'X1' })).length, 1);
    assert.deepEqual(await settling.readOrder(stored), { ...stored, exchangeOrderId: 'X1' });
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
    it(`is read again when only its ${field} was changed, which no count tells`, async () => {
      const stored = await settling.storeOrder({ partnerId });
      const changed = { ...stored, [field]: value };
      for (const update of orders.update(stored, changed)) await settling.database.write(update);
      const decidedOn = await record(stored, { clientReference: 'another' });
      assert.deepEqual(decidedOn, [stored, changed], 'it was decided as it was, and then as it is');
      assert.deepEqual(await settling.readOrder(stored), { ...changed, clientReference: 'another' });
    });
  }

  it('keeps what one writer notes without a step when another one notes something of the row before it', async () => {
    const stored = await settling.storeOrder({ partnerId, state: 'pending', checkAt: null });
    const note = (fields: (row: StoredOrder) => Partial<StoredOrder>) =>
      settling.recorder.changeCached(settling.order, stored, (row) =>
        new Change(orderKind, row, settling.clock.now()).note(fields(row)),
      );
    const until = settling.clock.realNow() + 10_000;
    await note(() => ({ cancelUntil: until }));
    // As a cancel does: it is sent only if none is under way.
    const second = await note(({ cancelUntil }) => ({ cancelUntil: cancelUntil ?? until + 1 }));
    assert.equal(second.cancelUntil, until, 'the second writer decided on the row from before the first');
    assert.equal((await settling.readOrder(stored)).cancelUntil, until);
  });

  for (const [field, value] of Object.entries(moved)) {
    it(`has its ${field} saved when nothing else of it changed`, async () => {
      const before = await settling.storeOrder({ partnerId });
      const changed = { ...before, [field]: value };
      for (const [from, to] of [
        [before, changed],
        [changed, before],
      ] as const) {
        for (const update of orders.update(from, to)) await settling.database.write(update);
        assert.deepEqual(await settling.readOrder(before), to);
      }
    });
  }
});
