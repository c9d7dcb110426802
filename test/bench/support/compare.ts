import type { Turns } from '../run.ts';
import { load, median } from './load.ts';
import { comparedRow, type Row } from './report.ts';
import type { Processes, Usage, UsageWatch } from './usage.ts';

/** One of two gateways that are compared: a call of it, and the processes that work for it. */
export interface ComparedSide {
  readonly call: () => Promise<unknown>;
  readonly processes: Processes;
}

interface Figure {
  readonly unit: string;
  readonly value: number;
  /** Of processor time: how much it was in the whole turn. */
  readonly cpuMs?: number;
}

/** The result of a turn, each figure by its name. */
type Figures = ReadonlyMap<string, Figure>;

/** Processor time is counted in ticks of 10 ms. Less of it in a turn is not worth a ratio. */
const leastCpuMs = 50;

/**
 * Measures a call of two gateways in turns, after one turn of each that does not count. Who begins changes, so that
 * neither always comes after the other.
 */
export async function compareInTurns(
  atOnce: number,
  ours: ComparedSide,
  theirs: ComparedSide,
  { rounds, durationMs }: Turns,
  watch: UsageWatch,
): Promise<Row[]> {
  return inTurns([ours, theirs], rounds, (side) => takeTurn(side, atOnce, durationMs, watch));
}

/** Measures in turns what work of a known amount uses, for each part of the amount. */
export async function compareUsage<Side extends { readonly processes: Processes }>(
  sides: readonly [Side, Side],
  rounds: number,
  amount: number,
  watch: UsageWatch,
  work: (side: Side) => Promise<void>,
): Promise<Row[]> {
  return inTurns(sides, rounds, async (side) => {
    const { usage } = await watch.during(side.processes, () => work(side));
    return usageFigures(usage, amount);
  });
}

async function inTurns<Side>(
  [ours, theirs]: readonly [Side, Side],
  rounds: number,
  take: (side: Side) => Promise<Figures>,
): Promise<Row[]> {
  const taken = new Map<Side, Figures[]>([ours, theirs].map((side) => [side, []]));
  for (let round = -1; round < rounds; round += 1) {
    for (const side of round % 2 === 0 ? [theirs, ours] : [ours, theirs]) {
      const figures = await take(side);
      if (round >= 0) taken.get(side)?.push(figures);
    }
  }
  const figuresOf = (side: Side, name: string) => (taken.get(side) ?? []).flatMap((figures) => figures.get(name) ?? []);
  const names = [...(taken.get(ours)?.[0] ?? [])].map(([name]) => name);
  return names.flatMap((name) => {
    const [left, right] = [figuresOf(ours, name), figuresOf(theirs, name)];
    if ([left, right].every((side) => median(side.map(({ cpuMs }) => cpuMs ?? leastCpuMs)) < leastCpuMs)) return [];
    const values = (side: readonly Figure[]) => side.map(({ value }) => value);
    return comparedRow(name, left[0]?.unit ?? '', values(left), values(right));
  });
}

async function takeTurn(
  { call, processes }: ComparedSide,
  atOnce: number,
  durationMs: number,
  watch: UsageWatch,
): Promise<Figures> {
  const all = { ...processes, load: process.pid };
  const { result, usage } = await watch.during(all, () => load(call, atOnce, durationMs));
  const throughput: [string, Figure] = ['throughput', { unit: 'a second', value: result.perSecond }];
  return new Map([throughput, ...usageFigures(usage, result.count)]);
}

function usageFigures({ cpuMs: used, statements, rowsRead }: Usage, count: number): Figures {
  const total = Object.values(used).reduce((sum, value) => sum + value, 0);
  const cpu = Object.entries({ ...used, 'all processes': total }).map(([name, cpuMs]): [string, Figure] => [
    `CPU of ${name}`,
    { unit: 'µs', value: (cpuMs * 1_000) / count, cpuMs },
  ]);
  return new Map<string, Figure>([
    ...cpu,
    ['statements', { unit: 'each', value: statements / count }],
    ['rows read', { unit: 'each', value: rowsRead / count }],
  ]);
}
