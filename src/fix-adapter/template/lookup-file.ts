import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import type { Logger } from '../../kit/log.ts';
import { periodic, type Worker } from '../../kit/worker.ts';
import { type Lookups, noLookups, parseLookups } from './lookups.ts';
import { lookupsOf, type OrderTemplate } from './parse.ts';

/** A quarter of a million accounts, which are read in a fraction of a second. */
export const maxLookupBytes = 16_777_216;
const everyMs = 1_000;

/** The values of a lookup file, read again when it changes. A file that cannot be used is refused, and the former values stay. */
export class LookupFile {
  readonly worker: Worker;
  #current: Lookups;
  /** The file's state when it was read or refused last. */
  #seen: string;
  #found: string;
  #isRefused = false;

  private constructor(
    private readonly path: string,
    private readonly template: OrderTemplate,
    private readonly log: Logger,
    first: { readonly lookups: Lookups; readonly version: string },
  ) {
    this.#current = first.lookups;
    this.#seen = first.version;
    this.#found = first.version;
    this.worker = periodic('lookup file', everyMs, () => this.check());
  }

  /** Reads the file for the first time. Throws if it cannot be used. */
  static async open(path: string, template: OrderTemplate, log: Logger): Promise<LookupFile> {
    const version = await versionOf(path);
    return new LookupFile(path, template, log, { lookups: checkedLookups(await readText(path), template), version });
  }

  get current(): Lookups {
    return this.#current;
  }

  /** Looks whether the file has changed. It is read once two looks in a row have found the same, so that it is not half written. */
  async check(): Promise<void> {
    const found = await versionOf(this.path).catch((error: NodeJS.ErrnoException) => `error ${error.code}`);
    const isStill = found === this.#found;
    this.#found = found;
    if (found === this.#seen || !isStill) return;
    try {
      const lookups = checkedLookups(await readText(this.path), this.template);
      if ((await versionOf(this.path)) !== found) return;
      this.#current = lookups;
      this.#isRefused = false;
      this.log.info('the lookup file has changed, and its new values are used');
    } catch (error) {
      const wrong = (error as NodeJS.ErrnoException).code ?? (error as Error).message;
      if (!this.#isRefused) this.log.error({ wrong }, 'the lookup file is refused; its former values stay in use');
      this.#isRefused = true;
    }
    this.#seen = found;
  }
}

/** Reads lookups, and throws if a template asks for values that nothing there has. */
export function checkedLookups(text: string, template: OrderTemplate): Lookups {
  const lookups = parseLookups(text);
  checkNames(template, lookups);
  return lookups;
}

/** Throws if a template without a lookup file asks for its values. */
export function checkNoLookups(template: OrderTemplate): void {
  checkNames(template, noLookups);
}

function checkNames(template: OrderTemplate, lookups: Lookups): void {
  const missing = lookupsOf(template).find(({ by, name }) => !lookups.hasName(by, name));
  if (missing !== undefined) {
    throw new Error(`must have a value of {${missing.by}.${missing.name}} for at least one ${missing.by}`);
  }
}

async function versionOf(path: string): Promise<string> {
  return withFile(path, async (file) => {
    const { mtimeNs, size, ino, dev } = await file.stat({ bigint: true });
    return `${dev} ${ino} ${size} ${mtimeNs}`;
  });
}

async function readText(path: string): Promise<string> {
  return withFile(path, (file) => file.readFile('utf8'));
}

async function withFile<T>(path: string, work: (file: Awaited<ReturnType<typeof open>>) => Promise<T>): Promise<T> {
  // O_NONBLOCK, because opening a pipe would wait until somebody writes into it.
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const found = await file.stat();
    if (!found.isFile()) throw new Error('must be a regular file');
    if (found.size > maxLookupBytes) throw new Error(`must be at most ${maxLookupBytes} bytes`);
    return await work(file);
  } finally {
    await file.close();
  }
}
