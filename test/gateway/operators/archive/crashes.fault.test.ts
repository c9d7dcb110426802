import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { after, before, describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { type Database, openDatabase } from '../../../../src/gateway/store/database.ts';
import { migrate } from '../../../../src/gateway/store/migrate.ts';
import { statement } from '../../../../src/gateway/store/statement.ts';
import { gatewayEntry, withoutOurs } from '../../../../src/sandbox/processes.ts';
import { ArchiveRows, archivedRows, dayMs } from '../../../support/archive.ts';
import { eventually } from '../../../support/eventually.ts';
import { temporaryFolder } from '../../../support/folders.ts';
import { createTestDatabase, type TestDatabase } from '../../../support/servers.ts';

const allocationCount = 1_200;
const stepsOfEach = 5;

/** The stages of a run as an observer sees them; the process is killed at each. */
const moments = ['writing', 'named', 'removing', 'removing'] as const;

describe('an archive run that is killed', () => {
  let made: TestDatabase;
  let database: Database;
  let url: string;
  const folder = temporaryFolder();
  const objects: string[] = [];
  before(async () => {
    made = await createTestDatabase();
    await migrate(made.url);
    url = await made.grantArchive();
    database = await openDatabase({ url: made.url, environment: 'sandbox', poolSize: 4 });
    const rows = new ArchiveRows(database);
    const partnerId = await rows.newPartner();
    const old = Date.now() - 450 * dayMs;
    await database.write(statement('UPDATE partners SET created_at = ?', new Date(old - 40 * dayMs)));
    for (let at = 0; at < allocationCount; at += 1) {
      objects.push((await rows.allocation(partnerId, 'booked', old, stepsOfEach)).id);
    }
  });
  after(async () => {
    await database.close();
    await made.drop();
  });

  const start = () =>
    spawn(process.execPath, ['--import', 'tsx', gatewayEntry, 'archive', 'write', folder], {
      env: { ...withoutOurs(process.env), MARINA_DATABASE_URL: url },
      stdio: 'ignore',
    });

  async function stepsInDatabase(): Promise<Set<string>> {
    const rows = await database.read(statement('SELECT object_id, sequence FROM object_steps'));
    return new Set(rows.map(({ object_id: id, sequence }) => `${id} ${sequence}`));
  }

  /** The steps in the finished files, each file checked against its manifest. */
  function stepsInFiles(): string[] {
    return archivedRows(folder, 'allocations').flatMap(({ id, history }) =>
      history.map(({ sequence }: { sequence: number }) => `${id} ${sequence}`),
    );
  }

  async function isAt(moment: (typeof moments)[number]): Promise<boolean> {
    const names = readdirSync(folder);
    if (moment === 'writing') return names.some((name) => name.startsWith('.writing-'));
    if (moment === 'named') return names.some((name) => /^\d{4}-\d{2}$/.test(name));
    const before = (await stepsInDatabase()).size;
    await delay(10);
    return (await stepsInDatabase()).size < before;
  }

  it('leaves every row in the database or in a verified file, and the next run completes it without a second copy', async () => {
    for (const moment of moments) {
      const running = start();
      const exited = once(running, 'exit');
      await eventually(async () => assert.ok(running.exitCode !== null || (await isAt(moment)), moment), 30_000);
      running.kill('SIGKILL');
      await exited;
      const [stored, archived] = [await stepsInDatabase(), stepsInFiles()];
      const all = new Set([...stored, ...archived]);
      assert.equal(all.size, allocationCount * stepsOfEach, `steps are lost by a kill while ${moment}`);
      assert.equal(new Set(archived).size, archived.length, 'a step is in the archive twice');
    }
    const last = start();
    const [code] = await once(last, 'exit');
    assert.equal(code, 0);
    assert.equal((await stepsInDatabase()).size, 0);
    assert.equal(stepsInFiles().length, allocationCount * stepsOfEach);
    assert.deepEqual(new Set(archivedRows(folder, 'allocations').map(({ id }) => id)), new Set(objects));
    const unfinished = readdirSync(folder).filter((name) => name.startsWith('.'));
    assert.deepEqual(unfinished, [], 'the folder of a killed run is still there');
  });
});
