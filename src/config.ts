import { readFileSync } from 'node:fs';
import { isAddressOrRange } from './auth/addresses.ts';
import type { Environment } from './db/database.ts';
import { type CrashPoint, crashPoints } from './lib/crash.ts';

/** Everything the gateway is told from outside, checked. */
export interface Config {
  readonly environment: Environment;
  readonly databaseUrl: string;
  readonly databasePool: number;
  readonly natsUrl: string;
  readonly natsPrefix: string;
  readonly brokerAddress: string;
  /** Where the simulator is steered; undefined where the broker is a real one. */
  readonly simulatorAddress: string | undefined;
  readonly host: string;
  readonly restPort: number;
  readonly grpcPort: number;
  readonly adminHost: string;
  readonly adminPort: number;
  readonly opsHost: string;
  readonly opsPort: number;
  readonly baseUrl: string | undefined;
  /** Addresses and ranges of the proxies whose X-Forwarded-For is believed. */
  readonly trustedProxies: readonly string[];
  readonly secretKey: Buffer;
  /** Operators by token. */
  readonly operators: ReadonlyMap<string, string>;
  readonly logLevel: string;
  readonly submitTimeoutMs: number;
  readonly readTimeoutMs: number;
  readonly recordsTimeoutMs: number;
  readonly clockSkewMs: number;
  readonly shutdownTimeoutMs: number;
  /** Certificates of authorities that webhook endpoints' certificates may be from beside the known ones, in PEM. */
  readonly webhookAuthorities: string | undefined;
  readonly webhookAllowLoopback: boolean;
  readonly crashPoint: CrashPoint | undefined;
  readonly crashSignal: NodeJS.Signals;
}

interface Setting<T> {
  readonly variable: string;
  readonly meaning: string;
  /** What is used where the variable is not set; undefined: it must be set. */
  readonly fallback: string | undefined;
  /** Reads the text. Throws an Error that says what it must be. */
  readonly parse: (text: string) => T;
  /** Never printed. */
  readonly secret?: boolean;
}

