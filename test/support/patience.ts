import { readFileSync } from 'node:fs';
import { availableParallelism, loadavg } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';

/** A factor beyond this is no busy machine but a broken one. */
const most = 20;
const measureEveryMs = 1_000;
const samples = 20;
const sampleIntervalMs = 50;

let measuredAt = Number.NEGATIVE_INFINITY;
let factor = 1;

/**
 * How many times longer things take than on a machine with nothing else to do: 1 on a quiet machine, at most 20. It is
 * the number of programs that want to run for each core, over the last minute or right now, whichever is more.
 */
export function slowness(): number {
  const now = performance.now();
  if (now - measuredAt < measureEveryMs) return factor;
  measuredAt = now;
  const [lastMinute = 0] = loadavg();
  factor = Math.min(most, Math.max(1, lastMinute / availableParallelism(), runnable() / availableParallelism()));
  return factor;
}

/**
 * The same from a look at the machine that takes a second: what ran before is not counted, which the average of the last
 * minute still has.
 */
export async function slownessNow(): Promise<number> {
  const seen: number[] = [];
  for (let taken = 0; taken < samples; taken += 1) {
    await delay(sampleIntervalMs);
    seen.push(runnable());
  }
  const median = seen.sort((one, other) => one - other)[samples / 2] ?? 0;
  return Math.min(most, Math.max(1, median / availableParallelism()));
}

/** A time that is enough on a quiet machine, made long enough for this one as it is now. */
export function patient(ms: number): number {
  return Math.ceil(ms * slowness());
}

/** Programs that run or want to run now. */
function runnable(): number {
  try {
    const [, , , tasks = '0/0'] = readFileSync('/proc/loadavg', 'utf8').split(' ');
    return Number(tasks.split('/')[0]);
  } catch {
    // Not Linux: the average of the last minute is enough.
    return 0;
  }
}
