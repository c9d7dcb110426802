import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { PoolConnection } from 'mysql2';
import { connect, type DatabasePools } from '../../../src/gateway/store/data-source.ts';
import { isNotWriter, isRetryable } from '../../../src/gateway/store/errors.ts';
import { serverKind } from '../../../src/gateway/store/server-kind.ts';
import { statement } from '../../../src/gateway/store/statement.ts';
import {
  frameOf,
  leaveTransactions,
  runAtOnce,
  runTransaction,
  type TransactionFrame,
} from '../../../src/gateway/store/transaction.ts';
import { createTestDatabase, type TestDatabase } from '../../support/servers.ts';

/** As a Galera node undoes a transaction between two statements: it says nothing and goes on. */
const undoneByServer = statement('ROLLBACK');

describe('a transaction that the server undoes between its statements', () => {
  let test: TestDatabase;
  let connections: DatabasePools;
  let connection: PoolConnection;
  let frame: TransactionFrame;
  before(async () => {
    test = await createTestDatabase();
    connections = await connect({ url: test.url, poolSize: 1 });
    connection = await new Promise<PoolConnection>((resolve, reject) => {
      connections.pool.getConnection((error, taken) => (taken === undefined ? reject(error) : resolve(taken)));
    });
    const [rows] = await ask('SHOW VARIABLES');
    const onGalera = frameOf({ ...serverKind(rows as []), galeraNode: 'one' });
    frame = { ...onGalera, begin: onGalera.beginUnchecked };
    await ask('CREATE TABLE writer_guards (ok INT NOT NULL, CONSTRAINT marina_writer CHECK (ok = 1))');
    await ask('CREATE TABLE torn (part INT NOT NULL PRIMARY KEY)');
  });
  after(async () => {
    connection?.release();
    await connections?.close();
    await test.drop();
  });

  const ask = (sql: string) => connection.promise().query(sql);
  const insert = (part: number) => statement('INSERT INTO torn VALUES (?)', part);

  async function stored(): Promise<number[]> {
    const [rows] = await ask('SELECT part FROM torn ORDER BY part');
    return (rows as { part: number }[]).map(({ part }) => part);
  }

  async function autocommitOf(one: PoolConnection): Promise<number> {
    const [rows] = await one.promise().query('SELECT @@autocommit AS autocommit');
    return Number((rows as { autocommit: number }[])[0]?.autocommit);
  }

  it('writes nothing in one round trip, and is tried again', async () => {
    await assert.rejects(runAtOnce(connection, frame, [insert(1), undoneByServer, insert(2)]), isRetryable);
    assert.deepEqual(await stored(), []);
  });

  it('writes nothing if it is undone after its last write', async () => {
    await assert.rejects(runAtOnce(connection, frame, [insert(1), insert(2), undoneByServer]), isRetryable);
    assert.deepEqual(await stored(), []);
  });

  it('writes nothing if it is undone between its two round trips', async () => {
    const decide = () => ({ writes: [insert(1), insert(2)], result: undefined });
    await assert.rejects(runTransaction(connection, frame, [insert(0), undoneByServer], decide), isRetryable);
    assert.deepEqual(await stored(), []);
  });

  it('is followed by others, and then by single statements that commit by themselves', async () => {
    await runAtOnce(connection, frame, [insert(3)]);
    await assert.rejects(runAtOnce(connection, frame, [insert(6), undoneByServer]), isRetryable);
    await runAtOnce(connection, frame, [insert(4)]);
    const decide = () => ({ writes: [insert(6)], result: undefined });
    await assert.rejects(runTransaction(connection, frame, [undoneByServer], decide), isRetryable);
    await runTransaction(connection, frame, [], () => ({ writes: [], result: undefined }));
    await leaveTransactions(connection, frame);
    assert.equal(await autocommitOf(connection), 1);
    assert.deepEqual(await stored(), [3, 4]);
  });

  it('writes nothing if autocommit is on, as something between could leave it', async () => {
    await runAtOnce(connection, frame, [insert(7)]);
    await ask('SET autocommit = 1');
    await assert.rejects(runAtOnce(connection, frame, [insert(8), insert(9)]), isNotWriter);
    assert.deepEqual(await stored(), [3, 4, 7]);
    await ask('DELETE FROM torn WHERE part = 7');
  });

  it('leaves no read in a transaction, whoever takes the connection next', async (t) => {
    const own = await connect({ url: test.url, poolSize: 1 });
    t.after(() => own.close());
    const take = (how: DatabasePools['take']) =>
      new Promise<PoolConnection>((resolve, reject) => {
        how(own.pool, (error, taken) => (taken === undefined ? reject(error) : resolve(taken)));
      });
    const writer = await take(own.takeForTransactions);
    const its = Object.assign(await own.frame(writer), frame, { isEntered: false });
    await runAtOnce(writer, its, [insert(10)]);
    writer.release();
    const stays = await take(own.takeForTransactions);
    assert.equal(await autocommitOf(stays), 0, 'the next transaction need not switch it off');
    stays.release();
    const reader = await take(own.take);
    assert.equal(reader, writer);
    assert.equal(await autocommitOf(reader), 1);
    reader.release();
    await ask('DELETE FROM torn WHERE part = 10');
  });

  it('closes a connection on which a refused one cannot be rolled back as a whole', async () => {
    const own = await new Promise<PoolConnection>((resolve, reject) => {
      connections.sharedTransactions.getConnection((error, taken) =>
        taken === undefined ? reject(error) : resolve(taken),
      );
    });
    const rollBack = [statement("SIGNAL SQLSTATE '40001' SET MYSQL_ERRNO = 1213"), ...frame.rollBack];
    const refusal = new Error('refused');
    const decide = () => {
      throw refusal;
    };
    assert.deepEqual(await runTransaction(own, { ...frame, isEntered: false, rollBack }, [insert(5)], decide), {
      refusal,
    });
    await assert.rejects(own.promise().query('DO 1'), 'its autocommit may be off');
    assert.deepEqual(await stored(), [3, 4]);
  });
});

