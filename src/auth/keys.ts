import { hash, timingSafeEqual } from 'node:crypto';
import { crc32 } from 'node:zlib';
import type { Environment } from '../db/database.ts';
import { randomBase32 } from '../lib/ids.ts';

/** The parts of an API key: `marina_test_` or `marina_live_`, the key's id, a 256-bit secret and a checksum. */
export interface KeyParts {
  /** `key_` and 20 characters. */
  readonly id: string;
  readonly secretHash: Buffer;
}

const prefixes = { sandbox: 'marina_test_', live: 'marina_live_' } as const;
const shape = /^[a-z2-7]{78}$/;
const idLength = 20;
const secretLength = 52; // 52 × 5 bits hold 256.
const checksumLength = 6;

/** Makes the text of a key with the given id. It is shown once; only the hash is stored. */
export function makeKey(environment: Environment, id: string): { key: string; secretHash: Buffer } {
  const secret = randomBase32(secretLength);
  const body = `${prefixes[environment]}${id.slice('key_'.length)}${secret}`;
  return { key: body + checksum(body), secretHash: hashOf(secret) };
}

/** Takes a key apart; undefined for what was never a key of this environment. No look-up is needed to know that. */
export function parseKey(environment: Environment, key: string): KeyParts | undefined {
  const prefix = prefixes[environment];
  if (!key.startsWith(prefix) || !shape.test(key.slice(prefix.length))) return undefined;
  const body = key.slice(0, -checksumLength);
  if (checksum(body) !== key.slice(-checksumLength)) return undefined;
  const secret = key.slice(prefix.length + idLength, -checksumLength);
  return { id: `key_${key.slice(prefix.length, prefix.length + idLength)}`, secretHash: hashOf(secret) };
}

/** Whether two hashes are the same, in a time that tells nothing. */
export function sameHash(left: Buffer, right: Buffer): boolean {
  return left.length === right.length && timingSafeEqual(left, right);
}

/** The secret has 256 bits of chance, so one pass of a fast hash is as hard to undo as a slow one. */
function hashOf(secret: string): Buffer {
  return hash('sha256', secret, 'buffer');
}

/** Lets a mistyped or cut key be refused without a look-up. */
function checksum(body: string): string {
  const alphabet = 'abcdefghijklmnopqrstuvwxyz234567';
  let value = crc32(body);
  let text = '';
  for (let place = 0; place < checksumLength; place += 1) {
    text += alphabet[value & 31];
    value >>>= 5;
  }
  return text;
}
