import { parseLinkUrl } from '../lib/link-url.ts';

/** Where a database is, and who the gateway is there. */
export interface DatabaseAddress {
  readonly host: string;
  readonly port: number;
  readonly user: string;
  readonly password: string;
  readonly database: string;
}

/** Reads a URL. Throws an error that says what is wrong, and never has a part of the user or password. */
export function databaseAddress(url: string): DatabaseAddress {
  const { host, port = 3306, user, password, path: database } = parseLinkUrl(url, ['mysql:']);
  if (database.includes('/')) throw new Error('must name one database');
  return { host, port, user, password, database };
}
