import { normalAddress, readRange, wholeBits } from '../../../kit/addresses.ts';
import { type ApiError, invalidParam } from '../errors.ts';

// The addresses from which a key may be used.

/** A request's addresses or ranges, without duplicates. Throws `invalid_request` for the first invalid one. */
export function normalAddresses(addresses: readonly string[]): string[] {
  const normal = addresses.map((address, at) => {
    const known = normalAddress(address);
    if (known === undefined) throw badAddress(at, 'must be an IPv4 or IPv6 address or range.');
    return known;
  });
  return [...new Set(normal)];
}

/** The most addresses of a live key, all its ranges together: as many as a /16 of IPv4 and a /32 of IPv6 have. */
const maxBits = { ipv4: 16, ipv6: 96 } as const;

/** Whether ranges hold more addresses together than a live key may have. Addresses that two ranges hold count twice. */
export function areTooWide(addresses: readonly string[]): boolean {
  const held = { ipv4: 0n, ipv6: 0n };
  for (const entry of addresses) {
    const [address, bits] = readRange(entry) ?? [];
    if (address !== undefined && bits !== undefined) held[address.kind()] += 1n << BigInt(wholeBits(address) - bits);
  }
  return held.ipv4 > 1n << BigInt(maxBits.ipv4) || held.ipv6 > 1n << BigInt(maxBits.ipv6);
}

export const tooWide =
  'must hold at most 65,536 IPv4 addresses (a /16), and as many IPv6 addresses as a /32, all ranges of a live key together.';

/** `invalid_request` for one of a request's addresses. */
export function badAddress(at: number, problem: string): ApiError {
  return invalidParam(`addresses[${at}]`, problem);
}

/**
 * The addresses from which a key may be used, as stored. An entry in another version's form stays in the list as a text
 * that matches no address, because a key without addresses may be used from everywhere.
 */
export function addressesFrom(stored: unknown): string[] {
  const text = String(stored);
  const entries = listFrom(text) ?? [`unknown form: ${text}`];
  return entries.map((entry) => (typeof entry === 'string' ? entry : JSON.stringify(entry)));
}

function listFrom(text: string): unknown[] | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return Array.isArray(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
