import { isIP } from 'node:net';
import { isLoopback } from '../../kit/addresses.ts';
import { type LinkFiles, linkProblems } from '../../kit/link-settings.ts';
import { natsAddress } from '../../kit/nats-address.ts';
import {
  ConfigError,
  describeSettings,
  readSettings,
  type Setting,
  unknownVariables,
  type ValuesOf,
} from '../../kit/settings.ts';
import { databaseAddress } from '../store/address.ts';
import { type BrokerId, firstBroker } from '../trading/broker/broker.ts';
import { type LinkName, linkNames, type Role } from './config-forms.ts';
import { links, settings } from './config-settings.ts';

export type { LinkName, Role };
export { ConfigError };

/** The prefix of all variables. An unknown variable with it stops the start. */
const prefix = 'MARINA_';

/** All settings, in the order of `make config`. */
const allSettings = Object.fromEntries([settings, ...Object.values(links)].flatMap(listed));

export type Config = ValuesOf<typeof settings> & {
  readonly links: Readonly<Record<LinkName, LinkConfig>>;
  /** The settings have the address of one broker. */
  readonly brokerIds: readonly [BrokerId];
};

/** What opening the database needs. */
export type DatabaseConfig = Pick<Config, 'databaseUrl' | 'environment'> & {
  readonly links: Pick<Config['links'], 'database'>;
};

/** A link's certificates, and whether it speaks TLS. */
export interface LinkConfig extends LinkFiles {
  readonly speaksTls: boolean;
  /** The hosts that it reaches in plain text and that are not this machine. */
  readonly plainHosts: readonly string[];
}

/** Reads and checks all settings. Throws all problems at once. */
export function readConfig(variables: NodeJS.ProcessEnv): Config {
  const problems = unknownVariables(prefix, allSettings, variables);
  const values = readSettings(settings, variables, problems);
  const { nats, broker, otlp } = {
    nats: readSettings(links.nats, variables, problems),
    broker: readSettings(links.broker, variables, problems),
    otlp: readSettings(links.otlp, variables, problems),
  };
  const at = values.natsUrl && natsAddress(values.natsUrl.first);
  const collector = values.otlpUrl === undefined ? undefined : new URL(values.otlpUrl);
  const { brokerAddress, backOfficeAddress } = values;
  const config = {
    ...values,
    brokerIds: [firstBroker] as const,
    links: {
      database: readDatabaseLink(values.databaseUrl?.first, variables, problems),
      nats: linkConfig('NATS', nats, nats.tls === 'required' || at?.saysTls === true, at?.hosts ?? [], problems),
      broker: linkConfig(
        'BROKER',
        broker,
        broker.tls === 'required',
        [brokerAddress, backOfficeAddress].flatMap((address) => (address ? [address.replace(/:\d+$/, '')] : [])),
        problems,
      ),
      otlp: linkConfig(
        'OTLP',
        otlp,
        collector?.protocol === 'https:',
        collector === undefined ? [] : [collector.hostname],
        problems,
        'an https:// MARINA_OTLP_URL',
      ),
    },
  };
  problems.push(...plainProblems(config), ...brokenRules(config));
  if (problems.length > 0) throw new ConfigError(problems.join('\n'));
  return config;
}

/** Reads the settings that commands on the database need. */
export function readDatabaseConfig(variables: NodeJS.ProcessEnv): DatabaseConfig {
  return readSomeConfig({}, variables);
}

/** Reads the settings that commands on what is sealed in the database need. */
export function readKeysConfig(
  variables: NodeJS.ProcessEnv,
): DatabaseConfig & Pick<Config, 'secretKey' | 'unsealedRows'> {
  const { secretKey, unsealedRows } = settings;
  return readSomeConfig({ secretKey, unsealedRows }, variables);
}

/** Whether rows without a seal are accepted. A sandbox does by default: it has no money, and its data may be older than seals. */
export function acceptsUnsealedRows({
  unsealedRows,
  environment,
}: Pick<Config, 'unsealedRows' | 'environment'>): boolean {
  return (unsealedRows ?? (environment === 'sandbox' ? 'accepted' : 'refused')) === 'accepted';
}

/** The amount of a credit that is large in live, in kobo: ten million naira. */
const usualFourEyesKobo = 1_000_000_000n;

/** The amount above which a credit is large, in kobo; undefined: none is. */
export function largeCreditKobo({
  fourEyesAboveKobo: amount,
  environment,
}: Pick<Config, 'fourEyesAboveKobo' | 'environment'>): bigint | undefined {
  if (amount === undefined) return environment === 'live' ? usualFourEyesKobo : undefined;
  return amount === 'off' ? undefined : amount;
}

/** The amount above which calls need a second operator, in kobo; undefined: four eyes are off. */
export function fourEyesKobo(
  config: Pick<Config, 'fourEyesAboveKobo' | 'environment' | 'singleOperator'>,
): bigint | undefined {
  return config.singleOperator ? undefined : largeCreditKobo(config);
}

function readSomeConfig<More extends Readonly<Record<string, Setting<unknown>>>>(
  more: More,
  variables: NodeJS.ProcessEnv,
): DatabaseConfig & ValuesOf<More> {
  const problems = unknownVariables(prefix, allSettings, variables);
  const { databaseUrl, environment, plaintextLinks } = settings;
  const values = {
    ...readSettings({ databaseUrl, environment, plaintextLinks }, variables, problems),
    ...readSettings(more, variables, problems),
  };
  const config = {
    ...values,
    links: { database: readDatabaseLink(values.databaseUrl?.first, variables, problems) },
  };
  problems.push(...plainProblems(config));
  if (problems.length > 0) throw new ConfigError(problems.join('\n'));
  return config;
}

