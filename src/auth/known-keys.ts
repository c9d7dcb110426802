import type { Database } from '../db/database.ts';
import type { Caller } from './call.ts';
import { findKey, type StoredKey, toStoredKey } from './store.ts';

/** How long a key is believed without asking the database: the longest a revocation can stay unknown to a replica. */
const believedMs = 5_000;
/** How many keys are remembered, and how many ids that no key has. */
const most = { keys: 10_000, absent: 1_000 };

/** A key as it was read. Each read makes another one. */
export interface KnownKey {
  readonly key: StoredKey;
  readonly caller: Caller;
  readonly until: number;
}

/** The keys that were used lately, with their partners, as the database had them at most five seconds ago. */
export class KnownKeys {
  readonly #known = new Map<string, KnownKey>();
  /** Until when an id is known to be nobody's. */
  readonly #absent = new Map<string, number>();
  readonly #asking = new Map<string, Promise<KnownKey | undefined>>();

  constructor(private readonly database: Database) {}

  /** A key that was read a short while ago. */
  recall(keyId: string): KnownKey | undefined {
    const known = this.#known.get(keyId);
    return known !== undefined && performance.now() < known.until ? known : undefined;
  }

  /** Whether nothing was read or heard of the key since. */
  isLatest(known: KnownKey): boolean {
    return this.#known.get(known.key.id) === known;
  }

  /** Finds a key; undefined: there is none. Many requests with a key that is not known ask the database once. */
  async find(keyId: string): Promise<KnownKey | undefined> {
    const known = this.recall(keyId);
    if (known !== undefined) return known;
    if (performance.now() < (this.#absent.get(keyId) ?? 0)) return undefined;
    return this.#asking.get(keyId) ?? this.#ask(keyId);
  }

  /** Forgets a key, so that its next use asks the database. */
  forget(keyId: string): void {
    this.#known.delete(keyId);
    this.#absent.delete(keyId);
    this.#asking.delete(keyId);
  }

  /** Forgets all keys of a partner, because what was agreed with it has changed. */
  forgetPartner(partnerId: string): void {
    for (const [keyId, { key }] of this.#known) if (key.partnerId === partnerId) this.#known.delete(keyId);
    // Whose keys those are that are being read is not known yet: none of these answers is kept.
    this.#asking.clear();
  }

  #ask(keyId: string): Promise<KnownKey | undefined> {
    const asked: Promise<KnownKey | undefined> = this.#read(keyId).then(
      (known) => {
        // An answer that was read before the key was forgotten may be of before its revocation: it serves those who
        // asked then, and is not kept.
        if (this.#asking.get(keyId) === asked) {
          this.#asking.delete(keyId);
          if (known !== undefined) keep(this.#known, keyId, known, most.keys);
          else keep(this.#absent, keyId, performance.now() + believedMs, most.absent);
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
    const [row] = await this.database.read(findKey(keyId));
    if (row === undefined) return undefined;
    const key = toStoredKey(row);
    const { partnerId, id, scopes, features, limits } = key;
    return { key, caller: { partnerId, keyId: id, scopes, features, limits }, until: askedAt + believedMs };
  }
}

/** Keeps the newest entries, at most so many. */
function keep<T>(entries: Map<string, T>, keyId: string, entry: T, most: number): void {
  entries.delete(keyId);
  if (entries.size >= most) {
    const [oldest] = entries.keys();
    if (oldest !== undefined) entries.delete(oldest);
  }
  entries.set(keyId, entry);
}
