import assert from 'node:assert/strict';
import { readdirSync, readFileSync, readlinkSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { after, before, beforeEach, describe, it } from 'node:test';
import { archive } from '../../../../src/gateway/operators/archive/archive.ts';
import { verify } from '../../../../src/gateway/operators/archive/folder.ts';
import { type Database, openForReading } from '../../../../src/gateway/store/database.ts';
import { type Statement, statement } from '../../../../src/gateway/store/statement.ts';
import { type ArchiveRows, archivedRows, dayMs, openArchiveDatabase } from '../../../support/archive.ts';
import { eventually } from '../../../support/eventually.ts';
import { temporaryFolder } from '../../../support/folders.ts';

describe('the archive', () => {
  let opened: Awaited<ReturnType<typeof openArchiveDatabase>>;
  let database: Database;
  /** With the archive's own rights. */
  let own: Database;
  let archiveUrl: string;
  let rows: ArchiveRows;
  let folder: string;
  let partnerId: string;
  const lines: string[] = [];
  const now = Date.now();
  const old = now - 500 * dayMs;
  before(async () => {
    opened = await openArchiveDatabase();
    ({ database, own, archiveUrl, rows } = opened);
  });
  after(() => opened.close());
  beforeEach(async () => {
    for (const table of [
      'partners',
      'orders',
      'applications',
      'allocations',
      'withdrawals',
      'object_steps',
      'look_ups',
      'webhook_deliveries',
      'archive_state',
    ]) {
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
  const monthOf = (at: number) => new Date(at).getUTCFullYear() * 12 + new Date(at).getUTCMonth();
  const idsIn = (name: string) => archivedRows(folder, name).map(({ id }) => id);

  it('has a final withdrawal with its history, which stays in the database, because partners read it', async () => {
    const withdrawal = await rows.withdrawal(partnerId, 'completed', old);
    await run();
    const [archived] = archivedRows(folder, 'withdrawals');
    assert.deepEqual([archived?.id, archived?.history.length], [withdrawal.id, 2]);
    assert.deepEqual(await Promise.all(['withdrawals', 'object_steps', 'look_ups'].map(count)), [1, 2, 0]);
  });

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

  it('has a step that came without a change of the object, in the month of the step', async () => {
    const later = old + 62 * dayMs;
    const notYetLater = monthOf(now) - monthOf(later);
    const [object, order] = [
      await rows.allocation(partnerId, 'booked', old),
      await rows.order(partnerId, 'filled', old),
    ];
    await run(notYetLater);
    await rows.lateStep(object, 3, later);
    await rows.lateOrderStep(order, 3, later);
    await run(notYetLater - 1);
    const sequences = (name: string) =>
      archivedRows(folder, name).map(({ history }) => history.map(({ sequence }: { sequence: number }) => sequence));
    assert.deepEqual(sequences('allocations'), [[1, 2], [3]]);
    assert.deepEqual(sequences('orders'), [
      [1, 2],
      [1, 2, 3],
    ]);
    assert.deepEqual([await count('object_steps'), await count('order_steps')], [0, 3]);
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

  it('has a day only when none of its deliveries waits any more, and before the database removes it', async () => {
    const [recent, last] = [now - 10 * dayMs, now - 27 * dayMs];
    await rows.delivery(partnerId, 1n, recent);
    for (const [version, at] of [
      [2n, recent],
      [3n, last],
    ] as const) {
      await rows.delivery(partnerId, version, at);
      await database.write(
        statement("UPDATE webhook_deliveries SET state = 'waiting', queue = 1 WHERE version = ?", version),
      );
    }
    const day = new Date(recent).toISOString().slice(0, 10);
    // Behind others, and in its turn.
    for (const queue of [2, 1]) {
      await database.write(statement('UPDATE webhook_deliveries SET queue = ? WHERE version = 2', queue));
      await assert.rejects(run(), new RegExp(`^Error: ${day}: deliveries of it still wait`), `in queue ${queue}`);
    }
    const versions = () => archivedRows(folder, 'webhook-deliveries').map(({ version, state }) => [version, state]);
    assert.deepEqual(versions(), [['3', 'waiting']]);
    await database.write(statement("UPDATE webhook_deliveries SET state = 'expired', queue = NULL WHERE queue = 1"));
    await run();
    assert.deepEqual(versions(), [
      ['3', 'waiting'],
      ['1', 'delivered'],
      ['2', 'expired'],
    ]);
  });

  it('has the days of a sandbox by its own clock, as they are removed', async () => {
    await database.write(statement('UPDATE environment SET clock_offset_ms = ?', 60 * dayMs));
    try {
      await rows.delivery(partnerId, 1n, now + 50 * dayMs);
      await rows.delivery(partnerId, 2n, now - 10 * dayMs);
      await run();
      assert.deepEqual(
        archivedRows(folder, 'webhook-deliveries').map(({ version }) => version),
        ['1'],
      );
    } finally {
      await database.write(statement('UPDATE environment SET clock_offset_ms = 0'));
    }
  });

  it('is on the disk, with the names of its folders, before anything is removed', async (t) => {
    folder = join(folder, 'of', 'marina');
    const synced = new Set<string>();
    const handle = await open(temporaryFolder());
    const { sync } = Object.getPrototypeOf(handle);
    t.mock.method(Object.getPrototypeOf(handle), 'sync', function (this: FileHandle) {
      synced.add(readlinkSync(`/proc/self/fd/${this.fd}`));
      return sync.call(this);
    });
    await handle.close();
    await rows.allocation(partnerId, 'booked', old);
    await run();
    for (const path of [dirname(folder), dirname(dirname(folder))]) assert.ok(synced.has(path), path);
    // As after a run that died when it had named the folder, and after a copy was put back.
    const period = join(folder, new Date(old).toISOString().slice(0, 7));
    rmSync(join(period, 'removed'));
    const files = [folder, period, ...readdirSync(period).map((name) => join(period, name))];
    synced.clear();
    const write = own.write.bind(own);
    const removals = t.mock.method(own, 'write', (change: Statement) => {
      if (change.sql.startsWith('DELETE'))
        assert.deepEqual(
          files.filter((path) => !synced.has(path)),
          [],
        );
      return write(change);
    });
    await run();
    assert.ok(
      removals.mock.calls.some(({ arguments: [{ sql }] }) => sql.startsWith('DELETE')),
      'something is removed',
    );
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

  for (const which of ['first', 'last', 'second'] as const) {
    it(`is not continued while its ${which} month is gone, unless an operator accepts that it is lost`, async () => {
      const kept = await rows.allocation(partnerId, 'booked', old);
      await run();
      const months = readdirSync(folder).filter((name) => /^\d{4}-\d{2}$/.test(name));
      const month = months.at({ first: 0, last: -1, second: 1 }[which]) ?? '';
      rmSync(join(folder, month), { recursive: true });
      await assert.rejects(run(), new RegExp(`lacks ${month}`));
      assert.ok(!readdirSync(folder).includes(month), 'it was written again, without its steps');
      await archive({ database: own, folder, months: 13, acceptLost: true, print: (line) => lines.push(line) });
      assert.match(lines.join('\n'), new RegExp(`${month}: lost, and written again without the steps`));
      assert.deepEqual(idsIn('allocations'), [kept.id]);
      await run();
    });
  }

  it('has the days and the other months though a month of it is damaged, and the run says which', async () => {
    const first = new Date(old - 5 * dayMs);
    const month = first.toISOString().slice(0, 7);
    await run(monthOf(now) - monthOf(first.getTime()) - 1);
    const day = now - 10 * dayMs;
    rmSync(join(folder, new Date(day).toISOString().slice(0, 10)), { recursive: true });
    await rows.delivery(partnerId, 1n, day);
    const later = await rows.allocation(partnerId, 'booked', old + 62 * dayMs);
    const path = join(folder, month, 'manifest.json');
    const manifest = readFileSync(path, 'utf8');
    writeFileSync(path, 'no manifest');
    await assert.rejects(run(), new RegExp(`^Error: ${month}: `));
    writeFileSync(path, manifest);
    assert.deepEqual([idsIn('allocations'), archivedRows(folder, 'webhook-deliveries').length], [[later.id], 1]);
    assert.equal(await count('object_steps'), 0);
    await run();
  });

  it('has the days though a month of it is gone', async () => {
    await run();
    const day = now - 10 * dayMs;
    rmSync(join(folder, new Date(day).toISOString().slice(0, 10)), { recursive: true });
    rmSync(join(folder, new Date(old - 5 * dayMs).toISOString().slice(0, 7)), { recursive: true });
    await rows.delivery(partnerId, 1n, day);
    await assert.rejects(run(), /lacks/);
    assert.equal(archivedRows(folder, 'webhook-deliveries').length, 1);
  });

  it('is known to lack a month in the middle by its folder alone', async () => {
    await run();
    const [, month = ''] = readdirSync(folder).filter((name) => /^\d{4}-\d{2}$/.test(name));
    rmSync(join(folder, month), { recursive: true });
    await assert.rejects(
      verify(folder, () => {}),
      new RegExp(`lacks ${month}`),
    );
  });

  it('is of one database: another one does not write into it', async () => {
    await run();
    const about = JSON.parse(readFileSync(join(folder, 'archive.json'), 'utf8'));
    assert.equal(about.environment, 'sandbox');
    await database.write(statement("UPDATE archive_state SET value = 'another' WHERE name = 'database'"));
    await assert.rejects(run(), /is the archive of another database/);
    await database.write(statement("UPDATE archive_state SET value = ? WHERE name = 'database'", about.database));
    await run();
  });

  it('is whole after two runs at the same time: one works, and the other does nothing', async () => {
    const ids: string[] = [];
    for (let at = 0; at < 40; at += 1) ids.push((await rows.allocation(partnerId, 'booked', old)).id);
    const second = await openForReading({ url: archiveUrl });
    try {
      const running = run();
      await eventually(() => assert.ok(readdirSync(folder).some((name) => name.startsWith('.writing-2'))));
      const other = archive({ database: second, folder, months: 13, print: () => {} });
      const [own, others] = await Promise.allSettled([running, other]);
      assert.deepEqual([own.status, own.status === 'rejected' && own.reason], ['fulfilled', false]);
      if (others.status === 'rejected') assert.match(String(others.reason), /another run/);
    } finally {
      await second.close();
    }
    assert.deepEqual(idsIn('allocations').sort(), ids.sort());
    assert.equal(await count('object_steps'), 0);
    await verify(folder, () => {});
  });

  it('is not written, and nothing is removed, by a run that lost its lock', async () => {
    await rows.allocation(partnerId, 'booked', old);
    const running = run();
    await eventually(() => assert.ok(readdirSync(folder).some((name) => name.startsWith('.writing-2'))));
    const [lock] = await database.read(
      statement(`SELECT IS_USED_LOCK(CONCAT('marina-archive-', LEFT(SHA2(DATABASE(), 256), 32))) AS holder`),
    );
    const isLost = assert.rejects(running, /was lost/);
    await database.write(statement(`KILL CONNECTION ${Number(lock?.holder)}`));
    await isLost;
    assert.equal(await count('object_steps'), 2);
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
