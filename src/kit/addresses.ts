import ipaddr from 'ipaddr.js';

/**
 * The network for counting an address: an IPv4 address alone, an IPv6 address with its /64, because one customer of a
 * provider has a whole /64. Any other text counts as ''.
 */
export function networkOf(address: string): string {
  // The usual case first, because parsing an address costs more than the rest of the count.
  if (plainIpv4.test(address)) return address;
  if (!ipaddr.isValid(address)) return '';
  const parsed = ipaddr.process(address); // An IPv4 address mapped into IPv6 is the IPv4 address.
  return parsed instanceof ipaddr.IPv4 ? parsed.toString() : prefixOf(parsed, 4);
}

const plainIpv4 = /^(?:\d{1,3}\.){3}\d{1,3}$/;

/** How much of a client's address is logged. */
export type AddressDetail = (typeof addressDetails)[number];
export const addressDetails = ['full', 'network', 'none'] as const;

/**
 * Shows a client's address in logs: whole, cut to its /24 (IPv4) or /48 (IPv6), or not at all. Other text is not shown,
 * because a client may have written it.
 */
export function addressShower(detail: AddressDetail): (address: string) => string | undefined {
  return (address) => {
    if (detail === 'none') return undefined;
    if (detail === 'full' && plainIpv4.test(address)) return address;
    if (!ipaddr.isValid(address)) return undefined;
    const parsed = ipaddr.process(address);
    if (detail === 'full') return parsed.toString();
    if (parsed instanceof ipaddr.IPv4) return `${parsed.octets.slice(0, 3).join('.')}.0/24`;
    return `${ipaddr.parse(prefixOf(parsed, 3))}/48`;
  };
}

function prefixOf(address: ipaddr.IPv6, parts: number): string {
  return address.parts.map((part, at) => (at < parts ? part : 0).toString(16)).join(':');
}

/** An address and the number of its leading bits that count; all bits for a single address. */
type Range = readonly [ipaddr.IPv4 | ipaddr.IPv6, number];

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

/** Whether a host is reached from this machine alone. `localhost` is the only name that counts. */
export function isLoopback(host: string): boolean {
  return ipaddr.isValid(host) ? ipaddr.process(host).range() === 'loopback' : host === 'localhost';
}

function parseRange(entry: string): Range {
  if (entry.includes('/')) return ipaddr.parseCIDR(entry);
  const address = ipaddr.process(entry);
  return [address, wholeBits(address)];
}

/** Stands for an unknown client address. No key with registered addresses works from it. */
export const unknownAddress = '';

/**
 * Makes the function that finds a client's address from its connection's peer and X-Forwarded-For. Each proxy appends
 * its peer's address. So the client is the right-most entry that is no trusted proxy, or the left-most if all are.
 * Entries further left may be forged. From a peer that is no trusted proxy, the header is ignored. An entry may have a port,
 * and an IPv6 address brackets, because some proxies write them: `192.0.2.1:443`, `[2001:db8::1]`, `[2001:db8::1]:443`.
 */
export function clientAddressBehind(trustedProxies: readonly string[]) {
  return (peer: string, forwardedFor: string | undefined): string => {
    if (forwardedFor === undefined || !isRegistered(peer, trustedProxies)) return peer;
    let client = unknownAddress;
    for (const entry of forwardedFor.split(',').reverse()) {
      // An empty element of a list counts for nothing (RFC 9110, 5.6.1).
      if (entry.trim() === '') continue;
      client = withoutPort(entry.trim());
      if (!isPlain(client)) return unknownAddress;
      if (!isRegistered(client, trustedProxies)) break;
    }
    return client;
  };
}

/** The address of an entry of X-Forwarded-For. Any text that is no address with a port or brackets stays as it is. */
function withoutPort(entry: string): string {
  const [, ipv4, ipv6, port = '0'] = addressWithPort.exec(entry) ?? [];
  const address = ipv4 ?? ipv6;
  return address === undefined || Number(port) > 65_535 ? entry : address;
}

const addressWithPort = /^(?:([\d.]+)(?=:)|\[([\da-f]*:[\da-f:.]+)\])(?::(\d{1,5}))?$/i;

/**
 * The stored form: an address in its usual form, a range by its first address and its length. Undefined for old
 * shorthands (`127.1`), which libraries read differently, and for IPv4 addresses written as IPv6.
 */
export function normalAddress(text: string): string | undefined {
  const range = readRange(text);
  if (range === undefined) return undefined;
  const [address, bits] = range;
  return bits === wholeBits(address) ? address.toString() : `${address}/${bits}`;
}

/** Whether an address or range lies within one of others. */
export function isWithin(entry: string, others: readonly string[]): boolean {
  const inner = readRange(entry);
  return inner !== undefined && others.some((other) => contains(readRange(other), inner));
}

function contains(outer: Range | undefined, [address, bits]: Range): boolean {
  if (outer === undefined || outer[0].kind() !== address.kind() || bits < outer[1]) return false;
  return address.match(outer[0], outer[1]);
}

export function readRange(text: string): Range | undefined {
  const [address = '', length, ...more] = text.split('/');
  if (more.length > 0 || !isPlain(address)) return undefined;
  const parsed = ipaddr.parse(address);
  if (parsed instanceof ipaddr.IPv6 && parsed.isIPv4MappedAddress()) return undefined;
  const whole = wholeBits(parsed);
  if (length === undefined) return [parsed, whole];
  if (!/^(0|[1-9]\d{0,2})$/.test(length) || Number(length) > whole) return undefined;
  return [firstAddress(parsed, Number(length)), Number(length)];
}

/** An address without a port, a zone or the shorthands that some libraries read. */
function isPlain(text: string): boolean {
  return ipaddr.IPv4.isValidFourPartDecimal(text) || (ipaddr.IPv6.isValid(text) && !text.includes('%'));
}

export function wholeBits(address: ipaddr.IPv4 | ipaddr.IPv6): number {
  return address.kind() === 'ipv4' ? 32 : 128;
}

/** The address with all bits after the first `bits` set to 0. */
function firstAddress(address: ipaddr.IPv4 | ipaddr.IPv6, bits: number): ipaddr.IPv4 | ipaddr.IPv6 {
  const bytes = address.toByteArray().map((byte, index) => {
    const kept = Math.min(8, Math.max(0, bits - index * 8));
    return byte & (0xff << (8 - kept)) & 0xff;
  });
  return ipaddr.fromByteArray(bytes);
}
