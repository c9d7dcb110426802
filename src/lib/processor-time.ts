import { readFileSync } from 'node:fs';

/** Linux counts processor time for its users in hundredths of a second, on every machine. */
const tickMs = 10;

/** The processor time that a process has used, with all its threads; undefined where the system does not say. */
export function processorTimeMs(pid: number): number | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    // The fields after the program's name, which may contain anything, begin behind the last parenthesis.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    const ticks = Number(fields[11]) + Number(fields[12]);
    return Number.isSafeInteger(ticks) ? ticks * tickMs : undefined;
  } catch {
    return undefined;
  }
}
