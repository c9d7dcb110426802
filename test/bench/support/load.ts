import { setTimeout as delay } from 'node:timers/promises';

/** The result of a load. */
export interface LoadResult {
  readonly perSecond: number;
  readonly medianMs: number;
  readonly p99Ms: number;
  readonly count: number;
}

/** Calls something again and again, so many at a time, for a time. A call that throws ends the measurement. */
export async function load(call: () => Promise<unknown>, atOnce: number, durationMs: number): Promise<LoadResult> {
  const timesMs: number[] = [];
  const startedAt = performance.now();
  const endAt = startedAt + durationMs;
  const client = async () => {
    while (performance.now() < endAt) {
      const callAt = performance.now();
      await call();
      timesMs.push(performance.now() - callAt);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, client));
  const tookMs = performance.now() - startedAt;
  return { perSecond: (timesMs.length * 1_000) / tookMs, count: timesMs.length, ...quantiles(timesMs) };
}

/** Begins so many calls a second for a time, whether or not earlier ones have ended, and waits for all. */
export async function pacedLoad(
  call: () => Promise<unknown>,
  callsPerSecond: number,
  durationMs: number,
): Promise<LoadResult> {
  const timesMs: number[] = [];
  const calls: Promise<void>[] = [];
  const startedAt = performance.now();
  const one = async () => {
    const callAt = performance.now();
    await call();
    timesMs.push(performance.now() - callAt);
  };
  const total = Math.round((callsPerSecond * durationMs) / 1_000);
  while (calls.length < total) {
    const due = Math.min(total, Math.ceil(((performance.now() - startedAt) * callsPerSecond) / 1_000));
    while (calls.length < due) calls.push(one());
    await delay(1);
  }
  await Promise.all(calls);
  const tookMs = performance.now() - startedAt;
  return { perSecond: (timesMs.length * 1_000) / tookMs, count: timesMs.length, ...quantiles(timesMs) };
}

/** The middle and the 99th percentile of some times. */
export function quantiles(timesMs: readonly number[]): { medianMs: number; p99Ms: number } {
  const sorted = [...timesMs].sort((left, right) => left - right);
  const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
  return { medianMs: at(0.5), p99Ms: at(0.99) };
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((left, right) => left - right);
  const middle = Math.floor(sorted.length / 2);
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : (upper + (sorted[middle - 1] ?? Number.NaN)) / 2;
}
