import { addressDetails } from '../../kit/addresses.ts';
import { parseKeyRing } from '../../kit/key-ring.ts';
import { linkFileSettings, linkSettings } from '../../kit/link-settings.ts';
import { parseOperatorTokens } from '../../kit/operator-tokens.ts';
import {
  certificateFile,
  changingSecret,
  oneOf,
  orNone,
  pemPath,
  reading,
  renamed,
  setting,
  text,
  wholeNumber,
  yesOrNo,
} from '../../kit/settings.ts';
import {
  address,
  contact,
  hostPort,
  httpUrl,
  linkNames,
  parseAddresses,
  parseConsumers,
  parseDatabaseUrl,
  parseFourEyesAmount,
  parseHeaders,
  parseLinks,
  parseNatsUrl,
  parseOtlpUrl,
  parseReplicas,
  parseRoles,
  parseTimeOfDay,
  port,
  roles,
} from './config-forms.ts';

/** All settings, in the order of `make config`. */
export const settings = {
  environment: setting('MARINA_ENVIRONMENT', 'which environment this gateway is', 'sandbox', oneOf('sandbox', 'live')),
  roles: setting(
    'MARINA_ROLES',
    'what this process does: serve partners, work in the background, deliver webhooks',
    roles.join(','),
    reading(`one or more of ${roles.join(', ')}, separated by commas`, parseRoles),
  ),
  databaseUrl: setting(
    'MARINA_DATABASE_URL',
    'the database, as mysql://user:password@host:port/name; of a cluster each host:port, separated by commas',
    undefined,
    changingSecret(reading('a mysql:// URL', parseDatabaseUrl)),
  ),
  databasePool: setting(
    'MARINA_DATABASE_POOL',
    'how many database connections to keep, and two more for transactions that partners share',
    '16',
    wholeNumber(2, 200),
  ),
  natsUrl: setting(
    'MARINA_NATS_URL',
    'the NATS servers, as nats://user:password@host:port or nats://token@host:port',
    undefined,
    changingSecret(reading('server URLs or addresses, separated by commas', parseNatsUrl)),
  ),
  natsCredentials: setting(
    'MARINA_NATS_CREDENTIALS_FILE',
    'the file of credentials (.creds: a JWT and its seed) with which the gateway logs in at NATS',
    '',
    orNone(text(/./, 'the path of a file')),
  ),
  natsNkey: setting(
    'MARINA_NATS_NKEY_FILE',
    'the file with the seed of the nkey with which the gateway logs in at NATS',
    '',
    orNone(text(/./, 'the path of a file')),
  ),
  natsPrefix: setting(
    'MARINA_NATS_PREFIX',
    'a prefix for the names of streams and subjects, for gateways that share one NATS',
    '',
    text(/^[A-Za-z0-9_-]{0,32}$/, 'at most 32 letters, digits, hyphens and underscores'),
  ),
  natsReplicas: setting(
    'MARINA_NATS_REPLICAS',
    'on how many servers of a NATS cluster events and counters of limits are kept; they are raised at a start, never lowered',
    '1',
    reading('1, 3 or 5', parseReplicas),
  ),
  natsConsumers: setting(
    'MARINA_NATS_CONSUMERS',
    'the durable consumers of events that the gateway makes in NATS for internal systems, and makes again when NATS has lost them',
    '',
    reading('at most 16 names, separated by commas', parseConsumers),
  ),
  brokerAddress: setting('MARINA_BROKER_ADDRESS', "the broker's gRPC service", undefined, hostPort),
  backOfficeAddress: setting(
    'MARINA_BACK_OFFICE_ADDRESS',
    'where the broker serves applications, allocations, withdrawals, accounts and reference data; by default at MARINA_BROKER_ADDRESS',
    '',
    orNone(hostPort),
  ),
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
  opsToken: setting(
    'MARINA_OPS_TOKEN',
    'the token that the operations port asks for before it shows metrics and reasons; none: anyone sees them',
    '',
    changingSecret(orNone(text(/^[!-~]{24,}$/, 'at least 24 characters without spaces'))),
  ),
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
  adminTlsRevoked: pemPath(
    'MARINA_ADMIN_TLS_CLIENT_CRL_FILE',
    'the revocation lists of these authorities; none: no certificate of theirs counts as revoked',
  ),
  opsTlsCertificate: pemPath('MARINA_OPS_TLS_CERT_FILE', 'the certificate of the operations port'),
  opsTlsKey: pemPath('MARINA_OPS_TLS_KEY_FILE', "the private key of the operations port's certificate"),
  opsTlsAuthorities: pemPath(
    'MARINA_OPS_TLS_CLIENT_CA_FILE',
    'the authorities of the certificates of those who see metrics and reasons; none: they need no certificate',
  ),
  opsTlsRevoked: pemPath(
    'MARINA_OPS_TLS_CLIENT_CRL_FILE',
    'the revocation lists of these authorities; none: no certificate of theirs counts as revoked',
  ),
  baseUrl: setting(
    'MARINA_BASE_URL',
    'the URL by which partners reach the REST port, for links; by default where it listens',
    '',
    orNone(httpUrl),
  ),
  publicGrpcAddress: setting(
    'MARINA_PUBLIC_GRPC_ADDRESS',
    "where partners reach the gRPC port, as the pages name it; by default at MARINA_BASE_URL's host",
    '',
    orNone(hostPort),
  ),
  support: setting(
    'MARINA_SUPPORT',
    'whom partners ask, as the pages and the OpenAPI document name it; none: the operator who gave them their keys',
    '',
    orNone(contact),
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
    'the secret behind cursors, digests, API keys and encrypted values, then former and next ones: the same on every replica',
    undefined,
    changingSecret(reading('64 hex characters, or up to 5 such keys in lines of their own', parseKeyRing)),
  ),
  operators: setting(
    'MARINA_OPERATOR_TOKENS',
    'operators and their tokens',
    '',
    changingSecret(
      reading(
        'name:token pairs, or lines of `operator-token`, separated by commas or line breaks',
        parseOperatorTokens,
      ),
    ),
  ),
  unsealedRows: setting(
    'MARINA_UNSEALED_ROWS',
    'whether API keys and wallets without a seal, which versions before seals wrote, are accepted, and sealed by ' +
      '`keys seal`; by default refused in live and accepted in a sandbox',
    '',
    orNone(oneOf('accepted', 'refused')),
  ),
  singleOperator: setting(
    'MARINA_SINGLE_OPERATOR',
    'whether an operator may approve his own proposals, and needs no second one for large credits and for rights, because there is only one',
    'false',
    yesOrNo(),
  ),
  fourEyesAboveKobo: setting(
    'MARINA_FOUR_EYES_ABOVE_KOBO',
    'the amount in kobo above which a credit needs a second operator, as each right to move money then does, or off; ' +
      'by default 1000000000 in live and off in a sandbox',
    '',
    orNone(reading('off, or a whole number from 0 to 1000000000000000', parseFourEyesAmount)),
  ),
  plaintextLinks: setting(
    'MARINA_PLAINTEXT_LINKS',
    'the links that may cross a network in plain text in live, because the network itself protects them',
    '',
    reading(`one or more of ${linkNames.join(', ')}, separated by commas`, parseLinks),
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
    orNone(reading(httpUrl.allowed, parseOtlpUrl)),
  ),
  otlpHeaders: setting(
    'MARINA_OTLP_HEADERS',
    'headers for the collector, such as its token',
    '',
    changingSecret(reading('name=value pairs, separated by commas or line breaks', parseHeaders)),
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
  decoderWalls: renamed(
    'MARINA_DECODER_WALLS',
    setting(
      'MARINA_DECODER_SANDBOX',
      'isolation of the processes that decode images: what the machine offers, all or no start, or none',
      'auto',
      oneOf('auto', 'required', 'off'),
    ),
  ),
  brokerShared: setting(
    'MARINA_BROKER_SHARED',
    "whether the broker's record has submissions of another installation, or of a destroyed key: what no key opens is passed over",
    'false',
    yesOrNo(),
  ),
  reconciliationTime: setting(
    'MARINA_RECONCILIATION_TIME',
    "when a day is compared with the broker's statement, in Lagos: after the broker has closed it",
    '18:30',
    reading('a time of day from 00:00 to 23:59', parseTimeOfDay),
  ),
  reconciliationMaxRecords: setting(
    'MARINA_RECONCILIATION_MAX_RECORDS',
    "the most records of a day's statement; a longer one is not compared",
    '5000000',
    wholeNumber(1_000, 100_000_000),
  ),
  clockSkewMs: setting(
    'MARINA_CLOCK_SKEW_MS',
    "how far the broker's clock may be from ours, in milliseconds; measured to 100 ms at best",
    '2000',
    wholeNumber(0, 60_000),
  ),
  bulkCancelsPerSecond: setting(
    'MARINA_BULK_CANCELS_PER_SECOND',
    "how many orders operators' jobs cancel in a second at most, so that the broker has room for partners' orders",
    '20',
    wholeNumber(1, 1_000),
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
};

/** The settings of the links' certificates, by link. */
export const links = {
  database: linkSettings('DATABASE', 'the database'),
  nats: linkSettings('NATS', 'NATS'),
  broker: linkSettings('BROKER', 'the broker'),
  otlp: linkFileSettings('OTLP', 'the collector'),
};
