import ipaddr from 'ipaddr.js';

/** Whether a client's address is one of some addresses or ranges (`192.0.2.1`, `192.0.2.0/24`, `2001:db8::/32`). */
export function isRegistered(clientAddress: string, registered: readonly string[]): boolean {
  if (!ipaddr.isValid(clientAddress)) return false;
  const client = ipaddr.process(clientAddress); // An IPv4 address mapped into IPv6 is the IPv4 address.
  return registered.some((entry) => {
    if (!isAddressOrRange(entry)) return false; // Another version may have stored another form.
    const [range, bits] = parseRange(entry);
    return client.kind() === range.kind() && client.match(range, bits);
  });
}

/** Whether a text is an address or a range that can be registered. */
export function isAddressOrRange(text: string): boolean {
  return text.includes('/') ? ipaddr.isValidCIDR(text) : ipaddr.isValid(text);
}

/** Whether what listens at a host is reached from this machine alone. Of a name, only `localhost` is known to be. */
export function isLoopback(host: string): boolean {
  return ipaddr.isValid(host) ? ipaddr.process(host).range() === 'loopback' : host === 'localhost';
}

function parseRange(entry: string): [ipaddr.IPv4 | ipaddr.IPv6, number] {
  if (entry.includes('/')) return ipaddr.parseCIDR(entry);
  const address = ipaddr.process(entry);
  return [address, address.kind() === 'ipv4' ? 32 : 128];
}
