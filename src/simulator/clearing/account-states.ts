import { createHash } from 'node:crypto';
import type { MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromMs, timestampMs } from '@bufbuild/protobuf/wkt';
import {
  AccountActivity,
  type AccountRestriction,
  AccountRestrictionCode,
  AccountState,
  type GetAccountStatusResponseSchema,
} from '../../gen/marina/broker/v1/accounts_pb.ts';
import { RejectReason, Side } from '../../gen/marina/broker/v1/orders_pb.ts';
import { check } from '../validation.ts';
import type { Restriction, SetState } from './tables.ts';

const maxRestrictions = 100;
const trades = [AccountActivity.BUY, AccountActivity.SELL];

/** A restriction in force. One that follows from what the account owes has no known start. */
type RestrictionInForce = Omit<Restriction, 'sinceMs'> & Partial<Pick<Restriction, 'sinceMs'>>;

/** The state of an account with its restrictions. */
export interface StateOfAccount {
  readonly state: AccountState;
  readonly restrictions: readonly RestrictionInForce[];
}

/** Returns what an account may do, by what a control has set and by whether it is locked until money comes. */
export function stateOf(set: SetState | undefined, isLocked: boolean): StateOfAccount {
  const restrictions: RestrictionInForce[] = [...(set?.restrictions ?? [])];
  if (isLocked) restrictions.push({ code: AccountRestrictionCode.SETTLEMENT_LOCKOUT, forbids: trades });
  const state = set?.state ?? AccountState.ACTIVE;
  const isRestricted = state === AccountState.ACTIVE && restrictions.length > 0;
  return { state: isRestricted ? AccountState.RESTRICTED : state, restrictions };
}

/** Whether an activity is forbidden. */
export function forbids({ state, restrictions }: StateOfAccount, activity: AccountActivity): boolean {
  return state === AccountState.CLOSED || restrictions.some((each) => each.forbids.includes(activity));
}

/** The reason to reject an order that is forbidden; undefined if it is not. */
export function orderForbidden(account: StateOfAccount, side: Side): RejectReason | undefined {
  const activity = side === Side.BUY ? AccountActivity.BUY : AccountActivity.SELL;
  if (!forbids(account, activity)) return undefined;
  const isLockout = ({ code, forbids }: RestrictionInForce) =>
    code === AccountRestrictionCode.SETTLEMENT_LOCKOUT && forbids.includes(activity);
  return account.state !== AccountState.CLOSED && account.restrictions.some(isLockout)
    ? RejectReason.SETTLEMENT_LOCKOUT
    : RejectReason.REJECTED_BY_EXCHANGE;
}

/** Reads restrictions from a request. Throws if they do not go with the state. */
export function restrictionsFrom(
  state: AccountState,
  restrictions: readonly AccountRestriction[],
  now: number,
): readonly Restriction[] {
  check(state !== AccountState.UNSPECIFIED && state in AccountState, 'state');
  const isRight = {
    [AccountState.ACTIVE]: restrictions.length === 0,
    [AccountState.RESTRICTED]: restrictions.length > 0,
    [AccountState.CLOSED]: true,
  }[state];
  check(isRight && restrictions.length <= maxRestrictions, 'restrictions');
  return restrictions.map(({ code, forbids, since }) => {
    check(code !== AccountRestrictionCode.UNSPECIFIED && code in AccountRestrictionCode, 'restrictions.code');
    const isKnown = forbids.every(
      (activity) => activity !== AccountActivity.UNSPECIFIED && activity in AccountActivity,
    );
    check(isKnown && forbids.length > 0 && new Set(forbids).size === forbids.length, 'restrictions.forbids');
    return { code, forbids: [...forbids], sinceMs: since === undefined ? now : timestampMs(since) };
  });
}

/** An account's status as the broker states it. */
export function statusMessage(
  account: string,
  { state, restrictions }: StateOfAccount,
  now: number,
): MessageInitShape<typeof GetAccountStatusResponseSchema> {
  return {
    account,
    state,
    restrictions: restrictions.map(({ code, forbids, sinceMs }) => ({
      code,
      forbids: [...forbids],
      since: sinceMs === undefined ? undefined : timestampFromMs(sinceMs),
    })),
    chn: chnOf(account),
    holderInitials: initialsOf(account),
    asOf: timestampFromMs(now),
  };
}

/** Two initials that belong to the account, as in "A. O.". Nobody has an account of a simulator, so they are invented. */
function initialsOf(account: string): string {
  const [first = 0, second = 0] = createHash('sha256').update(`holder ${account}`).digest();
  const letter = (byte: number) => String.fromCharCode('A'.charCodeAt(0) + (byte % 26));
  return `${letter(first)}. ${letter(second)}.`;
}

/** A number of the clearing house that belongs to the account: `C` and ten digits. */
function chnOf(account: string): string {
  const digest = createHash('sha256').update(`chn ${account}`).digest();
  return `C${String(digest.readUIntBE(0, 6) % 10 ** 10).padStart(10, '0')}`;
}
