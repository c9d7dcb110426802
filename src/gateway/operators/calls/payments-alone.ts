import { lagosMidnight } from '../../../kit/clock.ts';
import { type Fact, noFact, queryFact } from '../../store/facts.ts';
import { toBigInt } from '../../store/statement.ts';
import type { TransferTypeWord } from '../../trading/wallet/rules.ts';
import { sumSince } from '../../trading/wallet/store.ts';
import type { FourEyesParts } from './proposals/four-eyes.ts';

const nothing: Fact<bigint> = { ...noFact, value: () => 0n, expected: { value: 0n, guards: [] } };

/**
 * The sum of a partner's payments of a type that needed no second operator since midnight in Lagos, in kobo. It counts towards the
 * amount of the next one, so that a large payment cannot be made of small ones. 0 if four eyes are off.
 */
export function paidAloneToday(
  { clock, fourEyesAboveKobo }: Pick<FourEyesParts, 'clock' | 'fourEyesAboveKobo'>,
  partnerId: string,
  type: TransferTypeWord,
): Fact<bigint> {
  if (fourEyesAboveKobo === undefined) return nothing;
  const sum = sumSince(partnerId, type, lagosMidnight(clock.now()), fourEyesAboveKobo);
  return queryFact(sum, ([row]) => toBigInt(row?.kobo ?? 0));
}

/** The name that they touch: payments and corrections of a partner never share a transaction: each must read what the one before moved. */
export const touchedByPayments = 'payments';
