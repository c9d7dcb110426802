import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import fc from 'fast-check';
import { WithdrawalReportKind } from '../../../src/gen/marina/broker/v1/withdrawals_pb.ts';
import { Call, WireFault } from '../../../src/gen/marina/simulator/v1/controls_pb.ts';
import { adminClient } from '../admin.ts';
import { type Answer, type Cluster, callTimeout, type GatewayProcess, type Partner } from '../cluster.ts';
import type { FaultProxy } from '../fault-proxy.ts';

/** One thing that happens in a random run. All of it is data, so that a trace can be read and run again. */
export type Command =
  | {
      readonly do: 'place';
      readonly symbol: string;
      readonly key: number;
      readonly quantity: number;
      readonly on: number;
    }
  | { readonly do: 'cancel'; readonly order: number; readonly on: number }
  | { readonly do: 'fill'; readonly order: number; readonly quantity: number }
  | { readonly do: 'expire'; readonly order: number }
  | Withdraw
  | { readonly do: 'return'; readonly withdrawal: number }
  | { readonly do: 'fault'; readonly call: Call; readonly fault: WireFault; readonly delayMs: number }
  | {
      readonly do: 'disturb';
      readonly withdrawals: boolean;
      readonly repeat: number;
      readonly swap: number;
      readonly omit: number;
    }
  | { readonly do: 'kill'; readonly on: number }
  | { readonly do: 'freeze'; readonly on: number; readonly ms: number }
  | { readonly do: 'cut'; readonly what: 'database' | 'nats' | 'broker'; readonly ms: number }
  | { readonly do: 'advance'; readonly hours: number }
  | { readonly do: 'wait'; readonly ms: number };

const symbols = ['SIM-REST', 'SIM-FILL', 'SIM-PARTS', 'SIM-HALF', 'SIM-LOST', 'SIM-HANG', 'SIM-LAPSE', 'SIM-FUNDS'];
/** Withdrawals that are paid later, rejected at once or later, and paid while the answer is lost in several ways. */
const amounts = [998_002, 998_003, 998_009, 998_013, 998_014, 998_016, 998_018];
const faults = [
  WireFault.HANG,
  WireFault.LOSE_ANSWER,
  WireFault.LATE_ANSWER,
  WireFault.LATE_RECEIPT,
  WireFault.RESET_BEFORE,
  WireFault.RESET_AFTER,
  WireFault.UNAVAILABLE_AFTER,
  WireFault.NONSENSE,
];
const order = fc.nat({ max: 9 });
const on = fc.nat({ max: 1 });

/** The request of a withdrawal. */
export interface Withdraw {
  readonly do: 'withdraw';
  readonly amount: number;
  readonly destination: string;
  readonly key: number;
  readonly on: number;
}

/** A withdrawal, to the wallet twice as often as to the bank. */
export const withdraw = fc.record({
  do: fc.constant('withdraw' as const),
  amount: fc.oneof({ weight: 2, arbitrary: fc.integer({ min: 1, max: 400_000 }) }, fc.constantFrom(...amounts)),
  destination: fc.constantFrom('wallet', 'wallet', 'bank_account'),
  key: fc.nat({ max: 15 }),
  on,
});

