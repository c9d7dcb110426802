import assert from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { type Database, openDatabase } from '../../src/gateway/store/database.ts';
import { migrate } from '../../src/gateway/store/migrate.ts';
import { statement } from '../../src/gateway/store/statement.ts';
import { AccountStatus } from '../../src/gen/marina/broker/v1/orders_pb.ts';
import { Feature, Scope } from '../../src/gen/marina/options/v1/options_pb.ts';
import { Controls } from '../../src/gen/marina/simulator/v1/controls_pb.ts';
import { createGrpcClient, type GrpcClient } from '../../src/kit/grpc-client.ts';
import { type KeptProcess, type ProcessExit, sharedKeeper } from '../../src/sandbox/keeper.ts';
import { gatewayEntry, simulatorEntry, withoutOurs } from '../../src/sandbox/processes.ts';
import { createPartner, linkAccount } from '../../src/sandbox/provision.ts';
import { assertDescribed } from './described.ts';
import { eventually, ready } from './eventually.ts';
import { temporaryFolder } from './folders.ts';
import { operatorToken } from './gateway.ts';
import { createKey, secretKey } from './keys.ts';
import { creditWallet } from './ledger.ts';
import { patient } from './patience.ts';
import { createTestDatabase, testServers } from './servers.ts';
import { checkWorld, partsAtWork, type WorldPart } from './world.ts';

export const callTimeout = { timeoutMs: patient(10_000) };

/** A partner with one account. */
export interface Partner {
  readonly id: string;
  readonly key: string;
  readonly account: string;
}

/** The result of a request: an answer, or none because the process died under it. */
export interface Answer {
  readonly status: number | undefined;
  // biome-ignore lint/suspicious/noExplicitAny: a test looks into answers freely, and fails on what is not there.
  readonly body: any;
  readonly headers: Headers | undefined;
}

/** A line of a gateway's log. */
export interface LogLine {
  readonly level: string;
  readonly msg: string;
  readonly [name: string]: unknown;
}

/** Whether a line is of those there are for every request, and not of those that tell of trouble. */
export function isTraffic({ msg }: LogLine): boolean {
  return msg === 'request' || msg === 'upstream call';
}

/** Where a cluster's parts are, when not on the servers of the test run. */
export interface ClusterOptions {
  /** The server of the gateways' database. */
  readonly databaseServerUrl?: string;
  /** Further servers of the same database, as its URL names them with the first one. */
  readonly databaseHosts?: string;
  readonly natsUrl?: string;
  /** Further settings of the simulator. */
  readonly simulator?: Readonly<Record<string, string>>;
  /** Makes the gateways' tables, instead of this version's migrations. */
  readonly migrate?: (url: string) => Promise<void>;
}

/** One gateway process. */
export interface GatewayProcess {
  readonly pid: number;
  readonly restPort: number;
  readonly grpcPort: number;
  readonly opsPort: number;
  readonly adminPort: number;
  readonly exited: Promise<ProcessExit>;
  /** The file it logs to. */
  readonly logPath: string;
  /** The lines that it has logged so far. */
  logged(): LogLine[];
  request(
    method: string,
    path: string,
    options: { key: string; idempotencyKey?: string; body?: unknown },
  ): Promise<Answer>;
  place(partner: Partner, order: Record<string, unknown>, idempotencyKey?: string): Promise<Answer>;
  allocate(partner: Partner, allocation: Record<string, unknown>, idempotencyKey?: string): Promise<Answer>;
  /** Takes 1,000 kobo to the wallet, unless the withdrawal says otherwise. */
  withdraw(partner: Partner, withdrawal: Record<string, unknown>, idempotencyKey?: string): Promise<Answer>;
  kill(): Promise<ProcessExit>;
  stop(): Promise<ProcessExit>;
  freeze(): void;
  thaw(): void;
}

/** Gateways and a simulator as processes of their own, on fresh databases. */
export class Cluster {
  readonly #stopped: (() => Promise<unknown>)[] = [];
  /** The gateways of this version that run. */
  readonly #running = new Set<{ readonly opsPort: number }>();

