import { type LoadResult, load, median } from './load.ts';
import { cpuMs } from './processes.ts';

/** The result of a load, with the processor time per call, in microseconds, of the process that bore it. */
export type LoadAndCpu = LoadResult & { readonly cpuUs: number };

/** Loads a process, and looks at what it used of the processor. */
export async function loadProcess(
  pid: number,
  call: () => Promise<unknown>,
  atOnce: number,
  durationMs: number,
): Promise<LoadAndCpu> {
  const before = cpuMs(pid);
  const result = await load(call, atOnce, durationMs);
  return { ...result, cpuUs: ((cpuMs(pid) - before) * 1_000) / result.count };
}

/** Two sides' processor time per call, each the median of its turns. */
export function bothCpu(ours: readonly number[], theirs: readonly number[]): string {
  return `${median(ours).toFixed(0)} µs / ${median(theirs).toFixed(0)} µs`;
}
