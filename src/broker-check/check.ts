import type { Session } from './session.ts';

/**
 * How bad a breach is. `must`: an order can be sent twice, be lost or be misjudged. `should`: partners wait longer, see
 * a worse answer, or operators are called. `optional`: an offer that an adapter may leave out.
 */
export type CheckClass = 'must' | 'should' | 'optional';

/** What a check cannot do without: a setting, a hook, or a service that an adapter may leave out. */
export type Need =
  | 'account'
  | 'rest'
  | 'fill'
  | 'reject'
  | 'restart'
  | 'cut'
  | 'allocate'
  | 'reject-allocation'
  | 'apply'
  | 'Accounts'
  | 'Allocations'
  | 'Applications'
  | 'Reference'
  | 'Statements'
  | 'Submissions';

/** One promise of an adapter, and how to see whether it is kept. */
export interface Check {
  /** It never changes. */
  readonly id: string;
  readonly class: CheckClass;
  /** The promise, as a sentence. */
  readonly promise: string;
  readonly needs?: readonly Need[];
  /** Throws `Breach` if the promise is broken, `NotRun` if that cannot be seen, `NotOffered` if it is left out. */
  readonly run: (session: Session) => Promise<void>;
}

export { Breach, expect, NotOffered, NotRun } from './breach.ts';
