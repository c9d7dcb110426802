import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { type Database, openDatabase } from '../../../src/gateway/store/database.ts';
import { noFact } from '../../../src/gateway/store/facts.ts';
import { migrate } from '../../../src/gateway/store/migrate.ts';
import { statement, toBigInt } from '../../../src/gateway/store/statement.ts';
import { createPartner } from '../../../src/sandbox/provision.ts';
import { createTestDatabase, type TestDatabase } from '../../support/servers.ts';

describe("several partners' work at the same time", () => {
  let test: TestDatabase;
  let [database, replica]: Database[] = [];
  let partnerIds: string[];
  before(async () => {
    test = await createTestDatabase();
    await migrate(test.url);
    [database, replica] = [await open(), await open()];
    await of(database).write(statement('CREATE TABLE notes (number INT NOT NULL PRIMARY KEY)'));
    partnerIds = [];
    for (let index = 0; index < 12; index += 1) {
      partnerIds.push(await createPartner(of(database), { name: 'Together', limits: {}, features: [] }));
    }
    // The first transaction of each reads its partner, and some must have been right before they go with others.
    for (let count = 0; count < 4; count += 1) await Promise.all(partnerIds.map((partnerId) => note(partnerId)));
  });
  after(async () => {
    await Promise.all([database?.close(), replica?.close()]);
    await test.drop();
  });

  const open = () => openDatabase({ url: test.url, environment: 'sandbox', poolSize: 16 });

  function of(one: Database | undefined): Database {
    assert.ok(one !== undefined, 'it is open');
    return one;
  }

  let last = 0;

  /** Takes a version and writes a number that nobody else may write. */
  function note(partnerId: string, { by = database, number = newNumber() } = {}): Promise<number> {
    return of(by).inPartnerTransaction(partnerId, {
      touches: [],
      fact: noFact,
      decide: (_, partner) => {
        partner.takeVersions(1);
        return { writes: [statement('INSERT INTO notes VALUES (?)', number)], result: number };
      },
    });
  }

  function newNumber(): number {
    last += 1;
    return last;
  }

  async function versions(): Promise<bigint[]> {
    const rows = await of(database).read(statement('SELECT id, version FROM partners'));
    const byId = new Map(rows.map(({ id, version }) => [String(id), toBigInt(version)]));
    return partnerIds.map((id) => byId.get(id) ?? 0n);
  }

  async function commitsDuring(work: () => Promise<unknown>): Promise<number> {
    const query = statement("SHOW GLOBAL STATUS LIKE 'Com_commit'");
    const count = async () => Number((await of(replica).readAll([query]))[0]?.[0]?.Value);
    const before = await count();
    await work();
    return (await count()) - before;
  }

  it('is committed together, and each partner has its version', async () => {
    let commits = Number.POSITIVE_INFINITY;
    // The server counts the commits of all, and other tests use it too.
    for (let turn = 0; turn < 10 && commits > 2; turn += 1) {
      const before = await versions();
      commits = await commitsDuring(() => Promise.all(partnerIds.map((partnerId) => note(partnerId))));
      assert.deepEqual(
        await versions(),
        before.map((version) => version + 1n),
      );
    }
    assert.ok(commits <= 2, `${commits} commits`);
  });

  it('is committed for all others when one of them cannot be', async () => {
    const before = await versions();
    const taken = last;
    const outcomes = await Promise.allSettled(
      partnerIds.map((partnerId, index) => note(partnerId, index === 4 ? { number: taken } : {})),
    );
    assert.deepEqual(
      outcomes.flatMap(({ status }, index) => (status === 'rejected' ? [index] : [])),
      [4],
    );
    assert.deepEqual(
      await versions(),
      before.map((version, index) => (index === 4 ? version : version + 1n)),
    );
  });

  it('does not wait for a partner whose row another process has locked', async () => {
    const [locked = '', ...others] = partnerIds;
    const before = await versions();
    let waiting: Promise<unknown> | undefined;
    await of(replica).manage(async (manager) => {
      await manager.query('START TRANSACTION');
      await manager.query('SELECT id FROM partners WHERE id = ? FOR UPDATE', [locked]);
      waiting = note(locked);
      await Promise.all(others.map((partnerId) => note(partnerId)));
      assert.equal((await versions())[0], before[0], 'the locked one waits');
      await manager.query('ROLLBACK');
    });
    await waiting;
    assert.deepEqual(
      await versions(),
      before.map((version) => version + 1n),
    );
  });

  it('work of a partner that another process works for too is done once each', async () => {
    const before = await versions();
    const rounds = 15;
    for (let round = 0; round < rounds; round += 1) {
      await Promise.all(partnerIds.flatMap((id) => [note(id), note(id, { by: replica })]));
    }
    assert.deepEqual(
      await versions(),
      before.map((version) => version + BigInt(rounds * 2)),
    );
  });
});
