import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import type { JsonObject } from '@bufbuild/protobuf';
import { createPool, type Pool, type RowDataPacket } from 'mysql2/promise';
import { AccountStatus } from '../../../src/gen/marina/broker/v1/orders_pb.ts';
import { newOperatorToken } from '../../../src/kit/operator-tokens.ts';
import { type KeptProcess, type ProcessExit, sharedKeeper } from '../../../src/sandbox/keeper.ts';
import { gatewayEntry, withoutOurs } from '../../../src/sandbox/processes.ts';
import { linkAccount } from '../../../src/sandbox/provision.ts';
import { Cluster, callTimeout, type GatewayProcess, type Partner } from '../cluster.ts';
import { eventually, ready } from '../eventually.ts';
import { scrape } from '../metrics.ts';
import type { Found } from '../operator.ts';
import { ReflectedClient } from '../reflected.ts';
import { createTestDatabase } from '../servers.ts';
import { Acceptor, type PriceUnit } from './acceptor.ts';
import { PartnerSide } from './partner.ts';
import type { FixVersion } from './wire.ts';

const operator = newOperatorToken('ada', Date.now() + 86_400_000);

/** A finding of the adapter. */
export interface Finding {
  readonly what: string;
  readonly orderId: string | null;
  readonly text: string;
}

/** The operators' view of the adapter at one moment. */
export interface Observation {
  /** Every finding, oldest first. */
  readonly findings: readonly Finding[];
  /** How many orders are in doubt. */
  readonly inDoubt: number;
}

/** A gateway, the adapter and an exchange, each as in a real installation, with one partner. */
export class Chain {
  #adapter: KeptProcess | undefined;
  #gateway: GatewayProcess | undefined;
  #accounts = 0;
  readonly #pool: Pool;
  #reading: { readonly at: number; readonly observation: Promise<Observation> } | undefined;

  private constructor(
    readonly acceptor: Acceptor,
    readonly cluster: Cluster,
    readonly partner: Partner,
    /** The adapter's settings. They may be changed before it is started again. */
    readonly settings: Record<string, string>,
    databaseUrl: string,
    readonly dropDatabase: () => Promise<void>,
  ) {
    this.#pool = createPool({ uri: databaseUrl, connectionLimit: 2 });
  }

  static async start(version: FixVersion, unit: PriceUnit, settings: Record<string, string> = {}): Promise<Chain> {
    const acceptor = await Acceptor.start(version, unit);
    const [cluster, database] = await Promise.all([Cluster.start(), createTestDatabase()]);
    const [port, opsPort] = await freePorts();
    const all = {
      MARINA_FIX_ADDRESS: `127.0.0.1:${acceptor.port}`,
      MARINA_FIX_VERSION: version,
      MARINA_FIX_PRICE_UNIT: unit,
      MARINA_FIX_SENDER_COMP_ID: 'MARINA',
      MARINA_FIX_TARGET_COMP_ID: 'LAGOS',
      MARINA_FIX_SESSION_DAYS: 'mon-sun',
      MARINA_FIX_MESSAGES_PER_SECOND: '10000',
      MARINA_FIX_BACK_OFFICE_ADDRESS: cluster.gatewayVariables.MARINA_BROKER_ADDRESS ?? '',
      MARINA_FIX_PORT: String(port),
      MARINA_FIX_OPS_PORT: String(opsPort),
      ...settings,
    };
    const migrating = { ...all, MARINA_FIX_DATABASE_URL: database.url };
    await sharedKeeper().run({
      ...command(['fix', 'migrate'], migrating),
      logPath: join(cluster.folder, 'fix-migrate.log'),
    });
    const chain = new Chain(
      acceptor,
      cluster,
      await cluster.newPartner(),
      { ...all, MARINA_FIX_DATABASE_URL: await database.grantFix() },
      database.url,
      database.drop,
    );
    await chain.startAdapter();
    await chain.startGateway();
    await chain.acceptor.up();
    return chain;
  }

