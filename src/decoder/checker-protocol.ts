import type { Readable, Writable } from 'node:stream';

/** A file for a decoder, which gets one at a time. */
export interface FileToCheck {
  readonly file: Buffer;
  readonly mediaType: string;
}

/** A decoder's answer. */
export interface Checked {
  readonly isWhole: boolean;
  /** The most memory the decoder has held since its start. */
  readonly mostResidentBytes: number;
  /** The processor time the decoder has used since its start. */
  readonly cpuMs: number;
}

/** A decoder writes this when it can take files. */
export const readyLine = 'ready\n';

/** The longest line a decoder may write. */
export const maxLineBytes = 200;

export function toLine({ isWhole, mostResidentBytes, cpuMs }: Checked): string {
  return `${isWhole ? 'whole' : 'damaged'} ${mostResidentBytes} ${cpuMs}\n`;
}

/** Reads an answer and trusts nothing in it, because a file may have taken over the decoder. */
export function fromLine(line: string): Checked | undefined {
  const [, verdict, mostResidentBytes, cpuMs] = /^(whole|damaged) (\d{1,15}) (\d{1,15})$/.exec(line) ?? [];
  if (verdict === undefined) return undefined;
  return { isWhole: verdict === 'whole', mostResidentBytes: Number(mostResidentBytes), cpuMs: Number(cpuMs) };
}

/** The length of a file and that of its media type. */
const headBytes = 5;

export function writeCheck(to: Writable, { file, mediaType }: FileToCheck): void {
  const head = Buffer.alloc(headBytes);
  head.writeUInt32BE(file.length);
  head.writeUInt8(mediaType.length, 4);
  to.write(head);
  to.write(mediaType, 'latin1');
  to.write(file);
}

/** Reads the files that `writeCheck` wrote, until the stream ends. */
export async function* readChecks(from: Readable): AsyncGenerator<FileToCheck, void, undefined> {
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

/** Reads pieces of known sizes from chunks that end anywhere. */
class PieceReader {
  readonly #chunks: AsyncIterator<Buffer>;
  #rest: Buffer = Buffer.alloc(0);

  constructor(from: Readable) {
    this.#chunks = from[Symbol.asyncIterator]();
  }

  /** The next piece; undefined if the stream ends first. */
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
