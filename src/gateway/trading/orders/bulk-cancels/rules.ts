import { isUnsettled } from '../../submission/rules.ts';
import { mayCancelBeUnderWay, type OrderStateName, orderStates } from '../rules.ts';

/** The outcome for an order in a job. */
export type CancelResult = 'cancelled' | 'not_cancelable' | 'unconfirmed';

/** How long a job runs at most. An order that is good for the day has ended by then. */
export const longestMs = 86_400_000;
/** How long a job asks the broker's record about a cancel without a clear answer. */
const askedForMs = 600_000;
/** The shortest and the longest time after which a job turns to an order again. */
const waitMs = { least: 1_000, most: 60_000 };

/** The next thing that a job does about one of its orders. */
export type Step =
  | { readonly do: 'end'; readonly result: CancelResult; readonly detail: string }
  /** Until an instant of real time. */
  | { readonly do: 'wait'; readonly until: number; readonly detail: string }
  /** Asks the broker's record what became of the cancel. */
  | { readonly do: 'ask' }
  | { readonly do: 'send' };

/** An order of a job, with the order itself as it is; undefined: it is not stored. */
interface Facts {
  /** Real time at which the job stored its cancel; null: it stored none. */
  readonly item: { readonly sentAt: number | null };
  readonly order: { readonly state: OrderStateName; readonly cancelUntil: number | null } | undefined;
  /** Whether this version knows the names in the order's row. */
  readonly isKnown: boolean;
  /** Real time at which the job began. */
  readonly beganAt: number;
  readonly realNow: number;
  readonly clockSkewMs: number;
}

/**
 * Decides what a job does next about an order. It sends one cancel of each order at most: once that is stored, it only asks the
 * broker's record, and an order that has ended needs nothing more.
 */
export function nextStep({ item: { sentAt }, order, isKnown, beganAt, realNow, clockSkewMs }: Facts): Step {
  const later = { do: 'wait', until: realNow + waitAfter(realNow - beganAt) } as const;
  if (order === undefined) return { ...later, detail: 'the order is not stored' };
  if (!isKnown) return { ...later, detail: 'another version stored the state of the order' };
  const { state, cancelUntil } = order;
  if (orderStates.isFinal(state)) return { do: 'end', result: resultOf(state), detail: `the order is ${state}` };
  if (sentAt !== null) {
    if (cancelUntil === null) {
      return { do: 'end', result: 'unconfirmed', detail: "the broker's record has no cancel of the order" };
    }
    if (mayCancelBeUnderWay(cancelUntil, realNow - clockSkewMs)) {
      return { do: 'wait', until: cancelUntil + clockSkewMs, detail: 'the cancel may be under way' };
    }
    if (realNow < sentAt + askedForMs) return { do: 'ask' };
    return { do: 'end', result: 'unconfirmed', detail: 'the broker gave no clear answer' };
  }
  if (isUnsettled(state)) return { ...later, detail: `the order is ${state}` };
  if (cancelUntil !== null && mayCancelBeUnderWay(cancelUntil, realNow)) {
    return { do: 'wait', until: cancelUntil, detail: 'another cancel of the order is under way' };
  }
  return { do: 'send' };
}

/** The result for an order that has ended. */
export function resultOf(state: OrderStateName): CancelResult {
  return state === 'cancelled' ? 'cancelled' : 'not_cancelable';
}

/** When a job turns again to an order about which nothing is clear: the later, the longer it has waited. */
export function waitAfter(elapsedMs: number): number {
  return Math.min(waitMs.most, Math.max(waitMs.least, elapsedMs / 4));
}
