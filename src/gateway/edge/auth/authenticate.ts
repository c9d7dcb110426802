import { isRegistered } from '../../../kit/addresses.ts';
import type { Clock } from '../../../kit/clock.ts';
import { chunksOf } from '../../../kit/group.ts';
import type { Keys } from '../../../kit/key-ring.ts';
import type { Logger } from '../../../kit/log.ts';
import { remember } from '../../../kit/remember.ts';
import { pause, type Worker } from '../../../kit/worker.ts';
import type { Database, Environment } from '../../store/database.ts';
import type { Caller, CredentialRefusal, Identification, Identify } from './caller.ts';
import type { KeySeals } from './key-seals.ts';
import { type KeyParts, parseKey, sameHash } from './keys.ts';
import { KeysWithoutMac } from './keys-without-mac.ts';
import { findKey, type KeyUse, type StoredKey, saveKeyUses, toStoredKey } from './store.ts';

const bearer = /^bearer +([^ ]+)$/i;

export interface AuthenticatorOptions {
  readonly database: Database;
  readonly environment: Environment;
  /** The keys that MACs of API keys are made with. */
  readonly macKeys: Keys;
  readonly seals: KeySeals;
  readonly log?: Pick<Logger, 'error'>;
  readonly uses?: Pick<KeyUses, 'note'>;
}

/** How long a key is cached, in milliseconds: a replica misses a revocation for at most so long. */
const cachedMs = 5_000;
/** How many keys are cached, and how many ids of keys that do not exist. */
const most = { keys: 10_000, absent: 1_000 };

interface KnownKey {
  readonly key: StoredKey;
  readonly caller: Caller;
  readonly until: number;
}

/** Authenticates requests by their keys. A forged key is refused without a query. */
export class Authenticator {
  readonly #keysWithoutMac: KeysWithoutMac;
  /** Keys used lately, with their partners, at most `cachedMs` old. */
  readonly #keys = new Map<string, KnownKey>();
  /** Until when an id is cached as absent. */
  readonly #absent = new Map<string, number>();
  readonly #asking = new Map<string, Promise<KnownKey | undefined>>();

  constructor(private readonly options: AuthenticatorOptions) {
    this.#keysWithoutMac = new KeysWithoutMac(options.database, options.macKeys);
  }

  /** Reads the list of keys without a MAC in advance: while the database is away, this list is needed to refuse forged keys. */
  get worker(): Worker {
    return this.#keysWithoutMac.worker;
  }

  readonly identify: Identify = (authorization, clientAddress) => {
    if (authorization === undefined) return refused('missing');
    const { environment, macKeys } = this.options;
    const token = bearer.exec(authorization)?.[1];
    const parts = token === undefined ? 'malformed' : parseKey(environment, macKeys, token);
    if (typeof parts === 'string') return refused(parts);
    const known = this.#cached(parts.id);
    if (known !== undefined) return this.#judge(known, parts, clientAddress);
    return this.#findAndJudge(parts, clientAddress);
  };

  /** Drops a key from the cache, so that its next use queries the database. */
  forget(keyId: string): void {
    this.#keys.delete(keyId);
    this.#absent.delete(keyId);
    this.#asking.delete(keyId);
  }

