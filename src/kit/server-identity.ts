import { ServerCredentials } from '@grpc/grpc-js';
import type { Logger } from './log.ts';
import { datesProblem, readMaterial, type TlsMaterial } from './tls-material.ts';
import { WatchedFiles } from './watched-files.ts';

type TlsIdentity = Required<Pick<TlsMaterial, 'cert' | 'key'>> & TlsMaterial;

/** A server's certificate, read again when its files change. New connections get the new one. */
export type ServerIdentity = WatchedFiles<'certificate' | 'key' | 'authorities' | 'revoked', TlsIdentity>;

/** The longest TLS handshake. */
export const handshakeTimeoutMs = 10_000;

/** The files of a port, by the names of their settings. */
interface IdentityFiles {
  readonly certificate: string | undefined;
  readonly key: string | undefined;
  /** The authorities of clients' certificates; absent: clients need none. */
  readonly authorities?: string | undefined;
  /** The lists of certificates that these authorities revoked; absent: none counts as revoked. */
  readonly revoked?: string | undefined;
}

/** Reads the certificate of a port, if its files are set. Throws if they cannot serve. */
export async function openIdentity(
  name: string,
  { certificate, key, authorities, revoked }: IdentityFiles,
  log: Logger,
): Promise<ServerIdentity | undefined> {
  if (certificate === undefined || key === undefined) return undefined;
  return WatchedFiles.open({
    files: { certificate, key, authorities, revoked },
    make: (contents) => {
      const { cert, key, ...rest } = readMaterial(contents);
      if (cert === undefined || key === undefined) throw new Error('no certificate with its key');
      return { cert, key, ...rest };
    },
    // At the start an old certificate is better than no gateway, because a client that checks it refuses it.
    problem: datesProblem,
    name,
    log,
  });
}

/** A gRPC server's TLS, whose certificate changes when its files do. */
export class IdentityCredentials extends ServerCredentials {
  constructor(identity: ServerIdentity) {
    const first = identity.current;
    super({ requestCert: first.ca !== undefined, handshakeTimeout: handshakeTimeoutMs }, { ...first });
    identity.onChange((changed) => this.updateSecureContextOptions({ ...changed }));
  }

  override _equals(other: ServerCredentials): boolean {
    return other === this;
  }
}
