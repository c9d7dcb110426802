import { median } from './load.ts';

/** One line of the report: what was measured, and what it came to. */
export interface Row {
  readonly what: string;
  readonly figure: string;
  /** The bound it should keep, for the reader; nothing fails by it. */
  readonly bound?: string;
}

/** Prints a section of the report. */
export function printRows(section: string, rows: readonly Row[]): void {
  console.log(`\n${section}`);
  for (const { what, figure, bound } of rows) {
    console.log(`  ${what.padEnd(66)} ${figure.padEnd(48)} ${bound === undefined ? '' : `(${bound})`}`);
  }
}

/** The median of pairwise ratios, with the least and the most. */
export function ratio(ours: readonly number[], theirs: readonly number[]): string {
  const ratios = ours.map((value, index) => value / (theirs[index] ?? Number.NaN));
  const range = `${Math.min(...ratios).toFixed(2)}–${Math.max(...ratios).toFixed(2)}`;
  return `${median(ratios).toFixed(2)}× (${range}; ${median(ours).toFixed(0)} and ${median(theirs).toFixed(0)} a second)`;
}

export function ms(value: number): string {
  return `${value.toFixed(1)} ms`;
}
