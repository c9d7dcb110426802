import { parseLinkUrl } from './link-url.ts';

/** Where NATS is, and who the gateway is there. */
export interface NatsAddress {
  /** `host:port` of each server. */
  readonly servers: readonly string[];
  readonly hosts: readonly string[];
  /** User and password, or a token; undefined: neither. */
  readonly login: { readonly user: string; readonly pass: string } | { readonly auth_token: string } | undefined;
  /** Whether a URL says tls://. */
  readonly saysTls: boolean;
}

/** Reads URLs separated by commas. Throws an error that says what is wrong, and never has a part of a secret. */
export function natsAddress(urls: string): NatsAddress {
  const parsed = urls.split(',').map((url) => {
    const trimmed = url.trim();
    return parseLinkUrl(/^[a-z]+:\/\//.test(trimmed) ? trimmed : `nats://${trimmed}`, ['nats:', 'tls:']);
  });
  if (parsed.some(({ path }) => path !== '')) throw new Error('has an unknown part after the host');
  const logins = parsed.filter(({ user, password }) => user !== '' || password !== '');
  const [first] = logins;
  // The library has one login for all servers.
  if (logins.some(({ user, password }) => user !== first?.user || password !== first.password)) {
    throw new Error('must have the same user and password, or the same token, for all servers');
  }
  return {
    servers: parsed.map(({ host, port = 4222 }) => (host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`)),
    hosts: parsed.map(({ host }) => host),
    login: first && (first.password === '' ? { auth_token: first.user } : { user: first.user, pass: first.password }),
    saysTls: parsed.some(({ protocol }) => protocol === 'tls:'),
  };
}
