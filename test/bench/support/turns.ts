import type { Turns } from '../run.ts';
import { bothCpu, loadProcess } from './cpu.ts';
import { ratio } from './report.ts';

/** How many calls are under way. */
export const atOnce = 32;

/** One of two that are compared: a call of it, and the process that serves it. */
export interface Side {
  readonly call: () => Promise<unknown>;
  readonly pid: number;
}

/** Measures two sides in turns, after one turn of each that does not count. */
export async function inTurns(ours: Side, theirs: Side, { rounds, durationMs }: Turns) {
  const figures = { ours: [] as number[], theirs: [] as number[], oursCpu: [] as number[], theirsCpu: [] as number[] };
  for (let round = -1; round < rounds; round += 1) {
    const left = await loadProcess(ours.pid, ours.call, atOnce, durationMs);
    const right = await loadProcess(theirs.pid, theirs.call, atOnce, durationMs);
    if (round < 0) continue;
    figures.ours.push(left.perSecond);
    figures.theirs.push(right.perSecond);
    figures.oursCpu.push(left.cpuUs);
    figures.theirsCpu.push(right.cpuUs);
  }
  return { ratio: ratio(figures.ours, figures.theirs), cpu: bothCpu(figures.oursCpu, figures.theirsCpu) };
}
