/** How the commands of the archive and of the keys are called. */
import assert from 'node:assert/strict';
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { after, describe, it, type TestContext } from 'node:test';
import { archiveCommand } from '../../../../src/gateway/operators/archive/command.ts';
import { keysCommand } from '../../../../src/gateway/operators/secret-keys/command.ts';
import { temporaryFolder } from '../../../support/folders.ts';

const folder = temporaryFolder();
after(() => rmSync(folder, { recursive: true }));

/** Runs a command whose database cannot be reached. */
async function run(t: TestContext, command: (reach: () => Promise<never>) => Promise<number>) {
  const complaints: unknown[] = [];
  t.mock.method(console, 'error', (text: unknown) => void complaints.push(text));
  t.mock.method(console, 'log', () => {});
  let reached = 0;
  const reach = async () => {
    reached += 1;
    throw new Error('no database');
  };
  try {
    const code = await command(reach).catch((error: Error) => error.message);
    return { code, reached, complaint: String(complaints[0] ?? '') };
  } finally {
    t.mock.restoreAll();
  }
}

describe('the command of the archive', () => {
  it('the command says how it is called and ends with 2 if it is called wrongly, without a look at the database', async (t) => {
    for (const args of [
      [],
      ['write'],
      ['read', folder],
      ['verify', folder, 'more'],
      ['write', folder, '--months', '1'],
      ['write', folder, '--months', '0'],
      ['write', folder, '--months', '1.5'],
      ['write', folder, '--months', '12345'],
      ['write', folder, '--months', ''],
      ['write', folder, '--months=-3'],
      ['write', folder, '--nothing'],
      ['write', folder, '--accept-lost=1'],
    ]) {
      const { code, reached, complaint } = await run(t, (reach) => archiveCommand(args, reach));
      assert.deepEqual([code, reached], [2, 0], args.join(' '));
      assert.match(complaint, /^usage: node src\/main\.js archive write FOLDER/);
    }
  });

  it('a write reaches the database, and ends with 1 if it cannot', async (t) => {
    for (const args of [
      ['write', folder],
      ['write', folder, '--months', '2'],
      ['write', folder, '--months', '9999', '--accept-lost'],
    ]) {
      const { code, reached, complaint } = await run(t, (reach) => archiveCommand(args, reach));
      assert.deepEqual([code, reached, complaint], [1, 1, 'Error: no database'], args.join(' '));
    }
  });

  it('a folder that is no archive is told in words, and its proof needs no database', async (t) => {
    const empty = join(folder, 'empty');
    mkdirSync(empty);
    const { code, reached, complaint } = await run(t, (reach) => archiveCommand(['verify', empty], reach));
    assert.deepEqual([code, reached], [1, 0]);
    assert.match(complaint, /^\/\S+ is not an archive: it has no /);
  });
});

describe('the command of the keys', () => {
  const id = `key_${'a'.repeat(20)}`;

  it('the command says how it is called and ends with 2 if it is called wrongly, without a look at the database', async (t) => {
    for (const args of [
      [],
      ['list'],
      ['status', id],
      ['reseal', id],
      ['seal', 'key_a'],
      ['seal', id, 'ord_a'],
      ['seal', `${id}a`],
      ['seal', `key_${'1'.repeat(20)}`],
    ]) {
      const { code, reached, complaint } = await run(t, (reach) => keysCommand(args, reach));
      assert.deepEqual([code, reached], [2, 0], args.join(' '));
      assert.match(complaint, /^usage: node src\/main\.js keys status/);
    }
  });

  it('each of its verbs reaches the database', async (t) => {
    for (const args of [['status'], ['reseal'], ['seal'], ['seal', id], ['seal', id, id]]) {
      const { code, reached } = await run(t, (reach) => keysCommand(args, reach));
      assert.deepEqual([code, reached], ['no database', 1], args.join(' '));
    }
  });
});
