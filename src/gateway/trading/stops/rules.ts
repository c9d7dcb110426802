/** The actions that a stop can forbid: to buy, to sell, to move money to an account or from it, to open accounts. */
export const stopActions = ['buy', 'sell', 'fund', 'withdraw', 'apply'] as const;
export type StopAction = (typeof stopActions)[number];

/** The kinds of targets that a stop can have. */
export type StopTarget = 'everything' | 'partner' | 'account' | 'symbol';

/** A stop that has not been ended. */
export interface OpenStop {
  readonly id: string;
  readonly target: StopTarget;
  /** The partner's id, the account or the symbol; empty for everything. */
  readonly value: string;
  /** Names separated by commas. */
  readonly actions: string;
  /** Business time from which on it no longer holds; null: until somebody ends it. */
  readonly endsAt: number | null;
}

/** The facts of a new object that stops ask for. */
export interface Affected {
  readonly action: StopAction;
  readonly partnerId: string;
  readonly account?: string;
  readonly symbol?: string;
}

/** The stop that forbids something at an instant of business time; undefined: none does. */
export function stopOf(stops: readonly OpenStop[], affected: Affected, now: number): OpenStop | undefined {
  return stops.find(
    (stop) => stop.actions.split(',').includes(affected.action) && isFor(stop, affected) && isInForce(stop, now),
  );
}

/** Whether a stop holds at an instant of business time. */
export function isInForce({ endsAt }: Pick<OpenStop, 'endsAt'>, now: number): boolean {
  return endsAt === null || endsAt > now;
}

function isFor({ target, value }: OpenStop, { partnerId, account, symbol }: Affected): boolean {
  if (target === 'everything') return true;
  return value === { partner: partnerId, account, symbol }[target];
}

const stopped: Readonly<Record<StopAction, string>> = {
  buy: 'Orders to buy',
  sell: 'Orders to sell',
  fund: 'Allocations',
  withdraw: 'Withdrawals',
  apply: 'Applications and documents',
};

const ofTarget: Readonly<Record<StopTarget, string>> = {
  everything: 'of all partners',
  partner: 'of this partner',
  account: 'of this account',
  symbol: 'in this symbol',
};

/** The sentence for a partner whose request a stop forbids. */
export function stopSentence({ target }: Pick<OpenStop, 'target'>, { action }: Pick<Affected, 'action'>): string {
  return `${stopped[action]} ${ofTarget[target]} are stopped. Cancels, estimates and reads still work.`;
}
