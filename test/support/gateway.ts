import assert from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import type { ChannelCredentials } from '@grpc/grpc-js';
import { type App, startApp } from '../../src/gateway/app/app.ts';
import { readConfig } from '../../src/gateway/app/config.ts';
import type { PartnerLimits } from '../../src/gateway/edge/auth/caller.ts';
import { type Database, openDatabase } from '../../src/gateway/store/database.ts';
import { migrate } from '../../src/gateway/store/migrate.ts';
import { AccountStatus } from '../../src/gen/marina/broker/v1/orders_pb.ts';
import { Feature, Scope } from '../../src/gen/marina/options/v1/options_pb.ts';
import { Controls } from '../../src/gen/marina/simulator/v1/controls_pb.ts';
import { createGrpcClient, type GrpcClient } from '../../src/kit/grpc-client.ts';
import { createLogger } from '../../src/kit/log.ts';
import { createPartner, linkAccount } from '../../src/sandbox/provision.ts';
import { type SimulatorConfig, startSimulator } from '../../src/simulator/simulator.ts';
import { assertDescribed } from './described.ts';
import { eventually } from './eventually.ts';
import { keptDatabase } from './kept-databases.ts';
import { createKey, secretKey } from './keys.ts';
import { creditWallet } from './ledger.ts';
import { patient } from './patience.ts';
import { createTestDatabase, type TestDatabase, testServers } from './servers.ts';
import { checkWorld, partsAtWork, type WorldPart } from './world.ts';

export const operatorToken = 'test-operator-token-0123456789';

/** A partner of a test, with a key that may do everything and accounts that can trade. */
export interface TestPartner {
  readonly id: string;
  readonly key: string;
  readonly keyId: string;
  readonly accounts: readonly string[];
  readonly account: string;
}

/** In which ways a partner differs from others. */
export interface PartnerOptions {
  readonly limits?: Partial<PartnerLimits>;
  readonly accounts?: number;
  readonly scopes?: readonly Scope[];
  readonly features?: readonly Feature[];
  readonly addresses?: readonly string[];
}

/** An answer of the REST server. */
export interface RestAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: a test looks into answers freely, and fails on what is not there.
  readonly body: any;
}

export interface RestRequest {
  readonly key?: string;
  readonly idempotencyKey?: string;
  readonly body?: unknown;
  readonly headers?: Record<string, string>;
}

/** A whole gateway of a test's own: database, streams, simulator; the real thing throughout. */
export interface TestGateway {
  readonly app: App;
  readonly database: Database;
  readonly databaseUrl: string;
  readonly controls: GrpcClient<typeof Controls>;
  readonly simulatorPort: number;
  readonly natsPrefix: string;
  readonly variables: Record<string, string>;
  /** Everything the gateway has logged. */
  readonly logged: readonly string[];
  newPartner(options?: PartnerOptions): Promise<TestPartner>;
  rest(method: string, path: string, request?: RestRequest): Promise<RestAnswer>;
  /** Places an order with a fresh key unless one is given. */
  place(partner: TestPartner, order: Record<string, unknown>, idempotencyKey?: string): Promise<RestAnswer>;
  /** Puts money into a partner's wallet. */
  fund(partner: TestPartner, amountKobo: bigint): Promise<void>;
  /** Allocates with a fresh key unless one is given. */
  allocate(partner: TestPartner, allocation: Record<string, unknown>, idempotencyKey?: string): Promise<RestAnswer>;
  /** Takes 1,000 kobo to the wallet, unless the withdrawal says otherwise. */
  withdraw(partner: TestPartner, withdrawal: Record<string, unknown>, idempotencyKey?: string): Promise<RestAnswer>;
  /** Ends the simulator, and waits until the gateway knows that its broker is away. */
  stopBroker(): Promise<void>;
  /** Checks the world (`checkWorld`), but for the parts that it leaves in disorder on purpose, and ends everything. */
  stop(left?: readonly WorldPart[]): Promise<void>;
}

const allFeatures = [Feature.ACCOUNT_OPENING, Feature.WITHDRAWALS];
const allScopes = [Scope.READ, Scope.TRADE, Scope.APPLY, Scope.FUND, Scope.KEYS, Scope.WITHDRAW];
export const callTimeout = { timeoutMs: patient(10_000) };
/** The database's error number for a statement that its account has no right to. */
const accessDenied = 1142;

