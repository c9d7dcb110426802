import { randomUUID } from 'node:crypto';
import { Agent, request } from 'node:http';
import { Metadata } from '@grpc/grpc-js';
import { Limits } from '../../../src/gen/marina/gateway/v1/limits_pb.ts';
import { Orders } from '../../../src/gen/marina/gateway/v1/orders_pb.ts';
import { createGrpcClient } from '../../../src/kit/grpc-client.ts';
import type { GatewayProcess, Partner } from '../cluster.ts';

/** The figures of a period's calls. */
export interface Measured {
  readonly calls: number;
  /** The errors of the calls that were not answered well. */
  readonly failures: readonly string[];
  readonly p99Ms: number;
}

export type Call = () => Promise<void>;

/** Makes calls that a test adds to the usual ones of a partner. */
export type MoreCalls = (gateway: GatewayProcess, partner: Partner) => Promise<readonly NamedCall[]>;
/** A call that has a time of its own must be answered within it, and is not among the others' times. */
export type NamedCall = readonly [name: string, call: Call, withinMs?: number];

/** Between two calls of one partner. */
const restMs = 25;
const timeoutMs = 10_000;
/** Never the same order twice: an order like an unclear one is refused. */
let quantity = 1;

/**
 * Honest partners, each of whom makes one call after another at a steady rate, over REST, gRPC and Connect, on
 * connections that are kept and on new ones. A call does not wait for the one before it, so that a gateway that stands
 * still is noticed by every call it delays.
 */
export class HonestLoad {
  readonly #partners: HonestPartner[];

  private constructor(partners: readonly HonestPartner[]) {
    this.#partners = [...partners];
  }

  static async start(
    gateway: GatewayProcess,
    partners: readonly Partner[],
    more: MoreCalls = async () => [],
  ): Promise<HonestLoad> {
    const honest = await Promise.all(
      partners.map(async (partner) => new HonestPartner(gateway, partner, await more(gateway, partner))),
    );
    await Promise.all(honest.map((each) => each.prepare()));
    return new HonestLoad(honest);
  }

