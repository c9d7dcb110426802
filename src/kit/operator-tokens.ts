import { hash, randomBytes, timingSafeEqual } from 'node:crypto';
import { isDate } from './clock.ts';
import { groupBy } from './group.ts';
import type { Logger } from './log.ts';
import type { Live } from './watched-files.ts';

/** The name of an operator, by its token. */
export type Operator = string;

/** The uses of a token. Each role includes `read`, and `admin` includes all. */
export const operatorRoles = ['read', 'support', 'trading', 'treasury', 'admin'] as const;
export type OperatorRole = (typeof operatorRoles)[number];

/** A token of an operator, who may have several. */
export interface OperatorToken {
  readonly name: Operator;
  /** Its SHA-256. A token that this version makes has 256 random bits, so a slow hash would add nothing. */
  readonly hash: Buffer;
  /** In real time; undefined: it does not expire. */
  readonly expiresAt: number | undefined;
  /** Its uses. */
  readonly roles: readonly OperatorRole[];
  /** Whether its line names the roles. A line of an earlier version does not, and is for everything. */
  readonly namesRoles: boolean;
}

/** Who makes a call, with which roles, and until when the token is good. */
export type IdentifiedOperator = Pick<OperatorToken, 'name' | 'roles' | 'expiresAt'>;

const plainForm = /^([A-Za-z0-9._-]{1,64}):([!-~]{24,})$/;
/** No token has a space, so a line of one form is none of the other. */
const hashedForm =
  /^([A-Za-z0-9._-]{1,64}) +sha256:([0-9a-f]{64}) +(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)(?: +role=([a-z+]{1,64}))?$/;
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
  if (name !== undefined && token !== undefined) {
    return { name, hash: hashOf(token), expiresAt: undefined, roles: ['admin'], namesRoles: false };
  }
  const [, hashedName, hex, end, named] = hashedForm.exec(entry) ?? [];
  const roles = named === undefined ? (['admin'] as const) : parseOperatorRoles(named);
  const expiresAt = Date.parse(end ?? '');
  // Date.parse takes 31 February for a day of March.
  const isDay = end !== undefined && isDate(end.slice(0, 10));
  if (hashedName === undefined || hex === undefined || !isDay || Number.isNaN(expiresAt)) throw new Error(allowed);
  if (roles === undefined) throw new Error(allowed);
  return { name: hashedName, hash: Buffer.from(hex, 'hex'), expiresAt, roles, namesRoles: named !== undefined };
}

/** Reads roles that are joined by `+`; undefined if one of them does not exist. */
export function parseOperatorRoles(text: string): readonly OperatorRole[] | undefined {
  const named = text.split('+');
  if (named.some((name) => !(operatorRoles as readonly string[]).includes(name))) return undefined;
  return operatorRoles.filter((role) => named.includes(role));
}

/** A new token and the line that admits it. */
export function newOperatorToken(
  name: string,
  expiresAt: number,
  roles: readonly OperatorRole[] = ['admin'],
): { token: string; line: string } {
  const token = `marina_operator_${randomBytes(32).toString('base64url')}`;
  return { token, line: operatorTokenLine(name, token, expiresAt, roles) };
}

/** The line that admits a token. */
export function operatorTokenLine(
  name: string,
  token: string,
  expiresAt: number,
  roles: readonly OperatorRole[],
): string {
  const end = new Date(expiresAt).toISOString().replace(/\.\d+/, '');
  const line = `${name} sha256:${hashOf(token).toString('hex')} ${end} role=${roles.join('+')}`;
  parseToken(line);
  return line;
}

/** Whether somebody with these roles has a role. */
export function hasRole(roles: readonly OperatorRole[], role: OperatorRole): boolean {
  return roles.includes(role) || roles.includes('admin') || (role === 'read' && roles.length > 0);
}

/** Warns once of each operator with a token that may make every call because its line names no role: now, and at each change. */
export function warnOfTokensWithoutRole(tokens: Live<readonly OperatorToken[]>, log: Logger): void {
  const warn = (current: readonly OperatorToken[]) => {
    const without = current.filter(({ namesRoles }) => !namesRoles).map(({ name }) => name);
    for (const operator of new Set(without)) log.warn({ operator }, 'a token without a role may make every call');
  };
  warn(tokens.current);
  tokens.onChange(warn);
}

/** Makes the function that finds the operator of a call's `authorization` metadata, by the tokens of that moment. */
export function identifyOperators(tokens: Live<readonly OperatorToken[]>, realNow: () => number) {
  return (authorization: readonly (string | Buffer)[]): IdentifiedOperator | undefined => {
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
    return isOver ? undefined : found;
  };
}

/**
 * In how many seconds each operator loses a role, because the last token with it expires; without those whose tokens do not
 * expire.
 */
export function tokenExpiries(tokens: readonly OperatorToken[], realNow: number): [Operator, number][] {
  return [...groupBy(tokens, ({ name }) => name)].flatMap(([name, own]): [Operator, number][] => {
    const ends = operatorRoles.flatMap((role) => {
      const having = own.filter(({ roles }) => hasRole(roles, role));
      return having.length === 0
        ? []
        : [Math.max(...having.map(({ expiresAt = Number.POSITIVE_INFINITY }) => expiresAt))];
    });
    const first = Math.min(...ends);
    return Number.isFinite(first) ? [[name, (first - realNow) / 1_000]] : [];
  });
}

/** The operators with a token that does not expire, each once, in the order of their names. */
export function operatorsWithoutEnd(tokens: readonly OperatorToken[]): Operator[] {
  return [...new Set(tokens.flatMap(({ name, expiresAt }) => (expiresAt === undefined ? [name] : [])))].sort();
}

/** How many persons have a token that has not ended for each role. `realNow` is in milliseconds. */
export function roleHolders(
  tokens: readonly OperatorToken[],
  realNow: number,
): { readonly role: OperatorRole; readonly operators: number }[] {
  const good = tokens.filter(({ expiresAt = Number.POSITIVE_INFINITY }) => expiresAt > realNow);
  return operatorRoles.map((role) => {
    const having = good.filter(({ roles }) => hasRole(roles, role));
    return { role, operators: new Set(having.map(({ name }) => name.toLowerCase())).size };
  });
}

function hashOf(token: string): Buffer {
  return hash('sha256', token, 'buffer');
}

/** Whether two operators are one person: names that differ in capitals only are. */
export function isSamePerson(one: string, other: string): boolean {
  return one.toLowerCase() === other.toLowerCase();
}
