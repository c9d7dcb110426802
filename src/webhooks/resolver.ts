import { Resolver } from 'node:dns/promises';
import { isIP, type LookupFunction } from 'node:net';
import { type AddressRules, mayDial } from './addresses.ts';
import { SendFailure } from './failures.ts';
import { isLoopbackName } from './url.ts';

export interface ResolverOptions extends AddressRules {
  /** Name servers as address:port in place of the machine's, for tests. */
  readonly nameServers?: readonly string[];
}

/** A name server that does not answer is asked again after this long, twice. */
const queryTimeoutMs = 2_000;
const queryTries = 2;
/** How long one family of addresses is waited for when the other has come. */
const otherFamilyMs = 300;
/** More than anybody needs; each is a connection to try. */
const mostAddresses = 8;

/**
 * The addresses of a host name, all of which may be dialled. One that may not is a reason to dial none: a name that leads to
 * a private address beside a public one is either a mistake or an attack.
 *
 * It asks name servers itself, not through getaddrinfo, of which the whole process can have four under way, so that
 * names whose servers hang would keep all others from being looked up. Names of hosts files are not known to it.
 *
 * @throws SendFailure `dns` or `blocked_address`
 */
export async function resolveDialable(host: string, options: ResolverOptions): Promise<readonly string[]> {
  const addresses = await lookUp(host, options);
  const blocked = addresses.find((address) => !mayDial(address, options));
  if (blocked !== undefined) throw new SendFailure('blocked_address', `${blocked} is not a public address`);
  return addresses.slice(0, mostAddresses);
}

/** The same as Node's sockets ask for it: what they dial is what was checked, since they get it from here. */
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
  // One for each look-up: it reads the machine's name servers as they are now, and ends with what it was made for.
  const resolver = new Resolver({ timeout: queryTimeoutMs, tries: queryTries });
  if (nameServers !== undefined) resolver.setServers(nameServers);
  const found: string[][] = [];
  const families = [resolver.resolve6(host), resolver.resolve4(host)].map((answer) =>
    answer.then((addresses) => addresses.length > 0 && found.push(addresses)),
  );
  try {
    await Promise.any(families);
    await Promise.race([Promise.allSettled(families), later(otherFamilyMs)]);
  } catch (error) {
    throw new SendFailure('dns', `${host} has no address`, error);
  } finally {
    resolver.cancel();
  }
  return found.flat();
}

function later(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms).unref());
}
