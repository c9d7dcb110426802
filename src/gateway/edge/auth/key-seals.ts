import { type Keys, RowSeal } from '../../../kit/key-ring.ts';
import type { Environment } from '../../store/database.ts';
import type { SqlRow } from '../../store/statement.ts';

/** What a key may do, as its row has it. Only operators change it while the key exists: they add scopes. */
export interface SealedKey {
  readonly partnerId: string;
  readonly id: string;
  readonly secretHash: Buffer;
  /** Names separated by commas. */
  readonly scopes: string;
  /** A JSON list. */
  readonly addresses: string;
}

/** `sealed` is proven; `unsealed` has no seal, as rows of earlier versions; `forged` has a wrong one. */
export type KeyProof = 'sealed' | 'unsealed' | 'forged';

/** The seals of API keys: MACs of their rows, so that who has only the database makes no key and changes none. */
export class KeySeals {
  readonly #seal: RowSeal;

  constructor(
    keys: Keys,
    private readonly environment: Environment,
    /** Whether a key without a seal is accepted. One with a wrong seal never is. */
    private readonly acceptsUnsealed: boolean,
  ) {
    this.#seal = new RowSeal(keys);
  }

  make(key: SealedKey): Buffer {
    return this.#seal.make(this.#content(key));
  }

  /** The id of the secret that a key is sealed with; undefined if its seal is wrong or absent. */
  secretOf(key: SealedKey, seal: Buffer | null): string | undefined {
    return seal === null ? undefined : this.#seal.keyOf(seal, this.#content(key));
  }

  prove(key: SealedKey, seal: Buffer | null): KeyProof {
    if (seal === null) return 'unsealed';
    return this.secretOf(key, seal) === undefined ? 'forged' : 'sealed';
  }

  /** Whether a key of this row may be used. */
  accepts(row: SqlRow): boolean {
    const proof = this.prove(toSealedKey(row), row.seal instanceof Buffer ? row.seal : null);
    return proof === 'sealed' || (proof === 'unsealed' && this.acceptsUnsealed);
  }

  /** As JSON, two different rows never give the same text. */
  #content({ partnerId, id, secretHash, scopes, addresses }: SealedKey): string {
    return JSON.stringify([this.environment, partnerId, id, secretHash.toString('hex'), scopes, addresses]);
  }
}

/** The name of the keys that seal API keys. */
export const keySealUse = 'api key rows';

export function toSealedKey(row: SqlRow): SealedKey {
  return {
    partnerId: String(row.partner_id),
    id: String(row.id),
    secretHash: row.secret_hash as Buffer,
    scopes: String(row.scopes),
    addresses: String(row.addresses),
  };
}
