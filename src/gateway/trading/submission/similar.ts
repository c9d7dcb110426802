import type { Clock } from '../../../kit/clock.ts';
import { ApiError } from '../../edge/errors.ts';
import { existsFact } from '../../store/facts.ts';
import type { Precondition } from './kind.ts';
import { isHeldBack } from './rules.ts';
import {
  findSimilarUnsettled,
  readSimilarUnsettled,
  type SimilarTo,
  type Submission,
  toSimilarObjects,
} from './table.ts';

/**
 * That no earlier object holds back a new one like it (`isHeldBack`). Between the request and the decision lies the wait
 * for the partner's lock, which takes seconds at worst, so no instant from before the wait may decide. Under the lock the
 * ends of the senders' times are read, and compared with the clock afterwards. A guard is compared with the clock when the
 * transaction is made, and also with the server's when it runs, because the transaction may wait for its connection.
 */
export function noSimilar<Row extends Submission>(
  kind: 'order' | 'allocation',
  similar: SimilarTo<Row>,
  clock: Pick<Clock, 'realNow'>,
): Precondition {
  return {
    fact: {
      reads: [readSimilarUnsettled(similar)],
      value: ([rows]) => isHeldBack(toSimilarObjects(rows?.[0]), clock.realNow()),
      get expected() {
        return existsFact(findSimilarUnsettled(similar, clock.realNow(), true), false).expected;
      },
    },
    mustBe: false,
    otherwise: () => new ApiError(`similar_${kind}_unresolved`),
  };
}
