import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createConnection, type RowDataPacket } from 'mysql2/promise';
import { connect, serverTimeoutMs } from '../../../src/gateway/store/data-source.ts';
import type { Database } from '../../../src/gateway/store/database.ts';
import { rowsFact } from '../../../src/gateway/store/facts.ts';
import { type Statement, statement } from '../../../src/gateway/store/statement.ts';
import { statementTimeoutMs } from '../../../src/gateway/store/transaction.ts';
import { UnavailableError } from '../../../src/kit/refusal.ts';
import { createPartner } from '../../../src/sandbox/provision.ts';
import { withDatabase } from '../../support/database.ts';
import { eventually } from '../../support/eventually.ts';

/** Far longer than any limit. MySQL answers 1 to a SLEEP that was ended, unless it decides about a row. */
const slow = statement('SELECT id FROM environment WHERE SLEEP(600)');

describe('a statement that takes longer than the server may work on it', () => {
  let database: Database;
  let url = '';
  withDatabase(
    (opened, openedUrl) => {
      database = opened;
      url = openedUrl;
    },
    { poolSize: 6 },
  );

  /** How many of our slow statements the server is working on. */
  async function running(): Promise<number> {
    const connection = await createConnection(url);
    const [rows] = await connection.query<RowDataPacket[]>('SHOW FULL PROCESSLIST');
    const own = new URL(url).pathname.slice(1);
    await connection.end();
    return rows.filter(({ db, Info }) => db === own && String(Info).includes('SLEEP(600)')).length;
  }

  it('is ended by the server, on every way to it: the caller reads service_unavailable, and nothing is written', async () => {
    const newPartner = () => createPartner(database, { name: 'Before', limits: {}, features: [] });
    const partnerIds = [await newPartner(), await newPartner()] as const;
    const [writes, others] = partnerIds.map((id) => [
      statement("UPDATE partners SET name = 'Written' WHERE id = ?", id),
      slow,
    ]) as [Statement[], Statement[]];
    const beganAt = performance.now();
    const answers = [
      database.read(slow),
      database.readAll([slow]),
      database.transaction([], () => ({ writes, result: undefined })),
      database.inPartnerTransaction(partnerIds[1], {
        touches: [],
        fact: rowsFact(),
        decide: () => ({ writes: others, result: undefined }),
      }),
      database.manage((manager) => manager.query(slow.sql)),
    ].map((work) =>
      work.then(
        () => assert.fail('it ended'),
        (error: unknown) => error,
      ),
    );
    await eventually(async () => assert.ok((await running()) === answers.length));
    const errors = await Promise.all(answers);
    const tookMs = performance.now() - beganAt;
    assert.ok(tookMs > serverTimeoutMs - 1_000);
    for (const error of errors) {
      assert.ok(error instanceof UnavailableError, String(error));
      const { errno, name } = error.cause as { errno?: number; name: string };
      assert.ok([1969, 3024].includes(errno ?? 0), `the server's own answer, not ${name}`);
    }
    assert.equal(await running(), 0);
    const partners = await database.readAll([statement('SELECT name FROM partners WHERE id IN (?)', partnerIds)]);
    assert.deepEqual(partners, [[{ name: 'Before' }, { name: 'Before' }]]);
    assert.equal(database.load.inUse, 0);
  });

  it('does not go on at the server as part of a batch that was given up, and keeps no lock', async () => {
    const partnerId = await createPartner(database, { name: 'Before', limits: {}, features: [] });
    // Each has its time, and together they take longer than a round trip may.
    const parts = Array.from({ length: 3 }, () => statement('SELECT SLEEP(8) /* of SLEEP(600) */'));
    const writes = [statement("UPDATE partners SET name = 'Late' WHERE id = ?", partnerId), ...parts];
    const beganAt = performance.now();
    const refusals = await Promise.allSettled([
      database.transaction([], () => ({ writes, result: undefined })),
      database.readAll(parts),
    ]);
    for (const refusal of refusals) assert.equal(refusal.status, 'rejected');
    await eventually(async () => assert.equal(await running(), 0));
    // The server rolls its work back a moment after its statement has ended.
    await eventually(async () => {
      const read = statement('SELECT name FROM partners WHERE id = ? FOR UPDATE NOWAIT', partnerId);
      const [[partner] = []] = await database.readAll([read]);
      assert.equal(partner?.name, 'Before');
    });
    assert.ok(performance.now() - beganAt < 15_000, 'they went on until they had ended by themselves');
  });

  it('has less time at the server than its round trip, and a migration has hours', async () => {
    assert.ok(serverTimeoutMs < statementTimeoutMs);
    const connections = await connect({ url, poolSize: 1, isPatient: true });
    // In seconds on MariaDB, in milliseconds on MySQL.
    const limit = "SHOW SESSION VARIABLES WHERE Variable_name IN ('max_statement_time', 'max_execution_time')";
    const [migrating] = await (await connections.source()).query(limit);
    await connections.close();
    const [usual] = await database.read(statement(limit));
    const factor = usual?.Variable_name === 'max_statement_time' ? 1_000 : 1;
    assert.deepEqual([Number(usual?.Value) * factor, Number(migrating.Value) * factor], [serverTimeoutMs, 21_600_000]);
  });
});
