import ipaddr from 'ipaddr.js';
import { isRegistered } from './addresses.ts';

/** Whose address a request counts for, from the connection's other end and the X-Forwarded-For it brought. */
export type ClientAddress = (peer: string, forwardedFor: string | undefined) => string;

/** The address of a client nobody can tell: no key that has registered addresses works from it. */
export const unknownAddress = '';

/**
 * Makes the reading of client addresses. Each proxy adds whom it heard from at the right of X-Forwarded-For, so what
 * trusted proxies wrote is read from the right, up to the first address that is none of theirs: that is the client.
 * What stands left of it came from the client and may say anything; it is not looked at. From a peer that is no trusted
 * proxy the header means nothing at all. When every entry is a trusted proxy, the left-most is the client.
 */
export function clientAddressBehind(trustedProxies: readonly string[]): ClientAddress {
  return (peer, forwardedFor) => {
    if (forwardedFor === undefined || !isRegistered(peer, trustedProxies)) return peer;
    let client = unknownAddress;
    for (const entry of forwardedFor.split(',').reverse()) {
      client = entry.trim();
      if (!isPlainAddress(client)) return unknownAddress;
      if (!isRegistered(client, trustedProxies)) break;
    }
    return client;
  };
}

/** An address as proxies write it, without a port, a zone or the shorthands some libraries also read. */
function isPlainAddress(text: string): boolean {
  return ipaddr.IPv4.isValidFourPartDecimal(text) || (ipaddr.IPv6.isValid(text) && !text.includes('%'));
}
