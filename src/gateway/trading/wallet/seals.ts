import { type Keys, RowSeal, rowSealLength } from '../../../kit/key-ring.ts';
import type { Environment } from '../../store/database.ts';
import type { LedgerHead } from './rules.ts';

/** The name of the keys that seal wallets. */
export const walletSealUse = 'wallet rows';

const sequenceLength = 8;
/** The number of the last entry that is sealed, and the seal of the ledger's end there. */
export const walletSealLength = sequenceLength + rowSealLength;

/**
 * `sealed` is proven. `behind` has a seal of an earlier entry, as when an earlier version added entries. `unsealed` has none.
 * `forged` has a wrong one, or one of an entry that it does not have.
 */
export type WalletProof = 'sealed' | 'behind' | 'unsealed' | 'forged';

/**
 * The seals of wallets: a MAC of the end of a partner's ledger. The end has the hash of the last entry, which stands for all
 * entries before it. So the seal is the key of the whole chain: who has only the database adds no entry and changes no sum.
 */
export class WalletSeals {
  readonly #seal: RowSeal;

  constructor(
    keys: Keys,
    private readonly environment: Environment,
    /** Whether entries that are not sealed are accepted. A wrong seal never is. */
    readonly acceptsUnsealed: boolean,
  ) {
    this.#seal = new RowSeal(keys);
  }

  make(head: LedgerHead): Buffer {
    const sequence = Buffer.alloc(sequenceLength);
    sequence.writeBigUInt64BE(head.lastSequence);
    return Buffer.concat([sequence, this.#seal.make(this.#content(head))]);
  }

  /** The id of the secret that this end of a ledger is sealed with; undefined: it is not. */
  secretOf(head: LedgerHead, seal: Buffer | null): string | undefined {
    if (sealedSequence(seal) !== head.lastSequence || seal === null) return undefined;
    return this.#seal.keyOf(seal.subarray(sequenceLength), this.#content(head));
  }

  prove(head: LedgerHead, seal: Buffer | null): WalletProof {
    if (seal === null) return 'unsealed';
    if (this.secretOf(head, seal) !== undefined) return 'sealed';
    return (sealedSequence(seal) ?? head.lastSequence) < head.lastSequence ? 'behind' : 'forged';
  }

  /** Whether money of such a wallet may move. */
  accepts(proof: WalletProof): boolean {
    return proof === 'sealed' || (this.acceptsUnsealed && proof !== 'forged');
  }

  /** As JSON, two different ends never give the same text. */
  #content({ partnerId, lastSequence, lastHash, availableKobo, reservedKobo, postedKobo }: LedgerHead): string {
    const sums = [availableKobo, reservedKobo, postedKobo].map(String);
    return JSON.stringify([this.environment, partnerId, String(lastSequence), lastHash.toString('hex'), ...sums]);
  }
}

/** The number of the last entry that a seal is for; undefined if it is none. */
export function sealedSequence(seal: Buffer | null): bigint | undefined {
  return seal?.length === walletSealLength ? seal.readBigUInt64BE() : undefined;
}