/** Makes a partner with a key and accounts that are active at the simulator. */
export async function makePartner(
  { database, controls }: Pick<TestGateway, 'database' | 'controls'>,
  { limits, accounts = 1, scopes = allScopes, features = allFeatures, addresses }: PartnerOptions = {},
): Promise<TestPartner> {
  const roomy = { requestsPerSecond: 100_000, requestsBurst: 100_000, requestsUnderWay: 1_000 };
  const id = await createPartner(database, { name: 'Test Partner', limits: { ...roomy, ...limits }, features });
  const { id: keyId, key } = await createKey(database, { partnerId: id, scopes, addresses });
  const codes = Array.from({ length: accounts }, () => `T${randomBytes(5).toString('hex').toUpperCase()}`);
  for (const account of codes) {
    await linkAccount(database, { partnerId: id, account });
    await controls.setAccount({ account, status: AccountStatus.ACTIVE }, callTimeout);
  }
  return { id, key, keyId, accounts: codes, account: codes[0] ?? '' };
}

/**
 * Calls a gateway over REST. Every answer must be as the OpenAPI document describes it. With a bound it fails when there is no
 * answer by then.
 */
export function restCaller({ restPort }: Pick<App, 'restPort'>, timeoutMs?: number): TestGateway['rest'] {
  return async (method, path, request = {}) => {
    const headers: Record<string, string> = { ...request.headers };
    if (request.key !== undefined) headers.authorization = `Bearer ${request.key}`;
    if (request.idempotencyKey !== undefined) headers['idempotency-key'] = request.idempotencyKey;
    if (request.body !== undefined) headers['content-type'] ??= 'application/json';
    const isAsIs = typeof request.body === 'string' || Buffer.isBuffer(request.body);
    const body = isAsIs ? (request.body as string | Buffer) : JSON.stringify(request.body);
    const signal = timeoutMs === undefined ? undefined : AbortSignal.timeout(timeoutMs);
    const response = await fetch(`http://127.0.0.1:${restPort}${path}`, { method, headers, body, signal });
    const text = await response.text();
    const header = (name: string) => response.headers.get(name) ?? undefined;
    assertDescribed({ method, path, status: response.status, header, text });
    return {
      status: response.status,
      headers: response.headers,
      text,
      body: text === '' ? undefined : JSON.parse(text),
    };
  };
}

/** The surroundings in which a test's gateway differs from others. */
export interface GatewaySurroundings {
  /** The server of its database; absent: that of the test run. */
  readonly databaseServerUrl?: string;
  /** The simulator's certificates, and how its controls are called then. */
  readonly simulatorTls?: SimulatorConfig['tls'];
  readonly controlsCredentials?: ChannelCredentials;
  /** The funds of the simulator's accounts at the start; absent: whether they can pay is not checked. */
  readonly funds?: SimulatorConfig['funds'];
  /** Run before the gateway starts, with its settings, which it may change. */
  readonly prepare?: (variables: Record<string, string>, database: TestDatabase) => Promise<void>;
}

async function migratedDatabase(serverUrl: string): Promise<TestDatabase> {
  const database = await createTestDatabase(serverUrl);
  await migrate(database.url);
  return database;
}

