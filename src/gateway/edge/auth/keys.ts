import { hash, timingSafeEqual } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { hmacUnder, type KeyRing, type Keys, keysFor } from '../../../kit/key-ring.ts';
import type { Live } from '../../../kit/watched-files.ts';
import type { Environment } from '../../store/database.ts';
import { randomBase32 } from '../ids.ts';

/**
 * The parts of an API key: `marina_test_` or `marina_live_`, the key's id, a 256-bit secret and a checksum. The id ends
 * with a message authentication code (MAC) of the rest, so a forged key is recognised without a query. The MAC is part
 * of the id because earlier versions must accept the key too.
 */
export interface KeyParts {
  /** `key_` and 20 characters. */
  readonly id: string;
  readonly secretHash: Buffer;
  /** False for a forged key and for a key of an earlier version. Computed when it is called: a known key needs no MAC. */
  readonly hasMac: () => boolean;
}

export type NoKey = 'malformed' | 'other_environment';

/** A new key, whose text is shown once. */
export interface MadeKey {
  readonly id: string;
  readonly key: string;
  readonly secretHash: Buffer;
  /** The id of the gateway's secret that its MAC was made with. */
  readonly macKey: string;
}

const prefixes = { sandbox: 'marina_test_', live: 'marina_live_' } as const;
const shape = /^[a-z2-7]{78}$/;
const idLength = 20;
const secretLength = 52; // 52 × 5 bits hold 256.
const checksumLength = 6;
const macLength = 6; // 30 bits: one forged key of a billion is looked up.

/** The keys of the MACs. */
export function keyMacKeys(ring: Live<KeyRing>): Keys {
  return keysFor(ring, 'api key check');
}

/** Makes a key whose id begins with `head` (`IdMaker.keyHead`). */
export function makeKey(environment: Environment, { all: [current] }: Keys, head: string): MadeKey {
  const prefix = prefixes[environment];
  const secret = randomBase32(secretLength);
  const id = head + macOf(current.key, prefix, head, secret);
  const body = `${prefix}${id}${secret}`;
  return { id: `key_${id}`, key: body + checksum(body), secretHash: hashOf(secret), macKey: current.id };
}

/** Takes a key apart, without a query. */
export function parseKey(environment: Environment, macKeys: Keys, key: string): KeyParts | NoKey {
  const prefix = prefixes[environment];
  if (key.startsWith(prefixes[environment === 'live' ? 'sandbox' : 'live'])) return 'other_environment';
  if (!key.startsWith(prefix) || !shape.test(key.slice(prefix.length))) return 'malformed';
  const body = key.slice(0, -checksumLength);
  if (checksum(body) !== key.slice(-checksumLength)) return 'malformed';
  const id = key.slice(prefix.length, prefix.length + idLength);
  const secret = key.slice(prefix.length + idLength, -checksumLength);
  const hasMac = () => {
    const given = Buffer.from(id.slice(-macLength));
    const head = id.slice(0, -macLength);
    return macKeys.all.some((each) => timingSafeEqual(Buffer.from(macOf(each.key, prefix, head, secret)), given));
  };
  return { id: `key_${id}`, secretHash: hashOf(secret), hasMac };
}

/** Compares two hashes in constant time. */
export function sameHash(left: Buffer, right: Buffer): boolean {
  return left.length === right.length && timingSafeEqual(left, right);
}

/** The secret has 256 random bits, so a fast hash is as hard to invert as a slow one. */
function hashOf(secret: string): Buffer {
  return hash('sha256', secret, 'buffer');
}

function macOf(macSecret: Buffer, prefix: string, head: string, secret: string): string {
  const code = hmacUnder(macSecret).update(`${prefix}${head}${secret}`).digest();
  return base32(code.readUInt32BE(), macLength);
}

/** Distinguishes a mistyped or cut key from a forged one. */
function checksum(body: string): string {
  return base32(crc32(body), checksumLength);
}

/** The lowest bits of a number, five per character, lowest first. */
function base32(bits: number, length: number): string {
  const alphabet = 'abcdefghijklmnopqrstuvwxyz234567';
  let value = bits;
  let text = '';
  for (let at = 0; at < length; at += 1) {
    text += alphabet[value & 31];
    value >>>= 5;
  }
  return text;
}
