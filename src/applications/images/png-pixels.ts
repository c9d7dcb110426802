import { once } from 'node:events';
import { createInflate } from 'node:zlib';
import type { Png } from './png.ts';

/** Large pieces: a call for each of many small ones takes longer than to decompress them. */
const pieceBytes = 1_048_576;
/** A row's first byte says how it is filtered; there are five filters. */
const lastFilter = 4;

/**
 * Whether a PNG's compressed pixels come to exactly the rows they should, by the whole of its data. Nothing else can be
 * wrong with a row: each value of a pixel stands for some colour.
 */
export async function arePixelsWhole({ data, rows }: Png): Promise<boolean> {
  const inflate = createInflate({ chunkSize: pieceBytes });
  const reader = new RowReader(rows);
  inflate.on('data', (piece: Buffer) => {
    if (!reader.read(piece)) inflate.destroy(new Error('the rows are not those of the image'));
  });
  try {
    const ended = once(inflate, 'end');
    for (const part of data) inflate.write(part);
    inflate.end();
    await ended;
  } catch {
    return false;
  }
  // Bytes behind the end of the compressed stream were given, and not read.
  const given = data.reduce((sum, part) => sum + part.length, 0);
  return reader.isAtEnd && inflate.bytesWritten === given;
}

/** Goes through decompressed rows, which pieces cut anywhere. */
class RowReader {
  readonly #rows: Png['rows'];
  #pass = 0;
  #row = 0;
  /** Bytes of the present row that are still to come; 0 when its filter comes next. */
  #left = 0;

  constructor(rows: Png['rows']) {
    this.#rows = rows.filter(({ count }) => count > 0);
  }

  get isAtEnd(): boolean {
    return this.#pass === this.#rows.length && this.#left === 0;
  }

  /** False when a row has a filter there is not, or there are more rows than there should be. */
  read(piece: Buffer): boolean {
    for (let at = 0; at < piece.length; ) {
      if (this.#left === 0) {
        const pass = this.#rows[this.#pass];
        if (pass === undefined || (piece[at] ?? 0) > lastFilter) return false;
        this.#left = pass.bytes;
        this.#row += 1;
        if (this.#row === pass.count) {
          this.#row = 0;
          this.#pass += 1;
        }
      }
      const here = Math.min(this.#left, piece.length - at);
      this.#left -= here;
      at += here;
    }
    return true;
  }
}
