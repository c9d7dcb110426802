import { type ChannelCredentials, type ChannelOptions, credentials } from '@grpc/grpc-js';
import type { LinkFiles } from './link-settings.ts';
import type { Logger } from './log.ts';
import type { Secret } from './settings.ts';
import { datesProblem, readMaterial, type TlsMaterial } from './tls-material.ts';
import { WatchedFiles } from './watched-files.ts';

/** How a link speaks TLS. */
export interface LinkTls extends TlsMaterial {
  /** The name that the other end's certificate must have; undefined: that of the host. */
  readonly serverName?: string | undefined;
}

/** The data that a link needs to connect. */
interface Access {
  /** Undefined: it speaks plain text. */
  readonly tls: LinkTls | undefined;
}

/** A link's certificates as configured. */
export type LinkTlsConfig = LinkFiles & { readonly speaksTls: boolean };

export type Link<T extends Access> = WatchedFiles<string, T>;

/**
 * Reads what a link needs to connect, and reads it again when its files change. Throws if it cannot be used. `make` gets
 * the texts of the secrets' files by their names, undefined for those without one, and throws an error without any of them.
 */
export async function openLink<Name extends string, T extends Access>(options: {
  readonly name: string;
  /** Absent: it has no TLS of its own. */
  readonly tls?: LinkTlsConfig;
  readonly secrets: Readonly<Record<Name, string | undefined>>;
  readonly make: (texts: Readonly<Record<Name, string | undefined>>, tls: LinkTls | undefined, former?: T) => T;
  /** Tries changed access out, and throws if it does not work. */
  readonly prove?: (access: T) => Promise<void>;
  readonly log: Logger;
}): Promise<Link<T>> {
  const { name, tls, secrets, make, prove, log } = options;
  const { authorities, certificate, key, serverName, speaksTls = false } = tls ?? {};
  const names = Object.keys(secrets) as Name[];
  try {
    return await WatchedFiles.open<string, T>({
      files: { authorities, certificate, key, ...secrets },
      make: (contents, former) => {
        const texts = names.map((each) => [each, secretText(contents[each])]);
        return make(
          Object.fromEntries(texts),
          speaksTls ? { ...readMaterial(contents), serverName } : undefined,
          former,
        );
      },
      problem: (access) => access.tls && datesProblem(access.tls),
      ...(prove === undefined ? {} : { prove }),
      name,
      log,
    });
  } catch (error) {
    throw new Error(`the link to ${name} cannot be used: ${(error as Error).message}`);
  }
}

/** Reads a secret that is for no link, and reads it again when its file changes. `check` throws if it cannot follow another. */
export function openSecret<T>(options: {
  readonly name: string;
  readonly secret: Secret<T>;
  readonly check?: (value: T, former: T) => void;
  readonly prove?: (value: T) => Promise<void>;
  readonly log: Logger;
}): Promise<WatchedFiles<'secret', T>> {
  const { name, secret, check, prove, log } = options;
  return WatchedFiles.open<'secret', T>({
    files: { secret: secret.file },
    make: (contents, former) => {
      const value = secretValue(secret, secretText(contents.secret));
      if (former !== undefined) check?.(value, former);
      return value;
    },
    ...(prove === undefined ? {} : { prove }),
    name,
    log,
  });
}

/** Throws if the file is empty: it is being written, or nothing would be asked for any more. */
function secretText(content: Buffer | undefined): string | undefined {
  const text = content?.toString('utf8').trim();
  if (text === '') throw new Error('a file of a secret is empty');
  return text;
}

/** How a gRPC channel speaks TLS, or plain text. */
export function channelTls(tls: LinkTls | undefined): { options: ChannelOptions; credentials: ChannelCredentials } {
  if (tls === undefined) return { options: {}, credentials: credentials.createInsecure() };
  const { ca, cert, key, serverName } = tls;
  return {
    options: serverName === undefined ? {} : { 'grpc.ssl_target_name_override': serverName },
    credentials: credentials.createSsl(ca, key, cert),
  };
}

/** The value of a secret, from its file's text if it has one. */
export function secretValue<T>({ first, read }: Secret<T>, text: string | undefined): T {
  return text === undefined ? first : read(text);
}
