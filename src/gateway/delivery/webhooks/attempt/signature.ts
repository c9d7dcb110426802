import { createHmac, createSecretKey, type KeyObject, randomBytes } from 'node:crypto';
import type { Seal } from '../../../../kit/key-ring.ts';
import { signsWithOld } from '../rules.ts';
import type { Endpoint } from '../table.ts';

const prefix = 'whsec_';
const newKeyBytes = 32;
/** The key lengths of the Standard Webhooks scheme. */
const fewestKeyBytes = 24;
const maxKeyBytes = 64;

/** Makes a signing secret: `whsec_` and 32 random bytes in base64. */
export function makeSecret(): string {
  return secretOf(randomBytes(newKeyBytes));
}

/** The secret of a key, as partners hold it. */
export function secretOf(key: Buffer): string {
  return prefix + key.toString('base64');
}

/** The key of a secret, 24 to 64 bytes; undefined if the text is not a secret. */
export function parseSecret(secret: string): Buffer | undefined {
  if (!secret.startsWith(prefix)) return undefined;
  const key = Buffer.from(secret.slice(prefix.length), 'base64');
  const isWhole = key.length >= fewestKeyBytes && key.length <= maxKeyBytes;
  // Node skips characters that are not base64. A secret that lost a letter must not become another key.
  return isWhole && secretOf(key) === secret ? key : undefined;
}

/** A key as bytes, or prepared for repeated signing. */
export type SigningKey = Buffer | KeyObject;

/** The signed content: the body, the event's id and the time of the attempt. */
export interface Signed {
  readonly id: string;
  /** The time of the attempt in seconds since the Unix epoch. */
  readonly timestampSeconds: number;
  readonly body: Buffer;
}

/**
 * The value of `webhook-signature` by the Standard Webhooks scheme: for each key, in order and separated by spaces, `v1,`
 * and the base64 of HMAC-SHA256 over id, timestamp and body joined by full stops.
 */
export function sign({ id, timestampSeconds, body }: Signed, keys: readonly SigningKey[]): string {
  if (keys.length === 0) throw new Error('an event cannot be sent unsigned');
  const head = `${id}.${timestampSeconds}.`;
  return keys.map((key) => `v1,${createHmac('sha256', key).update(head).update(body).digest('base64')}`).join(' ');
}

/** The signing keys of an endpoint at an instant, newest first. */
export type KeysOf = (
  endpoint: Pick<Endpoint, 'partnerId' | 'secret' | 'oldSecret' | 'oldSecretUntil'>,
  now: number,
) => readonly SigningKey[];

const maxCached = 4_096;

/** Decrypts endpoints' secrets, and caches the keys. */
export function signingKeys(seal: Seal): KeysOf {
  const cached = new Map<string, SigningKey>();
  const open = (partnerId: string, sealed: Buffer): SigningKey => {
    const name = `${partnerId} ${sealed.toString('latin1')}`;
    const known = cached.get(name);
    if (known !== undefined) return known;
    const bytes = parseSecret(seal.open(partnerId, sealed));
    if (bytes === undefined) throw new Error('a sealed secret is none');
    const key = createSecretKey(bytes);
    if (cached.size >= maxCached) cached.clear();
    cached.set(name, key);
    return key;
  };
  return ({ partnerId, secret, oldSecret, oldSecretUntil }, now) => {
    const newest = open(partnerId, secret);
    return oldSecret !== null && signsWithOld(oldSecretUntil, now) ? [newest, open(partnerId, oldSecret)] : [newest];
  };
}
