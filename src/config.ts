import { isAddressOrRange, isLoopback } from './auth/addresses.ts';
import type { Environment } from './db/database.ts';
import { type CrashPoint, isCrashPoint } from './lib/crash.ts';
import { type AddressDetail, addressDetails } from './lib/network.ts';
import {
  ConfigError,
  certificateFile,
  describeSettings,
  type Form,
  oneOf,
  orNone,
  reading,
  readSetting,
  readSettings,
  type Setting,
  type Settings,
  text,
  unknownVariables,
  wholeNumber,
  yesOrNo,
} from './lib/settings.ts';

export { ConfigError };

/**
 * What a process does: `api` serves partners; `worker` carries events, applies reports, settles what is unclear and
 * removes what is old; `webhooks` delivers. Every process has the operators' and the operations port.
 */
export type Role = (typeof roles)[number];

const roles = ['api', 'worker', 'webhooks'] as const;

/** Everything the gateway is told from outside, checked. */
export interface Config {
  readonly environment: Environment;
  readonly roles: readonly Role[];
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
  /** Paths of PEM files. */
  readonly tlsCertificate: string | undefined;
  readonly tlsKey: string | undefined;
  readonly adminTlsCertificate: string | undefined;
  readonly adminTlsKey: string | undefined;
  readonly adminTlsAuthorities: string | undefined;
  /** Addresses and ranges of the proxies whose X-Forwarded-For is believed. */
  readonly trustedProxies: readonly string[];
  /** How many connections one address may have open at the partners' ports. */
  readonly connectionsPerAddress: number;
  readonly secretKey: Buffer;
  /** Operators by token. */
  readonly operators: ReadonlyMap<string, string>;
  readonly logLevel: string;
  readonly logClientAddress: AddressDetail;
  /** Where spans are exported to; undefined: no spans are made. */
  readonly otlpUrl: string | undefined;
  /** Of how many of the traces that begin here spans are made. */
  readonly tracePercent: number;
  readonly submitTimeoutMs: number;
  readonly readTimeoutMs: number;
  readonly recordsTimeoutMs: number;
  readonly decoderWalls: 'auto' | 'required' | 'off';
  readonly clockSkewMs: number;
  readonly drainMs: number;
  readonly shutdownTimeoutMs: number;
  /** Certificates of authorities that webhook endpoints' certificates may be from beside the known ones, in PEM. */
  readonly webhookAuthorities: string | undefined;
  readonly webhookAllowLoopback: boolean;
  readonly crashPoint: CrashPoint | undefined;
  readonly crashSignal: NodeJS.Signals;
}

/** How the names of all variables begin: one that does and is no setting stops the start. */
const prefix = 'MARINA_';
const hex64 = text(/^[0-9a-f]{64}$/i, '64 hex characters');

