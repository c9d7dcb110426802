import { setMaxListeners } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from './log.ts';

/** Background work with a name. `run` goes on until the signal is aborted, and throws only when something is wrong. */
export interface Worker {
  readonly name: string;
  run(signal: AbortSignal): Promise<void>;
}

const firstRestartMs = 100;
const longestRestartMs = 5_000;
/** A run that has lasted this long is well: longer than a call without an answer takes to fail, which is ten seconds. */
const wellAfterMs = 12_000;
const mostListeners = 100;

/** Keeps workers running: one that throws is started again after a wait that grows, until the supervisor stops. */
export class Supervisor {
  readonly #stopping = new AbortController();
  readonly #running: Promise<void>[] = [];
  readonly #failing = new Map<string, number>();

  constructor(private readonly log: Logger) {
    // Each worker listens to the one signal; Node takes more than ten listeners for a leak.
    setMaxListeners(mostListeners, this.#stopping.signal);
  }

  start(worker: Worker): void {
    this.#running.push(this.#keepRunning(worker));
  }

  /** Names of workers whose last run failed, for readiness and diagnostics. */
  get failing(): string[] {
    return [...this.#failing.keys()];
  }

  /** Tells all workers to stop and waits for them, at most the given time. Answers whether all stopped. */
  async stop(graceMs: number): Promise<boolean> {
    this.#stopping.abort();
    const timer = new AbortController();
    const all = Promise.all(this.#running).then(() => true);
    const late = delay(graceMs, false, { signal: timer.signal }).catch(() => false);
    const stopped = await Promise.race([all, late]);
    timer.abort();
    return stopped;
  }

  async #keepRunning(worker: Worker): Promise<void> {
    const { signal } = this.#stopping;
    let waitMs = firstRestartMs;
    while (!signal.aborted) {
      const startedAt = performance.now();
      // A worker runs on and on when all is well, so that it runs for a while is what tells that it is well again.
      const wellAgain = setTimeout(() => this.#failing.delete(worker.name), wellAfterMs);
      try {
        await worker.run(signal);
        this.#failing.delete(worker.name);
      } catch (error) {
        if (signal.aborted) return;
        if (performance.now() - startedAt > wellAfterMs) waitMs = firstRestartMs;
        this.#failing.set(worker.name, (this.#failing.get(worker.name) ?? 0) + 1);
        this.log.error({ err: error, worker: worker.name, restartMs: waitMs }, 'a worker failed and will be restarted');
        await pause(waitMs, signal);
        waitMs = Math.min(waitMs * 2, longestRestartMs);
      } finally {
        clearTimeout(wellAgain);
      }
    }
  }
}

/** Waits for a time, or until the signal is aborted, whichever comes first. Never throws. */
export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  await delay(ms, undefined, { signal }).catch(() => undefined);
}

/** Wakes a worker that waits for work. A wake that comes while it works is kept for its next wait. */
export class Wakeup {
  #pending = false;
  #resolve: (() => void) | undefined;

  wake(): void {
    this.#pending = true;
    this.#resolve?.();
  }

  /** Waits for a wake, at most the given time, or until the signal is aborted. */
  async wait(ms: number, signal: AbortSignal): Promise<void> {
    if (!this.#pending && !signal.aborted) {
      await new Promise<void>((resolve) => {
        const finish = () => {
          clearTimeout(timer);
          signal.removeEventListener('abort', finish);
          this.#resolve = undefined;
          resolve();
        };
        const timer = setTimeout(finish, ms);
        signal.addEventListener('abort', finish, { once: true });
        this.#resolve = finish;
      });
    }
    this.#pending = false;
  }
}