  private constructor(
    readonly database: Database,
    readonly controls: GrpcClient<typeof Controls>,
    readonly databaseUrl: string,
    readonly simulatorPid: number,
    /** The settings that gateways start with. */
    readonly gatewayVariables: Record<string, string>,
    /** Where its processes write their logs. */
    readonly folder: string,
    /** Makes a further account for gateways, with their rights, and returns its URL. */
    readonly grantGateway: (user: string) => Promise<string>,
    /** Ends the simulator as a crash does, and starts it again on the same port, with what it had stored. */
    readonly restartSimulator: (afterMs?: number) => Promise<void>,
  ) {}

  static async start(variables: Record<string, string> = {}, options: ClusterOptions = {}): Promise<Cluster> {
    const natsUrl = options.natsUrl ?? (await testServers()).natsUrl;
    const folder = temporaryFolder();
    sharedKeeper().removeAtEnd(folder);
    const [gatewayDatabase, simulatorDatabase] = await Promise.all([
      createTestDatabase(options.databaseServerUrl),
      createTestDatabase(),
    ]);
    await (options.migrate ?? migrate)(gatewayDatabase.url);
    const { databaseHosts } = options;
    const withHosts = (url: string) =>
      databaseHosts === undefined ? url : url.replace(new URL(url).host, databaseHosts);
    const simulatorVariables = {
      MARINA_SIMULATOR_DATABASE_URL: simulatorDatabase.url,
      MARINA_SIMULATOR_HOST: '127.0.0.1',
      MARINA_SIMULATOR_PORT: '0',
      MARINA_SIMULATOR_SEED: '1',
      MARINA_SIMULATOR_FILL_DELAY_MS: '5',
      // Whether accounts can pay is tested elsewhere.
      MARINA_SIMULATOR_FUNDS: 'unchecked',
      ...options.simulator,
    };
    const { process: first, ports } = await startEntry(
      simulatorEntry,
      join(folder, 'simulator.log'),
      simulatorVariables,
    );
    let simulator = first;
    const address = `127.0.0.1:${ports.port}`;
    const restartSimulator = async (afterMs = 0) => {
      await simulator.kill();
      await delay(afterMs);
      const log = join(folder, `simulator-${randomUUID().slice(0, 8)}.log`);
      const variables = { ...simulatorVariables, MARINA_SIMULATOR_PORT: String(ports.port) };
      ({ process: simulator } = await startEntry(simulatorEntry, log, variables));
    };
    const database = await openDatabase({
      url: withHosts(gatewayDatabase.url),
      environment: 'sandbox',
      poolSize: 4,
    });
    const cluster = new Cluster(
      database,
      createGrpcClient(Controls, address),
      gatewayDatabase.url,
      simulator.pid,
      {
        MARINA_ENVIRONMENT: 'sandbox',
        MARINA_DATABASE_URL: withHosts(await gatewayDatabase.grantGateway()),
        MARINA_NATS_URL: natsUrl,
        MARINA_NATS_PREFIX: `F${randomBytes(6).toString('hex')}-`,
        MARINA_BROKER_ADDRESS: address,
        MARINA_SIMULATOR_ADDRESS: address,
        MARINA_REST_PORT: '0',
        MARINA_GRPC_PORT: '0',
        MARINA_ADMIN_PORT: '0',
        MARINA_OPS_PORT: '0',
        MARINA_SECRET_KEY: secretKey,
        MARINA_OPERATOR_TOKENS: `tester:${operatorToken}`,
        MARINA_LOG_LEVEL: 'info',
        MARINA_SUBMIT_TIMEOUT_MS: '1000',
        MARINA_READ_TIMEOUT_MS: '1000',
        MARINA_CLOCK_SKEW_MS: '200',
        MARINA_DRAIN_MS: '0',
        MARINA_SHUTDOWN_TIMEOUT_MS: '5000',
        ...variables,
      },
      folder,
      gatewayDatabase.grantGateway,
      restartSimulator,
    );
    // As a gateway does.
    const polling = setInterval(() => void (database.hosts.areMany && database.hosts.poll()), 1_000).unref();
    cluster.#stopped.push(
      async () => clearInterval(polling),
      () => simulator.stop(),
      () => database.close(),
      () => gatewayDatabase.drop().catch(() => undefined), // Its server may have been stopped.
      () => simulatorDatabase.drop(),
    );
    return cluster;
  }

  /** Starts a gateway of this version, or of another whose built `main.js` is given. It logs to a new file unless told where. */
  async startGateway(
    variables: Record<string, string> = {},
    otherMain?: string,
    log = join(this.folder, `gateway-${randomUUID().slice(0, 8)}.log`),
  ): Promise<GatewayProcess> {
    const all = { ...this.gatewayVariables, ...variables };
    const { process: kept, ports } = await startEntry(otherMain ?? gatewayEntry, log, all);
    this.#stopped.unshift(() => kept.stop());
    const running = { opsPort: ports.opsPort ?? 0 };
    if (otherMain === undefined) {
      this.#running.add(running);
      void kept.exited.then(() => this.#running.delete(running));
    }
    const restPort = ports.restPort ?? 0;
    const request: GatewayProcess['request'] = async (method, path, { key, idempotencyKey, body }) => {
      const headers: Record<string, string> = { authorization: `Bearer ${key}` };
      if (idempotencyKey !== undefined) headers['idempotency-key'] = idempotencyKey;
      if (body !== undefined) headers['content-type'] = 'application/json';
      let answer: { response: Response; text: string };
      try {
        const response = await fetch(`http://127.0.0.1:${restPort}${path}`, {
          method,
          headers,
          body: body === undefined ? undefined : JSON.stringify(body),
          signal: AbortSignal.timeout(patient(20_000)),
        });
        answer = { response, text: await response.text() };
      } catch {
        return { status: undefined, body: undefined, headers: undefined };
      }
      const { headers: answered, status } = answer.response;
      const { text } = answer;
      const header = (name: string) => answered.get(name) ?? undefined;
      // This version's description says nothing about another's answers.
      if (otherMain === undefined) assertDescribed({ method, path, status, header, text });
      return { status, body: JSON.parse(text), headers: answered };
    };
    return {
      pid: kept.pid,
      restPort,
      grpcPort: ports.grpcPort ?? 0,
      opsPort: ports.opsPort ?? 0,
      adminPort: ports.adminPort ?? 0,
      exited: kept.exited,
      logPath: log,
      logged: () => readLog(log),
      request,
      place: (partner, order, idempotencyKey = randomUUID()) =>
        request('POST', '/v1/orders', { key: partner.key, idempotencyKey, body: newOrder(partner, order) }),
      allocate: (partner, allocation, idempotencyKey = randomUUID()) =>
        request('POST', '/v1/allocations', {
          key: partner.key,
          idempotencyKey,
          body: { account: partner.account, amount_kobo: 1_000, ...allocation },
        }),
      withdraw: (partner, withdrawal, idempotencyKey = randomUUID()) =>
        request('POST', '/v1/withdrawals', {
          key: partner.key,
          idempotencyKey,
          body: { account: partner.account, amount_kobo: 1_000, destination: 'wallet', ...withdrawal },
        }),
      kill: () => kept.kill(),
      stop: () => kept.stop(),
      freeze: () => process.kill(kept.pid, 'SIGSTOP'),
      thaw: () => signalIfThere(kept.pid, 'SIGCONT'),
    };
  }

  /** Waits until a gateway holds every lease that anybody holds. */
  async holdsLeases({ pid }: GatewayProcess): Promise<void> {
    await eventually(async () => {
      const rows = await this.database.read(statement('SELECT name, holder FROM leases WHERE expires_at > NOW(3)'));
      const others = rows.filter(({ holder }) => !String(holder).includes(`-${pid}-`));
      assert.deepEqual(others, [], 'somebody else holds leases');
      assert.ok(rows.length > 0, 'nobody holds a lease');
    });
  }

  /** Makes a partner; without a rate it may ask as often as it likes. */
  async newPartner({ requestsPerSecond = 1_000_000 } = {}): Promise<Partner> {
    const limits = {
      requestsPerSecond,
      requestsBurst: requestsPerSecond,
      requestsUnderWay: 1_000,
      ordersKoboPerDay: 10n ** 17n,
      allocationsKoboPerDay: 10n ** 17n,
    };
    const id = await createPartner(this.database, {
      name: 'Fault Partner',
      limits,
      features: [Feature.ACCOUNT_OPENING, Feature.WITHDRAWALS],
    });
    const scopes = [Scope.READ, Scope.TRADE, Scope.APPLY, Scope.FUND, Scope.WITHDRAW];
    const { key } = await createKey(this.database, { partnerId: id, scopes });
    const account = `F${randomBytes(6).toString('hex').toUpperCase()}`;
    await linkAccount(this.database, { partnerId: id, account });
    await this.controls.setAccount({ account, status: AccountStatus.ACTIVE }, callTimeout);
    return { id, key, account };
  }

  /** Puts money into a partner's wallet. */
  async fund({ id: partnerId }: Partner, amountKobo: bigint, bankReference: string = randomUUID()): Promise<void> {
    await creditWallet(this.database, { partnerId, amountKobo, bankReference });
  }

  /**
   * Checks the world (`checkWorld`), but for the parts that the test leaves in disorder on purpose, and ends everything.
   * When no gateway runs any more, what only a gateway at work brings in order is left too.
   */
  async stop(left: readonly WorldPart[] = []): Promise<void> {
    try {
      const gateways = [...this.#running];
      const unable = gateways.length === 0 ? partsAtWork : [];
      await checkWorld({ database: this.database, controls: this.controls, gateways }, [...left, ...unable]);
    } finally {
      this.controls.close();
      for (const stop of this.#stopped) await stop();
    }
  }
}

function readLog(path: string): LogLine[] {
  return readFileSync(path, 'utf8')
    .split('\n')
    .filter((line) => line.startsWith('{') && line.endsWith('}'))
    .map((line) => JSON.parse(line) as LogLine);
}

/** A process that was frozen may have been killed since. */
function signalIfThere(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

function newOrder(partner: Partner, order: Record<string, unknown>) {
  return { account: partner.account, side: 'buy', quantity: 100, type: 'limit', price_kobo: 1000, ...order };
}

/** The gateway runs as it is deployed where it was built, which starts in half the time; else from its source. */
export function running(entry: string): string[] {
  if (entry.endsWith('.js')) return [entry];
  const build = process.env.MARINA_TEST_BUILD;
  if (build === undefined || entry !== gatewayEntry) return ['--import', 'tsx', entry];
  return [join(build, 'src/main.js')];
}

/**
 * The settings of docs/deploy/marina.service for the C library: to give the memory of files back when they are gone.
 */
const allocator = {
  MALLOC_ARENA_MAX: '1',
  MALLOC_MMAP_THRESHOLD_: '131072',
  MALLOC_TRIM_THRESHOLD_: '131072',
};

/** A process that has ended before it was ready. */
export class EndedEarly extends Error {
  constructor(
    what: string,
    readonly exit: ProcessExit | undefined,
  ) {
    super(`${what} ended with ${exit?.signal ?? exit?.code} before it was ready`);
  }
}

async function startEntry(entry: string, logPath: string, variables: Record<string, string>) {
  const started: KeptProcess = await sharedKeeper().start({
    name: entry.includes('simulator') ? 'simulator' : 'gateway',
    command: process.execPath,
    args: running(entry),
    env: { ...withoutOurs(process.env), ...allocator, ...variables },
    logPath,
    ipc: true,
  });
  let ports: Record<string, number> | undefined;
  started.onMessage((message) => {
    const said = message as { type?: string } & Record<string, number>;
    if (said.type === 'ready') ports = said;
  });
  let exit: ProcessExit | undefined;
  void started.exited.then((ended) => {
    exit = ended;
  });
  const itsPorts = await ready(() => {
    if (ports === undefined && exit === undefined) {
      throw new Error(`${entry} did not become ready; its log is ${logPath}`);
    }
    return ports;
  }, 60_000);
  if (itsPorts === undefined) throw new EndedEarly(`${entry} (its log is ${logPath})`, exit);
  return { process: started, ports: itsPorts };
}
