import { isAddressOrRange, isLoopback } from './auth/addresses.ts';
import { type CrashPoint, isCrashPoint } from './lib/crash.ts';
import { addressDetails } from './lib/network.ts';
import {
  ConfigError,
  certificateFile,
  describeSettings,
  oneOf,
  orNone,
  reading,
  readSetting,
  readSettings,
  type Setting,
  setting,
  text,
  unknownVariables,
  type ValuesOf,
  wholeNumber,
  yesOrNo,
} from './lib/settings.ts';

export { ConfigError };

/**
 * A process's role. `api` serves partners. `worker` publishes events, applies reports, settles unknown outcomes and
 * removes old rows. `webhooks` delivers. Every process has the operators' and the operations port.
 */
export type Role = (typeof roles)[number];

const roles = ['api', 'worker', 'webhooks'] as const;

/** The prefix of all variables. An unknown variable with it stops the start. */
const prefix = 'MARINA_';
const address = text(/.+/, 'an address');
const hostPort = text(/^.+:\d+$/, 'host:port');
const httpUrl = text(/^https?:\/\/[^ ]+[^/ ]$/, 'an http(s) URL without a final slash');
const hex64 = text(/^[0-9a-f]{64}$/i, '64 hex characters');

/** All settings, in the order of `make config`. */
const settings = {
  environment: setting('MARINA_ENVIRONMENT', 'which environment this gateway is', 'sandbox', oneOf('sandbox', 'live')),
  roles: setting(
    'MARINA_ROLES',
    'what this process does: serve partners, work in the background, deliver webhooks',
    roles.join(','),
    reading(`one or more of ${roles.join(', ')}, separated by commas`, parseRoles),
  ),
  databaseUrl: setting(
    'MARINA_DATABASE_URL',
    'the database, as mysql://user:password@host:port/name',
    undefined,
    text(/^mysql:\/\/.+/, 'a mysql:// URL'),
  ),
  databasePool: setting('MARINA_DATABASE_POOL', 'how many database connections to keep', '16', wholeNumber(2, 200)),
  natsUrl: setting(
    'MARINA_NATS_URL',
    'the NATS servers',
    undefined,
    text(/.+/, 'server addresses, separated by commas'),
  ),
  natsPrefix: setting(
    'MARINA_NATS_PREFIX',
    'a prefix for the names of streams and subjects, for gateways that share one NATS',
    '',
    text(/^[A-Za-z0-9_-]{0,32}$/, 'at most 32 letters, digits, hyphens and underscores'),
  ),
  brokerAddress: setting('MARINA_BROKER_ADDRESS', "the broker's gRPC service", undefined, hostPort),
  simulatorAddress: setting(
    'MARINA_SIMULATOR_ADDRESS',
    'where the simulator is steered; sandbox only',
    '',
    orNone(hostPort),
  ),
  host: setting('MARINA_HOST', 'the address the REST and gRPC ports listen on', '127.0.0.1', address),
  restPort: port('MARINA_REST_PORT', 'the REST port; 0: any free one', '8080'),
  grpcPort: port('MARINA_GRPC_PORT', 'the gRPC port; 0: any free one', '50051'),
  adminHost: setting(
    'MARINA_ADMIN_HOST',
    "the address the operators' port listens on; in live the port needs TLS unless this is a loopback address",
    '127.0.0.1',
    address,
  ),
  adminPort: port('MARINA_ADMIN_PORT', "the operators' gRPC port; 0: any free one", '50052'),
  opsHost: setting(
    'MARINA_OPS_HOST',
    'the address the operations port (health, metrics) listens on',
    '127.0.0.1',
    address,
  ),
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
  baseUrl: setting(
    'MARINA_BASE_URL',
    'the URL by which partners reach the REST port, for links; by default where it listens',
    '',
    orNone(httpUrl),
  ),
  trustedProxies: setting(
    'MARINA_TRUSTED_PROXIES',
    'the proxies whose X-Forwarded-For the gateway believes',
    '',
    reading('addresses or ranges, separated by commas', parseAddresses),
  ),
  connectionsPerAddress: setting(
    'MARINA_CONNECTIONS_PER_ADDRESS',
    "how many connections one address may have open at the partners' ports; four times as many when good keys come from it, and no such limit for a trusted proxy",
    '500',
    wholeNumber(10, 10_000),
  ),
  secretKey: setting(
    'MARINA_SECRET_KEY',
    'the secret behind cursors, digests, API keys and encrypted values: the same on every replica, for ever',
    undefined,
    reading('64 hex characters', (value) => Buffer.from(hex64.read(value), 'hex')),
  ),
  operators: setting(
    'MARINA_OPERATOR_TOKENS',
    'operators and their tokens',
    '',
    reading('name:token pairs separated by commas, with tokens of at least 24 characters', parseOperators),
  ),
  logLevel: setting(
    'MARINA_LOG_LEVEL',
    'how much is logged',
    'info',
    oneOf('trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'),
  ),
  logClientAddress: setting(
    'MARINA_LOG_CLIENT_ADDRESS',
    "how much of clients' addresses is logged: all, the first 24 bits (IPv6: 48), or nothing",
    'full',
    oneOf(...addressDetails),
  ),
  otlpUrl: setting(
    'MARINA_OTLP_URL',
    'the URL of an OpenTelemetry collector (OTLP over HTTP) without /v1/traces; none: no spans are made',
    '',
    orNone(httpUrl),
  ),
  tracePercent: setting(
    'MARINA_TRACE_PERCENT',
    'the share of traces begun here that is exported; a trace that comes in decides for itself',
    '100',
    wholeNumber(0, 100),
  ),
  submitTimeoutMs: setting(
    'MARINA_SUBMIT_TIMEOUT_MS',
    'how long sending an order may take, in milliseconds; the exchange must not take it later',
    '10000',
    wholeNumber(100, 60_000),
  ),
  readTimeoutMs: setting(
    'MARINA_READ_TIMEOUT_MS',
    'how long a read from the broker may take, in milliseconds',
    '5000',
    wholeNumber(100, 20_000),
  ),
  recordsTimeoutMs: setting(
    'MARINA_RECORDS_TIMEOUT_MS',
    "how long a partner's read of the broker's records may wait and take, in milliseconds",
    '20000',
    wholeNumber(100, 20_000),
  ),
  decoderWalls: setting(
    'MARINA_DECODER_WALLS',
    'isolation of the processes that decode images: what the machine offers, all or no start, or none',
    'auto',
    oneOf('auto', 'required', 'off'),
  ),
  clockSkewMs: setting(
    'MARINA_CLOCK_SKEW_MS',
    "how far the broker's clock may be from ours, in milliseconds; measured to 100 ms at best",
    '2000',
    wholeNumber(0, 60_000),
  ),
  drainMs: setting(
    'MARINA_DRAIN_MS',
    'how long a stopping gateway still serves requests, in milliseconds, so that load balancers notice',
    '5000',
    wholeNumber(0, 120_000),
  ),
  shutdownTimeoutMs: setting(
    'MARINA_SHUTDOWN_TIMEOUT_MS',
    'how long a stop waits for requests in progress, and again for background work, in milliseconds',
    '15000',
    wholeNumber(0, 120_000),
  ),
  webhookAuthorities: setting(
    'MARINA_WEBHOOK_CA_FILE',
    'further authorities that webhook endpoints may have certificates from; sandbox only',
    '',
    orNone(certificateFile()),
  ),
  webhookAllowLoopback: setting(
    'MARINA_WEBHOOK_ALLOW_LOOPBACK',
    "whether webhooks may be sent to this machine's own addresses; sandbox only",
    'false',
    yesOrNo(),
  ),
  crashPoint: setting(
    'MARINA_CRASH_POINT',
    'the point at which the process kills itself, for fault tests; sandbox only',
    '',
    orNone(reading('a point that lib/crash names', parseCrashPoint)),
  ),
  crashSignal: setting(
    'MARINA_CRASH_SIGNAL',
    'the signal with which it kills itself',
    'SIGKILL',
    oneOf('SIGKILL', 'SIGSTOP'),
  ),
};

