import type { FixTradeChange } from '../store/table.ts';
import type { DropCopyTrade } from './table.ts';

/** A trade that one of the two sides took back or corrected. */
export interface TradeCorrection {
  readonly kind: 'cancelled' | 'corrected';
  /** The ExecID of the trade, or of an earlier change of it. */
  readonly execRefId: string;
  /** The quantity that the trade has become; 0: it was taken back, or that could not be read. */
  readonly quantity: bigint;
  readonly priceKobo: bigint;
}

/** A change that the order session brought. */
export interface BookedChange extends TradeCorrection {
  readonly execId: string | null;
}

export function bookedChange(change: FixTradeChange): BookedChange {
  const { kind, execId, execRefId, quantity, priceKobo } = change;
  return { kind, execId, execRefId, quantity: quantity ?? 0n, priceKobo: priceKobo ?? 0n };
}

/** A row of the drop copy as a change. Undefined: it is a trade. */
export function copiedChange({ kind, execRefId, quantity, priceKobo }: DropCopyTrade): TradeCorrection | undefined {
  return kind === 'trade' ? undefined : { kind, execRefId, quantity, priceKobo };
}

/**
 * Returns the fault of a change on the drop copy whose grace is over, by all changes of its order that the order
 * session brought. Undefined: nothing.
 */
export function faultOfCopiedChange(copied: TradeCorrection, booked: readonly BookedChange[]): string | undefined {
  const same = changesOf(copied, booked, booked);
  if (same.some((each) => hasTermsOf(each, copied))) return undefined;
  const [other] = same;
  if (other === undefined) return `the drop copy ${shown(copied)}, and the order session did not`;
  return `the drop copy ${shown(copied)}, and the order session ${shown(other)}`;
}

/**
 * Returns the fault of a change that the order session brought, by all changes of its order on both sides. One that the
 * drop copy has with other terms is found as a change on the drop copy.
 */
export function faultOfBookedChange(
  change: BookedChange,
  booked: readonly BookedChange[],
  copies: readonly TradeCorrection[],
): string | undefined {
  const copied = changesOf(change, copies, booked);
  if (copied.some((each) => hasTermsOf(each, change))) return undefined;
  if (copied.length >= changesOf(change, booked, booked).length) return undefined;
  return `the drop copy lacks that the order session ${shown(change)}`;
}

/** The trade's ExecID and those of its changes: the drop copy may name the trade by any of them. */
export function namesOfTrade(change: TradeCorrection, booked: readonly BookedChange[]): string[] {
  const root = rootOf(change.execRefId, booked);
  const changes = booked.flatMap(({ execId }) => (execId !== null && rootOf(execId, booked) === root ? [execId] : []));
  return [root, ...changes];
}

/** Those of some changes that are of the same kind and of the same trade. */
function changesOf<Each extends TradeCorrection>(
  change: TradeCorrection,
  some: readonly Each[],
  booked: readonly BookedChange[],
): readonly Each[] {
  const root = rootOf(change.execRefId, booked);
  return some.filter(({ kind, execRefId }) => kind === change.kind && rootOf(execRefId, booked) === root);
}

function hasTermsOf(one: TradeCorrection, other: TradeCorrection): boolean {
  const isBust = one.kind === 'cancelled';
  return isBust || (one.quantity === other.quantity && one.priceKobo === other.priceKobo);
}

/** The trade that an ExecID names, also over changes of changes. */
function rootOf(execId: string, booked: readonly BookedChange[]): string {
  let id = execId;
  for (let steps = 0; steps < booked.length; steps += 1) {
    const change = booked.find((each) => each.execId === id && each.execRefId !== id);
    if (change === undefined || change.execRefId === '') return id;
    id = change.execRefId;
  }
  return id;
}

function shown({ kind, execRefId, quantity, priceKobo }: TradeCorrection): string {
  const trade = execRefId === '' ? 'a trade that it does not name' : `trade ${execRefId}`;
  return kind === 'cancelled' ? `took ${trade} back` : `corrected ${trade} to ${quantity} at ${priceKobo} kobo`;
}