/** Starts a gateway. Times are short, so that what waits for them is tested in seconds. */
export async function startGateway(
  variables: Record<string, string> = {},
  { databaseServerUrl, simulatorTls, controlsCredentials, funds, prepare }: GatewaySurroundings = {},
): Promise<TestGateway> {
  const { natsUrl } = await testServers();
  const [gatewayDatabase, simulatorDatabase] = await Promise.all([
    databaseServerUrl === undefined ? keptDatabase('gateway') : migratedDatabase(databaseServerUrl),
    keptDatabase('simulator'),
  ]);
  const simulator = await startSimulator({
    databaseUrl: simulatorDatabase.url,
    host: '127.0.0.1',
    port: 0,
    seed: 1,
    defaultFillDelayMs: { min: 1, max: 5 },
    funds,
    ...(simulatorTls === undefined ? {} : { tls: simulatorTls }),
  });
  const natsPrefix = `T${randomBytes(6).toString('hex')}-`;
  const all: Record<string, string> = {
    MARINA_ENVIRONMENT: 'sandbox',
    // With the rights an operator gives it, so that every test shows that they are enough.
    MARINA_DATABASE_URL: await gatewayDatabase.grantGateway(),
    MARINA_NATS_URL: natsUrl,
    MARINA_NATS_PREFIX: natsPrefix,
    MARINA_BROKER_ADDRESS: `127.0.0.1:${simulator.port}`,
    MARINA_SIMULATOR_ADDRESS: `127.0.0.1:${simulator.port}`,
    MARINA_REST_PORT: '0',
    MARINA_GRPC_PORT: '0',
    MARINA_ADMIN_PORT: '0',
    MARINA_OPS_PORT: '0',
    MARINA_SECRET_KEY: secretKey,
    MARINA_OPERATOR_TOKENS: `tester:${operatorToken}`,
    MARINA_LOG_LEVEL: 'info',
    MARINA_SUBMIT_TIMEOUT_MS: String(patient(2_000)),
    MARINA_READ_TIMEOUT_MS: String(patient(1_000)),
    MARINA_CLOCK_SKEW_MS: '200',
    MARINA_DRAIN_MS: '0',
    MARINA_SHUTDOWN_TIMEOUT_MS: '5000',
    ...variables,
  };
  await prepare?.(all, gatewayDatabase);
  const config = readConfig(all);
  const logged: string[] = [];
  const log = createLogger({
    name: 'marina',
    level: config.logLevel,
    destination: { write: (line) => void logged.push(line) },
  });
  const started = await startApp(config, log);
  let isStopped = false;
  const app: App = {
    ...started,
    stop: () => {
      isStopped = true;
      return started.stop();
    },
  };
  const database = await openDatabase({ url: gatewayDatabase.url, environment: config.environment, poolSize: 4 });
  const controls = createGrpcClient(Controls, `127.0.0.1:${simulator.port}`, {}, controlsCredentials);
  const rest = restCaller(app);
  let isBrokerStopped = false;

  return {
    app,
    database,
    databaseUrl: gatewayDatabase.url,
    controls,
    simulatorPort: simulator.port,
    natsPrefix,
    variables: all,
    logged,
    rest,
    newPartner: (options) => makePartner({ database, controls }, options),
    place: (partner, order, idempotencyKey = randomUUID()) =>
      rest('POST', '/v1/orders', {
        key: partner.key,
        idempotencyKey,
        body: { account: partner.account, side: 'buy', quantity: 100, type: 'limit', price_kobo: 1000, ...order },
      }),
    fund: (partner, amountKobo) =>
      creditWallet(database, { partnerId: partner.id, amountKobo, bankReference: randomUUID() }),
    withdraw: (partner, withdrawal, idempotencyKey = randomUUID()) =>
      rest('POST', '/v1/withdrawals', {
        key: partner.key,
        idempotencyKey,
        body: { account: partner.account, amount_kobo: 1_000, destination: 'wallet', ...withdrawal },
      }),
    allocate: (partner, allocation, idempotencyKey = randomUUID()) =>
      rest('POST', '/v1/allocations', {
        key: partner.key,
        idempotencyKey,
        body: { account: partner.account, amount_kobo: 1_000, ...allocation },
      }),
    async stopBroker() {
      isBrokerStopped = true;
      await simulator.close();
      await eventually(async () => {
        const ready = await fetch(`http://127.0.0.1:${app.opsPort}/readyz`);
        assert.match(await ready.text(), /the broker cannot be reached/);
      });
    },
    async stop(left = []) {
      const world = { database, controls, gateways: [app] };
      const unable = isStopped ? partsAtWork : isBrokerStopped ? (['exchange'] as const) : [];
      try {
        await checkWorld(world, [...left, ...unable]);
      } finally {
        await end();
      }
    },
  };

  async function end(): Promise<void> {
    await app.stop();
    const denied = logged.filter((line) => line.includes(`"errno":${accessDenied}`));
    controls.close();
    await simulator.close();
    await database.close();
    await Promise.all([gatewayDatabase.drop(), simulatorDatabase.drop()]);
    assert.deepEqual(denied, [], 'a statement needs a right that docs/deploy/rights.sql does not give');
  }
}
