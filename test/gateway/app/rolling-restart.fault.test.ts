import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { Metadata, type ServiceError, status } from '@grpc/grpc-js';
import { Pool } from 'undici';
import { statement } from '../../../src/gateway/store/statement.ts';
import { OrderSide, Orders, OrderType } from '../../../src/gen/marina/gateway/v1/orders_pb.ts';
import { createGrpcClient } from '../../../src/kit/grpc-client.ts';
import { Cluster, callTimeout, type GatewayProcess, type Partner } from '../../support/cluster.ts';
import { eventually } from '../../support/eventually.ts';
import { checkEverything } from '../../support/fault/checker.ts';

/**
 * The result of one try to place an order. A refused connection is what a balancer sends elsewhere, and so is a refused
 * stream: one that crossed the replica's goodbye on its way, of which HTTP/2 says that nothing was done about it.
 */
type Tried = { readonly id: string } | 'refused';
type Protocol = 'rest' | 'grpc';

/** Clients of one replica, which keep their connections as a balancer does. */
class Target {
  readonly #pool: Pool;
  readonly #client;

  /** As a balancer sees it, which asks ten times a second. */
  isReady = true;
  readonly #asking: NodeJS.Timeout;

  constructor(readonly gateway: GatewayProcess) {
    this.#asking = setInterval(() => {
      fetch(`http://127.0.0.1:${gateway.opsPort}/readyz`).then(
        ({ status }) => {
          this.isReady = status === 200;
        },
        () => {
          this.isReady = false;
        },
      );
    }, 100);
    this.#pool = new Pool(`http://127.0.0.1:${gateway.restPort}`, { connections: 4, pipelining: 1 });
    this.#client = createGrpcClient(Orders, `127.0.0.1:${gateway.grpcPort}`, {
      'grpc.initial_reconnect_backoff_ms': 100,
      'grpc.max_reconnect_backoff_ms': 200,
    });
  }

  async place(protocol: Protocol, { key, account }: Partner, quantity: number): Promise<Tried> {
    try {
      return protocol === 'rest'
        ? await this.#placeByRest(key, account, quantity)
        : await this.#placeByGrpc(key, account, quantity);
    } catch (error) {
      const { code, details } = error as ServiceError;
      if ((code as unknown) === 'ECONNREFUSED') return 'refused';
      if (code === status.UNAVAILABLE && /ECONNREFUSED|Stream refused by server/.test(details)) return 'refused';
      throw error;
    }
  }

  async #placeByRest(key: string, account: string, quantity: number): Promise<Tried> {
    const { statusCode, body } = await this.#pool.request({
      method: 'POST',
      path: '/v1/orders',
      headers: {
        authorization: `Bearer ${key}`,
        'idempotency-key': randomUUID(),
        'content-type': 'application/json',
      },
      body: JSON.stringify({ account, symbol: 'SIM-PARTS', side: 'buy', quantity, type: 'limit', price_kobo: 1000 }),
    });
    const text = await body.text();
    assert.equal(statusCode, 201, text);
    return { id: JSON.parse(text).id };
  }

  async #placeByGrpc(key: string, account: string, quantity: number): Promise<Tried> {
    const metadata = new Metadata();
    metadata.set('authorization', `Bearer ${key}`);
    metadata.set('idempotency-key', randomUUID());
    const order = { account, symbol: 'SIM-PARTS', side: OrderSide.BUY, type: OrderType.LIMIT, priceKobo: 1000n };
    return this.#client.createOrder({ ...order, quantity: BigInt(quantity) }, { ...callTimeout, metadata });
  }

  async close(): Promise<void> {
    clearInterval(this.#asking);
    this.#client.close();
    await this.#pool.close();
  }
}

describe('two replicas that are restarted one after the other, under load', () => {
  let cluster: Cluster;
  before(async () => {
    cluster = await Cluster.start({ MARINA_DRAIN_MS: '2000' });
  });
  const targets: Target[] = [];
  let stopping = false;
  after(async () => {
    stopping = true;
    for (const target of targets) await target.close();
    await cluster.stop();
  });

  it('answer every request that was not refused, over REST and gRPC, and each order is sent once', async () => {
    targets.push(new Target(await cluster.startGateway()), new Target(await cluster.startGateway()));
    const partners = [await cluster.newPartner(), await cluster.newPartner()];
    const placed = new Set<string>();
    const errors: string[] = [];
    const took = new Map<string, number>();
    let quantity = 100;

    /** Goes to the replicas that are ready in turn, and to the next when a connection was refused. Each key is sent once. */
    async function hand(number: number): Promise<void> {
      const protocol: Protocol = number % 2 === 0 ? 'rest' : 'grpc';
      for (let round = number; !stopping; round += 1) {
        const partner = partners[round % 2] as Partner;
        quantity += 1;
        const order = quantity;
        for (let turn = 0; ; turn += 1) {
          const ready = targets.filter(({ isReady }) => isReady);
          const target = (ready[(round + turn) % ready.length] ?? targets[0]) as Target;
          try {
            const tried = await target.place(protocol, partner, order);
            if (tried !== 'refused') {
              placed.add(tried.id);
              took.set(`${protocol} ${target.gateway.pid}`, (took.get(`${protocol} ${target.gateway.pid}`) ?? 0) + 1);
              break;
            }
          } catch (error) {
            errors.push(`${protocol} ${target.gateway.pid}: ${(error as Error).message}`);
            break;
          }
          await delay(20);
        }
        await delay(5);
      }
    }
    const hands = Array.from({ length: 8 }, (_, number) => hand(number));

    for (const at of [0, 1]) {
      const old = targets[at] as Target;
      const { pid, restPort, grpcPort } = old.gateway;
      const before = placed.size;
      await eventually(() => assert.ok(placed.size > before + 50, 'orders are placed'), 30_000);
      const stopped = old.gateway.stop();
      await eventually(async () => {
        const ready = await fetch(`http://127.0.0.1:${old.gateway.opsPort}/readyz`);
        assert.equal(ready.status, 503, 'it is not ready while it still serves');
      });
      await stopped;
      const next = new Target(
        await cluster.startGateway({ MARINA_REST_PORT: String(restPort), MARINA_GRPC_PORT: String(grpcPort) }),
      );
      targets[at] = next;
      await old.close();
      for (const protocol of ['rest', 'grpc']) {
        assert.ok((took.get(`${protocol} ${pid}`) ?? 0) > 0, `the old replica took orders by ${protocol}`);
        await eventually(() => {
          assert.ok(
            (took.get(`${protocol} ${next.gateway.pid}`) ?? 0) > 0,
            `the new replica takes orders by ${protocol}`,
          );
        }, 30_000);
      }
    }
    stopping = true;
    await Promise.all(hands);

    assert.deepEqual(errors, []);
    const [first] = targets;
    assert.ok(first !== undefined, 'there is a replica');
    await checkEverything(cluster, first.gateway, partners);
    const { orders } = await stored();
    assert.deepEqual(
      [...placed].sort(),
      orders,
      'every order there is was answered, and every answered order is there',
    );
  });

  async function stored(): Promise<{ orders: string[] }> {
    const rows = await cluster.database.read(statement('SELECT id FROM orders ORDER BY id'));
    return { orders: rows.map(({ id }) => String(id)) };
  }
});
