import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { createConnection, type RowDataPacket } from 'mysql2/promise';
import { migrations } from '../../../migrations/index.ts';
import { migrate } from '../../../src/gateway/store/migrate.ts';
import { Cluster } from '../../support/cluster.ts';
import { checkEverything } from '../../support/fault/checker.ts';
import { type CommandRun, WatchedCommands } from '../../support/fault/moments/commands.ts';
import { nameOf } from '../../support/fault/moments/endings.ts';
import type { Fate, Moment } from '../../support/fault/moments/inside/watch.ts';
import { isInPart } from '../../support/part.ts';
import { createTestDatabase, type TestDatabase } from '../../support/servers.ts';
import { shownTables } from '../../support/shown-tables.ts';

const note = 'insert migrations';
/** A run that finds these done passes over them without a moment. */
const doneOnce = ['create migrations', note];

const commands = new WatchedCommands();
const run = (url: string, armed?: Parameters<WatchedCommands['run']>[1]) =>
  commands.run({ args: ['migrate'], variables: { MARINA_DATABASE_URL: url } }, armed);

const undisturbed = await createTestDatabase();
const { ended, printed, moments } = await run(undisturbed.url);
assert.equal(ended, 0, printed);
const groups = groupsOf(moments);
assert.equal(groups.length, migrations.length, 'each migration notes its end');

describe('migrate, killed or failing at each statement', () => {
  let expected: TestDatabase;
  before(async () => {
    expected = await createTestDatabase();
  });
  after(async () => {
    await expected.drop();
    await undisturbed.drop();
  });

  for (const [at, { name }] of migrations.entries()) {
    if (!isInPart(at)) continue;
    it(`${name}: a run after it does the rest, and leaves the tables of an undisturbed one`, async (t) => {
      const database = await createTestDatabase();
      const { url } = database;
      if (at > 0) await migrate(url, migrations.slice(0, at));
      const group = groups[at] ?? [];
      for (const [place, moment] of group.entries()) {
        t.diagnostic(nameOf(moment));
        for (const fate of fatesOf(moment, place, at)) await runToFate(url, moment, fate);
      }
      const noted = migrations.slice(0, at + 1);
      await migrate(expected.url, noted);
      assert.deepEqual(await shownTables(url), await shownTables(expected.url));
      assert.deepEqual(
        await notesIn(url),
        noted.map((migration) => migration.name),
        'each migration is noted once',
      );
      await database.drop();
    });
  }

  for (const at of [0, Math.floor(moments.length / 2), moments.length - 1]) {
    const moment = moments[at] ?? assert.fail('there is no such moment');
    it(`a second run that waits goes on when the first is killed after ${nameOf(moment)}, and a gateway starts`, async () => {
      const cluster = await Cluster.start({}, { migrate: (url) => migrateByTwo(url, moment) });
      try {
        assert.deepEqual(await shownTables(cluster.databaseUrl), await shownTables(undisturbed.url));
        assert.deepEqual(
          await notesIn(cluster.databaseUrl),
          migrations.map(({ name }) => name),
        );
        const gateway = await cluster.startGateway();
        const partner = await cluster.newPartner();
        const { status, body } = await gateway.place(partner, { symbol: 'SIM-REST' });
        assert.equal(status, 201, JSON.stringify(body));
        await checkEverything(cluster, gateway, [partner]);
      } finally {
        await cluster.stop();
      }
    });
  }
});

/** The moments of each migration, as a run counts them that begins with it. */
function groupsOf(all: readonly Moment[]): Moment[][] {
  const found: Moment[][] = [];
  let counts = new Map<string, number>();
  let group: Moment[] = [];
  for (const { kind, label } of all) {
    const occurrence = (counts.get(label) ?? 0) + 1;
    counts.set(label, occurrence);
    group.push({ kind, label, occurrence });
    if (label !== note) continue;
    found.push(group);
    [counts, group] = [new Map(), []];
  }
  return found;
}

/** Every statement is killed on both sides. The first one of a migration, and its note, fail once and twice too. */
function fatesOf({ label }: Moment, place: number, at: number): Fate[] {
  if (doneOnce.includes(label)) return ['refused', 'refused', 'before', at % 2 === 0 ? 'after' : 'unknown'];
  return place === 0 ? ['refused', 'refused', 'before', 'unknown', 'after'] : ['before', 'after'];
}

async function runToFate(url: string, moment: Moment, fate: Fate): Promise<CommandRun> {
  const disturbed = await run(url, { ...moment, fate, times: 1 });
  const says = `${nameOf(moment)}, ${fate}: ${disturbed.printed}`;
  assert.equal(disturbed.met, 1, `the moment did not come: ${says}`);
  assert.equal(disturbed.ended, fate === 'before' || fate === 'after' ? 'SIGKILL' : 1, says);
  return disturbed;
}

/** Two runs at once, of which the one that migrates first is killed. */
async function migrateByTwo(url: string, moment: Moment): Promise<void> {
  const armed = { ...moment, fate: 'after', times: 1 } as const;
  const both = await Promise.all([run(url, armed), run(url, armed)]);
  const killed = both.filter(({ ended }) => ended === 'SIGKILL');
  assert.ok(killed.length > 0, 'one of them was killed');
  // The other one is killed too if it comes to the same moment.
  for (const { ended, printed } of both) assert.ok(ended === 'SIGKILL' || ended === 0, printed);
  const last = await run(url);
  assert.equal(last.ended, 0, last.printed);
}

async function notesIn(url: string): Promise<string[]> {
  const connection = await createConnection(url);
  try {
    const [rows] = await connection.query<RowDataPacket[]>('SELECT name FROM migrations ORDER BY id');
    return rows.map(({ name }) => String(name));
  } finally {
    await connection.end();
  }
}
