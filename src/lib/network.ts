import ipaddr from 'ipaddr.js';

/**
 * The network that an address is counted with: an IPv4 address by itself, an IPv6 address with all others of its /64,
 * because one customer of a provider has a whole /64. Anything that is no address is counted together, as ''.
 */
export function networkOf(address: string): string {
  // The usual case first: to read an address as a whole costs more than the rest of the count.
  if (plainIpv4.test(address)) return address;
  if (!ipaddr.isValid(address)) return '';
  const parsed = ipaddr.process(address); // An IPv4 address mapped into IPv6 is the IPv4 address.
  return parsed instanceof ipaddr.IPv4 ? parsed.toString() : parsed.parts.slice(0, 4).join(':');
}

const plainIpv4 = /^(?:\d{1,3}\.){3}\d{1,3}$/;
