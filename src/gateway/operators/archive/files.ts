import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { open } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip, createGzip } from 'node:zlib';
import type { ArchivedRow } from './sets.ts';

/** A file of the archive, as its manifest describes it: one JSON object a line, compressed by gzip. */
export interface ArchivedFile {
  readonly name: string;
  readonly rows: number;
  /** Of the compressed file. */
  readonly bytes: number;
  readonly sha256: string;
}

/** More than any line, in bytes: an object has some dozens of steps. */
const longestLine = 8 * 2 ** 20;

/** Writes a new file and has the disk keep it. */
export async function writeRows(
  path: string,
  name: string,
  pages: AsyncIterable<ArchivedRow[]>,
): Promise<ArchivedFile> {
  const hash = createHash('sha256');
  let rows = 0;
  let bytes = 0;
  async function* lines() {
    for await (const page of pages) {
      rows += page.length;
      yield page.map(lineOf).join('');
    }
  }
  const file = await open(path, 'wx', 0o600);
  try {
    await pipeline(Readable.from(lines()), createGzip(), async (chunks: AsyncIterable<Buffer>) => {
      for await (const chunk of chunks) {
        hash.update(chunk);
        bytes += chunk.length;
        await file.writeFile(chunk);
      }
    });
    await file.sync();
  } finally {
    await file.close();
  }
  return { name, rows, bytes, sha256: hash.digest('hex') };
}

/** Throws if it could not be read again. */
function lineOf(row: ArchivedRow): string {
  const line = `${JSON.stringify(row)}\n`;
  if (Buffer.byteLength(line) > longestLine) {
    throw new ArchiveError(`${String(row.id)} has more than a line of the archive can hold: ${longestLine} bytes`);
  }
  return line;
}

/** Writes a small new file and has the disk keep it. */
export async function writeText(path: string, text: string): Promise<void> {
  const file = await open(path, 'wx', 0o600);
  try {
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
}

/** Has the disk keep a file, or the names in a folder. */
export async function sync(path: string): Promise<void> {
  const file = await open(path, 'r');
  try {
    await file.sync();
  } finally {
    await file.close();
  }
}

/** A file of the archive is not what its manifest says. */
export class ArchiveError extends Error {}

/** Reads a file in pages, and throws unless it is exactly what its manifest says; that is known only at the end. */
export async function readRows(
  path: string,
  { rows, bytes, sha256 }: ArchivedFile,
  use: (page: ArchivedRow[]) => Promise<void> = async () => {},
): Promise<void> {
  const hash = createHash('sha256');
  const found = { rows: 0, bytes: 0 };
  async function* hashed(chunks: AsyncIterable<Buffer>) {
    for await (const chunk of chunks) {
      hash.update(chunk);
      found.bytes += chunk.length;
      yield chunk;
    }
  }
  try {
    await pipeline(createReadStream(path), hashed, createGunzip(), async (chunks: AsyncIterable<Buffer>) => {
      let rest: Buffer = Buffer.alloc(0);
      for await (const chunk of chunks) {
        const text = Buffer.concat([rest, chunk]);
        const end = text.lastIndexOf(10) + 1;
        rest = text.subarray(end);
        if (rest.length >= longestLine) throw new ArchiveError(`${path} has a line that is too long`);
        if (end === 0) continue;
        const page = text
          .toString('utf8', 0, end - 1)
          .split('\n')
          .map((line) => JSON.parse(line) as ArchivedRow);
        found.rows += page.length;
        await use(page);
      }
      if (rest.length > 0) throw new ArchiveError(`${path} ends within a line`);
    });
  } catch (error) {
    if (error instanceof SyntaxError || isUnreadable(error)) {
      throw new ArchiveError(`${path} cannot be read: ${(error as Error).message}`, { cause: error });
    }
    throw error;
  }
  if (hash.digest('hex') !== sha256 || found.bytes !== bytes) {
    throw new ArchiveError(`${path} is not the file that was written: its SHA-256 is another one`);
  }
  if (found.rows !== rows) throw new ArchiveError(`${path} has ${found.rows} rows instead of ${rows}`);
}

/** Whether the file is missing, cut off or no gzip. */
function isUnreadable(error: unknown): boolean {
  const { code = '' } = error as { code?: string };
  return code === 'ENOENT' || code.startsWith('Z_');
}
