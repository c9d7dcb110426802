import { X509Certificate } from 'node:crypto';
import { createSecureContext } from 'node:tls';

/** What one end of a TLS connection needs, in PEM. */
export interface TlsMaterial {
  /** Authorities of the other end's certificate; absent: those that Node trusts. */
  readonly ca?: Buffer;
  /** The lists of certificates that these authorities revoked; absent: none counts as revoked. */
  readonly crl?: string[];
  /** Its own certificate, and those between it and its authority. */
  readonly cert?: Buffer;
  readonly key?: Buffer;
}

/** The files of TLS, each undefined if there is none. */
interface TlsContents {
  readonly authorities?: Buffer | undefined;
  readonly revoked?: Buffer | undefined;
  readonly certificate?: Buffer | undefined;
  readonly key?: Buffer | undefined;
}

/** Checks what was read. Throws an error that says what is wrong, and never has a part of a key. */
export function readMaterial({ authorities, revoked, certificate, key }: TlsContents): TlsMaterial {
  const material = {
    ...(authorities === undefined ? {} : { ca: authorities }),
    // Node reads only the first list of a text.
    ...(revoked === undefined ? {} : { crl: listsOf(revoked) }),
    ...(certificate === undefined ? {} : { cert: certificate }),
    ...(key === undefined ? {} : { key }),
  };
  if (authorities !== undefined && !areCertificates(authorities)) throw new Error('no certificates of authorities');
  try {
    createSecureContext(material);
    if (certificate !== undefined) new X509Certificate(certificate);
  } catch (error) {
    throw new Error(`no certificate with its key: ${(error as NodeJS.ErrnoException).code ?? 'unreadable'}`);
  }
  return material;
}

/** Why the certificate cannot be used now, by its own dates. */
export function datesProblem({ cert }: TlsMaterial, now = Date.now()): string | undefined {
  if (cert === undefined) return undefined;
  const { validFrom, validTo } = new X509Certificate(cert);
  if (Date.parse(validFrom) > now) return `it is not valid before ${validFrom}`;
  return Date.parse(validTo) < now ? `it ended on ${validTo}` : undefined;
}

/** When the certificate ends, in milliseconds since 1970; undefined: there is none. */
export function endOf({ cert }: TlsMaterial): number | undefined {
  return cert && Date.parse(new X509Certificate(cert).validTo);
}

/** Node ignores what is no certificate, so a file that was written by half would leave out authorities. */
function areCertificates(pem: Buffer): boolean {
  const whole = blocksOf(pem, 'CERTIFICATE');
  if (whole === undefined) return false;
  try {
    for (const one of whole) new X509Certificate(one);
    return true;
  } catch {
    return false;
  }
}

function listsOf(pem: Buffer): string[] {
  const lists = blocksOf(pem, 'X509 CRL');
  if (lists === undefined) throw new Error('no lists of revoked certificates');
  try {
    createSecureContext({ crl: lists });
  } catch {
    throw new Error('no lists of revoked certificates');
  }
  return lists;
}

/** The blocks of a PEM text that has no others and at least one; undefined: it is not whole. */
function blocksOf(pem: Buffer, label: string): string[] | undefined {
  const text = pem.toString('latin1');
  const whole = text.match(new RegExp(`^-----BEGIN ${label}-----\\s[^-]+^-----END ${label}-----\\s*$`, 'gm')) ?? [];
  return whole.length === 0 || whole.length !== text.split('-----BEGIN ').length - 1 ? undefined : whole;
}