export type Config = ValuesOf<typeof settings>;

/** Reads and checks all settings. Throws all problems at once. */
export function readConfig(variables: NodeJS.ProcessEnv): Config {
  const problems = unknownVariables(prefix, settings, variables);
  const config = readSettings(settings, variables, problems);
  const isLive = config.environment === 'live';
  const speaksTls = config.tlsCertificate !== undefined;
  const adminSpeaksTls = config.adminTlsCertificate !== undefined;
  const rules: readonly [isBroken: boolean, problem: string][] = [
    [isLive && config.simulatorAddress !== undefined, 'MARINA_SIMULATOR_ADDRESS must not be set in live'],
    [isLive && config.webhookAuthorities !== undefined, 'MARINA_WEBHOOK_CA_FILE must not be set in live'],
    [isLive && config.webhookAllowLoopback, 'MARINA_WEBHOOK_ALLOW_LOOPBACK must not be true in live'],
    [isLive && config.crashPoint !== undefined, 'MARINA_CRASH_POINT must not be set in live'],
    [
      isLive && !adminSpeaksTls && !isLoopback(config.adminHost),
      "MARINA_ADMIN_HOST must be a loopback address in live, or the operators' port must speak TLS: " +
        'set MARINA_ADMIN_TLS_CERT_FILE and MARINA_ADMIN_TLS_KEY_FILE',
    ],
    [speaksTls !== (config.tlsKey !== undefined), 'MARINA_TLS_CERT_FILE and MARINA_TLS_KEY_FILE must be set together'],
    [
      adminSpeaksTls !== (config.adminTlsKey !== undefined),
      'MARINA_ADMIN_TLS_CERT_FILE and MARINA_ADMIN_TLS_KEY_FILE must be set together',
    ],
    [
      config.adminTlsAuthorities !== undefined && !adminSpeaksTls,
      'MARINA_ADMIN_TLS_CLIENT_CA_FILE needs MARINA_ADMIN_TLS_CERT_FILE',
    ],
  ];
  problems.push(...rules.filter(([isBroken]) => isBroken).map(([, problem]) => problem));
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

/** Every setting with its default, range and meaning, as text. */
export function describeConfig(): string {
  return describeSettings(settings);
}

function pemPath(variable: string, meaning: string): Setting<string | undefined> {
  return setting(variable, meaning, '', orNone(text(/./, 'the path of a PEM file')));
}

function port(variable: string, meaning: string, fallback: string): Setting<number> {
  return setting(variable, meaning, fallback, wholeNumber(0, 65_535));
}

function parseRoles(value: string): readonly Role[] {
  const role = oneOf(...roles);
  return value.split(',').map((entry) => role.read(entry.trim()));
}

function parseCrashPoint(value: string): CrashPoint {
  if (!isCrashPoint(value)) throw new Error('must be a point that lib/crash names');
  return value;
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
