import { createHash } from 'node:crypto';
import type { Logger } from './log.ts';
import { smallFiles } from './small-files.ts';
import { periodic, type Worker } from './worker.ts';

/** A value that may change while the process runs. */
export interface Live<T> {
  readonly current: T;
  /** Calls the listener after each change. */
  onChange(listener: (value: T) => void): void;
}

/** A value that never changes. */
export function fixed<T>(value: T): Live<T> {
  return { current: value, onChange: () => {} };
}

/** The contents of files by their use; undefined: there is no file for this use. */
type Contents<Use extends string> = Readonly<Record<Use, Buffer | undefined>>;

interface Options<Use extends string, T> {
  /** The paths of the files by their use. */
  readonly files: Readonly<Record<Use, string | undefined>>;
  /** Throws an Error, without any of the contents, if they cannot be used. `former` is absent at the start. */
  readonly make: (contents: Contents<Use>, former?: T) => T;
  /** Why a value should not be used, such as an expired certificate. At the start it is used nevertheless. */
  readonly problem?: (value: T) => string | undefined;
  /** Tries a changed value out, and throws if it does not work: a `RefusedChange` to say why. */
  readonly prove?: (value: T) => Promise<void>;
  /** The link or port that they are for. */
  readonly name: string;
  readonly log: Logger;
  /** How often the files are read; absent: each second. */
  readonly everyMs?: number;
}

const usuallyEveryMs = 1_000;
/** The longest wait until refused files are tried again. A server locks an account after some wrong passwords. */
const longestWaitMs = 60_000;
/** After so many reads in a row that each found something else, files are refused, so that somebody is notified. */
const maxRestlessReads = 30;

/** Why a changed value is refused, in words without any of its contents, which are logged. */
export class RefusedChange extends Error {
  override readonly name = 'RefusedChange';
}

/** Files that changed and cannot be used. */
interface Refusal {
  readonly digest: string;
  readonly wrong: string;
  readonly tries: number;
  /** When they are tried again, by `performance.now`. */
  readonly againAt: number;
}

/**
 * A value made of files, which is made again when they change. Bad files are logged once and tried again after a wait
 * that grows, and the former value stays. Files are used once they stop changing, because a certificate and its key
 * change one after the other. They are read, not watched: so every change is seen, also through the links of a mounted
 * secret.
 */
export class WatchedFiles<Use extends string, T> implements Live<T> {
  readonly worker: Worker;
  readonly #listeners: ((value: T) => void)[] = [];
  #current: T;
  /** The files that the current value is made of. */
  #used: string;
  #seen: string;
  /** How many reads in a row found something else than the read before. */
  #restlessReads = 0;
  #refusal: Refusal | undefined;

  private constructor(
    private readonly options: Options<Use, T>,
    first: Contents<Use>,
  ) {
    const { name: link, log, everyMs = usuallyEveryMs } = options;
    this.#current = options.make(first);
    this.#used = digestOf(first);
    this.#seen = this.#used;
    this.worker = periodic(`files of ${link}`, everyMs, () => this.#check());
    const wrong = options.problem?.(this.#current);
    if (wrong !== undefined) log.error({ link, wrong }, 'a certificate is invalid');
  }

  /** Reads the files for the first time. Throws if they cannot be used. */
  static async open<Use extends string, T>(options: Options<Use, T>): Promise<WatchedFiles<Use, T>> {
    return new WatchedFiles(options, await readAll(options.files));
  }

  get current(): T {
    return this.#current;
  }

  /** The link or port that they are for. */
  get name(): string {
    return this.options.name;
  }

  /** Whether there is any file that may change. */
  get hasFiles(): boolean {
    return Object.values(this.options.files).some((path) => path !== undefined);
  }

  /** Whether the files have changed and are refused, so that the former value is in use. */
  get isRefused(): boolean {
    return this.#refusal !== undefined;
  }

  onChange(listener: (value: T) => void): void {
    this.#listeners.push(listener);
  }

  async #check(): Promise<void> {
    const { files, name: link, log } = this.options;
    const found = await readAll(files).catch((error: NodeJS.ErrnoException) => error);
    const digest = found instanceof Error ? String(found.code) : digestOf(found);
    const isStill = digest === this.#seen;
    this.#seen = digest;
    this.#restlessReads = isStill ? 0 : this.#restlessReads + 1;
    if (this.#restlessReads >= maxRestlessReads) return this.#refuse('', 'the files keep changing');
    if (digest === this.#used) this.#refusal = undefined;
    if (!isStill || digest === this.#used || this.#mustWait(digest)) return;
    const value = found instanceof Error ? wrongOf(found) : this.#judge(found);
    const wrong = 'wrong' in value ? value.wrong : await this.#prove(value.made);
    if (!('made' in value) || wrong !== undefined) return this.#refuse(digest, String(wrong));
    this.#refusal = undefined;
    this.#used = digest;
    this.#current = value.made;
    for (const listener of this.#listeners) listener(value.made);
    log.info({ link }, 'a new certificate or secret is used');
  }

  #mustWait(digest: string): boolean {
    return this.#refusal?.digest === digest && performance.now() < this.#refusal.againAt;
  }

  #refuse(digest: string, wrong: string): void {
    const { name: link, log, everyMs = usuallyEveryMs } = this.options;
    const former = this.#refusal?.digest === digest ? this.#refusal : undefined;
    if (former?.wrong !== wrong) {
      log.error({ link, wrong }, 'a new certificate or secret is refused; the former one stays in use');
    }
    const tries = (former?.tries ?? 0) + 1;
    this.#refusal = { digest, wrong, tries, againAt: performance.now() + waitMs(tries, everyMs) };
  }

  async #prove(value: T): Promise<string | undefined> {
    try {
      await this.options.prove?.(value);
      return undefined;
    } catch (error) {
      if (error instanceof RefusedChange) return error.message;
      return `it does not work: ${(error as NodeJS.ErrnoException).code ?? 'no connection'}`;
    }
  }

  #judge(contents: Contents<Use>): { made: T } | { wrong: string } {
    const { make, problem } = this.options;
    try {
      const made = make(contents, this.#current);
      const wrong = problem?.(made);
      return wrong === undefined ? { made } : { wrong };
    } catch (error) {
      return { wrong: (error as Error).message };
    }
  }
}

function wrongOf({ code }: NodeJS.ErrnoException) {
  return { wrong: `a file cannot be read: ${code}` };
}

async function readAll<Use extends string>(files: Readonly<Record<Use, string | undefined>>): Promise<Contents<Use>> {
  const contents: [string, Buffer | undefined][] = [];
  for (const [use, path] of Object.entries<string | undefined>(files)) {
    contents.push([use, path === undefined ? undefined : await smallFiles.read(path)]);
  }
  return Object.fromEntries(contents) as Contents<Use>;
}

function digestOf(contents: Contents<string>): string {
  const hash = createHash('sha256');
  for (const [use, content] of Object.entries(contents)) {
    hash.update(`${use} ${content?.length} `).update(content ?? '');
  }
  return hash.digest('hex');
}

/** How long refused files are left alone after so many tries, in milliseconds. */
export function waitMs(tries: number, everyMs: number): number {
  return Math.min(everyMs * 2 ** tries, longestWaitMs);
}
