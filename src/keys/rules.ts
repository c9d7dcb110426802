import ipaddr from 'ipaddr.js';
import { ApiError } from '../lib/errors.ts';

/** How many keys that are not revoked a partner may have. */
export const mostActiveKeys = 10;

/** How many generations of keys are followed, each made with the one before. */
export const mostGenerations = 10_000;

/** A key and the key it was made with; undefined: an operator made it. */
export interface KeyLine {
  readonly id: string;
  readonly createdBy: string | undefined;
  readonly isActive: boolean;
}

/**
 * The active keys that were made with the given one, or with one of those, at any depth; oldest first. `lines` has the
 * active keys and all they descend from, up to `generations`. An active key whose line is longer counts as a child: it is
 * better to revoke one key too many than to leave one that leaked.
 */
export function activeChildren(keyId: string, lines: readonly KeyLine[], generations = mostGenerations): string[] {
  const makers = new Map(lines.map(({ id, createdBy }) => [id, createdBy]));
  const descends = (id: string) => {
    let at: string | undefined = id;
    for (let generation = 0; generation < generations; generation += 1) {
      at = makers.get(at);
      if (at === undefined) return false;
      if (at === keyId) return true;
    }
    return true;
  };
  return lines
    .filter(({ id, isActive }) => isActive && id !== keyId && descends(id))
    .map(({ id }) => id)
    .sort();
}

type Range = readonly [ipaddr.IPv4 | ipaddr.IPv6, number];

/**
 * An address or range as it is kept: an address in its usual form, a range by its first address and its length.
 * Undefined for what is neither, such as the shorthands of old (`127.1`), which some read differently than others, and
 * IPv6's forms of IPv4 addresses, which must be written as those.
 */
export function normalAddress(text: string): string | undefined {
  const range = readRange(text);
  if (range === undefined) return undefined;
  const [address, bits] = range;
  return bits === wholeBits(address) ? address.toString() : `${address}/${bits}`;
}

/** The addresses or ranges that a request gives, each once. Throws `invalid_request` for the first that is neither. */
export function normalAddresses(addresses: readonly string[]): string[] {
  const normal = addresses.map((address, at) => {
    const known = normalAddress(address);
    if (known === undefined) throw badAddress(at, 'must be an IPv4 or IPv6 address or range.');
    return known;
  });
  return [...new Set(normal)];
}

/** `invalid_request` for one of the addresses that a request gives. */
export function badAddress(at: number, problem: string): ApiError {
  const param = `addresses[${at}]`;
  return new ApiError('invalid_request', { param, message: `\`${param}\` ${problem}` });
}

/** Whether an address or range lies within one of some others. */
export function isWithin(entry: string, others: readonly string[]): boolean {
  const inner = readRange(entry);
  return inner !== undefined && others.some((other) => contains(readRange(other), inner));
}

function contains(outer: Range | undefined, [address, bits]: Range): boolean {
  if (outer === undefined || outer[0].kind() !== address.kind() || bits < outer[1]) return false;
  return address.match(outer[0], outer[1]);
}

function readRange(text: string): Range | undefined {
  const [address = '', length, ...more] = text.split('/');
  if (more.length > 0 || !isPlain(address)) return undefined;
  const parsed = ipaddr.parse(address);
  if (parsed instanceof ipaddr.IPv6 && parsed.isIPv4MappedAddress()) return undefined;
  const whole = wholeBits(parsed);
  if (length === undefined) return [parsed, whole];
  if (!/^(0|[1-9]\d{0,2})$/.test(length) || Number(length) > whole) return undefined;
  return [firstAddress(parsed, Number(length)), Number(length)];
}

function isPlain(text: string): boolean {
  return ipaddr.IPv4.isValidFourPartDecimal(text) || (ipaddr.IPv6.isValid(text) && /^[0-9a-f:.]*$/i.test(text));
}

function wholeBits(address: ipaddr.IPv4 | ipaddr.IPv6): number {
  return address.kind() === 'ipv4' ? 32 : 128;
}

/** The address with every bit after the first `bits` at 0. */
function firstAddress(address: ipaddr.IPv4 | ipaddr.IPv6, bits: number): ipaddr.IPv4 | ipaddr.IPv6 {
  const bytes = address.toByteArray().map((byte, index) => {
    const kept = Math.min(8, Math.max(0, bits - index * 8));
    return byte & (0xff << (8 - kept)) & 0xff;
  });
  return ipaddr.fromByteArray(bytes);
}
