import { median } from './load.ts';

/** The ratios of two sides over the rounds. */
export interface Ratios {
  readonly median: number;
  readonly least: number;
  readonly most: number;
  /** Where the middle of endless rounds would be, in 49 runs of 50. */
  readonly low: number;
  readonly high: number;
  readonly verdict: Verdict;
}

/**
 * `more` and `less`: by 3 % or more, and not by chance. `same`: within 5 %. `unclear`: further rounds would have to tell.
 */
export type Verdict = 'more' | 'less' | 'same' | 'unclear';

/** Smaller than the change that is to be seen (5 %), which a median of few rounds can miss by a little. */
const smallestChange = 0.03;
const sameWithin = 0.05;
const confidence = 0.98;
/** A ratio to nothing, in place of infinity. */
const endless = 1e9;

/** Compares the figures of two sides that took turns, pair by pair: what slows both in a round leaves its ratio as it is. */
export function compare(ours: readonly number[], theirs: readonly number[]): Ratios {
  const ratios = ours.map((value, index) => ratioOf(value, theirs[index] ?? Number.NaN));
  const [least, most] = [Math.min(...ratios), Math.max(...ratios)];
  const [low, high] = interval(ratios.map(Math.log)) ?? [Math.log(least), Math.log(most)];
  const result = { median: median(ratios), least, most, low: Math.exp(low), high: Math.exp(high) };
  return { ...result, verdict: interval(ratios) === undefined ? 'unclear' : verdictOf(result) };
}

/** Nothing against nothing is the same. */
function ratioOf(ours: number, theirs: number): number {
  if (ours === theirs) return 1;
  return Math.min(Math.max(ours / theirs, 1 / endless), endless);
}

function verdictOf({ median: middle, low, high }: Pick<Ratios, 'median' | 'low' | 'high'>): Verdict {
  if (low > 1 && middle >= 1 + smallestChange) return 'more';
  if (high < 1 && middle <= 1 - smallestChange) return 'less';
  return low > 1 - sameWithin && high < 1 + sameWithin ? 'same' : 'unclear';
}

/**
 * Between which two values the middle lies by Wilcoxon's signed-rank test: it takes nothing for granted but that chance
 * moves values up as often and as far as down. Undefined: there are too few values.
 */
function interval(values: readonly number[]): [low: number, high: number] | undefined {
  const leftOut = averagesLeftOut(values.length);
  if (leftOut === undefined) return undefined;
  const averages = values.flatMap((left, index) => values.slice(index).map((right) => (left + right) / 2));
  averages.sort((left, right) => left - right);
  return [averages[leftOut] ?? Number.NaN, averages[averages.length - 1 - leftOut] ?? Number.NaN];
}

/** How many of the averages of two values are left out at each end. */
function averagesLeftOut(count: number): number | undefined {
  // How many of the 2^count ways to sign the ranks 1 to count give each sum of the positive ones.
  let ways = [1];
  for (let rank = 1; rank <= count; rank += 1) {
    const before = ways;
    ways = Array.from({ length: before.length + rank }, (_, sum) => (before[sum] ?? 0) + (before[sum - rank] ?? 0));
  }
  let leftOut = -1;
  let below = 0;
  for (const ofSum of ways) {
    below += ofSum / 2 ** count;
    if (1 - 2 * below < confidence) break;
    leftOut += 1;
  }
  return leftOut < 0 ? undefined : leftOut;
}
