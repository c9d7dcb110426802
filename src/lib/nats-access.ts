import {
  type Authenticator,
  credsAuthenticator,
  nkeyAuthenticator,
  tokenAuthenticator,
  usernamePasswordAuthenticator,
} from 'nats';
import { type Link, type LinkTls, type LinkTlsConfig, openLink, secretValue } from './link.ts';
import type { Logger } from './log.ts';
import { type NatsAddress, natsAddress } from './nats-address.ts';
import type { Secret } from './settings.ts';

/** What connecting to NATS needs. */
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

/** What connecting needs with a URL alone. */
export function plainNatsAccess(url: string): NatsAccess {
  const address = natsAddress(url);
  return { address, authenticators: authenticatorsOf(address, undefined, undefined), tls: undefined };
}

/** Reads what connecting needs, and reads it again when its files change. New URLs may have another login. */
export function openNatsAccess(
  { url, credentials, nkey }: NatsSecrets,
  tls: LinkTlsConfig,
  log: Logger,
): Promise<Link<NatsAccess>> {
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
    log,
  });
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
