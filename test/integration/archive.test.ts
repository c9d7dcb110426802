import assert from 'node:assert/strict';
import { readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, beforeEach, describe, it } from 'node:test';
import { archive, verify } from '../../src/archive/archive.ts';
import { type Database, openDatabase, openForReading } from '../../src/db/database.ts';
import { migrate } from '../../src/db/migrate.ts';
import { statement } from '../../src/db/statement.ts';
import { ArchiveRows, archivedRows, dayMs } from '../support/archive.ts';
import { temporaryFolder } from '../support/folders.ts';
import { createTestDatabase, type TestDatabase } from '../support/servers.ts';

describe('the archive', () => {
  let made: TestDatabase;
  let database: Database;
  /** With the archive's own rights. */
  let own: Database;
  let rows: ArchiveRows;
  let folder: string;
  let partnerId: string;
  const lines: string[] = [];
  const now = Date.now();
  const old = now - 500 * dayMs;
  before(async () => {
    made = await createTestDatabase();
    await migrate(made.url);
    database = await openDatabase({ url: made.url, environment: 'sandbox', poolSize: 2 });
    own = await openForReading(await made.grantArchive());
    rows = new ArchiveRows(database);
  });
  after(async () => {
    await own.close();
    await database.close();
    await made.drop();
  });
  beforeEach(async () => {
    for (const table of ['orders', 'applications', 'allocations', 'object_steps', 'look_ups', 'webhook_deliveries']) {
      await database.write(statement(`DELETE FROM ${table}`));
    }
    partnerId = await rows.newPartner();
    await database.write(statement('UPDATE partners SET created_at = ?', new Date(old - 5 * dayMs)));
    folder = temporaryFolder();
    lines.length = 0;
  });

  const run = (months = 13) => archive({ database: own, folder, months, print: (line) => lines.push(line) });
  const count = async (table: string) => {
    const [row] = await database.read(
      statement(`SELECT COUNT(*) AS count FROM ${table} WHERE partner_id = ?`, partnerId),
    );
    return Number(row?.count);
  };
  const idsIn = (name: string) => archivedRows(folder, name).map(({ id }) => id);

  it('has each final object of an old month once, with its history, and leaves what partners read in the database', async () => {
    const order = await rows.order(partnerId, 'filled', old);
    await rows.order(partnerId, 'pending', old);
    await rows.order(partnerId, 'filled', now - 100 * dayMs);
    const application = await rows.application(partnerId, 'opened', old);
    const open = await rows.application(partnerId, 'submitted', old);
    const allocation = await rows.allocation(partnerId, 'booked', old);
    await rows.transfer(partnerId, 1n, old);
    await rows.transfer(partnerId, 2n, now);
    await run();
    await run();
    assert.deepEqual(idsIn('orders'), [order.id]);
    assert.deepEqual(idsIn('applications'), [application.id]);
    assert.deepEqual(idsIn('allocations'), [allocation.id]);
    const [first] = archivedRows(folder, 'orders');
    assert.deepEqual([first.state, first.history.length, first.updated_at], ['filled', 2, new Date(old).toISOString()]);
    const [entry, ...more] = archivedRows(folder, 'wallet-transfers');
    assert.deepEqual([entry.sequence, entry.amount_kobo, more], ['1', '100000000000000001', []]);
    assert.deepEqual(
      archivedRows(folder, 'applications')[0].history.map(({ sequence }: { sequence: number }) => sequence),
      [1, 2, 3],
    );
    assert.deepEqual(await Promise.all(['orders', 'order_steps', 'wallet_transfers'].map(count)), [3, 6, 2]);
    assert.deepEqual(await Promise.all(['applications', 'allocations'].map(count)), [2, 1]);
    const left = await database.read(
      statement('SELECT DISTINCT object_id FROM object_steps WHERE partner_id = ?', partnerId),
    );
    assert.deepEqual(left, [{ object_id: open.id }], 'steps of an application that is not final are gone');
    assert.equal(await count('look_ups'), 1);
    await verify(folder, (line) => lines.push(line));
    assert.match(lines.at(-1) ?? '', /periods are as they were written/);
  });

  it('has an object that changed again in the later month too, with the steps that came since', async () => {
    const late = await rows.application(partnerId, 'refused', old);
    const later = old + 62 * dayMs;
    const monthOf = (at: number) => new Date(at).getUTCFullYear() * 12 + new Date(at).getUTCMonth();
    const notYetLater = monthOf(now) - monthOf(later);
    await run(notYetLater);
    await rows.lateStep(late, 4);
    await database.write(statement('UPDATE applications SET updated_at = ? WHERE id = ?', new Date(later), late.id));
    await run(notYetLater - 1);
    const sequences = archivedRows(folder, 'applications').map(({ history }) =>
      history.map(({ sequence }: { sequence: number }) => sequence),
    );
    assert.deepEqual(sequences, [[1, 2, 3], [4]]);
    assert.equal(await count('object_steps'), 0);
  });

  it('has the deliveries and attempts of days that are over, before they are removed after 30 days', async () => {
    await rows.delivery(partnerId, 1n, now - 10 * dayMs);
    await rows.delivery(partnerId, 2n, now - dayMs);
    await run();
    await run();
    assert.deepEqual(
      archivedRows(folder, 'webhook-deliveries').map(({ version }) => version),
      ['1'],
    );
    assert.deepEqual(
      archivedRows(folder, 'webhook-attempts').map(({ number }) => number),
      [1, 2],
    );
    assert.equal(await count('webhook_deliveries'), 2);
  });

  it('removes nothing by a file that is damaged, and says which it is', async () => {
    const kept = await rows.allocation(partnerId, 'booked', old);
    await run();
    const month = new Date(old).toISOString().slice(0, 7);
    const path = join(folder, month, 'allocations.ndjson.gz');
    await rows.lateStep(kept, 1);
    rmSync(join(folder, month, 'removed'));
    const bytes = readFileSync(path);
    bytes[bytes.length - 12] = (bytes[bytes.length - 12] ?? 0) ^ 1;
    writeFileSync(path, bytes);
    await assert.rejects(run(), /allocations\.ndjson\.gz/);
    assert.equal(await count('object_steps'), 1, 'a row is gone that no good file has');
    await assert.rejects(
      verify(folder, () => {}),
      /allocations\.ndjson\.gz/,
    );
  });

  it('is not continued while a month of it is gone', async () => {
    await run();
    const months = readdirSync(folder).filter((name) => /^\d{4}-\d{2}$/.test(name));
    rmSync(join(folder, months[1] ?? ''), { recursive: true });
    await assert.rejects(run(), new RegExp(`lacks ${months[1]}`));
    await assert.rejects(
      verify(folder, () => {}),
      new RegExp(`lacks ${months[1]}`),
    );
  });

  it('is readable for its owner alone, and is not written among other files', async () => {
    await rows.order(partnerId, 'filled', old);
    await run();
    const month = join(folder, new Date(old).toISOString().slice(0, 7));
    assert.equal(statSync(month).mode & 0o777, 0o700);
    for (const name of readdirSync(month)) assert.equal(statSync(join(month, name)).mode & 0o777, 0o600, name);
    folder = temporaryFolder();
    writeFileSync(join(folder, 'somebody.txt'), '');
    await assert.rejects(run(), /is not empty and not an archive/);
    folder = temporaryFolder();
    writeFileSync(join(folder, 'archive.json'), '{"format":"marina-archive-1","environment":"live"}');
    await assert.rejects(run(), /of the live environment/);
  });

  it('uses an account that can remove no order, entry or step of an order', async () => {
    for (const table of ['orders', 'order_steps', 'wallet_transfers', 'allocations', 'webhook_attempts']) {
      await assert.rejects(own.write(statement(`DELETE FROM ${table} WHERE partner_id = ?`, partnerId)), table);
    }
  });
});
