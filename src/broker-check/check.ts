import type { CheckSession } from './session.ts';

/**
 * How bad a breach is. `must`: an order can be sent twice, be lost or be misjudged. `should`: partners wait longer, see
 * a worse answer, or operators are called. `optional`: an offer that an adapter may leave out.
 */
export type CheckClass = 'must' | 'should' | 'optional';

/** A thing that a check cannot do without: a setting, a hook, or a service that an adapter may leave out. */
export type Need =
  | 'account'
  | 'rest'
  | 'fill'
  | 'reject'
  | 'restart'
  | 'cut'
  | 'allocate'
  | 'reject-allocation'
  | 'withdraw'
  | 'reject-withdrawal'
  | 'apply'
  | 'Accounts'
  | 'Allocations'
  | 'Applications'
  | 'Reference'
  | 'Statements'
  | 'Submissions'
  | 'Withdrawals';

/** One promise of an adapter, and how to see whether it is kept. */
export interface Check {
  /** It never changes. */
  readonly id: string;
  readonly class: CheckClass;
  /** The promise, as a sentence. */
  readonly promise: string;
  readonly needs: readonly Need[];
  /** Throws `Breach` if the promise is broken, `NotRun` if that cannot be seen, `NotOffered` if it is left out. */
  readonly run: (session: CheckSession) => Promise<void>;
}

type Unnamed = Omit<Check, 'id'>;

/** Checks by their ids, in the order in which they run. */
export function checks(byId: Readonly<Record<string, Unnamed>>): readonly Check[] {
  return Object.entries(byId).map(([id, check]) => ({ id, ...check }));
}

type Made = (promise: string, run: Check['run']) => Unnamed;

/** Makes checks that need all of these. */
export function needing(...needs: readonly Need[]): Readonly<Record<CheckClass, Made>> {
  const ofClass = (checkClass: CheckClass): Made => {
    return (promise, run) => ({ class: checkClass, promise, needs, run });
  };
  return { must: ofClass('must'), should: ofClass('should'), optional: ofClass('optional') };
}

/** Checks that can always be made. */
export const { must, should, optional } = needing();

/** Checks with orders that rest, that are filled and that are rejected, with allocations, withdrawals and applications. */
export const resting = needing('account', 'rest');
export const filling = needing('account', 'fill');
export const rejecting = needing('account', 'reject');
export const allocating = needing('Allocations', 'account', 'allocate');
export const withdrawing = needing('Withdrawals', 'account', 'withdraw');
export const applying = needing('Applications', 'apply');

export { answered, Breach, expect, NotOffered, NotRun, needed } from './breach.ts';