  /** Makes calls for a time, and as long as something else is not over; settles with the last answer. */
  async measure(forMs: number, until: Promise<unknown> = Promise.resolve()): Promise<Measured> {
    let isOver = false;
    const over = () => {
      isOver = true;
    };
    until.then(over, over);
    const endAt = performance.now() + forMs;
    const timesMs: number[] = [];
    const failures: string[] = [];
    const timed = async (name: string, call: Call, withinMs?: number) => {
      const startedAt = performance.now();
      try {
        await call();
      } catch (error) {
        failures.push(`${name}: ${error instanceof Error ? error.message : String(error)}`);
      }
      const tookMs = performance.now() - startedAt;
      if (withinMs === undefined) timesMs.push(tookMs);
      else if (tookMs > withinMs) failures.push(`${name}: it took ${Math.round(tookMs)} ms of ${withinMs} ms`);
    };
    const run = async (partner: HonestPartner, at: number) => {
      const under: Promise<void>[] = [];
      await rest((at * restMs) / this.#partners.length);
      let nextAt = performance.now();
      while (performance.now() < endAt || !isOver) {
        const { name, call, withinMs } = partner.next();
        under.push(timed(name, call, withinMs));
        nextAt += restMs;
        await rest(Math.max(1, nextAt - performance.now()));
      }
      await Promise.all(under);
    };
    await Promise.all(this.#partners.map(run));
    timesMs.sort((one, other) => one - other);
    const p99Ms = timesMs[Math.min(timesMs.length - 1, Math.floor(timesMs.length * 0.99))] ?? 0;
    return { calls: timesMs.length, failures, p99Ms };
  }

  close(): void {
    for (const partner of this.#partners) partner.close();
  }
}

/** One partner, and the calls it makes over and over. */
class HonestPartner {
  readonly #agent = new Agent({ keepAlive: true });
  readonly #orders;
  readonly #options;
  readonly #rota: readonly NamedCall[];
  #turn = 0;
  #orderId = '';

  constructor(
    private readonly gateway: GatewayProcess,
    private readonly partner: Partner,
    more: readonly NamedCall[],
  ) {
    const address = `127.0.0.1:${gateway.grpcPort}`;
    this.#orders = createGrpcClient(Orders, address);
    const metadata = (idempotencyKey?: string) => {
      const made = new Metadata();
      made.set('authorization', `Bearer ${partner.key}`);
      if (idempotencyKey !== undefined) made.set('idempotency-key', idempotencyKey);
      return made;
    };
    this.#options = (idempotencyKey?: string) => ({ timeoutMs, metadata: metadata(idempotencyKey) });
    const readOrder = () => this.#http('GET', `/v1/orders/${this.#orderId}`);
    const readOverGrpc = async () => void (await this.#orders.getOrder({ id: this.#orderId }, this.#options()));
    const readOverConnect = () =>
      this.#http('POST', '/marina.gateway.v1.Orders/GetOrder', { body: { id: this.#orderId } });
    const place = async () => {
      this.#orderId = (await this.#place()).id;
    };
    const placeOverGrpc = async () => {
      const order = { account: partner.account, symbol: 'SIM-REST', side: 1, quantity: nextQuantity(), type: 1 };
      await this.#orders.createOrder({ ...order, priceKobo: 1_000n }, this.#options(randomUUID()));
    };
    const newChannel = async () => {
      const limits = createGrpcClient(Limits, address);
      try {
        await limits.getLimits({}, this.#options());
      } finally {
        limits.close();
      }
    };
    this.#rota = [
      ['GET order', readOrder],
      ['gRPC GetOrder', readOverGrpc],
      ['Connect GetOrder', readOverConnect],
      ['POST order', place],
      ['GET events', () => this.#http('GET', '/v1/events?limit=10')],
      ['gRPC CreateOrder', placeOverGrpc],
      ['GET order on a new connection', () => this.#http('GET', `/v1/orders/${this.#orderId}`, { agent: false })],
      ['gRPC GetOrder', readOverGrpc],
      ['Connect GetOrder', readOverConnect],
      ['GET orders', () => this.#http('GET', '/v1/orders?limit=5')],
      ['GET balance', () => this.#http('GET', `/v1/accounts/${partner.account}/balance`)],
      ['gRPC GetLimits on a new connection', newChannel],
      ...more,
    ];
  }

  /** Makes each call once, so that what is measured later has been done before. */
  async prepare(): Promise<void> {
    this.#orderId = (await this.#place()).id;
    for (const [, call] of this.#rota) await call();
  }

  next(): { name: string; call: Call; withinMs: number | undefined } {
    const [name, call, withinMs] = this.#rota[this.#turn++ % this.#rota.length] ?? ['nothing', async () => undefined];
    return { name, call, withinMs };
  }

  close(): void {
    this.#agent.destroy();
    this.#orders.close();
  }

  async #place(): Promise<{ id: string }> {
    const order = {
      symbol: 'SIM-REST',
      side: 'buy',
      quantity: Number(nextQuantity()),
      type: 'limit',
      price_kobo: 1_000,
    };
    const body = { account: this.partner.account, ...order };
    return JSON.parse(await this.#request('POST', '/v1/orders', { body, idempotencyKey: randomUUID() }));
  }

  async #http(method: string, path: string, options: HttpOptions = {}): Promise<void> {
    await this.#request(method, path, options);
  }

  #request(method: string, path: string, { body, idempotencyKey, agent }: HttpOptions): Promise<string> {
    const headers: Record<string, string> = { authorization: `Bearer ${this.partner.key}` };
    if (body !== undefined) headers['content-type'] = 'application/json';
    if (idempotencyKey !== undefined) headers['idempotency-key'] = idempotencyKey;
    const url = `http://127.0.0.1:${this.gateway.restPort}${path}`;
    return new Promise((resolve, reject) => {
      const signal = AbortSignal.timeout(timeoutMs);
      const sent = request(url, { method, headers, agent: agent ?? this.#agent, signal }, (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('error', reject);
        response.on('end', () => {
          const text = Buffer.concat(chunks).toString();
          const { statusCode = 0 } = response;
          if (statusCode < 300) resolve(text);
          else reject(new Error(`${statusCode} ${text.slice(0, 300)}`));
        });
      });
      sent.on('error', reject);
      sent.end(body === undefined ? undefined : JSON.stringify(body));
    });
  }
}

interface HttpOptions {
  readonly body?: unknown;
  readonly idempotencyKey?: string;
  readonly agent?: false;
}

function nextQuantity(): bigint {
  quantity = (quantity % 1_000_000) + 1;
  return BigInt(quantity);
}

function rest(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
