import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describeExit } from './exits.ts';
import type { KeptProcess } from './keeper.ts';
import { describeDeath } from './processes.ts';
import type { StartProgress } from './progress.ts';

export type PartName = 'mariadb' | 'nats' | 'simulator' | 'receiver' | 'gateway';

/** A part that runs. */
export interface Part {
  readonly process: KeptProcess;
}

export interface PartsOptions {
  readonly dataDir: string;
  readonly progress: StartProgress;
  /** Ends the sandbox: a part cannot be had. */
  readonly fail: (error: unknown) => void;
  /** A part runs again, as another process. */
  readonly restarted: (name: PartName, pid: number) => void;
}

/** A part that dies this often within this time is not started again. */
const maxDeaths = 5;
const countedMs = 60_000;
const pollMs = 100;

/**
 * The parts of a sandbox. Once all of them run, one that dies is started again, as a supervisor does with a service, so
 * that the others can be seen to outlive it.
 */
export class SandboxParts {
  readonly #deaths = new Map<PartName, number[]>();
  #isComplete = false;
  #isStopping = false;

  constructor(private readonly options: PartsOptions) {}

  /** Starts a part. `start` gets what it returned before, so that the part comes back with its ports. */
  async start<P extends Part>(name: PartName, start: (before?: P) => Promise<P>): Promise<P> {
    const part = await start();
    this.#keep(name, part, start);
    return part;
  }

  /** All parts run: from now on those that die are started again. */
  complete(): void {
    this.#isComplete = true;
  }

  /** A process that ends from now on is meant to. */
  stop(): void {
    this.#isStopping = true;
  }

  #keep<P extends Part>(name: PartName, part: P, start: (before: P) => Promise<P>): void {
    this.#startAgain(name, part, start).catch((error: unknown) => {
      if (!this.#isStopping) this.options.fail(error);
    });
  }

  async #startAgain<P extends Part>(name: PartName, part: P, start: (before: P) => Promise<P>): Promise<void> {
    const { dataDir, progress, restarted } = this.options;
    const exit = await part.process.exited;
    if (this.#isStopping) return;
    if (!this.#isComplete || this.#diesTooOften(name)) throw describeDeath(part.process, exit);
    progress.note(`${part.process.name} ${describeExit(exit)}, and is started again`);
    while (isHeldDown(dataDir, name)) {
      await sleep(pollMs);
      if (this.#isStopping) return;
    }
    const next = await progress.step(
      `${part.process.name}, again`,
      this.#tryUntilItRuns(name, () => start(part)),
    );
    if (this.#isStopping) return;
    restarted(name, next.process.pid);
    this.#keep(name, next, start);
  }

  /** Parts that it needs may be away too, and on their way back. */
  async #tryUntilItRuns<P>(name: PartName, start: () => Promise<P>): Promise<P> {
    for (;;) {
      try {
        return await start();
      } catch (error) {
        if (this.#isStopping || this.#diesTooOften(name)) throw error;
        await sleep(1_000);
      }
    }
  }

  #diesTooOften(name: PartName): boolean {
    const now = performance.now();
    const recent = (this.#deaths.get(name) ?? []).filter((at) => now - at < countedMs);
    this.#deaths.set(name, [...recent, now]);
    return recent.length >= maxDeaths;
  }
}

/** The folder in which a file of a part's name keeps that part from being started again. */
export function downFolder(dataDir: string): string {
  const folder = join(dataDir, 'down');
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  return folder;
}

function isHeldDown(dataDir: string, name: PartName): boolean {
  return existsSync(join(dataDir, 'down', name));
}
