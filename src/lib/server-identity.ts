import { createHash, X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { createSecureContext } from 'node:tls';
import { ServerCredentials } from '@grpc/grpc-js';
import type { Logger } from './log.ts';
import { periodic, type Worker } from './worker.ts';

/** Paths of a server's PEM files. */
interface IdentityFiles {
  /** The certificate, and those between it and its authority. */
  readonly certificate: string;
  readonly key: string;
  /** Authorities for clients' certificates; absent: clients need none. */
  readonly clientAuthorities: string | undefined;
}

interface TlsIdentity {
  readonly cert: Buffer;
  readonly key: Buffer;
  readonly ca?: Buffer;
}

/** The longest TLS handshake. */
export const handshakeTimeoutMs = 10_000;

const checkEveryMs = 1_000;

/**
 * A server's certificate, read again when its files change. New connections get the new one. Bad files are logged and the
 * old certificate stays. Files are read once they stop changing, because the certificate and its key change one after the
 * other.
 */
export class ServerIdentity {
  readonly worker: Worker;
  readonly #listeners: ((identity: TlsIdentity) => void)[] = [];
  #judged: string;
  #seen = '';

  private constructor(
    private readonly files: IdentityFiles,
    private readonly log: Logger,
    readonly first: TlsIdentity,
  ) {
    this.#judged = digestOf(first);
    this.worker = periodic(`certificate ${files.certificate}`, checkEveryMs, () => this.#check());
    // An old certificate is better than no gateway, because a client that checks it refuses it.
    const wrong = problemOf(first, Date.now());
    if (wrong !== undefined) log.error({ file: files.certificate, wrong }, 'the served certificate is invalid');
  }

  /** Reads the files for the first time, if they are set. Throws if they cannot serve. */
  static async open(
    certificate: string | undefined,
    key: string | undefined,
    clientAuthorities: string | undefined,
    log: Logger,
  ): Promise<ServerIdentity | undefined> {
    if (certificate === undefined || key === undefined) return undefined;
    const files = { certificate, key, clientAuthorities };
    const identity = await read(files);
    createSecureContext(identity);
    return new ServerIdentity(files, log, identity);
  }

  onChange(listener: (identity: TlsIdentity) => void): void {
    this.#listeners.push(listener);
  }

  async #check(): Promise<void> {
    const { files, log } = this;
    const found = await read(files).catch((error: NodeJS.ErrnoException) => error);
    const digest = found instanceof Error ? String(found.code) : digestOf(found);
    const isStill = digest === this.#seen;
    this.#seen = digest;
    if (!isStill || digest === this.#judged) return;
    this.#judged = digest;
    const wrong = found instanceof Error ? `a file cannot be read: ${found.code}` : problemOf(found, Date.now());
    if (found instanceof Error || wrong !== undefined) {
      log.error({ file: files.certificate, wrong }, 'a new certificate is refused; the old one is still served');
      return;
    }
    for (const listener of this.#listeners) listener(found);
    log.info(
      { file: files.certificate, validTo: new X509Certificate(found.cert).validTo },
      'a new certificate is served',
    );
  }
}

/** A gRPC server's TLS, whose certificate changes when its files do. */
export class IdentityCredentials extends ServerCredentials {
  constructor(identity: ServerIdentity) {
    const { first } = identity;
    super({ requestCert: first.ca !== undefined, handshakeTimeout: handshakeTimeoutMs }, { ...first });
    identity.onChange((changed) => this.updateSecureContextOptions({ ...changed }));
  }

  override _equals(other: ServerCredentials): boolean {
    return other === this;
  }
}

async function read({ certificate, key, clientAuthorities }: IdentityFiles): Promise<TlsIdentity> {
  const identity = { cert: await readFile(certificate), key: await readFile(key) };
  return clientAuthorities === undefined ? identity : { ...identity, ca: await readFile(clientAuthorities) };
}

/** Says only what the certificate shows, and never a part of a key. */
function problemOf(identity: TlsIdentity, now: number): string | undefined {
  try {
    createSecureContext(identity);
    const { validFrom, validTo } = new X509Certificate(identity.cert);
    if (Date.parse(validFrom) > now) return `it is not valid before ${validFrom}`;
    return Date.parse(validTo) < now ? `it ended on ${validTo}` : undefined;
  } catch (error) {
    return `no certificate with its key: ${(error as NodeJS.ErrnoException).code ?? 'unreadable'}`;
  }
}

function digestOf({ cert, key, ca = Buffer.alloc(0) }: TlsIdentity): string {
  const hash = createHash('sha256');
  for (const part of [cert, key, ca]) hash.update(`${part.length} `).update(part);
  return hash.digest('hex');
}
