import { hash, randomBytes, timingSafeEqual } from 'node:crypto';
import { isDate } from './clock.ts';
import type { Live } from './watched-files.ts';

/** The name of an operator, by its token. */
export type Operator = string;

/** A token of an operator, who may have several. */
export interface OperatorToken {
  readonly name: Operator;
  /** Its SHA-256. A token that this version makes has 256 random bits, so a slow hash would add nothing. */
  readonly hash: Buffer;
  /** In real time; undefined: it does not expire. */
  readonly expiresAt: number | undefined;
}

const plainForm = /^([A-Za-z0-9._-]{1,64}):([!-~]{24,})$/;
/** No token has a space, so a line of one form is none of the other. */
const hashedForm = /^([A-Za-z0-9._-]{1,64}) +sha256:([0-9a-f]{64}) +(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)$/;
const maxTokens = 200;

const allowed =
  'must be name:token pairs separated by commas or line breaks, with tokens of at least 24 characters, ' +
  'or lines as operator-token prints them';

/** Reads `MARINA_OPERATOR_TOKENS`. Throws an error without any of the text. */
export function parseOperatorTokens(text: string): readonly OperatorToken[] {
  const entries = text.split(/[,\n]/).map((entry) => entry.trim());
  const tokens = entries.filter((entry) => entry !== '').map(parseToken);
  if (tokens.length > maxTokens) throw new Error(`must be at most ${maxTokens} tokens`);
  return tokens;
}

function parseToken(entry: string): OperatorToken {
  const [, name, token] = plainForm.exec(entry) ?? [];
  if (name !== undefined && token !== undefined) return { name, hash: hashOf(token), expiresAt: undefined };
  const [, hashedName, hex, end] = hashedForm.exec(entry) ?? [];
  const expiresAt = Date.parse(end ?? '');
  // Date.parse takes 31 February for a day of March.
  const isDay = end !== undefined && isDate(end.slice(0, 10));
  if (hashedName === undefined || hex === undefined || !isDay || Number.isNaN(expiresAt)) throw new Error(allowed);
  return { name: hashedName, hash: Buffer.from(hex, 'hex'), expiresAt };
}

/** A new token and the line that admits it. */
export function newOperatorToken(name: string, expiresAt: number): { token: string; line: string } {
  const token = `marina_operator_${randomBytes(32).toString('base64url')}`;
  const end = new Date(expiresAt).toISOString().replace(/\.\d+/, '');
  const line = `${name} sha256:${hashOf(token).toString('hex')} ${end}`;
  parseToken(line);
  return { token, line };
}

/** Makes the function that finds the operator of a call's `authorization` metadata, by the tokens of that moment. */
export function identifyOperators(tokens: Live<readonly OperatorToken[]>, realNow: () => number) {
  return (authorization: readonly (string | Buffer)[]): Operator | undefined => {
    const [value] = authorization;
    if (authorization.length !== 1 || typeof value !== 'string') return undefined;
    const token = /^bearer +([^ ]+)$/i.exec(value)?.[1];
    if (token === undefined) return undefined;
    const given = hashOf(token);
    let found: OperatorToken | undefined;
    // It is compared with every token, so that the time it takes reveals nothing.
    for (const each of tokens.current) {
      if (timingSafeEqual(each.hash, given)) found = each;
    }
    const isOver = found?.expiresAt !== undefined && found.expiresAt <= realNow();
    return isOver ? undefined : found?.name;
  };
}

/** In how many seconds each operator's last token expires; without those whose tokens do not. */
export function tokenExpiries(tokens: readonly OperatorToken[], realNow: number): [Operator, number][] {
  const last = new Map<Operator, number>();
  for (const { name, expiresAt = Number.POSITIVE_INFINITY } of tokens) {
    last.set(name, Math.max(last.get(name) ?? 0, expiresAt));
  }
  return [...last].filter(([, end]) => Number.isFinite(end)).map(([name, end]) => [name, (end - realNow) / 1_000]);
}

function hashOf(token: string): Buffer {
  return hash('sha256', token, 'buffer');
}