/** Every setting, in the order `make config` lists them. */
const settings: Settings<Config> = {
  environment: {
    variable: 'MARINA_ENVIRONMENT',
    meaning: 'which environment this gateway is',
    fallback: 'sandbox',
    form: oneOf('sandbox', 'live'),
  },
  roles: {
    variable: 'MARINA_ROLES',
    meaning: 'what this process does: serve partners, work in the background, deliver webhooks',
    fallback: roles.join(','),
    form: reading(`one or more of ${roles.join(', ')}, separated by commas`, parseRoles),
  },
  databaseUrl: {
    variable: 'MARINA_DATABASE_URL',
    meaning: 'the database, as mysql://user:password@host:port/name',
    fallback: undefined,
    form: text(/^mysql:\/\/.+/, 'a mysql:// URL'),
  },
  databasePool: {
    variable: 'MARINA_DATABASE_POOL',
    meaning: 'how many database connections to keep',
    fallback: '16',
    form: wholeNumber(2, 200),
  },
  natsUrl: {
    variable: 'MARINA_NATS_URL',
    meaning: 'the NATS servers',
    fallback: undefined,
    form: text(/.+/, 'server addresses, separated by commas'),
  },
  natsPrefix: {
    variable: 'MARINA_NATS_PREFIX',
    meaning: 'a prefix for the names of streams and subjects, for gateways that share one NATS',
    fallback: '',
    form: text(/^[A-Za-z0-9_-]{0,32}$/, 'at most 32 letters, digits, hyphens and underscores'),
  },
  brokerAddress: {
    variable: 'MARINA_BROKER_ADDRESS',
    meaning: "the broker's gRPC service",
    fallback: undefined,
    form: text(/^.+:\d+$/, 'host:port'),
  },
  simulatorAddress: {
    variable: 'MARINA_SIMULATOR_ADDRESS',
    meaning: 'where the simulator is steered; sandbox only',
    fallback: '',
    form: orNone(text(/^.+:\d+$/, 'host:port')),
  },
  host: {
    variable: 'MARINA_HOST',
    meaning: 'the address the REST and gRPC ports listen on',
    fallback: '127.0.0.1',
    form: text(/.+/, 'an address'),
  },
  restPort: port('MARINA_REST_PORT', 'the REST port; 0: any free one', '8080'),
  grpcPort: port('MARINA_GRPC_PORT', 'the gRPC port; 0: any free one', '50051'),
  adminHost: {
    variable: 'MARINA_ADMIN_HOST',
    meaning: "the address the operators' port listens on; in live the port needs TLS unless this is a loopback address",
    fallback: '127.0.0.1',
    form: text(/.+/, 'an address'),
  },
  adminPort: port('MARINA_ADMIN_PORT', "the operators' gRPC port; 0: any free one", '50052'),
  opsHost: {
    variable: 'MARINA_OPS_HOST',
    meaning: 'the address the operations port (health, metrics) listens on',
    fallback: '127.0.0.1',
    form: text(/.+/, 'an address'),
  },
  opsPort: port('MARINA_OPS_PORT', 'the operations port; 0: any free one', '9464'),
  tlsCertificate: pemPath(
    'MARINA_TLS_CERT_FILE',
    'the certificate of the REST and gRPC ports; none: they speak plain text',
  ),
  tlsKey: pemPath('MARINA_TLS_KEY_FILE', "the private key of the REST and gRPC ports' certificate"),
  adminTlsCertificate: pemPath('MARINA_ADMIN_TLS_CERT_FILE', "the certificate of the operators' port"),
  adminTlsKey: pemPath('MARINA_ADMIN_TLS_KEY_FILE', "the private key of the operators' port's certificate"),
  adminTlsAuthorities: pemPath(
    'MARINA_ADMIN_TLS_CLIENT_CA_FILE',
    "the authorities of operators' certificates; none: operators need no certificate",
  ),
  baseUrl: {
    variable: 'MARINA_BASE_URL',
    meaning: 'the URL by which partners reach the REST port, for links; by default where it listens',
    fallback: '',
    form: orNone(text(/^https?:\/\/[^ ]+[^/ ]$/, 'an http(s) URL without a final slash')),
  },
  trustedProxies: {
    variable: 'MARINA_TRUSTED_PROXIES',
    meaning: 'the proxies whose X-Forwarded-For the gateway believes',
    fallback: '',
    form: reading('addresses or ranges, separated by commas', parseAddresses),
  },
  connectionsPerAddress: {
    variable: 'MARINA_CONNECTIONS_PER_ADDRESS',
    meaning:
      "how many connections one address may have open at the partners' ports; four times as many when good keys come from it, and no such limit for a trusted proxy",
    fallback: '500',
    form: wholeNumber(10, 10_000),
  },
  secretKey: {
    variable: 'MARINA_SECRET_KEY',
    meaning: 'the secret behind cursors, digests, API keys and encrypted values: the same on every replica, for ever',
    fallback: undefined,
    form: reading('64 hex characters', (value) => Buffer.from(hex64.read(value), 'hex')),
  },
  operators: {
    variable: 'MARINA_OPERATOR_TOKENS',
    meaning: 'operators and their tokens',
    fallback: '',
    form: reading('name:token pairs separated by commas, with tokens of at least 24 characters', parseOperators),
  },
  logLevel: {
    variable: 'MARINA_LOG_LEVEL',
    meaning: 'how much is logged',
    fallback: 'info',
    form: oneOf('trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'),
  },
  logClientAddress: {
    variable: 'MARINA_LOG_CLIENT_ADDRESS',
    meaning: "how much of clients' addresses is logged: all, the first 24 bits (IPv6: 48), or nothing",
    fallback: 'full',
    form: oneOf(...addressDetails),
  },
  otlpUrl: {
    variable: 'MARINA_OTLP_URL',
    meaning: 'the URL of an OpenTelemetry collector (OTLP over HTTP) without /v1/traces; none: no spans are made',
    fallback: '',
    form: orNone(text(/^https?:\/\/[^ ]+[^/ ]$/, 'an http(s) URL without a final slash')),
  },
  tracePercent: {
    variable: 'MARINA_TRACE_PERCENT',
    meaning: 'the share of traces begun here that is exported; a trace that comes in decides for itself',
    fallback: '100',
    form: wholeNumber(0, 100),
  },
  submitTimeoutMs: {
    variable: 'MARINA_SUBMIT_TIMEOUT_MS',
    meaning: 'how long sending an order may take, in milliseconds; the exchange must not take it later',
    fallback: '10000',
    form: wholeNumber(100, 60_000),
  },
  readTimeoutMs: {
    variable: 'MARINA_READ_TIMEOUT_MS',
    meaning: 'how long a read from the broker may take, in milliseconds',
    fallback: '5000',
    form: wholeNumber(100, 20_000),
  },
  recordsTimeoutMs: {
    variable: 'MARINA_RECORDS_TIMEOUT_MS',
    meaning: "how long a partner's read of the broker's records may wait and take, in milliseconds",
    fallback: '20000',
    form: wholeNumber(100, 20_000),
  },
  decoderWalls: {
    variable: 'MARINA_DECODER_WALLS',
    meaning: 'isolation of the processes that decode images: what the machine offers, all or no start, or none',
    fallback: 'auto',
    form: oneOf('auto', 'required', 'off'),
  },
  clockSkewMs: {
    variable: 'MARINA_CLOCK_SKEW_MS',
    meaning: "how far the broker's clock may be from ours, in milliseconds; measured to 100 ms at best",
    fallback: '2000',
    form: wholeNumber(0, 60_000),
  },
  drainMs: {
    variable: 'MARINA_DRAIN_MS',
    meaning: 'how long a stopping gateway still serves requests, in milliseconds, so that load balancers notice',
    fallback: '5000',
    form: wholeNumber(0, 120_000),
  },
  shutdownTimeoutMs: {
    variable: 'MARINA_SHUTDOWN_TIMEOUT_MS',
    meaning: 'how long a stop waits for requests in progress, and again for background work, in milliseconds',
    fallback: '15000',
    form: wholeNumber(0, 120_000),
  },
  webhookAuthorities: {
    variable: 'MARINA_WEBHOOK_CA_FILE',
    meaning: 'further authorities that webhook endpoints may have certificates from; sandbox only',
    fallback: '',
    form: orNone(certificateFile()),
  },
  webhookAllowLoopback: {
    variable: 'MARINA_WEBHOOK_ALLOW_LOOPBACK',
    meaning: "whether webhooks may be sent to this machine's own addresses; sandbox only",
    fallback: 'false',
    form: yesOrNo(),
  },
  crashPoint: {
    variable: 'MARINA_CRASH_POINT',
    meaning: 'the point at which the process kills itself, for fault tests; sandbox only',
    fallback: '',
    form: orNone(crashPoint()),
  },
  crashSignal: {
    variable: 'MARINA_CRASH_SIGNAL',
    meaning: 'the signal with which it kills itself',
    fallback: 'SIGKILL',
    form: oneOf('SIGKILL', 'SIGSTOP'),
  },
};

