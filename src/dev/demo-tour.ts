import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import sharp from 'sharp';
import { Advice } from './advice.ts';
import {
  type DemoEvent,
  type DemoLimits,
  type DemoNote,
  type DemoObject,
  type DemoOrder,
  type Partner,
  partnerClient,
} from './demo-client.ts';
import { demoOperator } from './demo-operator.ts';
import { type Chapter, naira, type Screen } from './demo-screen.ts';
import type { Sandbox, SandboxPartner } from './sandbox-file.ts';
import { receiverLog } from './settings.ts';

const waitMs = 30_000;
const documents = ['photo', 'government_id', 'utility_bill', 'signature'];
const fundedKobo = 50_000_000;
/** It trades in three parts at any hour, so that the tour is the same by night. */
const bought = { symbol: 'SIM-PARTS', side: 'buy', quantity: 300, type: 'limit', price_kobo: 1_000 };

const customer = {
  first_name: 'Adaeze',
  last_name: 'Okafor',
  date_of_birth: '1990-12-31',
  gender: 'female',
  email: 'adaeze@example.com',
  phone: '+2348030000000',
  address: '1 Marina',
  city: 'Lagos',
  state: 'LAGOS',
  state_of_origin: 'AKWA-IBOM',
  lga_of_origin: 'AKWA-IBOM-UYO',
  bvn: '22222222222',
  next_of_kin_name: 'Emeka Okafor',
  next_of_kin_phone: '+2348030000001',
  next_of_kin_relationship: 'brother',
};

/** What the demo does, one chapter after the other: each goes on with what those before it made. */
export class Tour {
  readonly #operator: ReturnType<typeof demoOperator>;
  /** All events since the tour began. */
  readonly #events: DemoEvent[] = [];
  #account = '';
  #estimateKobo = 0;
  #filled = '';
  #resting = '';

  private constructor(
    sandbox: Sandbox,
    private readonly dataDir: string,
    private readonly screen: Screen,
    private readonly seeded: SandboxPartner,
    private readonly partner: Partner,
    private readonly nextEvents: () => Promise<DemoEvent[]>,
  ) {
    this.#operator = demoOperator(sandbox);
  }

  static async open(sandbox: Sandbox, dataDir: string, screen: Screen): Promise<Tour> {
    const [seeded] = sandbox.partners;
    if (seeded === undefined) throw new Error('the sandbox has no partner');
    const partner = partnerClient(sandbox.rest_url, seeded.key);
    const feed = await screen.waiting('reading the feed up to now', partner.openFeed());
    return new Tour(sandbox, dataDir, screen, seeded, partner, feed);
  }