/** The commands of a run, the ordinary more often than the rare. */
export const command: fc.Arbitrary<Command> = fc.oneof(
  {
    weight: 10,
    arbitrary: fc.record({
      do: fc.constant('place' as const),
      symbol: fc.constantFrom(...symbols),
      key: fc.nat({ max: 15 }),
      quantity: fc.integer({ min: 4, max: 40 }),
      on,
    }),
  },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('cancel' as const), order, on }) },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constant('fill' as const), order, quantity: fc.integer({ min: 1, max: 20 }) }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('expire' as const), order }) },
  { weight: 5, arbitrary: withdraw },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('return' as const), withdrawal: fc.nat({ max: 9 }) }) },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('fault' as const),
      call: fc.constantFrom(
        ...[Call.SUBMIT_ORDER, Call.CANCEL_ORDER, Call.LOOK_UP_ORDER],
        ...[Call.SUBMIT_WITHDRAWAL, Call.LOOK_UP_WITHDRAWAL],
      ),
      fault: fc.constantFrom(...faults),
      delayMs: fc.integer({ min: 200, max: 1_600 }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('disturb' as const),
      withdrawals: fc.boolean(),
      repeat: fc.nat({ max: 3 }),
      swap: fc.nat({ max: 2 }),
      omit: fc.nat({ max: 2 }),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('kill' as const), on }) },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant('freeze' as const), on, ms: fc.integer({ min: 300, max: 6_000 }) }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('cut' as const),
      what: fc.constantFrom('database' as const, 'nats' as const, 'broker' as const),
      ms: fc.integer({ min: 50, max: 2_500 }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('advance' as const), hours: fc.integer({ min: 1, max: 30 }) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('wait' as const), ms: fc.integer({ min: 10, max: 500 }) }) },
);

/** The proxies a run's gateways reach their servers by. */
export type Proxies = Readonly<Record<'database' | 'nats' | 'broker', FaultProxy>>;

/**
 * Runs commands against real processes. It starts calls without waiting for them, so that faults meet them under way.
 */
export class RandomRun {
  readonly #gateways: GatewayProcess[] = [];
  readonly #asked: Promise<void>[] = [];
  /** The id in the first answer of each key. */
  readonly #idOfKey = new Map<string, string>();
  readonly #ids: string[] = [];
  readonly #withdrawalIds: string[] = [];

  constructor(
    private readonly cluster: Cluster,
    private readonly partner: Partner,
    private readonly proxies: Proxies,
    private readonly variables: Record<string, string>,
  ) {}

  async start(): Promise<void> {
    this.#gateways.push(...(await Promise.all([this.#startOne(), this.#startOne()])));
  }

  async run(commands: readonly Command[]): Promise<void> {
    for (const next of commands) await this.#do(next);
    await Promise.all(this.#asked);
  }

  /** Lifts all faults, and returns a gateway to check by. */
  async settle(): Promise<GatewayProcess> {
    for (const proxy of Object.values(this.proxies)) {
      proxy.heal();
      await proxy.accept();
    }
    await this.cluster.controls.clearDirectives({}, callTimeout);
    const [gateway] = this.#gateways;
    assert.ok(gateway !== undefined);
    return gateway;
  }

  async stop(): Promise<void> {
    await Promise.all(this.#gateways.map((gateway) => gateway.kill()));
  }

  #startOne(): Promise<GatewayProcess> {
    return this.cluster.startGateway(this.variables);
  }

  async #do(next: Command): Promise<void> {
    const { controls } = this.cluster;
    const { account } = this.partner;
    switch (next.do) {
      case 'place':
        this.#asked.push(this.#place(next));
        return delay(10);
      case 'cancel':
        this.#asked.push(this.#cancel(next));
        return delay(10);
      case 'fill':
        // Refused where there is nothing to fill; the checker holds the exchange's record against ours.
        return this.#ignore(
          controls.fillOrder({ clientOrderId: this.#id(next.order), quantity: BigInt(next.quantity) }, callTimeout),
        );
      case 'expire':
        return this.#ignore(controls.expireOrder({ clientOrderId: this.#id(next.order) }, callTimeout));
      case 'withdraw':
        this.#asked.push(this.#withdraw(next));
        return delay(10);
      case 'return': {
        const ids = this.#withdrawalIds;
        const returned = { clientWithdrawalId: ids[next.withdrawal % ids.length], kind: WithdrawalReportKind.RETURNED };
        return this.#ignore(controls.decideWithdrawal(returned, callTimeout));
      }
      case 'fault':
        return this.#ignore(
          controls.injectFault({ call: next.call, account, fault: next.fault, delayMs: next.delayMs }, callTimeout),
        );
      case 'disturb':
        return this.#ignore(controls.disturbReports(next, callTimeout));
      case 'kill': {
        await this.#gateways[next.on]?.kill();
        this.#gateways[next.on] = await this.#startOne();
        return;
      }
      case 'freeze': {
        const frozen = this.#gateways[next.on];
        frozen?.freeze();
        this.#asked.push(delay(next.ms).then(() => frozen?.thaw()));
        return;
      }
      case 'cut':
        return this.#cut(next.what, next.ms);
      case 'advance':
        return this.#advance(next.hours);
      case 'wait':
        return delay(next.ms);
    }
  }

