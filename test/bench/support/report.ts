import { median } from './load.ts';
import { compare, type Ratios } from './ratios.ts';

/** One line of the report: what was measured, and what it came to. */
export interface Row {
  readonly what: string;
  readonly figure: string;
  /** The bound it should keep, for the reader; nothing fails by it. */
  readonly bound?: string;
  /** The comparison that the figure was made of, for the file of results. */
  readonly measured?: Compared;
}

/** Both sides' figures, a figure for each round. */
export interface Compared {
  readonly unit: string;
  readonly ours: readonly number[];
  readonly theirs: readonly number[];
  readonly ratios: Ratios;
}

/** Prints a section of the report. */
export function printRows(section: string, rows: readonly Row[]): void {
  console.log(`\n${section}`);
  for (const { what, figure, bound, measured } of rows) {
    const isCompared = measured !== undefined && bound === undefined;
    const text = `  ${what.padEnd(isCompared ? 32 : 66)} ${figure.padEnd(48)}`;
    console.log(bound === undefined ? text.trimEnd() : `${text} (${bound})`);
  }
}

/** The median of pairwise ratios, with the least and the most. */
export function ratio(ours: readonly number[], theirs: readonly number[]): string {
  const { median: middle, least, most } = compare(ours, theirs);
  const range = `${least.toFixed(2)}–${most.toFixed(2)}`;
  return `${middle.toFixed(2)}× (${range}; ${median(ours).toFixed(0)} and ${median(theirs).toFixed(0)} a second)`;
}

/** Throughputs of two sides that took turns. */
export function ratioRow(what: string, ours: readonly number[], theirs: readonly number[], bound?: string): Row {
  const measured = { unit: 'a second', ours, theirs, ratios: compare(ours, theirs) };
  return { what, figure: ratio(ours, theirs), ...(bound !== undefined && { bound }), measured };
}

/** Both sides' figures with what their ratios prove. */
export function comparedRow(what: string, unit: string, ours: readonly number[], theirs: readonly number[]): Row {
  const ratios = compare(ours, theirs);
  const { median: middle, least, most, low, high, verdict } = ratios;
  const [from, to] = [median(theirs), median(ours)];
  const digits = Math.max(from, to) < 10 ? 2 : 0;
  const range = (left: number, right: number) => `${left.toFixed(2)}–${right.toFixed(2)}`.padEnd(11);
  const change = `${from.toFixed(digits)} → ${to.toFixed(digits)} ${unit}`.padEnd(24);
  const figure = `${middle.toFixed(2)}×  ${range(least, most)} ${range(low, high)} ${change} ${verdict}`;
  return { what, figure, measured: { unit, ours, theirs, ratios } };
}

/** Says what the columns of compared rows are. */
export const comparedColumns = `${' '.repeat(34)} ratio  least–most  98 % sure   before → now`;

export function ms(value: number): string {
  return `${value.toFixed(1)} ms`;
}
