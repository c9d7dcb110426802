/** Operators' commands record who changed something and why, and nobody migrates the tables below a running adapter. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { after, before, describe, it } from 'node:test';
import { leaseName } from '../../src/fix-adapter/store/store.ts';
import { connect } from '../../src/gateway/store/data-source.ts';
import { Database } from '../../src/gateway/store/database.ts';
import { type Lease, underLease } from '../../src/gateway/store/lease.ts';
import { statement } from '../../src/gateway/store/statement.ts';
import { gatewayEntry, withoutOurs } from '../../src/sandbox/processes.ts';
import { running } from '../support/cluster.ts';
import { createFixDatabase } from '../support/fix/adapter.ts';

describe('a command of the FIX adapter that changes something', () => {
  let made: Awaited<ReturnType<typeof createFixDatabase>>;
  let database: Database;
  before(async () => {
    made = await createFixDatabase();
    database = new Database(await connect({ url: made.ownerUrl, poolSize: 1 }), 'live', 1);
  });
  after(async () => {
    await database.close();
    await made.drop();
  });

  /** Runs a command as an operator does, in a process of its own. */
  function run(args: readonly string[], url = made.url): Promise<{ code: number; out: string; err: string }> {
    const variables = {
      MARINA_FIX_DATABASE_URL: url,
      MARINA_FIX_ADDRESS: '127.0.0.1:1',
      MARINA_FIX_SENDER_COMP_ID: 'MARINA',
      MARINA_FIX_TARGET_COMP_ID: 'EXCHANGE',
      MARINA_FIX_BACK_OFFICE_ADDRESS: '127.0.0.1:1',
    };
    return new Promise((resolve) => {
      const env = { ...withoutOurs(process.env), ...variables };
      execFile(process.execPath, [...running(gatewayEntry), 'fix', ...args], { env }, (error, out, err) => {
        resolve({ code: error === null ? 0 : Number(error.code), out, err });
      });
    });
  }
  const lastEntry = async () => {
    const [row] = await database.read(
      statement('SELECT operator, action, reason, was, became FROM fix_audit ORDER BY id DESC LIMIT 1'),
    );
    return row === undefined ? undefined : Object.values(row).map(String);
  };

  it('sets the numbers of the order session, and keeps who did so and why', async () => {
    const { code, out } = await run(['numbers', '7', '8', 'ada', 'agreed', 'with the desk']);
    assert.deepEqual([code, out], [0, 'our next message: 1 before, 7 now; theirs: 1 before, 8 now\n']);
    const [was, became] = ['{"next_out":1,"next_in":1}', '{"next_out":7,"next_in":8}'];
    assert.deepEqual(await lastEntry(), ['ada', 'fix numbers', 'agreed with the desk', was, became]);
  });

  it('sets the numbers of the drop copy and leaves those of the order session, and keeps who did so and why', async () => {
    const { code } = await run(['numbers', '--drop-copy', '3', '4', 'ada', 'agreed']);
    assert.equal(code, 0);
    const [was, became] = ['{"next_out":1,"next_in":1}', '{"next_out":3,"next_in":4}'];
    assert.deepEqual(await lastEntry(), ['ada', 'fix numbers --drop-copy', 'agreed', was, became]);
    const [copy] = await database.read(statement('SELECT next_out, next_in FROM fix_drop_copy_numbers'));
    const [orders] = await database.read(statement('SELECT next_out, next_in FROM fix_numbers'));
    const numbersOf = (row: Record<string, unknown> | undefined) => [Number(row?.next_out), Number(row?.next_in)];
    assert.deepEqual(
      [numbersOf(copy), numbersOf(orders)],
      [
        [3, 4],
        [7, 8],
      ],
    );
  });

  it('says that the database was restored, and releases it, and keeps who did so and why', async () => {
    assert.equal((await run(['restored', 'ada', 'the backup of 3:00'])).code, 0);
    assert.deepEqual(await lastEntry(), ['ada', 'fix restored', 'the backup of 3:00', 'released', 'restored']);
    assert.equal((await run(['release', 'bola', 'compared with the desk'])).code, 0);
    assert.deepEqual(await lastEntry(), ['bola', 'fix release', 'compared with the desk', 'restored', 'released']);
  });

  it('keeps the account of the operating system where no name is given', async () => {
    assert.equal((await run(['numbers', '9', '9'])).code, 0);
    const [operator, , reason] = (await lastEntry()) ?? [];
    assert.match(operator ?? '', /^account \S+$/);
    assert.equal(reason, 'no reason was given');
  });

  it('refuses to migrate while an adapter of the version before has the session, and says so', async () => {
    const stopping = new AbortController();
    let holding: Promise<void> | undefined;
    await new Promise<void>((resolve) => {
      const work = async ({ signal }: Lease) => {
        resolve();
        await once(signal, 'abort');
      };
      holding = underLease(database, leaseName, 'broker-1', work).run(stopping.signal);
    });
    assert.equal((await run(['migrate'], made.ownerUrl)).code, 0);
    // As the version before left it: without the last migration.
    await database.write(statement("DELETE FROM migrations WHERE name = 'FixDropCopy1764270010000'"));
    const refused = await run(['migrate'], made.ownerUrl);
    assert.equal(refused.code, 1);
    assert.match(refused.err, /^the adapter broker-1, of the version before, has the session: stop all adapters first/);
    const left = await database.read(statement("SELECT id FROM migrations WHERE name = 'FixDropCopy1764270010000'"));
    assert.deepEqual(left, []);
    stopping.abort();
    await holding;
    assert.equal((await run(['migrate'], made.ownerUrl)).code, 0);
  });
});
