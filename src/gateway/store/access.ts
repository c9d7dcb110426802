import { connect as connectSocket } from 'node:net';
import { createConnection } from 'mysql2';
import { type LinkTls, type LinkTlsConfig, openLink, secretValue } from '../../kit/link.ts';
import type { Logger } from '../../kit/log.ts';
import type { Secret } from '../../kit/settings.ts';
import { type DatabaseHost, databaseAddress } from './address.ts';
import type { Way } from './renewed-pool.ts';

/** What connecting to the database needs. */
export interface DatabaseAccess {
  readonly url: string;
  /** Undefined: plain text. */
  readonly tls: LinkTls | undefined;
}

/** Reads what connecting needs, and reads it again when its files change. A new URL may have another user and password. */
export function openDatabaseAccess(url: Secret<string>, tls: LinkTlsConfig, log: Logger) {
  return openLink({
    name: 'database',
    tls,
    secrets: { url: url.file },
    make: (texts, material, former?: DatabaseAccess) => {
      const access = { url: secretValue(url, texts.url), tls: material };
      if (former !== undefined && placeOf(former.url) !== placeOf(access.url)) {
        throw new Error('another host, port or database needs a restart');
      }
      return access;
    },
    // So that good connections are not given up for a password that does not hold.
    prove: connectOnce,
    log,
  });
}

/** Throws if it can connect to no host. */
async function connectOnce(access: DatabaseAccess): Promise<void> {
  const tries = databaseAddress(access.url).hosts.map((host) => connectTo(access, host));
  await Promise.any(tries).catch((error: unknown) => {
    throw error instanceof AggregateError ? error.errors[0] : error;
  });
}

function connectTo(access: DatabaseAccess, host: DatabaseHost): Promise<void> {
  const { database } = databaseAddress(access.url);
  const connection = createConnection({ ...host, database, connectTimeout: 5_000, ...accessOptions(access, host) });
  return new Promise<void>((resolve, reject) => {
    // It may fail again after the first time, when nobody waits any more.
    connection.on('error', reject);
    connection.connect((error) => (error ? reject(error) : resolve()));
  }).finally(() => connection.destroy());
}

function placeOf(url: string): string {
  const { hosts, database } = databaseAddress(url);
  return JSON.stringify([hosts, database]);
}

/** The driver's options for it at a host, in addition to the database's name. */
export function accessOptions({ url, tls }: DatabaseAccess, { host, port }: DatabaseHost): Way {
  const { user, password } = databaseAddress(url);
  const stream = () => connectSocket({ host, port, noDelay: true, keepAlive: true });
  if (tls === undefined) return { host, user, password, stream };
  const { ca, cert, key, serverName } = tls;
  return {
    user,
    password,
    // The name that the certificate is checked for. The library checks it only if it is no address.
    host: serverName ?? host,
    stream,
    // A server that cannot speak TLS is refused, and nothing is sent to it.
    ssl: { ca, cert, key, rejectUnauthorized: true, verifyIdentity: true, minVersion: 'TLSv1.2' },
  };
}
