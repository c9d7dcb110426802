import { X509Certificate } from 'node:crypto';
import { createSecureContext } from 'node:tls';
import { datesOfList } from './revocation-list.ts';

/** The material that one end of a TLS connection needs, in PEM. */
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

/** Why it cannot be used now, by the dates of its certificate, its authorities and their lists. */
export function datesProblem({ ca, crl = [], cert }: TlsMaterial, now = Date.now()): string | undefined {
  if (cert !== undefined) {
    const { validFrom, validTo } = new X509Certificate(cert);
    if (Date.parse(validFrom) > now) return `it is not valid before ${validFrom}`;
    if (Date.parse(validTo) < now) return `it ended on ${validTo}`;
  }
  const lastAuthority = ca && lastEndOf(ca);
  if (lastAuthority !== undefined && lastAuthority < now) return `its authorities ended on ${dateText(lastAuthority)}`;
  for (const { from, until } of crl.map(datesOfList)) {
    if (from > now) return `a revocation list is not valid before ${dateText(from)}`;
    if (until !== undefined && until < now) return `a revocation list ended on ${dateText(until)}`;
  }
  return undefined;
}

/** When the certificate ends, or the last of the authorities if that is earlier, in milliseconds since 1970. */
export function endOf({ ca, cert }: TlsMaterial): number | undefined {
  const ends = [
    ...(cert === undefined ? [] : [Date.parse(new X509Certificate(cert).validTo)]),
    ...(ca === undefined ? [] : [lastEndOf(ca)]),
  ];
  return ends.length === 0 ? undefined : Math.min(...ends);
}

/** When the first of the revocation lists ends; undefined: there is none that says so. */
export function listsEnd({ crl = [] }: TlsMaterial): number | undefined {
  const ends = crl.flatMap((list) => datesOfList(list).until ?? []);
  return ends.length === 0 ? undefined : Math.min(...ends);
}

/** A file may have an authority that has ended, as those of systems do. */
function lastEndOf(ca: Buffer): number {
  let last = knownEnds.get(ca);
  if (last === undefined) {
    const ends = (blocksOf(ca, 'CERTIFICATE') ?? []).map((one) => Date.parse(new X509Certificate(one).validTo));
    last = Math.max(...ends);
    knownEnds.set(ca, last);
  }
  return last;
}

/** The last end of the authorities of each file. There may be hundreds, and metrics ask every few seconds. */
const knownEnds = new WeakMap<Buffer, number>();

function dateText(at: number): string {
  return new Date(at).toISOString().replace(/\.\d+/, '');
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
    lists.forEach(datesOfList);
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
