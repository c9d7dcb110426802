import { type BreakKindName, type Difference, nothing } from './rules.ts';

/** The kinds of objects that move money. */
export type MoneyKind = 'allocation' | 'withdrawal';

/** An allocation or a withdrawal of the statement, at the end of the period. */
export interface StatedMoney {
  readonly account: string;
  readonly amountKobo: bigint;
  /** Of a withdrawal; empty of an allocation. */
  readonly destination: string;
  readonly reference: string | null;
  /** By the statement's names. */
  readonly state: string;
}

/** An allocation or a withdrawal of the gateway, at the end of the period. */
export interface OurMoney extends StatedMoney {
  readonly partnerId: string;
  /** By our names. */
  readonly state: string;
  readonly isUnsettled: boolean;
  /** The broker reported something about it in the period: of an allocation, that it decided it. */
  readonly isReported: boolean;
  /** Its moves of the account's money, at any time. */
  readonly moves: readonly MoneyMove[];
}

/** A change of an account's money that the gateway knows of. */
export interface MoneyMove {
  /** The time of the broker's report; null: not known. */
  readonly at: number | null;
  readonly kobo: bigint;
}

/**
 * The state of a final withdrawal just before an instant, by its reports, oldest first. `state` is its state now: an operator who
 * settled it without any report knew the same then.
 */
export function stateBefore(
  to: number,
  reports: readonly { readonly state: string; readonly at: number }[],
  state: string,
): string {
  if (reports.length === 0) return state;
  return reports.findLast(({ at }) => at < to)?.state ?? 'not reported yet';
}

/** The moves of a withdrawal by the states that it went through: the money is taken once, and given back at most once. */
export function movesOf(
  amountKobo: bigint,
  states: readonly { readonly state: string; readonly at: number | null }[],
): MoneyMove[] {
  const moves: MoneyMove[] = [];
  let isTaken = false;
  for (const { state, at } of states) {
    const isTakenThen = state === 'processing' || state === 'completed';
    const isGivenBack: boolean = isTaken && (state === 'rejected' || state === 'returned');
    if (isTakenThen && !isTaken) moves.push({ at, kobo: -amountKobo });
    if (isGivenBack) moves.push({ at, kobo: amountKobo });
    isTaken = isTakenThen || (isTaken && !isGivenBack);
  }
  return moves;
}

/** Our names of the states that a statement has under others. */
const statedStates: Readonly<Record<string, string>> = { processing: 'accepted', completed: 'paid' };

/** Compares the two sides of one allocation or withdrawal. */
export function compareMoney(
  kind: MoneyKind,
  objectId: string,
  ours: OurMoney | undefined,
  stated: StatedMoney | undefined,
): Difference[] {
  const from = ours ?? stated;
  if (from === undefined) return [];
  const differs = (what: 'missing' | 'extra' | 'state' | 'terms', our: string, brokers: string): Difference => ({
    ...{ partnerId: ours?.partnerId ?? '', objectId, account: from.account, symbol: '', subject: '' },
    ...{ kind: `${kind}_${what}` satisfies BreakKindName, ours: our, brokers, isUnsettled: ours?.isUnsettled ?? false },
  });
  if (stated === undefined) {
    if (ours === undefined || ours.isUnsettled || !ours.isReported) return [];
    return [differs('missing', shown(kind, ours), nothing)];
  }
  if (ours === undefined) return [differs('extra', nothing, shown(kind, stated))];
  const found: Difference[] = [];
  if ((statedStates[ours.state] ?? ours.state) !== stated.state) found.push(differs('state', ours.state, stated.state));
  const [our, theirs] = [terms(kind, ours, stated), terms(kind, stated, ours)];
  if (our !== theirs) found.push(differs('terms', our, theirs));
  return found;
}

function shown(kind: MoneyKind, one: StatedMoney): string {
  return `${one.state}, ${way(kind, one)}`;
}

function terms(kind: MoneyKind, one: StatedMoney, other: StatedMoney): string {
  const isCompared = one.reference !== null && other.reference !== null;
  return `${way(kind, one)}${isCompared ? `, reference ${one.reference}` : ''}`;
}

function way(kind: MoneyKind, { amountKobo, account, destination }: StatedMoney): string {
  return kind === 'allocation'
    ? `${amountKobo} kobo to ${account}`
    : `${amountKobo} kobo from ${account} to ${destination}`;
}
