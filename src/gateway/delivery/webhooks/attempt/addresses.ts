import { Resolver } from 'node:dns/promises';
import { isIP, type LookupFunction } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import ipaddr from 'ipaddr.js';
import { ApiError } from '../../../edge/errors.ts';
import { SendFailure } from '../rules.ts';

/** Addresses that may be dialled in addition to public ones. */
export interface AddressRules {
  /** Allows this machine's loopback, so that a sandbox can have its receiver there. */
  readonly allowLoopback: boolean;
}

/**
 * Whether an address may be dialled: public unicast, or loopback if the rules allow it. All special-purpose ranges are
 * refused, also the reachable ones (anycast to relays and sinks), because nobody receives events there. An IPv6 address that
 * embeds an IPv4 address (mapped, NAT64, 6to4, Teredo) is judged by that one, because the packets end there.
 */
export function mayDial(text: string, { allowLoopback }: AddressRules): boolean {
  // The library also reads short forms. An address that is dialled has one spelling.
  if (isIP(text) === 0 || text.includes('%')) return false;
  const address = ipaddr.parse(text);
  if (allowLoopback && ipaddr.process(text).range() === 'loopback') return true;
  return address.kind() === 'ipv4' ? isPublicIPv4(address as ipaddr.IPv4) : isPublicIPv6(address as ipaddr.IPv6);
}

function isPublicIPv4(address: ipaddr.IPv4): boolean {
  return address.range() === 'unicast';
}

function isPublicIPv6(address: ipaddr.IPv6): boolean {
  const [, decode] = embeddings.find(([range]) => address.match(ipaddr.IPv6.parseCIDR(range))) ?? [];
  const embedded = decode?.(address.toByteArray()).map((octets) => new ipaddr.IPv4(octets));
  if (embedded !== undefined) return embedded.every(isPublicIPv4);
  // Everything else outside 2000::/3 is unassigned, also if no registry gives it a purpose.
  return address.range() === 'unicast' && address.match(globalUnicast);
}

const globalUnicast = ipaddr.IPv6.parseCIDR('2000::/3');

/** The IPv4 addresses that receive the packets to an IPv6 address of these ranges. */
const embeddings: readonly (readonly [string, (bytes: number[]) => number[][]])[] = [
  ['::ffff:0:0/96', (bytes) => [bytes.slice(12)]],
  ['64:ff9b::/96', (bytes) => [bytes.slice(12)]],
  ['2002::/16', (bytes) => [bytes.slice(2, 6)]],
  // Teredo holds the server's address and, with all bits inverted, the client's.
  ['2001::/32', (bytes) => [bytes.slice(4, 8), bytes.slice(12).map((byte) => byte ^ 0xff)]],
];

const maxCharacters = 1_024;

/** Names that no public resolver answers: RFC 6761, 6762, 8375, and names of private networks (ICANN's .internal). */
const privateNames = ['localhost', 'local', 'internal', 'home.arpa', 'intranet', 'lan', 'home', 'corp'];

/**
 * Checks an endpoint's URL and returns it in its normal form: `https`, a public host, no user name, password, query or
 * fragment. The sender checks the host's addresses again at every connection.
 *
 * @throws ApiError `invalid_request` with `param` = `url` and a sentence that names the rule.
 */
export function checkEndpointUrl(text: string, rules: AddressRules): string {
  const problem = findProblem(text, rules);
  if (problem !== undefined) throw new ApiError('invalid_request', { param: 'url', message: `The URL ${problem}.` });
  return new URL(text).href;
}

