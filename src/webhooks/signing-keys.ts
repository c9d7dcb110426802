import { createSecretKey } from 'node:crypto';
import type { Seal } from '../lib/seal.ts';
import { signsWithOld } from './rules.ts';
import { parseSecret, type SigningKey } from './signature.ts';
import type { Endpoint } from './table.ts';

/** The keys an endpoint's events are signed with at an instant, the newest first. */
export type KeysOf = (
  endpoint: Pick<Endpoint, 'partnerId' | 'secret' | 'oldSecret' | 'oldSecretUntil'>,
  now: number,
) => readonly SigningKey[];

const mostCached = 4_096;

/** Opens endpoints' secrets, and caches the keys. */
export function signingKeys(seal: Seal): KeysOf {
  const cached = new Map<string, SigningKey>();
  const open = (partnerId: string, sealed: Buffer): SigningKey => {
    const name = `${partnerId} ${sealed.toString('latin1')}`;
    const known = cached.get(name);
    if (known !== undefined) return known;
    const bytes = parseSecret(seal.open(partnerId, sealed));
    if (bytes === undefined) throw new Error('a sealed secret is none');
    const key = createSecretKey(bytes);
    if (cached.size >= mostCached) cached.clear();
    cached.set(name, key);
    return key;
  };
  return ({ partnerId, secret, oldSecret, oldSecretUntil }, now) => {
    const newest = open(partnerId, secret);
    return oldSecret !== null && signsWithOld(oldSecretUntil, now) ? [newest, open(partnerId, oldSecret)] : [newest];
  };
}
