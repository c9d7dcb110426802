import { type Link, openLink, secretValue } from '../../kit/link.ts';
import type { Logger } from '../../kit/log.ts';
import { openNatsAccess } from '../../kit/nats-access.ts';
import { openIdentity } from '../../kit/server-identity.ts';
import { endOf, listsEnd, type TlsMaterial } from '../../kit/tls-material.ts';
import { openCollectorAccess } from '../operators/telemetry/collector-access.ts';
import { openDatabaseAccess } from '../store/access.ts';
import { type BrokerAccess, proveAccess } from '../trading/broker/grpc-connection.ts';
import type { Config } from './config.ts';

export type Links = Awaited<ReturnType<typeof openLinks>>;

/** What the links to other systems and the ports need: certificates and secrets, read again when their files change. */
export async function openLinks(config: Config, log: Logger) {
  const { databaseUrl, natsUrl, natsCredentials, natsNkey, links } = config;
  const { tlsCertificate, tlsKey, opsToken } = config;
  const operators = {
    certificate: config.adminTlsCertificate,
    key: config.adminTlsKey,
    authorities: config.adminTlsAuthorities,
    revoked: config.adminTlsRevoked,
  };
  const operations = {
    certificate: config.opsTlsCertificate,
    key: config.opsTlsKey,
    authorities: config.opsTlsAuthorities,
    revoked: config.opsTlsRevoked,
  };
  return {
    database: await openDatabaseAccess(databaseUrl, links.database, log),
    nats: await openNatsAccess({ url: natsUrl, credentials: natsCredentials, nkey: natsNkey }, links.nats, log),
    broker: await openBrokerAccess(config, log),
    otlp: config.otlpUrl === undefined ? undefined : await openCollectorAccess(config.otlpHeaders, links.otlp, log),
    operationsToken: await openLink({
      name: 'operations token',
      secrets: { token: opsToken.file },
      make: (texts) => ({ token: secretValue(opsToken, texts.token), tls: undefined }),
      log,
    }),
    partners: await openIdentity('partners', { certificate: tlsCertificate, key: tlsKey }, log),
    operators: await openIdentity('operators', operators, log),
    operations: await openIdentity('operations', operations, log),
  };
}

function openBrokerAccess(config: Config, log: Logger): Promise<Link<BrokerAccess>> {
  const { brokerAddress, backOfficeAddress = brokerAddress, links } = config;
  const addresses = [...new Set([brokerAddress, backOfficeAddress])];
  return openLink({
    name: 'broker',
    tls: links.broker,
    secrets: {},
    make: (_, tls): BrokerAccess => ({ tls }),
    prove: (access) => proveAccess(addresses, access),
    log,
  });
}

/** Says once which links cross a network in plain text. In live an operator has said that they may. */
export function warnOfPlainLinks({ links }: Config, log: Logger): void {
  const plain = Object.entries(links).filter(([, { plainHosts }]) => plainHosts.length > 0);
  if (plain.length > 0) log.warn({ links: plain.map(([name]) => name) }, 'links cross a network in plain text');
}

/** In how many seconds each certificate expires, or the last of the authorities that the other end may be from. */
export function expiries(links: Links, now: number): [string, number][] {
  return endsBy(endOf, links, now);
}

/** In how many seconds the first revocation list of each port ends. */
export function listExpiries(links: Links, now: number): [string, number][] {
  return endsBy(listsEnd, links, now);
}

function endsBy(
  find: (material: TlsMaterial) => number | undefined,
  { operationsToken: _, ...links }: Links,
  now: number,
): [string, number][] {
  return Object.entries(links).flatMap(([name, link]): [string, number][] => {
    if (link === undefined) return [];
    const material: TlsMaterial | undefined = 'tls' in link.current ? link.current.tls : link.current;
    const end = material && find(material);
    return end === undefined ? [] : [[name, (end - now) / 1_000]];
  });
}
