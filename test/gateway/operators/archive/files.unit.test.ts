import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { readRows, writeRows } from '../../../../src/gateway/operators/archive/files.ts';
import { temporaryFolder } from '../../../support/folders.ts';

describe('a file of the archive', () => {
  /** A row whose line has so many bytes, with a letter of two bytes in it. */
  const rowOf = (bytes: number) => ({ id: 'é'.padEnd(bytes - Buffer.byteLength('{"id":"é"}\n') + 1, 'x') });
  async function* pages(bytes: number) {
    yield [rowOf(bytes)];
  }

  it('has no line that could not be read again', async () => {
    const name = 'orders.ndjson.gz';
    const path = join(temporaryFolder(), name);
    const longest = 8 * 2 ** 20;
    const file = await writeRows(path, name, pages(longest));
    const read: unknown[] = [];
    await readRows(path, file, async (page) => void read.push(...page));
    assert.deepEqual(read, [rowOf(longest)]);
    await assert.rejects(writeRows(`${path}-2`, name, pages(longest + 1)), /more than a line of the archive can hold/);
  });
});
