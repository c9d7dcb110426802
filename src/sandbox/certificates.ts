import 'reflect-metadata'; // Before the library, which asks for it.
import { isIP } from 'node:net';
import {
  AuthorityKeyIdentifierExtension,
  BasicConstraintsExtension,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  type GeneralNameType,
  KeyUsageFlags,
  KeyUsagesExtension,
  SubjectAlternativeNameExtension,
  X509Certificate,
  X509CertificateGenerator,
  X509CrlGenerator,
} from '@peculiar/x509';

/** A certificate and its private key, in PEM. */
export interface Identity {
  readonly cert: string;
  readonly key: string;
}

/** An authority of its own for servers on this machine. Only clients that are configured to trust it do. */
export interface Authority {
  /** Its certificate in PEM, for those who are to trust it. */
  readonly cert: string;
  /** Makes a certificate for names and addresses, valid from an hour ago for a year unless another time is given. */
  issue(names: readonly string[], validity?: { notBefore?: Date; notAfter?: Date }): Promise<Identity>;
  /** Makes a certificate with which somebody shows a server who they are. */
  issueClient(name: string): Promise<Identity>;
  /** Makes a list of certificates of this authority that it revoked, in PEM. */
  revoke(certificates: readonly string[], nextUpdate?: Date): Promise<string>;
}

const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const;
const hourMs = 3_600_000;
const yearMs = 365 * 24 * hourMs;

/** Makes an authority. Its private key is never written anywhere and ends with the process. */
export async function makeAuthority(name: string): Promise<Authority> {
  const keys = await makeKeys();
  const authority = await X509CertificateGenerator.createSelfSigned({
    name: `CN=${name}`,
    keys,
    signingAlgorithm: algorithm,
    ...validFor({}),
    extensions: [
      new BasicConstraintsExtension(true, 0, true),
      new KeyUsagesExtension(KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign, true),
    ],
  });
  const issue = async (
    subject: string,
    usage: ExtendedKeyUsage,
    names: readonly string[],
    validity: { notBefore?: Date; notAfter?: Date },
  ): Promise<Identity> => {
    const own = await makeKeys();
    const certificate = await X509CertificateGenerator.create({
      subject: `CN=${subject}`,
      issuer: authority.subject,
      publicKey: own.publicKey,
      signingKey: keys.privateKey,
      signingAlgorithm: algorithm,
      ...validFor(validity),
      extensions: [
        new BasicConstraintsExtension(false, undefined, true),
        new KeyUsagesExtension(KeyUsageFlags.digitalSignature, true),
        new ExtendedKeyUsageExtension([usage]),
        new SubjectAlternativeNameExtension(
          names.map((value) => ({ type: (isIP(value) === 0 ? 'dns' : 'ip') satisfies GeneralNameType, value })),
        ),
        await AuthorityKeyIdentifierExtension.create(keys.publicKey),
      ],
    });
    const key = Buffer.from(await crypto.subtle.exportKey('pkcs8', own.privateKey)).toString('base64');
    const lines = key.match(/.{1,64}/g)?.join('\n');
    return {
      cert: certificate.toString('pem'),
      key: `-----BEGIN PRIVATE KEY-----\n${lines}\n-----END PRIVATE KEY-----\n`,
    };
  };
  return {
    cert: authority.toString('pem'),
    issue: (names, validity = {}) => issue(`${name} server`, ExtendedKeyUsage.serverAuth, names, validity),
    issueClient: (client) => issue(client, ExtendedKeyUsage.clientAuth, [client], {}),
    revoke: async (certificates, nextUpdate = new Date(Date.now() + yearMs)) => {
      const list = await X509CrlGenerator.create({
        issuer: authority.subject,
        thisUpdate: new Date(Math.min(Date.now(), nextUpdate.getTime()) - hourMs),
        nextUpdate,
        entries: certificates.map((pem) => ({ serialNumber: new X509Certificate(pem).serialNumber })),
        signingKey: keys.privateKey,
        signingAlgorithm: algorithm,
      });
      // OpenSSL knows no `BEGIN CRL`.
      return list.toString('pem').replaceAll(' CRL-----', ' X509 CRL-----');
    },
  };
}

function validFor({ notBefore, notAfter }: { notBefore?: Date; notAfter?: Date }) {
  return {
    notBefore: notBefore ?? new Date(Date.now() - hourMs),
    notAfter: notAfter ?? new Date(Date.now() + yearMs),
  };
}

function makeKeys() {
  return crypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
}
