import type { Clock } from '../../../../kit/clock.ts';
import { ApiError } from '../../../edge/errors.ts';
import type { Database } from '../../../store/database.ts';
import { allFacts, type Fact, queryFact } from '../../../store/facts.ts';
import type { CancelJob, Ended } from '../cancel.ts';
import { orderStates } from '../rules.ts';
import type { StoredOrder } from '../table.ts';
import { resultOf, type Step } from './rules.ts';
import { type BulkCancelOrder, bulkCancelOrders, bulkCancels, changeOrder } from './table.ts';

export interface JobParts {
  readonly database: Database;
  readonly clock: Clock;
  readonly clockSkewMs: number;
}

/**
 * The job may not cancel the order: it has stored a cancel of it before, or it has ended. A partner whose cancel waits for the job's
 * is asked to repeat it.
 */
export class NotBegun extends ApiError {
  constructor() {
    super('service_unavailable');
  }
}

interface JobRows {
  readonly item: BulkCancelOrder | undefined;
  readonly hasEnded: boolean;
}

const endedAt = bulkCancels.only('endedAt');

/** How a job keeps account of its cancel of one order. It stores one cancel, however many processes try. */
export function orderOfJob({ clock, clockSkewMs }: JobParts, item: BulkCancelOrder): CancelJob {
  const job: CancelJob<JobRows> = {
    id: item.bulkCancelId,
    rows: rowsOf(item),
    begun({ item: current, hasEnded }) {
      if (current === undefined || current.sentAt !== null || current.result !== null || hasEnded) throw new NotBegun();
      const realNow = clock.realNow();
      // Due again, so that a process that takes over finds it.
      return changeOrder(current, { sentAt: realNow, dueAt: realNow, detail: 'a cancel is sent' }, clock.now());
    },
    ended({ item: current }, outcome, order) {
      if (current === undefined) return [];
      return changeOrder(current, changeBy(outcome, order, clock.realNow() + clockSkewMs), clock.now());
    },
  };
  return job as CancelJob;
}

/** Saves what a job decided about an order without sending anything. */
export async function recordStep({ database, clock }: JobParts, item: BulkCancelOrder, step: Step): Promise<void> {
  const { partnerId, orderId } = item;
  await database.inPartnerTransaction(partnerId, {
    touches: [orderId],
    fact: rowsOf(item),
    decide: ({ item: current }) => {
      // Another process may be done with it: the step was decided on a row that was read before.
      const isOpen = current !== undefined && current.dueAt !== null;
      const writes = isOpen ? changeOrder(current, changeOf(step), clock.now()) : [];
      return { writes, result: undefined };
    },
  });
}

function rowsOf({ partnerId, bulkCancelId, orderId }: BulkCancelOrder): Fact<JobRows> {
  return allFacts({
    item: queryFact(
      bulkCancelOrders.find({ partnerId, bulkCancelId, orderId }),
      ([row]) => row && bulkCancelOrders.all.read(row),
    ),
    hasEnded: queryFact(
      bulkCancels.find({ id: bulkCancelId }, endedAt),
      ([row]) => row === undefined || endedAt.read(row).endedAt !== null,
    ),
  });
}

function changeOf(step: Step) {
  if (step.do === 'end') return { result: step.result, detail: step.detail, dueAt: null };
  if (step.do === 'wait') return { detail: step.detail, dueAt: step.until };
  throw new Error(`a job cannot record that it must ${step.do}`);
}

/** The change of a job's order when its cancel has an outcome. Without a clear one the job asks the record at `askAt`. */
function changeBy(outcome: Ended, { state }: StoredOrder, askAt: number) {
  if (orderStates.isFinal(state)) return { result: resultOf(state), detail: `the order is ${state}`, dueAt: null };
  if (outcome.outcome === 'too-late') {
    return {
      ...({ result: 'not_cancelable', dueAt: null } as const),
      detail: 'the exchange said that it was too late to cancel the order',
    };
  }
  const detail = outcome.outcome === 'unclear' ? outcome.evidence : 'the exchange confirmed the cancel';
  return { result: 'unconfirmed', detail, dueAt: askAt } as const;
}