  chapters(): Chapter[] {
    const { name } = this.seeded;
    return [
      {
        title: `${name} opens an account for a customer, with four documents`,
        shows: 'an account opened with four documents',
        run: () => this.#openAccount(),
      },
      {
        title: 'A payment comes in, and some of it goes to the account',
        shows: 'a payment credited and an allocation booked',
        run: () => this.#fund(),
      },
      { title: 'What would it cost?', shows: 'an estimate with its charges', run: () => this.#estimate() },
      {
        title: `Buy ${bought.quantity} ${bought.symbol}, and ask again as after a lost answer`,
        shows: 'an order filled in parts, each an event, and a repeated request that bought nothing twice',
        run: () => this.#buy(),
      },
      {
        title: 'The same events came to the webhook receiver, which verified their signatures',
        shows: 'every event delivered to the webhook receiver and verified',
        run: () => this.#received(),
      },
      {
        title: 'Two answers are lost: one order reached the exchange, one did not',
        shows: 'two lost answers settled by the record of the exchange, without sending again',
        run: () => this.#loseAnswers(),
      },
      { title: 'Cancel the one that rests', shows: 'an order cancelled', run: () => this.#cancel() },
      {
        title: 'The next trading day has come, and with it the contract notes',
        shows: 'contract notes that add up to the estimate, to the kobo',
        run: () => this.#readNotes(),
      },
      { title: 'What is left of the limits', shows: 'the limits and what is used of them', run: () => this.#limits() },
    ];
  }

  async #openAccount(): Promise<void> {
    const { body: applied } = await this.partner.post<DemoObject>('/v1/applications', customer, randomUUID());
    this.#say(`201 ${applied.id} ${applied.state}`);
    for (const [index, type] of documents.entries()) {
      const path = `/v1/applications/${applied.id}/documents/${type}`;
      const { status, body } = await this.partner.putPng<DemoObject>(path, await picture(index));
      this.#say(`${status} ${type} ${body.state}`);
      check(body.state === 'delivered', `the ${type} must be delivered`);
    }
    const { data } = await this.#follow(applied.id, 'application.opened');
    check(data.account !== null, 'an opened application must name its account');
    this.#account = data.account ?? '';
    this.#say(`the account is ${this.#account}`);
  }

  async #fund(): Promise<void> {
    await this.#operator.credit(this.seeded.id, fundedKobo, `demo ${randomUUID()}`);
    const wallet = await this.partner.get<{ available_kobo: number }>('/v1/wallet');
    this.#say(`the wallet has ${naira(wallet.available_kobo)}`);
    const wanted = { account: this.#account, amount_kobo: fundedKobo };
    const { body: allocation } = await this.partner.post<DemoObject>('/v1/allocations', wanted, randomUUID());
    this.#say(`201 ${allocation.id} ${allocation.state}`);
    await this.#follow(allocation.id, 'allocation.booked');
    const balance = await this.partner.get<{ available_kobo: number }>(`/v1/accounts/${this.#account}/balance`);
    this.#say(`the account has ${naira(balance.available_kobo)}`);
    check(balance.available_kobo === fundedKobo, 'the account must have what was allocated');
  }

  async #estimate(): Promise<void> {
    const { body } = await this.partner.post<{
      amount_kobo: number;
      total_kobo: number;
      fees: { name: string; amount_kobo_decimal: string }[];
    }>('/v1/orders/estimate', { ...bought, account: this.#account });
    this.#say(`${naira(body.amount_kobo)} for the shares`);
    for (const { name, amount_kobo_decimal: amount } of body.fees) this.#say(`${amount} kobo ${name}`);
    this.#say(`${naira(body.total_kobo)} in all`);
    check(body.total_kobo > body.amount_kobo, 'a buy must cost more than its shares');
    this.#estimateKobo = body.total_kobo;
  }

  async #buy(): Promise<void> {
    const order = { ...bought, account: this.#account };
    const key = randomUUID();
    const { body: placed } = await this.partner.post<DemoOrder>('/v1/orders', order, key);
    this.#say(`201 ${placed.id} ${placed.state}`);
    const again = await this.partner.post<DemoOrder>('/v1/orders', order, key);
    this.#say(`${again.status} ${again.body.id} Idempotent-Replayed: ${again.replayed}`);
    check(again.body.id === placed.id && again.replayed, 'the repeated request must find the first order');
    const { data } = await this.#follow(placed.id, 'order.filled');
    check(data.filled_quantity === bought.quantity, 'all shares must have traded');
    const current = await this.partner.get<DemoOrder>(`/v1/orders/${placed.id}`);
    check(JSON.stringify(current) === JSON.stringify(data), 'an event must carry the order as its GET shows it');
    const parts = this.#events.filter(({ type, data: { id } }) => id === placed.id && /filled$/.test(type));
    check(parts.length === 3, `it must fill in three parts, and there were ${parts.length}`);
    this.#filled = placed.id;
  }

  /** The receiver's lines of the order's events, once all of them are there. */
  async #received(): Promise<void> {
    const ids = this.#events.filter(({ data }) => data.id === this.#filled).map(({ id }) => id);
    const lines = await this.#until('the webhook receiver', async () => {
      const log = readFileSync(receiverLog(this.dataDir), 'utf8').split('\n');
      const found = ids.map((id) => log.find((line) => line.includes(id)));
      return found.includes(undefined) ? undefined : found;
    });
    for (const line of lines) this.#say(line ?? '');
  }

  async #loseAnswers(): Promise<void> {
    const order = { account: this.#account, side: 'buy', quantity: 10, type: 'limit', price_kobo: 1_000 };
    const key = randomUUID();
    const place = (symbol: string, idempotencyKey: string) =>
      this.partner.post<DemoOrder>('/v1/orders', { ...order, symbol, time_in_force: 'gtc' }, idempotencyKey);
    const both = Promise.all([place('SIM-LOST', key), place('SIM-HANG', randomUUID())]);
    const [{ body: lost }, { body: hung }] = await this.screen.waiting('no answer from the exchange yet', both);
    this.#say(`201 ${lost.id} ${lost.state}: the exchange took it, and its answer was lost`);
    this.#say(`201 ${hung.id} ${hung.state}: the exchange never took it, and never answered`);
    await this.#follow(lost.id, 'order.pending');
    await this.#follow(hung.id, 'order.uncertain');
    const { data } = await this.#follow(hung.id, 'order.refused');
    this.#say(data.reason ?? '');
    const again = await place('SIM-LOST', key);
    this.#say(`${again.status} ${again.body.id} Idempotent-Replayed: ${again.replayed}`);
    check(again.body.id === lost.id && again.replayed, 'asking again must find the order and send nothing');
    this.#resting = lost.id;
  }

