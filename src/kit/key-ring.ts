import {
  createCipheriv,
  createDecipheriv,
  createHmac,
  createSecretKey,
  type Hmac,
  hkdfSync,
  type KeyObject,
  randomBytes,
  timingSafeEqual,
} from 'node:crypto';
import type { Live } from './watched-files.ts';

/** One of the gateway's secrets, or a key that is derived from it for one use. */
export interface NamedKey {
  /** Names the secret without revealing it: 16 hex characters. */
  readonly id: string;
  readonly key: Buffer;
}

/** The first is current: what is new is made with it. The others are former or next ones, with which is only read. */
export type KeyRing = readonly [current: NamedKey, ...others: NamedKey[]];

/** The keys of one use, which change with the ring. */
export interface Keys {
  readonly all: KeyRing;
}

/** Each key more makes a forged cursor or API key more expensive to refuse. */
const maxKeys = 5;

/** Reads `MARINA_SECRET_KEY`. Throws an error without any of the text. */
export function parseKeyRing(text: string): KeyRing {
  const entries = text.split(/[\s,]+/).filter((entry) => entry !== '');
  if (!entries.every((entry) => /^[0-9a-f]{64}$/i.test(entry))) throw new Error('must be 64 hex characters');
  const [current, ...others] = entries.map((entry) => named(Buffer.from(entry, 'hex')));
  if (current === undefined) throw new Error('must be 64 hex characters');
  if (others.length >= maxKeys) throw new Error(`must be at most ${maxKeys} keys`);
  const ring: KeyRing = [current, ...others];
  if (new Set(ring.map(({ id }) => id)).size < ring.length) throw new Error('must not have the same key twice');
  return ring;
}

/** Throws if a ring cannot follow another one while the gateway runs: it could not read what was made a moment ago. */
export function checkSuccessor(ring: KeyRing, former: KeyRing): void {
  if (ring.some(({ id }) => id === former[0].id)) return;
  throw new Error('the key that was current is missing: it must stay as a former one');
}

/** The keys of one use. Each use has keys of its own, so that what is made for one means nothing to another. */
export function keysFor(ring: Live<KeyRing>, use: string): Keys {
  let derived = derivedFrom(ring.current, use);
  ring.onChange((changed) => {
    derived = derivedFrom(changed, use);
  });
  return {
    get all() {
      return derived;
    },
  };
}

/** A single key that never changes. */
export function onlyKey(key: Buffer): Keys {
  return { all: [named(key)] };
}

/** Derives the key of one use from one of the gateway's secrets. */
export function subkey(secret: Buffer, use: string): Buffer {
  return Buffer.from(hkdfSync('sha256', secret, '', `marina ${use}`, 32));
}

const prepared = new WeakMap<Buffer, KeyObject>();

/** Begins an HMAC-SHA256. From a key that is not prepared Node 24 takes six times as long. */
export function hmacUnder(key: Buffer): Hmac {
  let object = prepared.get(key);
  if (object === undefined) {
    object = createSecretKey(key);
    prepared.set(key, object);
  }
  return createHmac('sha256', object);
}

/** A digest under the current key, which is also found if another key of the ring made the stored one. */
export class KeyedDigest {
  readonly current: Buffer;
  readonly #others: readonly NamedKey[];

  constructor(
    { all: [current, ...others] }: Keys,
    private readonly write: (hmac: Hmac) => Hmac,
  ) {
    this.current = this.#under(current);
    this.#others = others;
  }

  /** Whether a stored digest is one of the same content. */
  matches(stored: Buffer): boolean {
    return this.current.equals(stored) || this.#others.some((other) => this.#under(other).equals(stored));
  }

  #under({ key }: NamedKey): Buffer {
    return this.write(hmacUnder(key)).digest();
  }
}

const keyIdLength = 8;
/** Of a seal: the key's id and an HMAC-SHA256. */
export const rowSealLength = keyIdLength + 32;

/**
 * Proves that a gateway wrote a row: a MAC of its content, made with the current key and right under any key of the ring. It
 * names its key, so that only one is tried.
 */
export class RowSeal {
  constructor(private readonly keys: Keys) {}

  /** Seals a content. */
  make(content: string): Buffer {
    const [current] = this.keys.all;
    return Buffer.concat([Buffer.from(current.id, 'hex'), macUnder(current, content)]);
  }

  /** The id of the key that sealed a content; undefined: the seal is of something else, or under no key of the ring. */
  keyOf(seal: Buffer, content: string): string | undefined {
    if (seal.length !== rowSealLength) return undefined;
    const id = seal.toString('hex', 0, keyIdLength);
    const key = this.keys.all.find((each) => each.id === id);
    if (key === undefined) return undefined;
    return timingSafeEqual(macUnder(key, content), seal.subarray(keyIdLength)) ? id : undefined;
  }
}

function macUnder({ key }: NamedKey, content: string): Buffer {
  return hmacUnder(key).update(content).digest();
}

function named(key: Buffer): NamedKey {
  return { id: subkey(key, 'key id').toString('hex', 0, 8), key };
}

function derivedFrom([current, ...others]: KeyRing, use: string): KeyRing {
  const derived = ({ id, key }: NamedKey): NamedKey => ({ id, key: subkey(key, use) });
  return [derived(current), ...others.map(derived)];
}

const formatByte = 1;
const nonceLength = 12;
const tagLength = 16;

/**
 * Encrypts texts that must be read again, such as signing secrets in the database, with AES-256-GCM under the current key.
 * A sealed text opens under any key of the ring, but only for its owner: one that was copied to another owner's row is
 * refused. It does not name its key, because earlier versions must open it too.
 */
export class Seal {
  constructor(private readonly keys: Keys) {}

  /** Seals a text, differently each time. */
  seal(owner: string, text: string): Buffer {
    const nonce = randomBytes(nonceLength);
    const cipher = createCipheriv('aes-256-gcm', this.keys.all[0].key, nonce).setAAD(Buffer.from(owner));
    const sealed = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()]);
    return Buffer.concat([Buffer.from([formatByte]), nonce, cipher.getAuthTag(), sealed]);
  }

  /** Opens a seal. Throws if it is for another owner, under no key of the ring, or was changed. */
  open(owner: string, bytes: Buffer): string {
    return this.openNamed(owner, bytes).text;
  }

  /** Opens a seal in the same way, and says which key it is under, by its id. */
  openNamed(owner: string, bytes: Buffer): { text: string; keyId: string } {
    if (bytes[0] !== formatByte) throw new Error('what is sealed has a form that is not known');
    let cause: unknown;
    for (const { id: keyId, key } of this.keys.all) {
      try {
        return { text: openWith(key, owner, bytes), keyId };
      } catch (error) {
        cause = error;
      }
    }
    throw new Error('what is sealed cannot be opened: MARINA_SECRET_KEY lacks the key it was sealed with', { cause });
  }
}

function openWith(key: Buffer, owner: string, bytes: Buffer): string {
  const nonce = bytes.subarray(1, 1 + nonceLength);
  const tag = bytes.subarray(1 + nonceLength, 1 + nonceLength + tagLength);
  const cipher = createDecipheriv('aes-256-gcm', key, nonce, { authTagLength: tagLength })
    .setAAD(Buffer.from(owner))
    .setAuthTag(tag);
  const opened = Buffer.concat([cipher.update(bytes.subarray(1 + nonceLength + tagLength)), cipher.final()]);
  return opened.toString('utf8');
}