/** The name of a point at which a test ends the process. */
function crashPoint(): Form<CrashPoint> {
  const allowed = 'a point that lib/crash names';
  const read = (value: string) => {
    if (!isCrashPoint(value)) throw new Error(`must be ${allowed}`);
    return value;
  };
  return { allowed, read };
}

/** Reads and checks all settings, and reports everything that is wrong at once. */
export function readConfig(variables: NodeJS.ProcessEnv): Config {
  const problems = unknownVariables(prefix, settings, variables);
  const config = readSettings(settings, variables, problems);
  if (config.environment === 'live') {
    if (config.simulatorAddress !== undefined) problems.push('MARINA_SIMULATOR_ADDRESS must not be set in live');
    if (config.webhookAuthorities !== undefined) problems.push('MARINA_WEBHOOK_CA_FILE must not be set in live');
    if (config.webhookAllowLoopback) problems.push('MARINA_WEBHOOK_ALLOW_LOOPBACK must not be true in live');
    if (config.crashPoint !== undefined) problems.push('MARINA_CRASH_POINT must not be set in live');
    if (!isLoopback(config.adminHost) && config.adminTlsCertificate === undefined) {
      problems.push(
        "MARINA_ADMIN_HOST must be a loopback address in live, or the operators' port must speak TLS: " +
          'set MARINA_ADMIN_TLS_CERT_FILE and MARINA_ADMIN_TLS_KEY_FILE',
      );
    }
  }
  problems.push(...whatTlsLacks(config));
  if (problems.length > 0) throw new ConfigError(problems.join('\n'));
  return config;
}