  get gateway(): GatewayProcess {
    assert.ok(this.#gateway !== undefined, 'there is no gateway');
    return this.#gateway;
  }

  get opsPort(): number {
    return Number(this.settings.MARINA_FIX_OPS_PORT);
  }

  async startAdapter(changes: Record<string, string> = {}): Promise<void> {
    for (const [name, value] of Object.entries(changes)) {
      if (value === '') delete this.settings[name];
      else this.settings[name] = value;
    }
    const logPath = join(this.cluster.folder, `adapter-${randomUUID().slice(0, 8)}.log`);
    this.#adapter = await sharedKeeper().start({ ...command(['fix'], this.settings), logPath });
  }

  /** Does as operators of both sides do when the numbers differ: both begin at 1. */
  async agreeOnNumbers(): Promise<void> {
    await this.stopAdapter();
    this.acceptor.cut();
    this.acceptor.numbers.reset();
    this.acceptor.isOpen = true;
    await sharedKeeper().run({
      ...command(['fix', 'numbers', '1', '1'], this.settings),
      logPath: join(this.cluster.folder, 'fix-numbers.log'),
    });
    await this.startAdapter();
    await this.up();
  }

  async stopAdapter(): Promise<void> {
    await this.#adapter?.stop();
  }

  async restartAdapter(changes: Record<string, string> = {}): Promise<void> {
    await this.stopAdapter();
    await this.startAdapter(changes);
    await this.up();
  }

  /** Sends the adapter a signal as a terminal or an orchestrator does, and waits for its end. Returns how it ended. */
  async signalAdapter(signal: 'SIGTERM' | 'SIGINT', boundMs = 10_000): Promise<ProcessExit> {
    const adapter = this.#adapter ?? assert.fail('there is no adapter');
    let ended: ProcessExit | undefined;
    void adapter.exited.then((exit) => {
      ended = exit;
    });
    process.kill(adapter.pid, signal);
    return eventually(() => ended ?? assert.fail(`the adapter has not ended after ${signal}`), boundMs);
  }

  /** Whether the process of the adapter has written a text into any of its logs. */
  hasLogged(text: string): boolean {
    return readdirSync(this.cluster.folder)
      .filter((name) => name.startsWith('adapter-'))
      .some((name) => readFileSync(join(this.cluster.folder, name), 'utf8').includes(text));
  }

  /** Runs a command of the adapter, such as `fix restored`. */
  async run(...words: readonly string[]): Promise<void> {
    const logPath = join(this.cluster.folder, `fix-${words[0]}-${randomUUID().slice(0, 8)}.log`);
    await sharedKeeper().run({ ...command(['fix', ...words], this.settings), logPath });
  }

  /** How often something was wrong in the session, as the alerts count it. */
  async troubles(what: string): Promise<number> {
    return (await scrape(this.opsPort)).value('marina_fix_session_troubles_total', { what });
  }

  /** Calls the adapter's operators' port. The adapter must have been started with `operatorSettings`. */
  async operate(name: string, request: JsonObject = {}): Promise<Found> {
    const client = await ReflectedClient.connect(`127.0.0.1:${this.settings.MARINA_FIX_ADMIN_PORT}`);
    try {
      return await client.call(`marina.fix.v1.FixOperations.${name}`, request, operator.token);
    } finally {
      client.close();
    }
  }

  /** Settings that open the operators' port. */
  async operatorSettings(): Promise<Record<string, string>> {
    const [port] = await freePorts();
    return { MARINA_FIX_ADMIN_PORT: String(port), MARINA_FIX_OPERATOR_TOKENS: operator.line };
  }

  async killAdapter(): Promise<void> {
    await this.#adapter?.kill();
  }

  /** Starts a gateway, and waits until it takes orders. */
  async startGateway(): Promise<void> {
    const broker = { MARINA_BROKER_ADDRESS: `127.0.0.1:${this.settings.MARINA_FIX_PORT}` };
    const gateway = await this.cluster.startGateway(broker);
    this.#gateway = gateway;
    await ready(async () => {
      const answer = await fetch(`http://127.0.0.1:${gateway.opsPort}/readyz`);
      assert.equal(answer.status, 200, await answer.text());
    }, 30_000);
  }

  async killGateway(): Promise<void> {
    await this.gateway.kill();
  }

  /** The partner with an account that no other test uses. */
  async newPartnerSide(): Promise<PartnerSide> {
    this.#accounts += 1;
    const account = `${this.partner.account}X${this.#accounts}`;
    await linkAccount(this.cluster.database, { partnerId: this.partner.id, account });
    await this.cluster.controls.setAccount({ account, status: AccountStatus.ACTIVE }, callTimeout);
    return new PartnerSide(() => this.gateway, { ...this.partner, account });
  }

  /** Reads the operators' view of the adapter, at most five times a second however many ask. */
  observe(): Promise<Observation> {
    const now = Date.now();
    if (this.#reading === undefined || now - this.#reading.at > 200) {
      this.#reading = { at: now, observation: this.#observe() };
    }
    return this.#reading.observation;
  }

  async #observe(): Promise<Observation> {
    const [[rows], inDoubt] = await Promise.all([
      this.#pool.query<RowDataPacket[]>('SELECT * FROM fix_findings ORDER BY id'),
      this.#inDoubt(),
    ]);
    const findings = rows.map((row) => {
      const values = Object.entries(row).map(([name, value]) => [
        name,
        Buffer.isBuffer(value) ? value.toString() : value,
      ]);
      const shown = Object.fromEntries(values);
      return { what: String(shown.what), orderId: shown.order_id, text: JSON.stringify(shown) };
    });
    return { findings, inDoubt };
  }

  /** How many orders the adapter shows as in doubt. A process that is starting shows none. */
  async #inDoubt(): Promise<number> {
    try {
      return (await scrape(this.opsPort)).value('marina_fix_orders_in_doubt');
    } catch {
      return 0;
    }
  }

  /** Waits until the session is up on both sides. */
  async up(boundMs = 40_000): Promise<void> {
    await this.acceptor.up(boundMs);
    await eventually(async () => {
      const answer = await fetch(`http://127.0.0.1:${this.opsPort}/readyz`);
      assert.equal(answer.status, 200, 'the adapter is not ready');
    }, boundMs);
  }

  async stop(): Promise<void> {
    await this.#adapter?.stop();
    await this.acceptor.stop();
    await this.cluster.stop();
    await this.#pool.end();
    await this.dropDatabase();
  }
}

function command(words: readonly string[], variables: Record<string, string>) {
  return {
    name: words.join(' '),
    command: process.execPath,
    args: ['--import', 'tsx', gatewayEntry, ...words],
    env: { ...withoutOurs(process.env), ...variables },
  };
}

/** Two ports that were free a moment ago: an adapter that is started again keeps its ports. */
async function freePorts(): Promise<[number, number]> {
  const servers = [createServer(), createServer()];
  const ports: number[] = [];
  for (const server of servers) {
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    ports.push((server.address() as AddressInfo).port);
  }
  for (const server of servers) server.close();
  return [ports[0] ?? 0, ports[1] ?? 0];
}