function readDatabaseLink(url: string | undefined, variables: NodeJS.ProcessEnv, problems: string[]): LinkConfig {
  const { tls, ...files } = readSettings(links.database, variables, problems);
  const hosts = url === undefined ? [] : databaseAddress(url).hosts.map(({ host }) => host);
  if (tls === 'required' && hosts.some((host) => isIP(host) !== 0) && files.serverName === undefined) {
    problems.push('MARINA_DATABASE_TLS_SERVER_NAME must be set: MARINA_DATABASE_URL names an address, and no host');
  }
  return linkConfig('DATABASE', files, tls === 'required', hosts, problems);
}

function linkConfig(
  link: string,
  { authorities, certificate, key, serverName }: LinkFiles,
  speaksTls: boolean,
  hosts: readonly string[],
  problems: string[],
  how = `MARINA_${link}_TLS=required`,
): LinkConfig {
  const files = { authorities, certificate, key, serverName };
  problems.push(...linkProblems(link, files, speaksTls, how));
  const bare = hosts.map((host) => host.replace(/^\[|\]$/g, ''));
  return { ...files, speaksTls, plainHosts: speaksTls ? [] : bare.filter((host) => !isLoopback(host)) };
}

/** In live, what crosses a network in plain text must be meant to. */
function plainProblems(config: {
  readonly environment?: 'sandbox' | 'live';
  readonly plaintextLinks?: readonly LinkName[];
  readonly links: Readonly<Partial<Record<LinkName, LinkConfig>>>;
}): string[] {
  const { environment, plaintextLinks = [], links } = config;
  if (environment !== 'live') return [];
  return linkNames
    .filter((name) => (links[name]?.plainHosts.length ?? 0) > 0 && !plaintextLinks.includes(name))
    .map((name) => {
      const how = name === 'otlp' ? 'use an https:// MARINA_OTLP_URL' : `set MARINA_${name.toUpperCase()}_TLS=required`;
      return (
        `the link to ${name} would cross a network in plain text, which live refuses: ${how}, ` +
        `or name ${name} in MARINA_PLAINTEXT_LINKS if the network itself protects it`
      );
    });
}

type Rule = readonly [isBroken: boolean, problem: string];

function brokenRules(config: ValuesOf<typeof settings>): string[] {
  const isLive = config.environment === 'live';
  const adminSpeaksTls = config.adminTlsCertificate !== undefined;
  const rules: readonly Rule[] = [
    [isLive && config.simulatorAddress !== undefined, 'MARINA_SIMULATOR_ADDRESS must not be set in live'],
    [isLive && config.webhookAuthorities !== undefined, 'MARINA_WEBHOOK_CA_FILE must not be set in live'],
    [isLive && config.webhookAllowLoopback, 'MARINA_WEBHOOK_ALLOW_LOOPBACK must not be true in live'],
    [
      isLive && !adminSpeaksTls && !isLoopback(config.adminHost),
      "MARINA_ADMIN_HOST must be a loopback address in live, or the operators' port must speak TLS: " +
        'set MARINA_ADMIN_TLS_CERT_FILE and MARINA_ADMIN_TLS_KEY_FILE',
    ],
    ...portProblems('MARINA_TLS', config.tlsCertificate, config.tlsKey),
    ...portProblems(
      'MARINA_ADMIN_TLS',
      ...([
        config.adminTlsCertificate,
        config.adminTlsKey,
        config.adminTlsAuthorities,
        config.adminTlsRevoked,
      ] as const),
    ),
    ...portProblems(
      'MARINA_OPS_TLS',
      ...([config.opsTlsCertificate, config.opsTlsKey, config.opsTlsAuthorities, config.opsTlsRevoked] as const),
    ),
    [
      config.natsCredentials !== undefined && config.natsNkey !== undefined,
      'MARINA_NATS_CREDENTIALS_FILE and MARINA_NATS_NKEY_FILE must not both be set',
    ],
  ];
  return rules.filter(([isBroken]) => isBroken).map(([, problem]) => problem);
}

/** The rules of the files with which a port speaks TLS. */
function portProblems(
  port: string,
  certificate?: string,
  key?: string,
  authorities?: string,
  revoked?: string,
): Rule[] {
  const has = (file: string | undefined) => file !== undefined;
  return [
    [has(certificate) !== has(key), `${port}_CERT_FILE and ${port}_KEY_FILE must be set together`],
    [has(authorities) && !has(certificate), `${port}_CLIENT_CA_FILE needs ${port}_CERT_FILE`],
    [has(revoked) && !has(authorities), `${port}_CLIENT_CRL_FILE needs ${port}_CLIENT_CA_FILE`],
  ];
}

/** Every setting with its default, range and meaning, as text. */
export function describeConfig(): string {
  return describeSettings(allSettings);
}

/** The settings by their variables, because links have alike names for theirs. */
function listed(some: Readonly<Record<string, Setting<unknown>>>): [string, Setting<unknown>][] {
  return Object.values(some).map((each) => [each.variable, each]);
}
