import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { sharedKeeper } from '../../src/sandbox/keeper.ts';
import { eventually } from '../support/eventually.ts';
import { temporaryFolder } from '../support/folders.ts';

const program = 'clients/back-office/back-office.ts';

describe('the file of events of clients/back-office', () => {
  it('a part of a line that a crash left is cut off, and no whole line with it, whatever letters they have', async (t) => {
    const folder = temporaryFolder();
    sharedKeeper().removeAtEnd(folder);
    const file = join(folder, 'events.jsonl');
    const body = JSON.stringify({ id: 'evt_1', data: { name: 'Ọlá Ṣadé' } });
    const whole = `${JSON.stringify({ partner: 'par_a', version: 1, id: 'evt_1', body })}\n`;
    writeFileSync(file, `${whole}{"partner":"par_a","version":2,"bo`);
    const office = await sharedKeeper().start({
      name: 'back office',
      command: process.execPath,
      args: ['--import', 'tsx', program, 'follow', file],
      // Nobody answers there. It opens its file first.
      env: { ...process.env, NATS_URL: 'nats://127.0.0.1:1', ADMIN_URL: 'http://127.0.0.1:1', OPERATOR_TOKEN: 'none' },
      logPath: join(folder, 'office.log'),
    });
    t.after(() => office.kill());
    await eventually(() => assert.equal(readFileSync(file, 'utf8'), whole), 30_000);
  });
});
