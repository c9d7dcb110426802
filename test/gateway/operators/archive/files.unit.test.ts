import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { gzipSync } from 'node:zlib';
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

  it('a file is not read if another program wrote a line that is one byte too long', async () => {
    const name = 'orders.ndjson.gz';
    const path = join(temporaryFolder(), name);
    const line = gzipSync(`${JSON.stringify(rowOf(8 * 2 ** 20 + 1))}\n`);
    writeFileSync(path, line);
    const sha256 = createHash('sha256').update(line).digest('hex');
    const reading = readRows(path, { name, sha256, bytes: line.length, rows: 1 }, async () => undefined);
    await assert.rejects(reading, /has a line that is too long/);
  });
});