/** Every setting, in the order `make config` lists them. */
const settings: { readonly [Name in keyof Config]: Setting<Config[Name]> } = {
  environment: {
    variable: 'MARINA_ENVIRONMENT',
    meaning: 'which environment this gateway is: sandbox or live',
    fallback: 'sandbox',
    parse: oneOf('sandbox', 'live'),
  },
  databaseUrl: {
    variable: 'MARINA_DATABASE_URL',
    meaning: 'the database, as mysql://user:password@host:port/name',
    fallback: undefined,
    parse: text(/^mysql:\/\/.+/, 'a mysql:// URL'),
    secret: true,
  },
  databasePool: {
    variable: 'MARINA_DATABASE_POOL',
    meaning: 'how many database connections to keep, 2 to 200',
    fallback: '16',
    parse: wholeNumber(2, 200),
  },
  natsUrl: {
    variable: 'MARINA_NATS_URL',
    meaning: 'one or more NATS servers, separated by commas',
    fallback: undefined,
    parse: text(/.+/, 'one or more NATS servers'),
    secret: true,
  },
  natsPrefix: {
    variable: 'MARINA_NATS_PREFIX',
    meaning: 'what stands before the names of streams and subjects, for gateways that share a NATS',
    fallback: '',
    parse: text(/^[A-Za-z0-9_-]{0,32}$/, 'at most 32 letters, digits, hyphens and underscores'),
  },
  brokerAddress: {
    variable: 'MARINA_BROKER_ADDRESS',
    meaning: "the broker's gRPC service, as host:port",
    fallback: undefined,
    parse: text(/^.+:\d+$/, 'host:port'),
  },
  simulatorAddress: {
    variable: 'MARINA_SIMULATOR_ADDRESS',
    meaning: 'where the simulator is steered, as host:port; sandbox only',
    fallback: '',
    parse: (value) => (value === '' ? undefined : text(/^.+:\d+$/, 'host:port')(value)),
  },
  host: {
    variable: 'MARINA_HOST',
    meaning: 'the address the REST and gRPC ports listen on',
    fallback: '127.0.0.1',
    parse: text(/.+/, 'an address'),
  },
  restPort: port('MARINA_REST_PORT', 'the REST port; 0: any free one', '8080'),
  grpcPort: port('MARINA_GRPC_PORT', 'the gRPC port; 0: any free one', '50051'),
  adminHost: {
    variable: 'MARINA_ADMIN_HOST',
    meaning: "the address the operators' port listens on",
    fallback: '127.0.0.1',
    parse: text(/.+/, 'an address'),
  },
  adminPort: port('MARINA_ADMIN_PORT', "the operators' gRPC port; 0: any free one", '50052'),
  opsHost: {
    variable: 'MARINA_OPS_HOST',
    meaning: 'the address the operations port (health, metrics) listens on',
    fallback: '127.0.0.1',
    parse: text(/.+/, 'an address'),
  },
  opsPort: port('MARINA_OPS_PORT', 'the operations port; 0: any free one', '9464'),
  baseUrl: {
    variable: 'MARINA_BASE_URL',
    meaning: 'where partners reach the REST port, for links in errors; by default where it listens',
    fallback: '',
    parse: (value) =>
      value === '' ? undefined : text(/^https?:\/\/[^ ]+[^/ ]$/, 'an http(s) URL without a final slash')(value),
  },
  trustedProxies: {
    variable: 'MARINA_TRUSTED_PROXIES',
    meaning: 'addresses or ranges of the proxies whose X-Forwarded-For is believed, separated by commas',
    fallback: '',
    parse: parseAddresses,
  },
  secretKey: {
    variable: 'MARINA_SECRET_KEY',
    meaning:
      'the secret that cursors and digests are made with: 64 hex characters, the same on every replica, for ever',
    fallback: undefined,
    parse: (value) => Buffer.from(text(/^[0-9a-f]{64}$/i, '64 hex characters')(value), 'hex'),
    secret: true,
  },
  operators: {
    variable: 'MARINA_OPERATOR_TOKENS',
    meaning: 'operators and their tokens, as name:token,name:token; tokens have at least 24 characters',
    fallback: '',
    parse: parseOperators,
    secret: true,
  },
  logLevel: {
    variable: 'MARINA_LOG_LEVEL',
    meaning: 'how much is logged: trace, debug, info, warn, error, fatal or silent',
    fallback: 'info',
    parse: oneOf('trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'),
  },
  submitTimeoutMs: {
    variable: 'MARINA_SUBMIT_TIMEOUT_MS',
    meaning: 'how long sending an order may take in milliseconds; the exchange must not take it later',
    fallback: '10000',
    parse: wholeNumber(100, 60_000),
  },
  readTimeoutMs: {
    variable: 'MARINA_READ_TIMEOUT_MS',
    meaning: 'how long a read from the broker may take in milliseconds',
    fallback: '5000',
    parse: wholeNumber(100, 20_000),
  },
  recordsTimeoutMs: {
    variable: 'MARINA_RECORDS_TIMEOUT_MS',
    meaning: "how long a partner's read of the broker's records may wait and take in milliseconds",
    fallback: '20000',
    parse: wholeNumber(100, 20_000),
  },
  clockSkewMs: {
    variable: 'MARINA_CLOCK_SKEW_MS',
    meaning: "how far the broker's clock may be from ours in milliseconds",
    fallback: '2000',
    parse: wholeNumber(0, 60_000),
  },
  shutdownTimeoutMs: {
    variable: 'MARINA_SHUTDOWN_TIMEOUT_MS',
    meaning: 'how long a stop may wait for what is under way, in milliseconds',
    fallback: '15000',
    parse: wholeNumber(0, 120_000),
  },
  webhookAuthorities: {
    variable: 'MARINA_WEBHOOK_CA_FILE',
    meaning: 'a PEM file of authorities that webhook endpoints may have certificates from; sandbox only',
    fallback: '',
    parse: (value) => (value === '' ? undefined : readPem(value)),
  },
  webhookAllowLoopback: {
    variable: 'MARINA_WEBHOOK_ALLOW_LOOPBACK',
    meaning: "whether webhooks may be sent to this machine's own addresses: true or false; sandbox only",
    fallback: 'false',
    parse: (value) => oneOf('true', 'false')(value) === 'true',
  },
  crashPoint: {
    variable: 'MARINA_CRASH_POINT',
    meaning: 'the named point at which the process ends itself, for fault tests; sandbox only',
    fallback: '',
    parse: (value) => (value === '' ? undefined : oneOf(...crashPoints)(value)),
  },
  crashSignal: {
    variable: 'MARINA_CRASH_SIGNAL',
    meaning: 'how it ends itself there: SIGKILL or SIGSTOP',
    fallback: 'SIGKILL',
    parse: oneOf('SIGKILL', 'SIGSTOP'),
  },
};

