import { createHash, timingSafeEqual } from 'node:crypto';
import type { Operator } from './call.ts';

/** Tells which operator a call's `authorization` metadata belongs to. */
export type IdentifyOperator = (authorization: readonly (string | Buffer)[]) => Operator | undefined;

/** Compares with every token, so that the time tells nothing. */
export function identifyOperators(operators: ReadonlyMap<string, Operator>): IdentifyOperator {
  const hashes = [...operators].map(([token, name]) => ({ name, hash: sha256(token) }));
  return (authorization) => {
    const [value] = authorization;
    if (authorization.length !== 1 || typeof value !== 'string') return undefined;
    const token = /^bearer +([^ ]+)$/i.exec(value)?.[1];
    if (token === undefined) return undefined;
    const given = sha256(token);
    let found: Operator | undefined;
    for (const { name, hash } of hashes) {
      if (timingSafeEqual(hash, given)) found = name;
    }
    return found;
  };
}

function sha256(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
