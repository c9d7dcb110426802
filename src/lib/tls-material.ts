import { X509Certificate } from 'node:crypto';
import { createSecureContext } from 'node:tls';

/** What one end of a TLS connection needs, in PEM. */
export interface TlsMaterial {
  /** Authorities of the other end's certificate; absent: those that Node trusts. */
  readonly ca?: Buffer;
  /** Its own certificate, and those between it and its authority. */
  readonly cert?: Buffer;
  readonly key?: Buffer;
}

/** The files of TLS, each undefined if there is none. */
interface TlsContents {
  readonly authorities?: Buffer | undefined;
  readonly certificate?: Buffer | undefined;
  readonly key?: Buffer | undefined;
}

/** Checks what was read. Throws an error that says what is wrong, and never has a part of a key. */
export function readMaterial({ authorities, certificate, key }: TlsContents): TlsMaterial {
  const material = {
    ...(authorities === undefined ? {} : { ca: authorities }),
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
  const text = pem.toString('latin1');
  const whole = text.match(/^-----BEGIN CERTIFICATE-----\s[^-]+^-----END CERTIFICATE-----\s*$/gm) ?? [];
  if (whole.length === 0 || whole.length !== text.split('-----BEGIN ').length - 1) return false;
  try {
    for (const one of whole) new X509Certificate(one);
    return true;
  } catch {
    return false;
  }
}
