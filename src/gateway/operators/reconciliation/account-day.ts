import type { HoldingRecord } from './rules.ts';
import type { Named } from './transaction-rules.ts';

/** The records of one account in a statement, as far as they show whether its money moved. */
export class AccountDay {
  /** The allocations and withdrawals that the statement has. */
  readonly objects: Named[] = [];
  #hasTraded = false;
  #before = 0n;
  #after = 0n;
  /** Null: the broker does not state it. */
  #other: bigint | null = 0n;

  constructor(readonly account: string) {}

  add({ section, objectId: id, amountKobo, otherKobo }: HoldingRecord & { readonly objectId: string }): void {
    if (section === 'trade') this.#hasTraded = true;
    if (section === 'allocation' || section === 'withdrawal') this.objects.push({ kind: section, id });
    if (section === 'cash_before') this.#before += amountKobo ?? 0n;
    if (section !== 'cash') return;
    this.#after += amountKobo ?? 0n;
    this.#other = otherKobo;
  }

  /** Whether its money moved, or may have moved: it had a trade, an allocation, a withdrawal or another change. */
  hasMoved(hasDayBefore: boolean): boolean {
    if (this.#hasTraded || this.objects.length > 0) return true;
    if (hasDayBefore && this.#before !== this.#after) return true;
    return this.#other === null ? !hasDayBefore : this.#other !== 0n;
  }
}
