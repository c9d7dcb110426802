import { randomBytes } from 'node:crypto';

/** In the order of their bytes, so that later ids sort later. */
const alphabet = '234567abcdefghijklmnopqrstuvwxyz';

export type IdPrefix = 'ord' | 'app' | 'alc' | 'wdr' | 'wtr' | 'par' | 'prp' | 'stp' | 'bcl';

/** Makes ids. Use one maker in a process, so that ids of one millisecond sort in the order they were made. */
export class IdMaker {
  #lastMs = 0;
  #lastTail = 0n;
  #lastKeyMs = 0;
  #lastKeyTail = 0n;

  constructor(private readonly clock: { now(): number }) {}

  /** An object's id: the prefix and 20 characters of a-z and 2-7, 9 from the clock and 11 random. */
  object(prefix: IdPrefix): string {
    const ms = Math.max(this.clock.now(), this.#lastMs);
    const tail =
      ms === this.#lastMs ? this.#lastTail + 1n + BigInt(randomBytes(2).readUInt16BE()) : randomBits(55) >> 1n;
    this.#lastMs = ms;
    this.#lastTail = tail;
    return `${prefix}_${base32(BigInt(ms), 9)}${base32(tail, 11)}`;
  }

  /** The first 14 characters of a key's id, 9 from the clock and 5 random. The rest is made from the whole key. */
  keyHead(): string {
    const ms = Math.max(this.clock.now(), this.#lastKeyMs);
    const tail = ms === this.#lastKeyMs ? this.#lastKeyTail + 1n : randomBits(25) >> 1n;
    this.#lastKeyMs = ms;
    this.#lastKeyTail = tail;
    return `${base32(BigInt(ms), 9)}${base32(tail, 5)}`;
  }

  /** An event's id: `msg_` and 24 lower-case hex characters. */
  event(): string {
    return `msg_${Math.floor(this.clock.now()).toString(16).padStart(12, '0').slice(-12)}${randomBytes(6).toString('hex')}`;
  }
}

/** Whether a text has the form of an object's id. */
export function isObjectId(text: string): boolean {
  return /^[a-z]{3}_[a-z2-7]{20}$/.test(text);
}

/** The first id that an object made at an instant of business time can have, or later. */
export function firstIdAt(prefix: IdPrefix, ms: number): string {
  const clockBits = BigInt(Math.min(Math.max(0, Math.floor(ms)), 2 ** 45 - 1));
  return `${prefix}_${base32(clockBits, 9)}${base32(0n, 11)}`;
}

/** `count` random characters of a-z and 2-7, five bits each. */
export function randomBase32(count: number): string {
  let text = '';
  for (const byte of randomBytes(count)) text += alphabet[byte & 31];
  return text;
}

function randomBits(bits: number): bigint {
  return BigInt(`0x${randomBytes(Math.ceil(bits / 8)).toString('hex')}`) & ((1n << BigInt(bits)) - 1n);
}

function base32(value: bigint, length: number): string {
  let text = '';
  for (let shift = BigInt((length - 1) * 5); shift >= 0n; shift -= 5n) {
    text += alphabet[Number((value >> shift) & 31n)];
  }
  return text;
}
