import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { connect } from '../../../src/gateway/store/data-source.ts';
import { Database } from '../../../src/gateway/store/database.ts';
import { statement } from '../../../src/gateway/store/statement.ts';
import type { StoredOrder } from '../../../src/gateway/trading/orders/table.ts';
import { freePort } from '../../../src/sandbox/ports.ts';
import { Cluster, type GatewayProcess, type Partner } from '../cluster.ts';
import { eventually } from '../eventually.ts';
import { checkFeed, checkUsage, storedOrders } from '../fault/checker.ts';
import { Load } from '../fault/load.ts';
import { FaultProxy } from '../fault-proxy.ts';
import { type Acceptor, type AcceptorOrder, startAcceptor } from '../quickfix.ts';
import { createFixDatabase, startAdapterProcess } from './adapter.ts';

type AdapterProcess = Awaited<ReturnType<typeof startAdapterProcess>>;

/** The exchange's treatment of the orders of each symbol. */
const rules = [
  { symbol: 'GTCO', as: 'rest' },
  { symbol: 'MTNN', as: 'parts', afterMs: 30 },
  { symbol: 'DANGCEM', as: 'fill' },
  { symbol: 'ZENITHBANK', as: 'reject' },
] as const;
const symbols = ['GTCO', 'MTNN', 'DANGCEM', 'GTCO', 'MTNN', 'ZENITHBANK'];

/** How an order of the exchange's book may stand at the gateway, by its OrdStatus. A late trade changes no status. */
const statesOf: Readonly<Record<string, readonly string[]>> = {
  '0': ['pending'],
  '1': ['partially_filled'],
  '2': ['filled'],
  '4': ['cancelled', 'filled'],
  '8': ['rejected'],
};

/**
 * A gateway, the FIX adapter and an exchange's FIX gateway of QuickFIX, each a process, with a proxy on each wire. Partners
 * place and cancel orders all the time, and the exchange trades, cancels and trades late what rests.
 */
export class Chain {
  readonly #stops: (() => Promise<unknown>)[] = [];
  readonly partners: Partner[] = [];
  gateway!: GatewayProcess;
  acceptor!: Acceptor;
  /** Between the gateway and the adapter. */
  calls!: FaultProxy;
  /** Between the adapter and the exchange. */
  wire!: FaultProxy;
  #adapters: AdapterProcess[] = [];
  #fixDatabase!: Database;
  #variables: Record<string, string> = {};
  #load: Load | undefined;
  #market: Promise<void> = Promise.resolve();
  #isTrading = false;

  private constructor(readonly cluster: Cluster) {}

