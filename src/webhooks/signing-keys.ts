import { createSecretKey } from 'node:crypto';
import type { Seal } from '../lib/seal.ts';
import type { StoredEndpoint } from './endpoint-store.ts';
import { signsWithOld } from './rules.ts';
import { parseSecret, type SigningKey } from './signature.ts';

/** What of an endpoint says how its events are signed. */
export type SignedEndpoint = Pick<StoredEndpoint, 'partnerId' | 'secret' | 'oldSecret' | 'oldSecretUntil'>;

/** The keys an endpoint's events are signed with at an instant, the newest first. */
export type KeysOf = (endpoint: SignedEndpoint, now: number) => readonly SigningKey[];

const mostRemembered = 4_096;

/** Opens endpoints' secrets, and remembers what it opened. */
export function signingKeys(seal: Seal): KeysOf {
  const opened = new Map<string, SigningKey>();
  // Between two looks at its row an endpoint's secret is the same object, and found without reading it.
  const lately = new WeakMap<Buffer, SigningKey>();
  const open = (partnerId: string, sealed: Buffer): SigningKey => {
    const known = lately.get(sealed);
    if (known !== undefined) return known;
    const key = unseal(partnerId, sealed);
    lately.set(sealed, key);
    return key;
  };
  const unseal = (partnerId: string, sealed: Buffer): SigningKey => {
    const name = sealed.toString('base64');
    const known = opened.get(name);
    if (known !== undefined) return known;
    const bytes = parseSecret(seal.open(partnerId, sealed));
    if (bytes === undefined) throw new Error('a sealed secret is none');
    const key = createSecretKey(bytes);
    if (opened.size >= mostRemembered) opened.clear();
    opened.set(name, key);
    return key;
  };
  return ({ partnerId, secret, oldSecret, oldSecretUntil }, now) => {
    const newest = open(partnerId, secret);
    return oldSecret !== null && signsWithOld(oldSecretUntil, now) ? [newest, open(partnerId, oldSecret)] : [newest];
  };
}
