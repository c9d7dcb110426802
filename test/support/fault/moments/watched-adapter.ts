import { status } from '@grpc/grpc-js';
import { connect } from '../../../../src/gateway/store/data-source.ts';
import { Database } from '../../../../src/gateway/store/database.ts';
import { statement } from '../../../../src/gateway/store/statement.ts';
import type { LookUpOrderResponse, Orders } from '../../../../src/gen/marina/broker/v1/orders_pb.ts';
import { codeOf, type GrpcClient } from '../../../../src/kit/grpc-client.ts';
import type { ProcessExit } from '../../../../src/sandbox/keeper.ts';
import { EndedEarly } from '../../cluster.ts';
import { eventually } from '../../eventually.ts';
import { createFixDatabase, order, soon, startAdapterProcess } from '../../fix/adapter.ts';
import { Exchange } from '../../fix/exchange.ts';
import { temporaryFolder } from '../../folders.ts';
import type { TestDatabase } from '../../servers.ts';
import type { Armed } from './inside/watch.ts';
import type { Watched } from './scenario.ts';
import { type Seen, WatchedProcess } from './watched-process.ts';

interface AdapterProcess {
  readonly pid: number;
  readonly exited: Promise<ProcessExit>;
  readonly logPath: string;
  readonly orders: GrpcClient<typeof Orders>;
  stop(): Promise<unknown>;
}

const settledMs = 40_000;
/** How many orders are tried until one is taken: one that was refused is not taken any more. */
const maxTries = 20;

/** A FIX adapter with an exchange, whose moments are watched. */
export class WatchedAdapter implements Watched {
  readonly #process: WatchedProcess<AdapterProcess>;

  private constructor(
    readonly exchange: Exchange,
    /** The adapter's database, with an owner's rights. */
    readonly database: Database,
    private readonly made: TestDatabase,
  ) {
    const fix = {
      MARINA_FIX_DATABASE_URL: made.url,
      MARINA_FIX_ADDRESS: `127.0.0.1:${exchange.port}`,
      MARINA_FIX_ABSENCE_PROOF_MS: '500',
    };
    this.#process = new WatchedProcess({
      folder: temporaryFolder(),
      start: (variables) => startAdapter({ ...fix, ...variables }),
      // Its lease would keep the next one waiting for as long as a process may be frozen, and this one is dead.
      bury: async () => void (await database.write(statement('UPDATE leases SET expires_at = NOW(3)'))),
    });
  }

  static async start(): Promise<WatchedAdapter> {
    const made = await createFixDatabase();
    const database = new Database(await connect({ url: made.ownerUrl, poolSize: 1 }), 'live', 1);
    return new WatchedAdapter(await Exchange.start(), database, made);
  }

  begin(armed?: Armed): Promise<void> {
    return this.#process.begin(armed);
  }

  get hasDied(): boolean {
    return this.#process.hasDied;
  }

  seen(): Promise<Seen> {
    return this.#process.seen();
  }

  async orders(): Promise<GrpcClient<typeof Orders>> {
    return (await this.#process.current()).orders;
  }

  /** Has an order taken, and returns its id. As a gateway does, it looks up an order whose outcome is unclear, and sends none again. */
  async place(): Promise<string> {
    for (let tries = 0; tries < maxTries; tries += 1) {
      const one = order({ notAfter: { seconds: BigInt(Math.floor(Date.now() / 1_000) + 3), nanos: 0 } });
      // Whether it was sent is what the lookup says.
      const failed = await (await this.orders()).submitOrder(one, soon).then(() => undefined, codeOf);
      if (failed === undefined) return one.clientOrderId;
      if (failed !== status.FAILED_PRECONDITION && (await this.lookUp(one.clientOrderId)).found)
        return one.clientOrderId;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    throw new Error('no order was taken');
  }

  /** An order's status, once it is certain. */
  lookUp(clientOrderId: string): Promise<LookUpOrderResponse> {
    return eventually(async () => (await this.orders()).lookUpOrder({ clientOrderId }, soon), settledMs);
  }

  async restart(): Promise<void> {
    for (const process of this.#process.release()) {
      process.orders.close();
      await process.stop();
    }
  }

  async stop(): Promise<void> {
    await this.restart();
    await this.exchange.close();
    await this.database.close();
    await this.made.drop();
  }
}

async function startAdapter(variables: Record<string, string>): Promise<AdapterProcess> {
  const { kept, active } = await startAdapterProcess(variables);
  const clients = active();
  clients.catch(() => {});
  const ended = await Promise.race([clients.then(() => undefined), kept.exited]);
  if (ended !== undefined) throw new EndedEarly(`the adapter (its log is ${kept.logPath})`, ended);
  const { orders, submissions } = await clients;
  submissions.close();
  return { pid: kept.pid, exited: kept.exited, logPath: kept.logPath, orders, stop: () => kept.stop() };
}
