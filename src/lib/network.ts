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