/** Thrown with one line for each setting that is wrong. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
}

/** Reads and checks all settings, and reports everything that is wrong at once. */
export function readConfig(variables: NodeJS.ProcessEnv): Config {
  const problems: string[] = [];
  const config = Object.fromEntries(
    Object.entries(settings).map(([name, setting]) => [
      name,
      readSetting(setting as Setting<unknown>, variables, problems),
    ]),
  ) as unknown as Config;
  if (config.environment === 'live') {
    if (config.simulatorAddress !== undefined) problems.push('MARINA_SIMULATOR_ADDRESS must not be set in live');
    if (config.webhookAuthorities !== undefined) problems.push('MARINA_WEBHOOK_CA_FILE must not be set in live');
    if (config.webhookAllowLoopback) problems.push('MARINA_WEBHOOK_ALLOW_LOOPBACK must not be true in live');
    if (config.crashPoint !== undefined) problems.push('MARINA_CRASH_POINT must not be set in live');
  }
  if (problems.length > 0) throw new ConfigError(problems.join('\n'));
  return config;
}

/** Reads the one setting that migrations need. */
export function readDatabaseUrl(variables: NodeJS.ProcessEnv): string {
  const problems: string[] = [];
  const url = readSetting(settings.databaseUrl, variables, problems);
  if (url === undefined) throw new ConfigError(problems.join('\n'));
  return url;
}

function readSetting<T>(setting: Setting<T>, variables: NodeJS.ProcessEnv, problems: string[]): T | undefined {
  const given = variables[setting.variable] || setting.fallback;
  try {
    if (given === undefined) throw new Error('must be set');
    return setting.parse(given);
  } catch (error) {
    problems.push(`${setting.variable} ${(error as Error).message}: ${setting.meaning}`);
    return undefined;
  }
}

/** Every setting with its default and meaning, for people. */
export function describeConfig(): string {
  const rows = Object.values(settings).map(({ variable, fallback, meaning }) => {
    const standard = fallback === undefined ? '(must be set)' : fallback === '' ? '(none)' : fallback;
    return `${variable.padEnd(28)} ${standard.padEnd(14)} ${meaning}`;
  });
  return [`${'VARIABLE'.padEnd(28)} ${'DEFAULT'.padEnd(14)} MEANING`, ...rows].join('\n');
}

function port(variable: string, meaning: string, fallback: string): Setting<number> {
  return { variable, meaning, fallback, parse: wholeNumber(0, 65_535) };
}

function oneOf<const T extends string>(...words: T[]): (text: string) => T {
  return (value) => {
    const found = words.find((word) => word === value);
    if (found === undefined) throw new Error(`must be one of ${words.join(', ')}`);
    return found;
  };
}

function text(pattern: RegExp, what: string): (text: string) => string {
  return (value) => {
    if (!pattern.test(value)) throw new Error(`must be ${what}`);
    return value;
  };
}

function wholeNumber(least: number, most: number): (text: string) => number {
  return (value) => {
    const number = /^\d{1,9}$/.test(value) ? Number(value) : Number.NaN;
    if (!(number >= least && number <= most)) throw new Error(`must be a whole number from ${least} to ${most}`);
    return number;
  };
}

function readPem(path: string): string {
  let pem: string;
  try {
    pem = readFileSync(path, 'utf8');
  } catch (error) {
    throw new Error(`cannot be read (${(error as NodeJS.ErrnoException).code})`);
  }
  if (!pem.includes('-----BEGIN CERTIFICATE-----')) throw new Error('must hold certificates in PEM');
  return pem;
}

function parseAddresses(value: string): readonly string[] {
  const addresses = value === '' ? [] : value.split(',').map((entry) => entry.trim());
  if (!addresses.every(isAddressOrRange)) throw new Error('must be addresses or ranges separated by commas');
  return addresses;
}

function parseOperators(value: string): ReadonlyMap<string, string> {
  const operators = new Map<string, string>();
  for (const entry of value === '' ? [] : value.split(',')) {
    const [, name, token] = /^([A-Za-z0-9._-]{1,64}):([!-~]{24,})$/.exec(entry) ?? [];
    if (name === undefined || token === undefined) {
      throw new Error('must be name:token pairs separated by commas, with tokens of at least 24 characters');
    }
    operators.set(token, name);
  }
  return operators;
}
