import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { SmallFiles } from '../../src/kit/small-files.ts';
import { temporaryFolder } from '../support/folders.ts';

describe('files that are read while a file system hangs', () => {
  it('hold one thread, are refused in time, and are read again once it answers', async () => {
    const begun: string[] = [];
    let answer = () => {};
    const files = new SmallFiles(50, async (path) => {
      begun.push(path);
      if (path === '/hung') await new Promise<void>((resolve) => (answer = resolve));
      return Buffer.from(path);
    });
    const refused = { code: 'ETIMEDOUT', message: /^\/\w+ cannot be read: ETIMEDOUT$/ };
    await assert.rejects(files.read('/hung'), refused);
    await Promise.all(['/one', '/two', '/hung'].map((path) => assert.rejects(files.read(path), refused)));
    assert.deepEqual(begun, ['/hung'], 'nothing else is begun, so one thread waits');
    answer();
    const paths = ['/three', '/four', '/five'];
    const read = await Promise.all(paths.map((path) => files.read(path)));
    assert.deepEqual(read.map(String), paths);
    assert.deepEqual(begun, ['/hung', ...paths]);
  });

  it('do not wait for one that could not be read', async () => {
    const folder = temporaryFolder();
    const files = new SmallFiles();
    writeFileSync(join(folder, 'good'), 'good');
    const reads = await Promise.allSettled(['none', 'good', '.'].map((name) => files.read(join(folder, name))));
    const found = reads.map((each) => (each.status === 'fulfilled' ? String(each.value) : each.reason.code));
    assert.deepEqual(found, ['ENOENT', 'good', 'it is no regular file']);
  });
});