/** Reads the one setting that migrations need. */
export function readDatabaseUrl(variables: NodeJS.ProcessEnv): string {
  const problems = unknownVariables(prefix, settings, variables);
  const url = readSetting(settings.databaseUrl, variables, problems);
  if (url === undefined || problems.length > 0) throw new ConfigError(problems.join('\n'));
  return url;
}

/** Every setting with its default, its range and its meaning, for people. */
export function describeConfig(): string {
  return describeSettings(settings);
}

function whatTlsLacks(config: Config): string[] {
  const lacks: string[] = [];
  if ((config.tlsCertificate === undefined) !== (config.tlsKey === undefined)) {
    lacks.push('MARINA_TLS_CERT_FILE and MARINA_TLS_KEY_FILE must be set together');
  }
  if ((config.adminTlsCertificate === undefined) !== (config.adminTlsKey === undefined)) {
    lacks.push('MARINA_ADMIN_TLS_CERT_FILE and MARINA_ADMIN_TLS_KEY_FILE must be set together');
  }
  if (config.adminTlsAuthorities !== undefined && config.adminTlsCertificate === undefined) {
    lacks.push('MARINA_ADMIN_TLS_CLIENT_CA_FILE needs MARINA_ADMIN_TLS_CERT_FILE');
  }
  return lacks;
}

function pemPath(variable: string, meaning: string): Setting<string | undefined> {
  return { variable, meaning, fallback: '', form: orNone(text(/./, 'the path of a PEM file')) };
}

function port(variable: string, meaning: string, fallback: string): Setting<number> {
  return { variable, meaning, fallback, form: wholeNumber(0, 65_535) };
}

function parseRoles(value: string): readonly Role[] {
  const role = oneOf(...roles);
  return value.split(',').map((entry) => role.read(entry.trim()));
}

function parseAddresses(value: string): readonly string[] {
  const addresses = value === '' ? [] : value.split(',').map((entry) => entry.trim());
  if (!addresses.every(isAddressOrRange)) throw new Error('must be addresses or ranges separated by commas');
  if (addresses.some((address) => address.endsWith('/0'))) {
    throw new Error('must be addresses of proxies, not all there are: any client could say that it is another');
  }
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
