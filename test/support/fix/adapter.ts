import { join } from 'node:path';
import { fixMigrations } from '../../../migrations/fix/index.ts';
import { type FixAdapter, startFixAdapter } from '../../../src/fix-adapter/adapter.ts';
import { readFixConfig } from '../../../src/fix-adapter/config.ts';
import { connect } from '../../../src/gateway/store/data-source.ts';
import { Database } from '../../../src/gateway/store/database.ts';
import { migrate } from '../../../src/gateway/store/migrate.ts';
import { Orders, OrderType, Side, TimeInForce } from '../../../src/gen/marina/broker/v1/orders_pb.ts';
import { Submissions } from '../../../src/gen/marina/broker/v1/submissions_pb.ts';
import { createGrpcClient, type GrpcClient } from '../../../src/kit/grpc-client.ts';
import { createLogger } from '../../../src/kit/log.ts';
import { sharedKeeper } from '../../../src/sandbox/keeper.ts';
import { gatewayEntry, withoutOurs } from '../../../src/sandbox/processes.ts';
import { running } from '../cluster.ts';
import { ready } from '../eventually.ts';
import { temporaryFolder } from '../folders.ts';
import { createTestDatabase, type TestDatabase } from '../servers.ts';

/** A database of an adapter, migrated, with the rights that an operator gives it, so that tests show that they are enough. */
export async function createFixDatabase(): Promise<TestDatabase & { readonly ownerUrl: string }> {
  const database = await createTestDatabase();
  await migrate(database.url, fixMigrations);
  return { ...database, url: await database.grantFix(), ownerUrl: database.url };
}

/** The same, opened with these rights. */
export async function openFixDatabase(poolSize: number) {
  const made = await createFixDatabase();
  const database = new Database(await connect({ url: made.url, poolSize }), 'live', poolSize);
  const close = async () => {
    await database.close();
    await made.drop();
  };
  return { made, database, close };
}

/** The settings of every test's adapter. */
const adapterVariables = {
  MARINA_FIX_SENDER_COMP_ID: 'MARINA',
  MARINA_FIX_TARGET_COMP_ID: 'EXCHANGE',
  MARINA_FIX_SESSION_DAYS: 'mon-sun',
  MARINA_FIX_PORT: '0',
  MARINA_FIX_OPS_PORT: '0',
  MARINA_FIX_MASS_STATUS: 'false',
  MARINA_FIX_ABSENCE_PROOF_MS: '10000',
  MARINA_FIX_BACK_OFFICE_ADDRESS: '127.0.0.1:1',
};

/** An adapter in this process, and clients of it. */
export class TestAdapter {
  readonly logged: string[] = [];
  adapter!: FixAdapter;
  orders!: GrpcClient<typeof Orders>;
  submissions!: GrpcClient<typeof Submissions>;
  port = 0;

  private constructor(
    private readonly variables: NodeJS.ProcessEnv,
    private readonly now: () => number,
  ) {}

  static async start(variables: NodeJS.ProcessEnv, now: () => number = Date.now): Promise<TestAdapter> {
    const made = new TestAdapter({ ...adapterVariables, ...variables }, now);
    await made.start();
    return made;
  }

  async start(): Promise<void> {
    const log = createLogger({
      name: 'fix',
      level: 'debug',
      destination: { write: (line: string) => void this.logged.push(line) },
    });
    this.adapter = await startFixAdapter(readFixConfig(this.variables), log, this.now);
  }

  /** Waits until this one has the session, and makes its clients. */
  async active(): Promise<void> {
    this.port = await this.adapter.active;
    this.orders = createGrpcClient(Orders, `127.0.0.1:${this.port}`);
    this.submissions = createGrpcClient(Submissions, `127.0.0.1:${this.port}`);
  }

  async stop(): Promise<void> {
    this.orders?.close();
    this.submissions?.close();
    await this.adapter.stop();
  }
}

let made = 0;

/** A limit order that an exchange would take. */
export function order(more: object = {}) {
  made += 1;
  return {
    clientOrderId: `ord_${String(process.pid).padStart(10, '2')}${String(made).padStart(10, 'a')}`,
    account: 'NG-0000001',
    symbol: 'MTNN',
    side: Side.BUY,
    quantity: 100n,
    type: OrderType.LIMIT,
    timeInForce: TimeInForce.DAY,
    priceKobo: 25_050n,
    notAfter: { seconds: BigInt(Math.floor(Date.now() / 1_000) + 8), nanos: 0 },
    note: Buffer.from('a note'),
    ...more,
  };
}

export const soon = { timeoutMs: 10_000 };

/** An adapter in a process of its own. */
export async function startAdapterProcess(variables: Record<string, string>) {
  const kept = await sharedKeeper().start({
    name: 'fix',
    command: process.execPath,
    args: [...running(gatewayEntry), 'fix'],
    env: { ...withoutOurs(process.env), ...adapterVariables, ...variables },
    logPath: join(temporaryFolder(), 'fix.log'),
    ipc: true,
  });
  let port: number | undefined;
  kept.onMessage((message) => {
    const event = message as { type?: string; port?: number };
    if (event.type === 'active') port = event.port;
  });
  return {
    kept,
    /** Waits until it has the session, and makes its clients. */
    active: async () => {
      const found = await ready(() => {
        if (port === undefined) throw new Error(`the adapter is not active; its log is ${kept.logPath}`);
        return port;
      }, 30_000);
      return {
        port: found,
        orders: createGrpcClient(Orders, `127.0.0.1:${found}`),
        submissions: createGrpcClient(Submissions, `127.0.0.1:${found}`),
      };
    },
  };
}
