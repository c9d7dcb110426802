import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { verify } from '../../../../src/gateway/operators/archive/folder.ts';
import { statement } from '../../../../src/gateway/store/statement.ts';
import { archivedRows, dayMs, openArchiveDatabase } from '../../../support/archive.ts';
import { type CommandScenario, describeCommandMoments } from '../../../support/fault/moments/commands.ts';
import { temporaryFolder } from '../../../support/folders.ts';

const now = Date.now();
/** In a month that is due, and on a day that is. */
const [old, recent] = [now - 440 * dayMs, now - 10 * dayMs];
/** The sets of the archive, with the column that names a row. */
const sets = {
  ...{ orders: 'id', applications: 'id', allocations: 'id', withdrawals: 'id' },
  ...{ 'wallet-transfers': 'sequence', 'webhook-deliveries': 'version', 'webhook-attempts': 'number' },
} as const;
/** Objects whose history leaves the database. */
const leaving = ['applications', 'allocations'];

/** A database, and a folder that has nothing of it. */
interface Case {
  readonly folder: string;
  /** The rows of each set. */
  readonly rows: Readonly<Record<keyof typeof sets, readonly string[]>>;
  /** The steps and look-ups that leave the database, as `object sequence` and `object look-up`. */
  readonly attached: readonly string[];
}

const { database, archiveUrl, rows, close } = await openArchiveDatabase();

const writing: CommandScenario<Case> = {
  name: 'archive write',
  prepare,
  command: ({ folder }) => ({ args: ['archive', 'write', folder], variables: { MARINA_DATABASE_URL: archiveUrl } }),
  async checkFailed({ folder, attached }) {
    const inFiles = archived(folder);
    assert.equal(new Set(inFiles).size, inFiles.length, 'nothing is in the archive twice');
    const found = new Set([...inFiles, ...(await stored())]);
    assert.deepEqual([...found].sort(), attached, 'each row is in the database or in a verified file');
  },
  async check({ folder, rows: expected, attached }, printed) {
    assert.match(printed, /^done$/m);
    for (const [name, column] of Object.entries(sets)) {
      const found = archivedRows(folder, name).map((row) => String(row[column]));
      assert.deepEqual(found.sort(), expected[name as keyof typeof sets], `the archive has each of ${name} once`);
    }
    assert.deepEqual(archived(folder).sort(), attached, 'the archive has each step and look-up once');
    assert.deepEqual(await stored(), [], 'what the archive has leaves the database');
    const [kept] = await database.read(statement('SELECT COUNT(*) AS count FROM object_steps'));
    assert.equal(Number(kept?.count), 2, 'the history that partners read stays in the database');
    const periods = readdirSync(folder);
    assert.ok(!periods.some((name) => name.startsWith('.')), 'nothing unfinished is left');
    for (const period of periods.filter((name) => /^\d/.test(name))) {
      assert.ok(readdirSync(join(folder, period)).includes('removed'), `${period} is done with`);
    }
    await verify(folder, () => {});
  },
};

await describeCommandMoments([writing], close);

async function prepare(): Promise<Case> {
  const tables = ['partners', 'orders', 'order_steps', 'applications', 'allocations', 'withdrawals', 'object_steps'];
  const others = ['look_ups', 'wallet_transfers', 'webhook_deliveries', 'webhook_attempts', 'archive_state'];
  for (const table of [...tables, ...others]) await database.write(statement(`DELETE FROM ${table}`));
  const partnerId = await rows.newPartner();
  await database.write(statement('UPDATE partners SET created_at = ?', new Date(old)));
  const order = await rows.order(partnerId, 'filled', old);
  const application = await rows.application(partnerId, 'opened', old);
  const allocation = await rows.allocation(partnerId, 'booked', old);
  const withdrawal = await rows.withdrawal(partnerId, 'completed', old);
  // These are not archived yet.
  await rows.order(partnerId, 'pending', old);
  await rows.order(partnerId, 'filled', recent);
  await rows.transfer(partnerId, 1n, old);
  await rows.delivery(partnerId, 7n, recent);
  const own = { orders: [order.id], applications: [application.id], allocations: [allocation.id] };
  const numbered = { 'wallet-transfers': ['1'], 'webhook-deliveries': ['7'], 'webhook-attempts': ['1', '2'] };
  return {
    folder: join(temporaryFolder(), 'archive'),
    rows: { ...own, withdrawals: [withdrawal.id], ...numbered },
    attached: (await stored()).sort(),
  };
}

/** The steps and look-ups in the database that leave it. */
async function stored(): Promise<string[]> {
  const steps = await database.read(
    statement(
      'SELECT object_id, sequence FROM object_steps WHERE object_id NOT IN (SELECT id FROM withdrawals) ORDER BY 1, 2',
    ),
  );
  const lookUps = await database.read(statement('SELECT object_id FROM look_ups'));
  return [
    ...steps.map(({ object_id: id, sequence }) => `${id} ${sequence}`),
    ...lookUps.map(({ object_id: id }) => `${id} look-up`),
  ];
}

/** The same in the finished files, each of which is compared with its manifest. */
function archived(folder: string): string[] {
  if (!readdirSync(join(folder, '..')).includes('archive')) return [];
  const all = ['orders', 'applications', 'allocations', 'withdrawals'];
  return all.flatMap((name) =>
    archivedRows(folder, name).flatMap(({ id, history, look_ups: lookUps }) => [
      ...(leaving.includes(name) ? history.map(({ sequence }: { sequence: number }) => `${id} ${sequence}`) : []),
      ...lookUps.map(() => `${id} look-up`),
    ]),
  );
}
