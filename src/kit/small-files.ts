import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import { atMost } from './at-most.ts';

const maxBytes = 1_048_576;

/**
 * Reads small files, one at a time. Node has four threads for files, and looks up names with the same ones. So a file system
 * that hangs must not hold more than one of them, or the gateway could connect to nobody. A read that would wait longer than the
 * given time fails.
 */
export class SmallFiles {
  /** Never rejects. Undefined: nothing is being read. */
  #reading: Promise<void> | undefined;

  constructor(
    private readonly answerWithinMs = 2_000,
    private readonly readNow: (path: string) => Promise<Buffer> = readSmall,
  ) {}

  /** Throws an error with a code if the file cannot be read, is no regular one, or is larger than 1 MiB. */
  async read(path: string): Promise<Buffer> {
    const end = performance.now() + this.answerWithinMs;
    const isOver = async (reading: Promise<void>) => !(await atMost(Math.max(0, end - performance.now()), reading));
    while (this.#reading !== undefined) if (await isOver(this.#reading)) throw unreadable(path, 'ETIMEDOUT');
    const found = this.readNow(path);
    const reading = found.then(
      () => this.#end(),
      () => this.#end(),
    );
    this.#reading = reading;
    if (await isOver(reading)) throw unreadable(path, 'ETIMEDOUT');
    return found;
  }

  #end(): void {
    this.#reading = undefined;
  }
}

/** Those of this process. */
export const smallFiles = new SmallFiles();

async function readSmall(path: string): Promise<Buffer> {
  // O_NONBLOCK, because opening a pipe would wait until somebody writes into it.
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const found = await file.stat();
    if (!found.isFile()) throw unreadable(path, 'it is no regular file');
    if (found.size > maxBytes) throw unreadable(path, 'EFBIG');
    return await file.readFile();
  } finally {
    await file.close();
  }
}

function unreadable(path: string, code: string): NodeJS.ErrnoException {
  return Object.assign(new Error(`${path} cannot be read: ${code}`), { code });
}
