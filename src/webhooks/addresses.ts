import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';

/** What may be dialled beside public addresses. */
export interface AddressRules {
  /** Whether this machine's loopback may be reached too, so that a sandbox can have its receiver beside it. */
  readonly allowLoopback: boolean;
}

/**
 * Whether a connection may be made to an address: one that can be reached from all over the internet and belongs to one
 * machine, or loopback where the rules allow it. Everything with a special purpose is refused, also the few special
 * ranges that are reachable (anycast to relays and sinks): nobody receives events there.
 *
 * An IPv6 address that stands for an IPv4 address (mapped, NAT64, 6to4, Teredo) is judged by that one, since that is
 * where the packets end.
 */
export function mayDial(text: string, { allowLoopback }: AddressRules): boolean {
  // The library also reads shorthands; an address that is dialled has one spelling.
  if (isIP(text) === 0 || text.includes('%')) return false;
  const address = ipaddr.parse(text);
  if (allowLoopback && ipaddr.process(text).range() === 'loopback') return true;
  return address.kind() === 'ipv4' ? isPublicIPv4(address as ipaddr.IPv4) : isPublicIPv6(address as ipaddr.IPv6);
}

function isPublicIPv4(address: ipaddr.IPv4): boolean {
  return address.range() === 'unicast';
}

function isPublicIPv6(address: ipaddr.IPv6): boolean {
  const embedded = embeddedIPv4(address);
  if (embedded !== undefined) return embedded.every(isPublicIPv4);
  // All else outside 2000::/3 is not assigned to anybody, also where no registry gives it a purpose.
  return address.range() === 'unicast' && address.match(globalUnicast);
}

const globalUnicast = ipaddr.IPv6.parseCIDR('2000::/3');

/** Where packets to an IPv6 address end, by its form; undefined for a plain one. */
const embeddings: readonly { range: [ipaddr.IPv6, number]; decode: (bytes: number[]) => number[][] }[] = [
  { range: ipaddr.IPv6.parseCIDR('::ffff:0:0/96'), decode: (bytes) => [bytes.slice(12)] },
  { range: ipaddr.IPv6.parseCIDR('64:ff9b::/96'), decode: (bytes) => [bytes.slice(12)] },
  { range: ipaddr.IPv6.parseCIDR('2002::/16'), decode: (bytes) => [bytes.slice(2, 6)] },
  // Teredo names its server and, with all bits turned, its client.
  {
    range: ipaddr.IPv6.parseCIDR('2001::/32'),
    decode: (bytes) => [bytes.slice(4, 8), bytes.slice(12).map((byte) => byte ^ 0xff)],
  },
];

function embeddedIPv4(address: ipaddr.IPv6): ipaddr.IPv4[] | undefined {
  const embedding = embeddings.find(({ range }) => address.match(range));
  return embedding?.decode(address.toByteArray()).map((octets) => new ipaddr.IPv4(octets));
}