describe('the last statement of a round trip that commits', () => {
  for (const isMariaDb of [true, false]) {
    for (const isGalera of [true, false]) {
      it(`is COMMIT on ${isMariaDb ? 'MariaDB' : 'MySQL'}${isGalera ? ' with Galera' : ''}`, () => {
        const { commit } = frameOf({
          isMariaDb,
          place: 'a:1',
          galeraNode: isGalera ? 'one' : undefined,
          isOfGroup: !isMariaDb,
        });
        assert.equal(commit.at(-1)?.sql, 'COMMIT', 'an error after it would be taken for one of the transaction');
      });
    }
  }
});

describe('how long a connection may be silent', () => {
  const silences = (statements: readonly { readonly sql: string }[]) =>
    statements.flatMap(({ sql }) => /^SET SESSION wait_timeout = (\d+)$/.exec(sql)?.[1] ?? []);

  it('a connection to MySQL may be silent for 4 seconds within a transaction, and for 90 after it, however it ended', () => {
    for (const galeraNode of [undefined, 'one']) {
      const frame = frameOf({ isMariaDb: false, place: 'a:1', galeraNode, isOfGroup: true });
      assert.deepEqual([silences(frame.begin), silences(frame.beginUnchecked)], [['4'], ['4']]);
      assert.deepEqual([silences(frame.commit), silences(frame.rollBack)], [['90'], ['90']]);
    }
  });

  it('the time is not set by a transaction on MariaDB, which knows one for open transactions', () => {
    const { begin, beginUnchecked, commit, rollBack } = frameOf({
      isMariaDb: true,
      place: 'a:1',
      galeraNode: undefined,
      isOfGroup: false,
    });
    assert.deepEqual([begin, beginUnchecked, commit, rollBack].flatMap(silences), []);
  });
});

describe('the kind of a server', () => {
  const cases = [
    {
      name: 'MariaDB',
      rows: { version: '10.11.14-MariaDB', wsrep_on: 'OFF' },
      is: { isMariaDb: true, place: 'undefined:undefined', galeraNode: undefined, isOfGroup: false },
    },
    {
      name: 'a Galera node',
      rows: { version: '10.11.14-MariaDB', wsrep_on: 'ON', wsrep_node_name: 'a', hostname: 'db-1', port: '3306' },
      is: { isMariaDb: true, place: 'db-1:3306', galeraNode: 'a at db-1:3306', isOfGroup: false },
    },
    {
      name: 'MySQL',
      rows: { version: '9.7.4' },
      is: { isMariaDb: false, place: 'undefined:undefined', galeraNode: undefined, isOfGroup: false },
    },
    {
      name: 'a member of a group of MySQL servers',
      rows: { version: '9.7.4', group_replication_group_name: 'b9a1…' },
      is: { isMariaDb: false, place: 'undefined:undefined', galeraNode: undefined, isOfGroup: true },
    },
    {
      name: "a node of Percona's cluster",
      rows: { version: '8.0.36', wsrep_on: 'ON', wsrep_node_name: 'b', hostname: 'db-2', port: '3307' },
      is: { isMariaDb: false, place: 'db-2:3307', galeraNode: 'b at db-2:3307', isOfGroup: false },
    },
  ];
  for (const { name, rows, is } of cases) {
    it(`is known: ${name}`, () => {
      const variables = Object.entries(rows).map(([name, value]) => ({ Variable_name: name, Value: value }));
      assert.deepEqual(serverKind(variables), is);
    });
  }
});
