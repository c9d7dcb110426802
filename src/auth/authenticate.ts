import type { Database, Environment } from '../db/database.ts';
import { isRegistered } from './addresses.ts';
import type { CredentialRefusal, Identification, Identify } from './call.ts';
import { type KeyParts, parseKey, sameHash } from './keys.ts';
import { KeysWithoutMac } from './keys-without-mac.ts';
import { type KnownKey, KnownKeys } from './known-keys.ts';

const bearer = /^bearer +([^ ]+)$/i;

export interface AuthenticatorOptions {
  readonly database: Database;
  readonly environment: Environment;
  /** What the MACs of keys are made with. */
  readonly macSecret: Buffer;
  /** Called at every use of a key that is good; it must be quick. */
  readonly onUsed?: (partnerId: string, keyId: string) => void;
}

/** Tells whose key a request carries. A forged key is refused without asking the database. */
export class Authenticator {
  readonly #keys: KnownKeys;
  readonly #keysWithoutMac: KeysWithoutMac;

  constructor(private readonly options: AuthenticatorOptions) {
    this.#keys = new KnownKeys(options.database);
    this.#keysWithoutMac = new KeysWithoutMac(options.database);
  }

  readonly identify: Identify = async (authorization, clientAddress) => {
    if (authorization === undefined) return refused('missing');
    const { environment, macSecret } = this.options;
    const token = bearer.exec(authorization)?.[1];
    const parts = token === undefined ? 'malformed' : parseKey(environment, macSecret, token);
    if (typeof parts === 'string') return refused(parts);
    const known = this.#keys.recall(parts.id);
    if (known !== undefined) return this.#judge(known, parts, clientAddress);
    return this.#find(parts, clientAddress);
  };

  /** Forgets a key, so that its next use asks the database. */
  forget(keyId: string): void {
    this.#keys.forget(keyId);
  }

  /** Forgets all keys of a partner, because what was agreed with it has changed. */
  forgetPartner(partnerId: string): void {
    this.#keys.forgetPartner(partnerId);
  }

  async #find(parts: KeyParts, clientAddress: string): Promise<Identification> {
    if (!parts.hasMac && !(await this.#keysWithoutMac.has(parts.id))) return refused('forged');
    const known = await this.#keys.find(parts.id);
    return known === undefined ? refused('unknown') : this.#judge(known, parts, clientAddress);
  }

  /** A wrong secret is nobody's request; the right one of a key that may not be used is its partner's. */
  #judge(known: KnownKey, parts: KeyParts, clientAddress: string): Identification {
    const { key, caller } = known;
    if (!sameHash(key.secretHash, parts.secretHash)) return refused('unknown');
    const reason = refusalOf(known, clientAddress);
    if (reason === undefined) this.options.onUsed?.(key.partnerId, key.id);
    const identification: Identification = {
      caller,
      refusal: reason === undefined ? undefined : 'unauthorized',
      reason,
      again: () => (this.#keys.recall(key.id) === known ? identification : this.#find(parts, clientAddress)),
      isLatest: () => this.#keys.isLatest(known),
    };
    return identification;
  }
}

function refusalOf({ key }: KnownKey, clientAddress: string): CredentialRefusal | undefined {
  if (key.revoked) return 'revoked';
  if (!key.partnerActive) return 'suspended';
  if (key.addresses.length > 0 && !isRegistered(clientAddress, key.addresses)) return 'address';
  return undefined;
}

function refused(reason: CredentialRefusal): Identification {
  return { caller: undefined, refusal: 'unauthorized', reason };
}