  /** Drops all keys of a partner, because its limits or features have changed. */
  forgetPartner(partnerId: string): void {
    for (const [keyId, { key }] of this.#keys) if (key.partnerId === partnerId) this.#keys.delete(keyId);
    // The partners of keys that are being read are not known yet, so none of these reads is cached.
    this.#asking.clear();
  }

  async #findAndJudge(parts: KeyParts, clientAddress: string): Promise<Identification> {
    if (!parts.hasMac() && !(await this.#keysWithoutMac.has(parts.id))) return refused('forged');
    const known = await this.#find(parts.id);
    return known === undefined ? refused('unknown') : this.#judge(known, parts, clientAddress);
  }

  /** A wrong secret identifies nobody. The right secret of an unusable key identifies its partner. */
  #judge(known: KnownKey, parts: KeyParts, clientAddress: string): Identification {
    const { key, caller } = known;
    if (!sameHash(key.secretHash, parts.secretHash)) return refused('unknown');
    // Checked before the seal: a revoked key without a seal may come from a version that made no seals. It does not mean that
    // somebody changed the database, so it is refused as revoked.
    if (!key.isProven) return refused(key.revoked ? 'revoked' : 'unsealed');
    const refusal = refusalOf(known, clientAddress);
    if (refusal === undefined) this.options.uses?.note(key.partnerId, key.id);
    const identification: Identification = {
      caller,
      refusal,
      again: () => (this.#cached(key.id) === known ? identification : this.#findAndJudge(parts, clientAddress)),
      isLatest: () => this.#keys.get(key.id) === known,
    };
    return identification;
  }

  #cached(keyId: string): KnownKey | undefined {
    const known = this.#keys.get(keyId);
    return known !== undefined && performance.now() < known.until ? known : undefined;
  }

  /** Finds a key; undefined if there is none. Concurrent requests with the same key share one query. */
  async #find(keyId: string): Promise<KnownKey | undefined> {
    const known = this.#cached(keyId);
    if (known !== undefined) return known;
    if (performance.now() < (this.#absent.get(keyId) ?? 0)) return undefined;
    return this.#asking.get(keyId) ?? this.#ask(keyId);
  }

  #ask(keyId: string): Promise<KnownKey | undefined> {
    const asked: Promise<KnownKey | undefined> = this.#read(keyId).then(
      (known) => {
        // If the key was dropped meanwhile, this read may be older than its revocation. It serves those who wait and is
        // not cached.
        if (this.#asking.get(keyId) === asked) {
          this.#asking.delete(keyId);
          if (known !== undefined) remember(this.#keys, keyId, known, most.keys);
          else remember(this.#absent, keyId, performance.now() + cachedMs, most.absent);
        }
        return known;
      },
      (error: unknown) => {
        if (this.#asking.get(keyId) === asked) this.#asking.delete(keyId);
        throw error;
      },
    );
    this.#asking.set(keyId, asked);
    return asked;
  }

  async #read(keyId: string): Promise<KnownKey | undefined> {
    const askedAt = performance.now();
    const [row] = await this.options.database.read(findKey(keyId));
    if (row === undefined) return undefined;
    const key = toStoredKey(row, this.options.seals);
    if (!key.isProven && !key.revoked) {
      const facts = { keyId: key.id, partnerId: key.partnerId };
      this.options.log?.error(facts, 'an API key is refused, because its row has no right seal');
    }
    const { partnerId, id, scopes, features, limits } = key;
    return { key, caller: { partnerId, keyId: id, scopes, features, limits }, until: askedAt + cachedMs };
  }
}

function refusalOf({ key }: KnownKey, clientAddress: string): CredentialRefusal | undefined {
  if (key.revoked) return 'revoked';
  if (!key.partnerActive) return 'suspended';
  if (key.addresses.length > 0 && !isRegistered(clientAddress, key.addresses)) return 'address';
  return undefined;
}

function refused(refusal: CredentialRefusal): Identification {
  return { caller: undefined, refusal };
}

/** How often uses are stored. Other replicas see them later, by at most this time. */
const everyMs = 5_000;
const maxTogether = 500;
/** How many keys' uses may wait to be stored. Further ones are dropped. */
const maxWaiting = 10_000;

/** Collects the last uses of keys and stores them now and then, so that no request waits for it. */
export class KeyUses {
  readonly #waiting = new Map<string, KeyUse>();
  readonly worker: Worker = { name: 'key uses', run: (signal) => this.#run(signal) };

  constructor(
    private readonly database: Database,
    private readonly clock: Clock,
  ) {}

  note(partnerId: string, keyId: string): void {
    if (this.#waiting.size >= maxWaiting && !this.#waiting.has(keyId)) return;
    this.#waiting.set(keyId, { partnerId, keyId, usedAt: this.clock.now() });
  }

  /** When a key was last used here, if that is not stored yet. */
  notedAt(keyId: string): number | undefined {
    return this.#waiting.get(keyId)?.usedAt;
  }

  async #run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await pause(everyMs, signal);
      // Stores the last uses when the process ends.
      await this.#save();
    }
  }

  async #save(): Promise<void> {
    // Keys used during the write wait for the next one.
    for (const some of chunksOf([...this.#waiting.values()], maxTogether)) {
      await this.database.write(saveKeyUses(some));
      for (const use of some) if (this.#waiting.get(use.keyId) === use) this.#waiting.delete(use.keyId);
    }
  }
}
