import { appendFileSync, mkdirSync, rmSync } from 'node:fs';
import { basename, join } from 'node:path';
import type { Connections } from './attacker.ts';
import type { Measured } from './honest.ts';

/** The result of one attack. */
export interface Outcome {
  readonly calm: Measured;
  readonly attacked: Measured;
  readonly ratio: number;
  readonly grownMiB: number;
  readonly peakMiB: number;
  readonly connections: Connections;
  /** How long the gateway may take to close the attacker's connections; undefined: they may stay. */
  readonly closedWithinMs: number | undefined;
}

/** Where the figures of the last run of each file stand, as a table in Markdown. */
const folder = join(import.meta.dirname, '../../../.local/hostile');
const begun = new Set<string>();

/** Prints an attack's figures in one line, and adds them to its file's table. */
export function report(attacks: URL, title: string, outcome: Outcome): void {
  const { calm, attacked, ratio, grownMiB, peakMiB, connections, closedWithinMs } = outcome;
  const times = `${Math.round(calm.p99Ms)} → ${Math.round(attacked.p99Ms)} ms`;
  const closed =
    closedWithinMs === undefined
      ? 'may stay'
      : `${connections.opened - connections.open} of ${connections.opened} after ${(connections.lastClosedMs / 1_000).toFixed(1)} s`;
  const memory = `${signed(grownMiB)} MiB (at most ${signed(peakMiB)})`;
  process.stdout.write(
    `# ${title}: honest p99 ×${ratio.toFixed(2)} (${times}, ${attacked.calls} calls), memory ${memory}, closed ${closed}\n`,
  );
  const file = join(folder, `${basename(attacks.pathname, '.ts')}.md`);
  mkdirSync(folder, { recursive: true });
  if (!begun.has(file)) {
    begun.add(file);
    rmSync(file, { force: true });
    appendFileSync(file, '| attack | honest p99 | times | memory | connections closed |\n|---|---|---|---|---|\n');
  }
  appendFileSync(file, `| ${title} | ×${ratio.toFixed(2)} | ${times} | ${memory} | ${closed} |\n`);
}

function signed(mib: number): string {
  return `${mib < 0 ? '−' : '+'}${Math.abs(Math.round(mib))}`;
}
