import { setMaxListeners } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { atMost } from './at-most.ts';
import type { Logger } from './log.ts';

/** Named background work. `run` returns when the signal is aborted, and throws only on a fault. */
export interface Worker {
  readonly name: string;
  run(signal: AbortSignal): Promise<void>;
}

/** A worker that works, waits, and works again. The work throws only on a fault. */
export function periodic(name: string, everyMs: number, work: () => Promise<unknown>): Worker {
  const run = async (signal: AbortSignal) => {
    while (!signal.aborted) {
      await work();
      await pause(everyMs, signal);
    }
  };
  return { name, run };
}

const firstRestartMs = 100;
const longestRestartMs = 5_000;
/** A worker is healthy after it has run this long: longer than a call without an answer takes to fail, which is 10 s. */
const healthyAfterMs = 12_000;
const maxListeners = 100;

/** Keeps workers running until `stop`. It restarts a worker that throws, after a wait that grows. */
export class Supervisor {
  readonly #stopping = new AbortController();
  readonly #running: Promise<void>[] = [];
  readonly #failing = new Set<string>();

  constructor(private readonly log: Logger) {
    // All workers listen to one signal, and Node warns of a leak above ten listeners.
    setMaxListeners(maxListeners, this.#stopping.signal);
  }

  start(worker: Worker): void {
    this.#running.push(this.#keepRunning(worker));
  }

  /** Names of workers whose last run failed, for readiness and diagnostics. */
  get failing(): string[] {
    return [...this.#failing];
  }

  /** Stops all workers and waits for them, at most the given time. Returns whether all stopped. */
  async stop(graceMs: number): Promise<boolean> {
    this.#stopping.abort();
    return atMost(graceMs, Promise.all(this.#running));
  }

  async #keepRunning(worker: Worker): Promise<void> {
    const { signal } = this.#stopping;
    let waitMs = firstRestartMs;
    while (!signal.aborted) {
      const startedAt = performance.now();
      const healthyAgain = setTimeout(() => this.#failing.delete(worker.name), healthyAfterMs);
      try {
        await worker.run(signal);
        this.#failing.delete(worker.name);
      } catch (error) {
        if (signal.aborted) return;
        if (performance.now() - startedAt > healthyAfterMs) waitMs = firstRestartMs;
        this.#failing.add(worker.name);
        this.log.error({ err: error, worker: worker.name, restartMs: waitMs }, 'a worker failed and will be restarted');
        await pause(waitMs, signal);
        waitMs = Math.min(waitMs * 2, longestRestartMs);
      } finally {
        clearTimeout(healthyAgain);
      }
    }
  }
}

/** Waits for a time, or until the signal is aborted. Never throws. */
export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  await delay(ms, undefined, { signal }).catch(() => undefined);
}

/** Wakes a waiting worker. A wake while it works is kept for its next wait. */
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

/** Wakes everyone who waits for a change. */
export class Waiters {
  readonly #waiting = new Set<() => void>();

  wakeAll(): void {
    for (const wake of [...this.#waiting]) wake();
  }

  /** Waits for the next wake, at most the given time, or until the signal, if any, is aborted. Never throws. */
  wait(ms: number, signal?: AbortSignal): Promise<void> {
    if (signal?.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const done = () => {
        clearTimeout(timer);
        signal?.removeEventListener('abort', done);
        this.#waiting.delete(done);
        resolve();
      };
      const timer = setTimeout(done, ms);
      signal?.addEventListener('abort', done, { once: true });
      this.#waiting.add(done);
    });
  }
}