  /** The same key always asks for the same order, so that it may come again at any time and from anywhere. */
  async #place({ key, on: index, symbol, quantity }: Command & { do: 'place' }): Promise<void> {
    const idempotencyKey = `${this.partner.id}-${key}-${symbol}-${quantity}`;
    const answer = await this.#gateways[index]?.place(
      this.partner,
      { symbol, quantity, time_in_force: 'gtc' },
      idempotencyKey,
    );
    this.#keep(idempotencyKey, answer, this.#ids);
  }

  async #withdraw({ key, on: index, amount, destination }: Withdraw): Promise<void> {
    const idempotencyKey = `${this.partner.id}-${key}-${amount}-${destination}`;
    const body = { amount_kobo: amount, destination };
    const answer = await this.#gateways[index]?.withdraw(this.partner, body, idempotencyKey);
    this.#keep(idempotencyKey, answer, this.#withdrawalIds);
  }

  /** Keeps the id of a new object. The same key must always lead to the same one. */
  #keep(idempotencyKey: string, answer: Answer | undefined, ids: string[]): void {
    const id = idOf(answer);
    if (id === undefined) return;
    const first = this.#idOfKey.get(idempotencyKey);
    assert.ok(first === undefined || first === id, `the key ${idempotencyKey} led to ${first} and to ${id}`);
    this.#idOfKey.set(idempotencyKey, id);
    if (first === undefined) ids.push(id);
  }

  async #cancel({ order: index, on: gateway }: Command & { do: 'cancel' }): Promise<void> {
    const id = this.#id(index);
    const answer = await this.#gateways[gateway]?.request('DELETE', `/v1/orders/${id}`, { key: this.partner.key });
    if (answer?.status === 200) assert.equal(answer.body.state, 'cancelled', `a confirmed cancel of ${id}`);
  }

  async #cut(what: keyof Proxies, ms: number): Promise<void> {
    const proxy = this.proxies[what];
    await proxy.refuse();
    proxy.reset();
    await delay(ms);
    await proxy.accept();
  }

  async #advance(hours: number): Promise<void> {
    const admin = adminClient(this.#gateways[0]?.adminPort ?? 0);
    await this.#ignore(admin.clock.advanceClock({ by: { seconds: BigInt(hours * 3_600) } }, admin.options));
    admin.close();
  }

  /** The id of one of the orders placed so far; one that does not exist where there is none. */
  #id(index: number): string {
    return this.#ids.length === 0 ? 'ord_22222222222222222222' : (this.#ids[index % this.#ids.length] ?? '');
  }

  /** Waits for a call that may be refused, or may meet a process that is gone. */
  async #ignore(work: Promise<unknown>): Promise<void> {
    await work.catch(() => undefined);
  }
}

/** The id of the object that an answer is about, if it is about one. */
function idOf(answer: Answer | undefined): string | undefined {
  if (answer?.status === 200 || answer?.status === 201) return answer.body.id;
  return answer?.headers?.get('location')?.split('/').at(-1);
}

/** A prefix of NATS names of its own for each run. */
export function newPrefix(): string {
  return `R${randomUUID().slice(0, 8)}-`;
}
