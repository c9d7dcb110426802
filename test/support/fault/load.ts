import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { Answer, GatewayProcess, Partner } from '../cluster.ts';

export interface LoadOptions {
  /** Who may be asked; looked at before each request. */
  readonly gateways: () => readonly GatewayProcess[];
  readonly partners: readonly Partner[];
  /** How many clients place orders at the same time, one after another. */
  readonly hands?: number;
  readonly symbols?: readonly string[];
  /** How long a client rests after each order. */
  readonly restMs?: number;
  /** Whether every other order is cancelled as soon as it is placed. */
  readonly cancels?: boolean;
  /** When it ends by itself, should its test have failed; a minute unless more is asked for. */
  readonly longestMs?: number;
}

interface PlacedOrder {
  readonly key: string;
  readonly partner: Partner;
  readonly body: Record<string, unknown>;
  readonly ids: Set<string>;
  clear: boolean;
}

/** Errors that say: the same key may be asked again. */
const unclearCodes = new Set(['service_unavailable', 'exchange_unavailable', 'outcome_not_recorded']);
/** Errors that settle a key. */
const clearCodes = new Set(['order_not_sent', 'order_rejected']);
const cancelCodes = new Set(['service_unavailable', 'cancel_unconfirmed', 'order_not_cancelable']);
/** Longer than any bound a request may run into. */
const tooLongMs = 19_000;

let quantity = 1_000;

/** Clients that place orders all the time, and later ask about every key whose answer was not clear. */
export class Load {
  readonly #orders: PlacedOrder[] = [];
  readonly #wrong: string[] = [];
  readonly #hands: Promise<void>[];
  /** When orders were answered clearly, on a clock that never goes back. */
  readonly #clearedAt: number[] = [];
  #stopping = false;

  private constructor(private readonly options: LoadOptions) {
    this.#hands = Array.from({ length: options.hands ?? 4 }, (_, hand) => this.#run(hand));
  }

  static start(options: LoadOptions): Load {
    return new Load(options);
  }

  /** How many orders were asked for. */
  get count(): number {
    return this.#orders.length;
  }

  /** How many orders have a clear answer. */
  get clearCount(): number {
    return this.#orders.filter(({ clear }) => clear).length;
  }

  /** The longest time since then in which no order was answered clearly. */
  longestGapMs(since: number): number {
    const times = [since, ...this.#clearedAt.filter((at) => at > since), performance.now()];
    return Math.max(...times.slice(1).map((at, index) => at - (times[index] ?? at)));
  }

  /** Ends the load. A test that fails stops it too, or the next test is disturbed by it. */
  async stop(): Promise<void> {
    this.#stopping = true;
    await Promise.all(this.#hands);
  }

  /**
   * Ends the load, and asks about every key until its answer is clear. Throws on answers that must not be, and if one is
   * not clear within the bound: how many were unclear depends on how long nothing worked.
   */
  async settle(gateway: GatewayProcess, boundMs = 30_000): Promise<void> {
    await this.stop();
    for (const order of this.#orders) {
      const end = performance.now() + boundMs;
      for (let last = ''; !order.clear; ) {
        assert.ok(performance.now() < end, `the key ${order.key} has no clear answer in the end: ${last}`);
        const { status, body } = await this.#place(gateway, order);
        last = `${status} ${JSON.stringify(body)}`;
        if (!order.clear) await delay(100);
      }
    }
    assert.deepEqual(this.#wrong, []);
    for (const { key, ids } of this.#orders) assert.ok(ids.size <= 1, `the key ${key} led to ${[...ids].join(', ')}`);
  }

  async #run(hand: number): Promise<void> {
    const { gateways, partners, symbols = ['SIM-PARTS'], restMs = 5, cancels = false } = this.options;
    const { longestMs = 60_000 } = this.options;
    const end = performance.now() + longestMs;
    for (let round = hand; !this.#stopping && performance.now() < end; round += 1) {
      const choices = gateways();
      const gateway = choices[round % choices.length];
      const partner = partners[round % partners.length];
      const symbol = symbols[round % symbols.length];
      if (gateway === undefined || partner === undefined) throw new Error('a load needs a gateway and a partner');
      // No two orders are alike, so that an unclear one stands in no other's way.
      quantity += 1;
      const order = { key: randomUUID(), partner, body: { symbol, quantity }, ids: new Set<string>(), clear: false };
      this.#orders.push(order);
      const placed = await this.#place(gateway, order);
      if (cancels && placed.status === 201 && round % 2 === 0) await this.#cancel(gateway, partner, placed.body.id);
      await delay(restMs);
    }
  }

  async #place(gateway: GatewayProcess, order: PlacedOrder): Promise<Answer> {
    const startedAt = performance.now();
    const answer = await gateway.place(order.partner, order.body, order.key);
    const { status, body } = answer;
    if (performance.now() - startedAt > tooLongMs) this.#wrong.push(`no answer to ${order.key} for ${tooLongMs} ms`);
    if (status === 200 || status === 201) {
      order.ids.add(body.id);
      order.clear = true;
    } else if (clearCodes.has(body?.error?.code)) order.clear = true;
    else if (status !== undefined && !unclearCodes.has(body?.error?.code)) this.#wrong.push(JSON.stringify(body));
    if (order.clear) this.#clearedAt.push(performance.now());
    return answer;
  }

  async #cancel(gateway: GatewayProcess, partner: Partner, id: string): Promise<void> {
    const { status, body } = await gateway.request('DELETE', `/v1/orders/${id}`, { key: partner.key });
    if (status === undefined || status === 200 || cancelCodes.has(body?.error?.code)) return;
    this.#wrong.push(`cancel: ${JSON.stringify(body)}`);
  }
}
