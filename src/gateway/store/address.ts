import { type LinkUrl, parseLinkUrl } from '../../kit/link-url.ts';

/** One host of a database. */
export interface DatabaseHost {
  readonly host: string;
  readonly port: number;
}

/** Where a database is, and who the gateway is there. */
export interface DatabaseAddress {
  /** Several are the nodes of one cluster. */
  readonly hosts: readonly [DatabaseHost, ...DatabaseHost[]];
  readonly user: string;
  readonly password: string;
  readonly database: string;
}

const maxHosts = 9;

/**
 * Reads a URL, with one host or several that commas divide, each with a port of its own. Throws an error that says what is
 * wrong, and never has a part of the user or password.
 */
export function databaseAddress(url: string): DatabaseAddress {
  const [first, ...others] = urlsOfHosts(url).map((each) => parseLinkUrl(each, ['mysql:']));
  if (first === undefined || others.length >= maxHosts) throw new Error(`must name at most ${maxHosts} hosts`);
  const { user, password, path: database } = first;
  if (database.includes('/')) throw new Error('must name one database');
  const hosts: DatabaseAddress['hosts'] = [hostOf(first), ...others.map(hostOf)];
  if (new Set(hosts.map((each) => JSON.stringify(each))).size < hosts.length)
    throw new Error('must name each host once');
  return { hosts, user, password, database };
}

/** A URL for each host of one with several. */
function urlsOfHosts(url: string): string[] {
  const [, before = '', hosts = '', after = ''] = /^([^/]*\/\/(?:[^/?#]*@)?)([^/?#@]*)(.*)$/s.exec(url) ?? [];
  return hosts.includes(',') ? hosts.split(',').map((host) => `${before}${host}${after}`) : [url];
}

function hostOf({ host, port = 3306 }: LinkUrl): DatabaseHost {
  return { host, port };
}
