import type { LookupKind } from './parse.ts';

/** Values by kind, key and name: of the account NG-1 the value `cscs`, for example. */
export interface Lookups {
  /** Undefined: there is none. */
  valueOf(by: LookupKind, key: string, name: string): string | undefined;
  /** Whether some account, partner or symbol has a value of this name. */
  hasName(by: LookupKind, name: string): boolean;
}

const kinds: readonly string[] = ['account', 'partner', 'symbol'] satisfies LookupKind[];
/** A value that is longer is a mistake. */
const valuePattern = /^[!-z~](?:[ -z~]{0,126}[!-z~])?$/;

/**
 * Reads a lookup file. Each line has the values of one account, partner or symbol: `account=NG-1|cscs=C123|client=CL9`. Throws what
 * is wrong with the number of the line, and without its text, because that may be about a person.
 */
export function parseLookups(text: string): Lookups {
  const values = new Map<string, ReadonlyMap<string, string>>();
  const names = new Set<string>();
  let number = 0;
  for (const raw of text.split('\n')) {
    number += 1;
    const line = raw.replace(/\r$/, '').trim();
    if (line === '' || line.startsWith('#')) continue;
    const [by, key, pairs] = parseLine(line, number);
    const id = `${by}=${key}`;
    if (values.has(id)) throw new Error(`line ${number} must not name an ${by} that an earlier line has`);
    values.set(id, pairs);
    for (const name of pairs.keys()) names.add(`${by}.${name}`);
  }
  return {
    valueOf: (by, key, name) => values.get(`${by}=${key}`)?.get(name),
    hasName: (by, name) => names.has(`${by}.${name}`),
  };
}

export const noLookups: Lookups = parseLookups('');

function parseLine(line: string, number: number): [by: string, key: string, pairs: ReadonlyMap<string, string>] {
  const [head = '', ...rest] = line.split('|');
  const [, by = '', key = ''] = /^([a-z]+)=([!-z~]{1,64})$/.exec(head) ?? [];
  if (!kinds.includes(by)) throw new Error(`line ${number} must begin with account=, partner= or symbol= and its code`);
  if (rest.length === 0) throw new Error(`line ${number} must have values, such as |cscs=C123`);
  const pairs = new Map<string, string>();
  for (const pair of rest) {
    const [, name = '', value = ''] = /^([a-z][a-z0-9_]{0,31})=(.*)$/.exec(pair) ?? [];
    if (name === '' || !valuePattern.test(value)) {
      throw new Error(`line ${number} must have name=value with | between them, printable and not empty`);
    }
    if (pairs.has(name)) throw new Error(`line ${number} must have each name once`);
    pairs.set(name, value);
  }
  return [by, key, pairs];
}
