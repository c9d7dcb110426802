import type { TrueOrder } from './book.ts';
import type { PartnerView } from './partner.ts';

/** The facts about one order on both sides. */
export interface Facts {
  readonly view: PartnerView;
  /** Absent: the exchange never got it. */
  readonly truth: TrueOrder | undefined;
  /** Findings of the adapter about it. */
  readonly findings: readonly string[];
  /** Whether the adapter's gauges show that there are orders in doubt. */
  readonly isDoubtShown: boolean;
}

const sameStates: Record<string, readonly string[]> = {
  absent: ['refused', 'rejected'],
  rejected: ['rejected'],
  pending: ['pending'],
  partially_filled: ['partially_filled'],
  filled: ['filled'],
  cancelled: ['cancelled'],
  expired: ['expired'],
};

/** Whether the partner sees what is true. */
export function isTrue({ view, truth }: Facts): boolean {
  const states = sameStates[truth?.state ?? 'absent'] ?? [];
  const filled = truth?.filled ?? 0n;
  return states.includes(view.state) && view.filled === filled && sameAverage(view.average, truth?.value ?? 0n, filled);
}

/**
 * The rule: the partner sees the truth, or sees that it is not known yet, and operators have a finding or a gauge. Returns
 * what is wrong, if anything is.
 */
export function judge(facts: Facts, isFinalExcused = false): string | undefined {
  const { view, truth, findings, isDoubtShown } = facts;
  if (isTrue(facts)) return undefined;
  const seen = `the partner sees: ${view.state}, ${view.filled} shares at ${view.average}; the truth is: ${truth ?? 'absent'}`;
  if (findings.length > 0)
    return isFinal(view) && !isFinalExcused ? `${seen}; that is final, with a finding` : undefined;
  const isUncertain = view.state === 'uncertain';
  if (isUncertain && view.filled <= (truth?.filled ?? 0n) && isDoubtShown) return undefined;
  return `${seen}; there is no finding${isUncertain ? ' and no gauge' : ''}`;
}

/** Whether a partner sees that nothing more will happen. */
export function isFinal({ state }: PartnerView): boolean {
  return ['filled', 'cancelled', 'expired', 'rejected', 'refused'].includes(state);
}

/** Whether an average in kobo, with up to twelve places, is the exact one rounded half up. */
function sameAverage(average: string | null, value: bigint, quantity: bigint): boolean {
  if (quantity === 0n) return average === null;
  if (average === null) return false;
  const [whole = '', places = ''] = average.split('.');
  const shown = BigInt(whole + places.padEnd(12, '0'));
  return shown === (2n * value * 10n ** 12n + quantity) / (2n * quantity);
}
