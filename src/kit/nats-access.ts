import { checkServerIdentity, type ConnectionOptions as TlsConnectionOptions } from 'node:tls';
import {
  type Authenticator,
  type ConnectionOptions,
  connect,
  credsAuthenticator,
  nkeyAuthenticator,
  type TlsOptions,
  tokenAuthenticator,
  usernamePasswordAuthenticator,
} from 'nats';
import { type LinkTls, type LinkTlsConfig, openLink, secretValue } from './link.ts';
import type { Logger } from './log.ts';
import { type NatsAddress, natsAddress } from './nats-address.ts';
import type { Secret } from './settings.ts';

/** The data that connecting to NATS needs. */
export interface NatsAccess {
  readonly address: NatsAddress;
  readonly authenticators: readonly Authenticator[];
  readonly tls: LinkTls | undefined;
}

interface NatsSecrets {
  readonly url: Secret<string>;
  /** Paths of files. */
  readonly credentials: string | undefined;
  readonly nkey: string | undefined;
}

const connectTimeoutMs = 2_000;

/** Returns the data for connecting with a URL alone. */
export function plainNatsAccess(url: string): NatsAccess {
  const address = natsAddress(url);
  return { address, authenticators: authenticatorsOf(address, undefined, undefined), tls: undefined };
}

/** Reads what connecting needs, and reads it again when its files change. New URLs may have another login. */
export function openNatsAccess({ url, credentials, nkey }: NatsSecrets, tls: LinkTlsConfig, log: Logger) {
  return openLink({
    name: 'nats',
    tls,
    secrets: { url: url.file, credentials, nkey },
    make: (texts, material, former?: NatsAccess) => {
      const address = natsAddress(secretValue(url, texts.url));
      if (former !== undefined && String(former.address.servers) !== String(address.servers)) {
        throw new Error('other servers need a restart');
      }
      return { address, authenticators: authenticatorsOf(address, texts.credentials, texts.nkey), tls: material };
    },
    // So that a connection that breaks is not made again with a login that does not hold.
    prove: connectOnce,
    log,
  });
}

/** Throws if it cannot connect. */
async function connectOnce(access: NatsAccess): Promise<void> {
  const connection = await connect({ ...connectionOptions(() => access), reconnect: false });
  await connection.close();
}

/** The library's options for it. The library asks for the login and the certificates at each connection. */
export function connectionOptions(access: () => NatsAccess): ConnectionOptions {
  const { address, tls } = access();
  return {
    servers: [...address.servers],
    authenticator: (nonce) => Object.assign({}, ...access().authenticators.map((each) => each(nonce))),
    tls: address.saysTls || tls !== undefined ? tlsOptions(access) : undefined,
    timeout: connectTimeoutMs,
    name: 'marina',
    // A stack trace for each message costs more than the message.
    noAsyncTraces: true,
  };
}

/** The library reads the members at each connection, so that what has changed is used. */
function tlsOptions(access: () => NatsAccess): TlsOptions {
  const text = (pem: Buffer | undefined) => pem?.toString('utf8');
  const { serverName } = access().tls ?? {};
  const options: TlsOptions & Pick<TlsConnectionOptions, 'servername' | 'checkServerIdentity'> = {
    ...(serverName === undefined ? {} : { servername: serverName }),
    get ca() {
      return text(access().tls?.ca);
    },
    get cert() {
      return text(access().tls?.cert);
    },
    get key() {
      return text(access().tls?.key);
    },
    // The library names no host that is an address, and a cluster tells addresses of further servers.
    checkServerIdentity: (_, certificate) => {
      const names = serverName === undefined ? access().address.hosts : [serverName];
      const refusals = names.map((name) => checkServerIdentity(name, certificate));
      return refusals.includes(undefined) ? undefined : refusals[0];
    },
  };
  return options;
}

/** Throws if a file cannot be used to log in. */
function authenticatorsOf(
  { login }: NatsAddress,
  credentials: string | undefined,
  nkey: string | undefined,
): readonly Authenticator[] {
  const found: Authenticator[] = [];
  if (login !== undefined) {
    found.push(
      'user' in login ? usernamePasswordAuthenticator(login.user, login.pass) : tokenAuthenticator(login.auth_token),
    );
  }
  const encode = (text: string) => new TextEncoder().encode(text);
  if (credentials !== undefined) found.push(tried(credsAuthenticator(encode(`${credentials}\n`)), 'credentials'));
  if (nkey !== undefined) found.push(tried(nkeyAuthenticator(encode(nkey)), 'nkey'));
  return found;
}

/** Logs in once for the trial: the library would find out that a file is bad only when it connects. */
function tried(authenticator: Authenticator, what: string): Authenticator {
  try {
    authenticator('nonce');
  } catch {
    throw new Error(`the file of the ${what} has none`);
  }
  return authenticator;
}
