import type { Readable, Writable } from 'node:stream';

/** What the process that decodes is asked: one file at a time. */
export interface Check {
  readonly file: Buffer;
  readonly mediaType: string;
}

/** What it answers. */
export interface Checked {
  readonly isWhole: boolean;
  /** What the process takes of memory by now. */
  readonly residentBytes: number;
}

/** The length of a file and that of its media type. */
const headBytes = 5;

/** Hands a file over as it is: messages between processes would copy it twice, which costs more than it takes to write. */
export function writeCheck(to: Writable, { file, mediaType }: Check): void {
  const head = Buffer.alloc(headBytes);
  head.writeUInt32BE(file.length);
  head.writeUInt8(mediaType.length, 4);
  to.write(head);
  to.write(mediaType, 'latin1');
  to.write(file);
}

/** Reads what `writeCheck` wrote, file by file, until there is no more. */
export async function* readChecks(from: Readable): AsyncGenerator<Check, void, undefined> {
  const reader = new PieceReader(from);
  for (;;) {
    const head = await reader.read(headBytes);
    if (head === undefined) return;
    const mediaType = await reader.read(head.readUInt8(4));
    const file = await reader.read(head.readUInt32BE());
    if (mediaType === undefined || file === undefined) return;
    yield { file, mediaType: mediaType.toString('latin1') };
  }
}

/** Pieces of known sizes out of chunks that end anywhere. */
class PieceReader {
  readonly #chunks: AsyncIterator<Buffer>;
  #rest: Buffer = Buffer.alloc(0);

  constructor(from: Readable) {
    this.#chunks = from[Symbol.asyncIterator]();
  }

  /** The next piece; undefined where the stream ended before it was whole. */
  async read(bytes: number): Promise<Buffer | undefined> {
    const piece = Buffer.allocUnsafeSlow(bytes);
    for (let filled = 0; ; ) {
      const taken = this.#rest.copy(piece, filled);
      this.#rest = this.#rest.subarray(taken);
      filled += taken;
      if (filled === bytes) return piece;
      const { done, value } = await this.#chunks.next();
      if (done) return undefined;
      this.#rest = value;
    }
  }
}
