import { headAt, type LedgerEntry, type LedgerFault, type LedgerHead } from '../../trading/wallet/rules.ts';
import { sealedSequence, type WalletSeals } from '../../trading/wallet/store.ts';

/** Finds in a walk how far a ledger is sealed, and what is not. */
export class SealedPart {
  readonly #sealedTo: bigint;
  #firstUnsealed: LedgerEntry | undefined;

  constructor(
    private readonly seals: WalletSeals | undefined,
    private readonly seal: Buffer | null,
  ) {
    this.#sealedTo = sealedSequence(seal) ?? 0n;
  }

  /** The entry that the walk begins after. */
  begin(entry: LedgerEntry): LedgerFault[] {
    return entry.sequence === this.#sealedTo ? this.#check(entry) : [];
  }

  /** The next entry of the walk. */
  add(entry: LedgerEntry): LedgerFault[] {
    if (entry.sequence > this.#sealedTo) this.#firstUnsealed ??= entry;
    return this.begin(entry);
  }

  /** The walk has ended. */
  end({ lastSequence }: LedgerHead): LedgerFault[] {
    if (this.seals === undefined) return [];
    if (this.#sealedTo > lastSequence || (this.seal !== null && this.#sealedTo === 0n)) {
      return [{ kind: 'unsealed', sequence: 0n, id: '', detail: 'the seal of the wallet is of no entry that it has' }];
    }
    if (this.#firstUnsealed === undefined || this.seals.acceptsUnsealed) return [];
    const { sequence, id } = this.#firstUnsealed;
    const detail =
      sequence === lastSequence ? 'it is not sealed' : `entries ${sequence} to ${lastSequence} are not sealed`;
    return [{ kind: 'unsealed', sequence, id, detail }];
  }

  #check(entry: LedgerEntry): LedgerFault[] {
    if (this.seals === undefined || this.seals.secretOf(headAt(entry), this.seal) !== undefined) return [];
    const { sequence, id } = entry;
    return [{ kind: 'unsealed', sequence, id, detail: 'the seal of the wallet is of another entry than this one' }];
  }
}
