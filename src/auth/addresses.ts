import ipaddr from 'ipaddr.js';
import { ApiError } from '../lib/errors.ts';

/** An address and of how many of its bits a range is; all of them: of the address alone. */
type Range = readonly [ipaddr.IPv4 | ipaddr.IPv6, number];

/** Whether a client's address is one of some addresses or ranges (`192.0.2.1`, `192.0.2.0/24`, `2001:db8::/32`). */
export function isRegistered(clientAddress: string, registered: readonly string[]): boolean {
  if (!ipaddr.isValid(clientAddress)) return false;
  const client = ipaddr.process(clientAddress); // An IPv4 address mapped into IPv6 is the IPv4 address.
  const whole = [client, wholeBits(client)] as const;
  // Another version may have stored another form.
  return registered.some((entry) => isAddressOrRange(entry) && contains(parseRange(entry), whole));
}

/** Whether a text is an address or a range that can be registered. */
export function isAddressOrRange(text: string): boolean {
  return text.includes('/') ? ipaddr.isValidCIDR(text) : ipaddr.isValid(text);
}

/** Whether what listens at a host is reached from this machine alone. Of a name, only `localhost` is known to be. */
export function isLoopback(host: string): boolean {
  return ipaddr.isValid(host) ? ipaddr.process(host).range() === 'loopback' : host === 'localhost';
}

function parseRange(entry: string): Range {
  if (entry.includes('/')) return ipaddr.parseCIDR(entry);
  const address = ipaddr.process(entry);
  return [address, wholeBits(address)];
}

/** The address of a client nobody can tell: no key that has registered addresses works from it. */
export const unknownAddress = '';

/**
 * Makes what tells whose address a request counts for, from the connection's other end and the X-Forwarded-For it brought.
 * Each proxy adds whom it heard from at the right of X-Forwarded-For, so what
 * trusted proxies wrote is read from the right, up to the first address that is none of theirs: that is the client.
 * What stands left of it came from the client and may say anything; it is not looked at. From a peer that is no trusted
 * proxy the header means nothing at all. When every entry is a trusted proxy, the left-most is the client.
 */
export function clientAddressBehind(trustedProxies: readonly string[]) {
  return (peer: string, forwardedFor: string | undefined): string => {
    if (forwardedFor === undefined || !isRegistered(peer, trustedProxies)) return peer;
    let client = unknownAddress;
    for (const entry of forwardedFor.split(',').reverse()) {
      client = entry.trim();
      if (!isPlain(client)) return unknownAddress;
      if (!isRegistered(client, trustedProxies)) break;
    }
    return client;
  };
}

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

/** An address without a port, a zone or the shorthands some libraries also read. */
function isPlain(text: string): boolean {
  return ipaddr.IPv4.isValidFourPartDecimal(text) || (ipaddr.IPv6.isValid(text) && !text.includes('%'));
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
