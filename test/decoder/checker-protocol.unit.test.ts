import assert from 'node:assert/strict';
import { PassThrough, Readable } from 'node:stream';
import { describe, it } from 'node:test';
import {
  type FileToCheck,
  fromLine,
  maxLineBytes,
  readChecks,
  toLine,
  writeCheck,
} from '../../src/decoder/checker-protocol.ts';
import { fc } from '../support/properties.ts';

/** The bytes that are written for some files. */
function bytesOf(files: readonly FileToCheck[]): Buffer {
  const stream = new PassThrough({ highWaterMark: 10_000_000 });
  for (const file of files) writeCheck(stream, file);
  return stream.read() ?? Buffer.alloc(0);
}

async function readAll(chunks: readonly Buffer[]): Promise<FileToCheck[]> {
  const found: FileToCheck[] = [];
  for await (const file of readChecks(Readable.from(chunks, { objectMode: false }))) found.push(file);
  return found;
}

describe('the protocol between a gateway and its decoder', () => {
  it('files are read as they were written, however their bytes arrive, and none of which a part is missing', async () => {
    const file = fc
      .record({
        file: fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes)),
        mediaType: fc.constantFrom('image/png', 'image/jpeg', ''),
      })
      .map((made) => ({ ...made }));
    await fc.assert(
      fc.asyncProperty(
        fc.array(file, { maxLength: 4 }),
        fc.array(fc.nat(), { maxLength: 6 }),
        fc.nat(),
        async (files, cuts, lost) => {
          const bytes = bytesOf(files);
          const ends = [...new Set([0, ...cuts.map((cut) => cut % (bytes.length + 1)), bytes.length])].sort(
            (a, b) => a - b,
          );
          const chunks = ends.slice(1).map((end, at) => bytes.subarray(ends[at], end));
          assert.deepEqual(await readAll(chunks), files);
          const last = files.at(-1);
          if (last === undefined) return;
          const size = bytesOf([last]).length;
          assert.deepEqual(await readAll([bytes.subarray(0, bytes.length - 1 - (lost % size))]), files.slice(0, -1));
        },
      ),
    );
  });

  it('an answer is read as it was written, and nothing else is an answer', () => {
    for (const isWhole of [true, false]) {
      const answer = { isWhole, mostResidentBytes: 999_999_999_999_999, cpuMs: 0 };
      const line = toLine(answer);
      assert.ok(line.length <= maxLineBytes);
      assert.deepEqual(fromLine(line.trimEnd()), answer);
    }
    for (const line of [
      '',
      'whole',
      'whole 1',
      'whole 1 2 3',
      'WHOLE 1 2',
      'whole -1 2',
      'whole 1 1e3',
      ' whole 1 2',
    ]) {
      assert.equal(fromLine(line), undefined, line);
    }
    assert.equal(fromLine(`whole 1 ${'9'.repeat(16)}`), undefined);
  });
});