function findProblem(text: string, rules: AddressRules): string | undefined {
  if (text.length > maxCharacters) return `must have at most ${maxCharacters} characters`;
  // The parser drops or replaces these, so the URL in use would differ from the one that was given.
  if (/[\s\\\p{Cc}]/u.test(text)) return 'must not contain spaces, backslashes or control characters';
  if (!/^https:\/\/(?!\/)/i.test(text)) return 'must begin with https:// and a host';
  if (!URL.canParse(text)) return 'cannot be read';
  const url = new URL(text);
  const [authority = ''] = text.slice('https://'.length).split(/[/?#]/, 1);
  if (url.username !== '' || url.password !== '' || authority.includes('@')) {
    return 'must not contain a user name or password';
  }
  // The parsed URL does not show an empty query.
  if (text.includes('?')) return 'must not contain a query';
  if (text.includes('#')) return 'must not contain a fragment';
  if (url.port === '0') return 'must not name port 0';
  if (!isPublicHost(url.hostname, rules)) return 'must have a public host';
  return undefined;
}

/** The parser has turned every spelling of an IPv4 address (hex, octal, short, one number) into the dotted one. */
function isPublicHost(hostname: string, rules: AddressRules): boolean {
  const host = hostname.replace(/^\[(.*)\]$/, '$1').replace(/\.$/, '');
  if (isIP(host) !== 0) return mayDial(host, rules);
  if (isLoopbackName(host)) return rules.allowLoopback;
  const isPrivate = privateNames.some((name) => host === name || host.endsWith(`.${name}`));
  return host.includes('.') && !isPrivate && host.length <= 253;
}

/** A name that means loopback and is never resolved (RFC 6761). */
function isLoopbackName(host: string): boolean {
  return /(^|\.)localhost\.?$/i.test(host);
}

export interface ResolverOptions extends AddressRules {
  /** Name servers as address:port instead of the machine's, for tests. */
  readonly nameServers?: readonly string[];
}

/** Time until a query is sent again to a name server that does not answer. It is repeated twice. */
const queryTimeoutMs = 2_000;
const queryTries = 2;
/** How long one address family is waited for when the other has come. */
const otherFamilyMs = 300;
/** More than a host needs. Each is one connection to try. */
const maxAddresses = 8;

/**
 * Resolves a host name to addresses that may all be dialled. One that may not blocks them all, because a name with both a
 * private and a public address is a mistake or an attack. It queries name servers itself and ignores hosts files:
 * getaddrinfo runs at most four look-ups per process, so names whose servers hang would block all others.
 *
 * @throws SendFailure `dns` or `blocked_address`
 */
async function resolveDialable(host: string, options: ResolverOptions): Promise<readonly string[]> {
  const addresses = await lookUp(host, options);
  const blocked = addresses.find((address) => !mayDial(address, options));
  if (blocked !== undefined) throw new SendFailure('blocked_address', `${blocked} is not a public address`);
  return addresses.slice(0, maxAddresses);
}

/** `resolveDialable` as the `lookup` of Node's sockets, so they dial exactly the addresses that were checked. */
export function dialableLookup(options: ResolverOptions): LookupFunction {
  return (host, { all, family }, callback) => {
    resolveDialable(host, options).then(
      (addresses) => {
        const found = addresses
          .map((address) => ({ address, family: isIP(address) }))
          .filter((each) => typeof family !== 'number' || family === 0 || each.family === family);
        const [first] = found;
        if (first === undefined) callback(new SendFailure('dns', 'no address of the family'), '');
        else if (all) callback(null, found);
        else callback(null, first.address, first.family);
      },
      (error: Error) => callback(error, ''),
    );
  };
}

async function lookUp(host: string, { allowLoopback, nameServers }: ResolverOptions): Promise<string[]> {
  if (isLoopbackName(host)) {
    if (!allowLoopback) throw new SendFailure('blocked_address', `${host} is this machine`);
    return ['127.0.0.1', '::1'];
  }
  // One per look-up: it reads the machine's name servers as they are now and ends with its connection.
  const resolver = new Resolver({ timeout: queryTimeoutMs, tries: queryTries });
  if (nameServers !== undefined) resolver.setServers(nameServers);
  const found: string[][] = [];
  const families = [resolver.resolve6(host), resolver.resolve4(host)].map((answer) =>
    answer.then((addresses) => addresses.length > 0 && found.push(addresses)),
  );
  try {
    await Promise.any(families);
    await Promise.race([Promise.allSettled(families), delay(otherFamilyMs, undefined, { ref: false })]);
  } catch (error) {
    throw new SendFailure('dns', `${host} has no address`, error);
  } finally {
    resolver.cancel();
  }
  return found.flat();
}