  async #cancel(): Promise<void> {
    const { status, body } = await this.partner.delete<DemoOrder>(`/v1/orders/${this.#resting}`);
    this.#say(`${status} ${body.id} ${body.state}`);
    check(body.state === 'cancelled', 'the answer to the cancel must show the order cancelled');
    await this.#follow(this.#resting, 'order.cancelled');
  }

  async #readNotes(): Promise<void> {
    const day = await this.screen.waiting('moving the clock', this.#operator.settlementDay());
    this.#say(`it is ${day}`);
    const notes = await this.#until('contract notes', async () => {
      const path = `/v1/accounts/${this.#account}/contract-notes?limit=100`;
      const { data } = await this.partner.get<{ data: DemoNote[] }>(path);
      return sum(data.map(({ quantity }) => quantity)) === bought.quantity ? data : undefined;
    });
    for (const { ticket, quantity, consideration_kobo: kobo, trade_date: traded, transaction_date: settled } of notes) {
      this.#say(`${ticket}: ${quantity} shares for ${naira(kobo)}, traded ${traded}, settled ${settled}`);
    }
    const total = sum(notes.map(({ consideration_kobo: kobo }) => kobo));
    this.#say(`${naira(total)} in all; the estimate said ${naira(this.#estimateKobo)}`);
    check(total === this.#estimateKobo, 'the contract notes must add up to the estimate');
  }

  async #limits(): Promise<void> {
    const limits = await this.partner.get<DemoLimits>('/v1/limits');
    const { orders_kobo_per_day: orders, allocations_kobo_per_day: allocations, requests_per_second: rate } = limits;
    this.#say(`on ${limits.day}, a new day:`);
    for (const [what, { limit, used, remaining }] of Object.entries({ orders, allocations })) {
      this.#say(`${what}: ${naira(used)} of ${naira(limit)} used, ${naira(remaining)} left`);
      check(used + remaining === limit, `what is used and left of the ${what} must be the limit`);
    }
    this.#say(`requests: ${rate.limit} a second, ${rate.burst} at once`);
  }

  /** Shows events as they come until the object's event of the type has come. */
  #follow(id: string, type: string): Promise<DemoEvent> {
    const find = () => this.#events.find((event) => event.data.id === id && event.type === type);
    return this.#until(`${type} of ${id}`, async () => {
      if (find() === undefined) await this.#readEvents();
      return find();
    });
  }

  async #readEvents(): Promise<void> {
    for (const event of await this.nextEvents()) {
      this.#events.push(event);
      const { id, quantity, filled_quantity: filled } = event.data;
      this.#say(`event ${event.version} ${event.type} ${id}${quantity === undefined ? '' : ` ${filled}/${quantity}`}`);
    }
  }

  /** Looks again and again until there is something to find. */
  #until<T>(what: string, find: () => Promise<T | undefined>): Promise<T> {
    const look = async () => {
      const deadline = performance.now() + waitMs;
      for (;;) {
        const found = await find();
        if (found !== undefined) return found;
        if (performance.now() > deadline) throw new Error(`${what} did not come within ${waitMs / 1000} s`);
        await sleep(100);
      }
    };
    return this.screen.waiting(`waiting for ${what}`, look());
  }

  #say(line: string): void {
    this.screen.say(line);
  }
}

/** A small picture, different for each document. */
async function picture(index: number): Promise<Uint8Array<ArrayBuffer>> {
  const background = { r: 40 * index, g: 120, b: 80 };
  return new Uint8Array(
    await sharp({ create: { width: 320, height: 240, channels: 3, background } })
      .png()
      .toBuffer(),
  );
}

function sum(amounts: readonly number[]): number {
  return amounts.reduce((total, amount) => total + amount, 0);
}

function check(holds: boolean, rule: string): void {
  if (!holds)
    throw new Advice(`It does not hold: ${rule}.`, 'The logs of the sandbox may say why: make run names them.');
}