  static async start(): Promise<Chain> {
    const chain = new Chain(await Cluster.start());
    chain.#stops.push(() => chain.cluster.stop());
    const database = await createFixDatabase();
    chain.#fixDatabase = new Database(await connect({ url: database.ownerUrl, poolSize: 1 }), 'live', 1);
    chain.acceptor = await startAcceptor({ sender: 'EXCHANGE', target: 'MARINA' });
    const port = await freePort();
    chain.wire = await FaultProxy.start(`127.0.0.1:${chain.acceptor.port}`);
    chain.calls = await FaultProxy.start(`127.0.0.1:${port}`);
    chain.#stops.unshift(
      () => chain.wire.close(),
      () => chain.calls.close(),
      () => chain.acceptor.kill(),
      () => chain.#fixDatabase.close(),
      () => database.drop(),
    );
    chain.#variables = {
      MARINA_FIX_DATABASE_URL: database.url,
      MARINA_FIX_ADDRESS: chain.wire.address,
      MARINA_FIX_PORT: String(port),
      MARINA_FIX_BACK_OFFICE_ADDRESS: chain.cluster.gatewayVariables.MARINA_BROKER_ADDRESS ?? '',
      MARINA_FIX_HEARTBEAT_SECONDS: '2',
    };
    await chain.#setRules();
    await chain.startAdapter();
    await chain.startGateway();
    for (let count = 0; count < 2; count += 1) chain.partners.push(await chain.cluster.newPartner());
    await chain.isUp();
    return chain;
  }

  async #setRules(): Promise<void> {
    for (const rule of rules) await this.acceptor.onOrder(rule);
  }

  async startGateway(variables: Record<string, string> = {}): Promise<GatewayProcess> {
    this.gateway = await this.cluster.startGateway({ MARINA_BROKER_ADDRESS: this.calls.address, ...variables });
    return this.gateway;
  }

  /** Starts an adapter. While another has the session it waits for its place. */
  async startAdapter(variables: Record<string, string> = {}): Promise<AdapterProcess> {
    const adapter = await startAdapterProcess({ ...this.#variables, ...variables });
    this.#adapters.push(adapter);
    void adapter.kept.exited.then(() => {
      this.#adapters = this.#adapters.filter((one) => one !== adapter);
    });
    return adapter;
  }

  /** Kills the adapter that was started first. */
  async killAdapter(): Promise<void> {
    await this.#adapters[0]?.kept.kill();
  }

  async hasAdapter(): Promise<boolean> {
    // The end of a process is known a moment later.
    await delay(0);
    return this.#adapters.length > 0;
  }

  /** Ends the exchange's gateway as a crash would, and starts it again with what it had stored. */
  async crashExchange(downMs: number): Promise<void> {
    await this.acceptor.kill();
    await delay(downMs);
    await this.acceptor.start();
    await this.#setRules();
  }

  /** Waits until an order goes through. */
  async isUp(): Promise<void> {
    await eventually(async () => assert.ok((await this.acceptor.state()).isLoggedOn), 60_000);
  }

  trade(longestMs = 120_000): void {
    const gateways = () => [this.gateway];
    this.#load = Load.start({
      gateways,
      partners: this.partners,
      symbols,
      hands: 3,
      restMs: 40,
      cancels: true,
      longestMs,
    });
    this.#isTrading = true;
    this.#market = this.#runMarket();
  }

  /** Waits until so many more orders have a clear answer: the chain works. */
  async goesOn(more = 5): Promise<void> {
    const before = this.#load?.clearCount ?? 0;
    await eventually(() => assert.ok((this.#load?.clearCount ?? 0) >= before + more, 'no order is answered'), 60_000);
  }

  /** Trades, cancels, and trades late what rests at the exchange. */
  async #runMarket(): Promise<void> {
    for (let round = 0; this.#isTrading; round += 1) {
      await delay(150);
      try {
        const resting = (await this.acceptor.orders()).filter(({ symbol }) => symbol === 'GTCO');
        const order = resting.at(-1 - (round % 5));
        if (order === undefined || order.leaves < 2 || order.status === '8') continue;
        if (round % 7 === 3 && order.status !== '4') await this.acceptor.cancel(order.clOrdId);
        else await this.acceptor.fill(order.clOrdId, { quantity: 1 + (round % (order.leaves - 1)) });
      } catch {
        // It is down.
      }
    }
  }

  /**
   * Ends the trading, waits until everything is settled, and holds the exchange's own log and book, the gateway's rows and the
   * partners' feeds against each other.
   */
  async settleAndCheck(boundMs = 150_000): Promise<void> {
    this.#isTrading = false;
    await this.#market;
    await this.#load?.settle(this.gateway, boundMs);
    await eventually(() => this.#check(), boundMs);
  }

  async #check(): Promise<void> {
    const { database } = this.cluster;
    const sending = await database.read(statement(`SELECT id FROM orders WHERE state = 'sending'`));
    assert.deepEqual(sending, [], 'orders are still being sent');
    const outbox = await database.read(statement('SELECT partner_id, version FROM outbox'));
    assert.deepEqual(outbox, [], 'events are still on their way');
    const [stored, book] = [await storedOrders(this.cluster), await this.acceptor.orders()];
    for (const [id, times] of this.acceptor.receivedOrders()) {
      assert.equal(times, 1, `${id} reached the exchange ${times} times`);
      assert.ok(stored.has(id), `${id} reached the exchange and is not stored`);
    }
    const ids = book.map(({ clOrdId }) => clOrdId);
    assert.equal(new Set(ids).size, ids.length, 'the book has an order twice');
    const byId = new Map(book.map((order) => [order.clOrdId, order]));
    const uncertain = [...stored.values()].filter(({ state }) => state === 'uncertain');
    const unproven = uncertain.filter(({ id }) => byId.has(id));
    for (const { id } of unproven) await this.#checkUnprovenRejection(id, byId.get(id)?.status);
    await this.#checkDoubts(uncertain.flatMap(({ id }) => (byId.has(id) ? [] : [id])));
    const isUnproven = new Set(unproven.map(({ id }) => id));
    for (const order of stored.values()) {
      if (!isUnproven.has(order.id)) await this.#checkOrder(order, byId.get(order.id));
    }
    for (const partner of this.partners) await checkFeed(this.cluster, this.gateway, partner, stored);
    await checkUsage(this.cluster, stored);
  }

  /**
   * An order that the exchange has stays uncertain only if the exchange rejected it while a question about it was open: its report
   * may be the answer to that (docs/FIX-EVIDENCE.md), which an operator sees.
   */
  async #checkUnprovenRejection(id: string, status: string | undefined): Promise<void> {
    assert.equal(status, '8', `${id} is uncertain, and the exchange has it`);
    const findings = await this.#fixDatabase.read(
      statement(`SELECT id FROM fix_findings WHERE order_id = ? AND what = 'rejection_unproven'`, id),
    );
    assert.equal(findings.length, 1, `${id} was rejected, is uncertain, and no operator sees it`);
  }

  /** An order that the exchange does not have stays uncertain only if a message was passed over since, which an operator sees. */
  async #checkDoubts(ids: readonly string[]): Promise<void> {
    const rows = await this.#fixDatabase.read(
      statement(`SELECT id, passed_over, noted FROM fix_orders WHERE state = 'sending'`),
    );
    const doubts = new Map(
      rows.map(({ id, passed_over, noted }) => [String(id), { passed_over, noted: String(noted) }]),
    );
    for (const id of ids) {
      const doubt = doubts.get(id);
      assert.ok(doubt !== undefined, `${id} is uncertain, and not in doubt at the adapter`);
      assert.equal(Number(doubt.passed_over), 1, `${id} is uncertain, although its absence can be proven`);
      assert.match(doubt.noted, /absence_unproven/, `${id} is uncertain, and no operator sees it`);
    }
  }

  async #checkOrder(order: StoredOrder, there: AcceptorOrder | undefined): Promise<void> {
    if (there === undefined) {
      assert.ok(
        ['refused', 'rejected', 'uncertain'].includes(order.state),
        `${order.id} is ${order.state}, and not at the exchange`,
      );
      return;
    }
    assert.notEqual(order.state, 'refused', `${order.id} is refused, and lives at the exchange`);
    const fills = await this.cluster.database.read(
      statement(
        'SELECT quantity FROM order_steps WHERE partner_id = ? AND order_id = ? AND quantity > 0 ORDER BY sequence',
        order.partnerId,
        order.id,
      ),
    );
    assert.deepEqual(
      fills.map(({ quantity }) => Number(quantity)).sort(),
      there.fills.map(({ quantity }) => quantity).sort(),
      `the trades of ${order.id}`,
    );
    assert.ok(
      statesOf[there.status]?.includes(order.state),
      `${order.id} is ${order.state}, at the exchange ${there.status}`,
    );
  }

  async stop(): Promise<void> {
    this.#isTrading = false;
    await this.#market;
    for (const { kept } of this.#adapters) await kept.kill();
    for (const stop of this.#stops) await stop();
  }
}
