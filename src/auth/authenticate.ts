import type { Database, Environment } from '../db/database.ts';
import { isRegistered } from './addresses.ts';
import type { Caller, Identification, Identify } from './call.ts';
import { type KeyParts, parseKey, sameHash } from './keys.ts';
import { findKey, type StoredKey, toStoredKey } from './store.ts';
import { UnknownKeys } from './unknown-keys.ts';

/** How long a key is believed without asking the database: the longest a revocation can stay unknown to a replica. */
const believedMs = 5_000;
const mostKeys = 10_000;
const bearer = /^bearer +([^ ]+)$/i;
const unknown: Identification = { caller: undefined, refusal: 'unauthorized' };

interface Remembered {
  readonly key: StoredKey;
  readonly caller: Caller;
  readonly until: number;
}

/** Tells whose key a request carries, with a bounded memory of the keys seen lately. */
export class Authenticator {
  readonly #remembered = new Map<string, Remembered>();
  readonly #asking = new Map<string, Promise<Remembered | undefined>>();
  readonly #unknownKeys = new UnknownKeys();

  constructor(
    private readonly database: Database,
    private readonly environment: Environment,
    /** Hears of every use of a key that is good; it must be quick. */
    private readonly onUsed: (partnerId: string, keyId: string) => void = () => undefined,
  ) {}

  readonly identify: Identify = async (authorization, clientAddress) => {
    const token = bearer.exec(authorization ?? '')?.[1];
    const parts = token === undefined ? undefined : parseKey(this.environment, token);
    if (parts === undefined) return unknown;
    const remembered = this.#recall(parts.id) ?? (await this.#lookUp(parts, clientAddress));
    const identification = judge(remembered, parts, clientAddress);
    const { caller, refusal } = identification;
    if (caller !== undefined && refusal === undefined) this.onUsed(caller.partnerId, caller.keyId);
    return identification;
  };

  /** Asks the database, unless the address asked for too many keys that are nobody's. */
  async #lookUp(parts: KeyParts, clientAddress: string): Promise<Remembered | undefined> {
    const known = this.#remembered.get(parts.id);
    if (known !== undefined && sameHash(known.key.secretHash, parts.secretHash)) return this.#ask(parts.id);
    const giveBack = this.#unknownKeys.take(clientAddress);
    const found = await this.#ask(parts.id);
    if (found !== undefined && sameHash(found.key.secretHash, parts.secretHash)) giveBack();
    return found;
  }

  /** Forgets a key, so that its next use asks the database. */
  forget(keyId: string): void {
    this.#remembered.delete(keyId);
    this.#asking.delete(keyId);
  }

  /** Forgets all keys of a partner, because what was agreed with it has changed. */
  forgetPartner(partnerId: string): void {
    for (const [keyId, { key }] of this.#remembered) if (key.partnerId === partnerId) this.#remembered.delete(keyId);
    // Whose keys those are that are being read is not known yet: none of these answers is kept.
    this.#asking.clear();
  }

  #recall(keyId: string): Remembered | undefined {
    const remembered = this.#remembered.get(keyId);
    return remembered !== undefined && performance.now() < remembered.until ? remembered : undefined;
  }

  /** Many requests with a key that is not remembered ask the database once. */
  #ask(keyId: string): Promise<Remembered | undefined> {
    const asking = this.#asking.get(keyId);
    if (asking !== undefined) return asking;
    const asked: Promise<Remembered | undefined> = this.#read(keyId).then(
      (remembered) => {
        // An answer that was read before the key was forgotten may be of before its revocation: it serves those who
        // asked then, and is not kept.
        if (this.#asking.get(keyId) === asked) {
          this.#asking.delete(keyId);
          if (remembered !== undefined) this.#keep(keyId, remembered);
        }
        return remembered;
      },
      (error: unknown) => {
        if (this.#asking.get(keyId) === asked) this.#asking.delete(keyId);
        throw error;
      },
    );
    this.#asking.set(keyId, asked);
    return asked;
  }

  async #read(keyId: string): Promise<Remembered | undefined> {
    const askedAt = performance.now();
    const [row] = await this.database.read(findKey(keyId));
    if (row === undefined) return undefined;
    const key = toStoredKey(row);
    const { partnerId, id, scopes, features, limits } = key;
    const caller = { partnerId, keyId: id, scopes, features, limits };
    return { key, caller, until: askedAt + believedMs };
  }

  #keep(keyId: string, remembered: Remembered): void {
    if (this.#remembered.size >= mostKeys) {
      const [oldest] = this.#remembered.keys();
      if (oldest !== undefined) this.#remembered.delete(oldest);
    }
    this.#remembered.delete(keyId);
    this.#remembered.set(keyId, remembered);
  }
}

/** A wrong secret is nobody's request; the right one of a key that may not be used is its partner's. */
function judge(remembered: Remembered | undefined, parts: KeyParts, clientAddress: string): Identification {
  if (remembered === undefined || !sameHash(remembered.key.secretHash, parts.secretHash)) return unknown;
  const { key, caller } = remembered;
  const mayCall = !key.revoked && key.partnerActive && isAllowedFrom(clientAddress, key);
  return { caller, refusal: mayCall ? undefined : 'unauthorized' };
}

function isAllowedFrom(clientAddress: string, key: StoredKey): boolean {
  return key.addresses.length === 0 || isRegistered(clientAddress, key.addresses);
}
