import { randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import sharp from 'sharp';
import { answered, type Marina, marinaClient, type Schemas } from '../site/snippets/client.mts';
import { check } from './demo-failure.ts';
import { Feed } from './demo-feed.ts';
import { demoOperator } from './demo-operator.ts';
import { ReceiverLog } from './demo-receiver.ts';
import { type Chapter, naira, type Screen } from './demo-screen.ts';
import { until } from './demo-until.ts';
import type { Sandbox, SandboxPartner } from './sandbox-file.ts';

type Order = Schemas['CreateOrderRequest'];

const documents = ['photo', 'government_id', 'utility_bill', 'signature'] as const;
const fundedKobo = 50_000_000;
const withdrawnKobo = 10_000_000;
/** It trades in three parts at any hour, so that the tour is the same by night. */
const bought = {
  symbol: 'SIM-PARTS',
  side: 'buy',
  quantity: 300,
  type: 'limit',
  price_kobo: 1_000,
} satisfies Partial<Order>;
/** It outlives the day: another one may come while its answer is settled. */
const unclear = {
  side: 'buy',
  quantity: 10,
  type: 'limit',
  price_kobo: 1_000,
  time_in_force: 'gtc',
} satisfies Partial<Order>;

const customer: Schemas['CreateApplicationRequest'] = {
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

/** The steps of the demo, one chapter after the other: each uses the objects of those before it. */
export class Tour {
  readonly #operator: ReturnType<typeof demoOperator>;
  #account = '';
  #estimateKobo = 0;
  #filled = '';
  #resting = '';

  private constructor(
    sandbox: Sandbox,
    private readonly screen: Screen,
    private readonly partner: SandboxPartner,
    private readonly marina: Marina,
    private readonly feed: Feed,
    private readonly receiver: ReceiverLog,
  ) {
    this.#operator = demoOperator(sandbox);
  }

  static async open(sandbox: Sandbox, dataDir: string, screen: Screen): Promise<Tour> {
    const [partner] = sandbox.partners;
    if (partner === undefined) throw new Error('the sandbox has no partner');
    const marina = marinaClient(sandbox.rest_url, partner.key);
    const feed = await screen.waiting('reading the feed up to now', Feed.open(marina, screen));
    return new Tour(sandbox, screen, partner, marina, feed, new ReceiverLog(dataDir, partner.name));
  }

  chapters(): Chapter[] {
    const { name } = this.partner;
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
      {
        title: 'Cancel the one that rests, and try to cancel the one that is filled',
        shows: 'an order cancelled, and a cancel refused',
        run: () => this.#cancel(),
      },
      {
        title: 'The next trading day has come, and with it the contract notes',
        shows: 'contract notes that add up to the estimate, to the kobo',
        run: () => this.#readNotes(),
      },
      {
        title: "Money leaves the account: to the wallet, and to the customer's bank",
        shows: 'two withdrawals paid, and transactions that add up to the balance',
        run: () => this.#withdraw(),
      },
      { title: 'What is left of the limits', shows: 'the limits and what is used of them', run: () => this.#limits() },
    ];
  }

  async #openAccount(): Promise<void> {
    const { data: applied, response } = await answered(
      this.marina.POST('/v1/applications', {
        params: { header: { 'Idempotency-Key': randomUUID() } },
        body: customer,
      }),
    );
    this.#say(`${response.status} ${applied.id} ${applied.state}`);
    await this.feed.follow('application', applied.id, 'documents_required');
    for (const [index, type] of documents.entries()) {
      const { data: document, response } = await answered(
        this.marina.PUT('/v1/applications/{id}/documents/{type}', {
          params: { path: { id: applied.id, type } },
          headers: { 'Content-Type': 'image/png' },
          body: await picture(index),
        }),
      );
      this.#say(`${response.status} ${type} ${document.state}`);
      check(document.state === 'delivered', `the ${type} must be delivered`);
    }
    const { account } = await this.feed.follow('application', applied.id, 'opened');
    check(account !== null, 'an opened application must name its account');
    this.#account = account;
    this.#say(`the account is ${account}`);
  }

  async #fund(): Promise<void> {
    await this.#operator.credit(this.partner.id, fundedKobo, `demo ${randomUUID()}`);
    const { data: wallet } = await answered(this.marina.GET('/v1/wallet'));
    this.#say(`the wallet has ${naira(wallet.available_kobo)}`);
    const params = { path: { account: this.#account } };
    const before = await answered(this.marina.GET('/v1/accounts/{account}/balance', { params }));
    const { data: allocation, response } = await answered(
      this.marina.POST('/v1/allocations', {
        params: { header: { 'Idempotency-Key': randomUUID() } },
        body: { account: this.#account, amount_kobo: fundedKobo },
      }),
    );
    this.#say(`${response.status} ${allocation.id} ${allocation.state}`);
    await this.feed.follow('allocation', allocation.id, 'booked');
    const { data: balance } = await answered(this.marina.GET('/v1/accounts/{account}/balance', { params }));
    this.#say(`the account has ${naira(balance.available_kobo)}`);
    // The sandbox's accounts begin with money.
    const gained = balance.available_kobo - before.data.available_kobo;
    check(gained === fundedKobo, 'the account must have what was allocated');
  }

  async #estimate(): Promise<void> {
    const body = { ...bought, account: this.#account };
    const { data: estimate } = await answered(this.marina.POST('/v1/orders/estimate', { body }));
    this.#say(`${naira(estimate.amount_kobo)} for the shares`);
    for (const { name, amount_kobo_decimal: amount } of estimate.fees) this.#say(`${amount} kobo ${name}`);
    this.#say(`${naira(estimate.total_kobo)} in all`);
    check(estimate.total_kobo > estimate.amount_kobo, 'a buy must cost more than its shares');
    this.#estimateKobo = estimate.total_kobo;
  }

  async #buy(): Promise<void> {
    const order = { ...bought, account: this.#account };
    const key = randomUUID();
    const placed = await this.#place(order, key);
    this.#say(placed.line);
    const again = await this.#place(order, key);
    this.#say(again.line);
    check(again.isReplayed && again.id === placed.id, 'the repeated request must find the first order');
    const params = { header: { 'Idempotency-Key': key } };
    const other = this.marina.POST('/v1/orders', { params, body: { ...order, quantity: 1 } });
    await this.#refusal('duplicate_order', 'the key of one order must not place another', other);
    const filled = await this.feed.follow('order', placed.id, 'filled');
    check(filled.filled_quantity === bought.quantity, 'all shares must have traded');
    const { data: current } = await answered(
      this.marina.GET('/v1/orders/{id}', { params: { path: { id: placed.id } } }),
    );
    check(isDeepStrictEqual(current, filled), 'an event must carry the order as its GET shows it');
    const parts = this.feed.of(placed.id).filter(({ type }) => /filled$/.test(type));
    check(parts.length === 3, `it must fill in three parts, and there were ${parts.length}`);
    this.#filled = placed.id;
  }

  /** The receiver's lines of the order's events, once all of them are there. */
  async #received(): Promise<void> {
    const ids = this.feed.of(this.#filled).map(({ id }) => id);
    const what = `${ids.length} events at the webhook receiver`;
    const lines = await until(
      this.screen,
      what,
      () => this.receiver.linesOf(ids),
      () => this.receiver.whyNot(),
    );
    for (const line of lines) this.#say(line);
  }

  async #loseAnswers(): Promise<void> {
    const order = { ...unclear, account: this.#account };
    const key = randomUUID();
    const both = Promise.all([
      this.#place({ ...order, symbol: 'SIM-LOST' }, key),
      this.#place({ ...order, symbol: 'SIM-HANG' }, randomUUID()),
    ]);
    const [lost, hung] = await this.screen.waiting('no answer from the exchange yet', both);
    this.#say(`${lost.line}: the exchange took it, and its answer was lost`);
    this.#say(`${hung.line}: the exchange never took it, and never answered`);
    await this.feed.follow('order', lost.id, 'pending');
    await this.feed.follow('order', hung.id, 'uncertain');
    const { reason } = await this.feed.follow('order', hung.id, 'refused');
    this.#say(reason ?? '');
    const again = await this.#place({ ...order, symbol: 'SIM-LOST' }, key);
    this.#say(again.line);
    check(again.isReplayed && again.id === lost.id, 'asking again must find the order and send nothing');
    this.#resting = lost.id;
  }

  async #cancel(): Promise<void> {
    const path = '/v1/orders/{id}';
    const resting = { params: { path: { id: this.#resting } } };
    const { data: cancelled, response } = await answered(this.marina.DELETE(path, resting));
    this.#say(`${response.status} ${cancelled.id} ${cancelled.state}`);
    check(cancelled.state === 'cancelled', 'the answer to the cancel must show the order cancelled');
    await this.feed.follow('order', this.#resting, 'cancelled');
    const filled = this.marina.DELETE(path, { params: { path: { id: this.#filled } } });
    await this.#refusal('order_not_cancelable', 'what has traded must not be cancelled', filled);
  }

  async #readNotes(): Promise<void> {
    const day = await this.screen.waiting('moving the clock', this.#operator.settlementDay());
    this.#say(`it is ${day}`);
    const params = { path: { account: this.#account }, query: { limit: 100 } };
    const notes = await until(this.screen, 'contract notes of all shares', async () => {
      const { data: page } = await answered(this.marina.GET('/v1/accounts/{account}/contract-notes', { params }));
      return sum(page.data.map(({ quantity }) => quantity)) === bought.quantity ? page.data : undefined;
    });
    for (const { ticket, quantity, consideration_kobo: kobo, trade_date: traded, transaction_date: settled } of notes) {
      this.#say(`${ticket}: ${quantity} shares for ${naira(kobo)}, traded ${traded}, settled ${settled}`);
    }
    const total = sum(notes.map(({ consideration_kobo: kobo }) => kobo));
    this.#say(`${naira(total)} in all; the estimate said ${naira(this.#estimateKobo)}`);
    check(total === this.#estimateKobo, 'the contract notes must add up to the estimate');
  }

  async #withdraw(): Promise<void> {
    const before = await answered(this.marina.GET('/v1/wallet'));
    const toWallet = await this.#withdrawTo('wallet');
    await this.feed.follow('withdrawal', toWallet, 'completed');
    const { data: wallet } = await answered(this.marina.GET('/v1/wallet'));
    const gained = wallet.available_kobo - before.data.available_kobo;
    this.#say(`the wallet has ${naira(gained)} more`);
    check(gained === withdrawnKobo, 'the wallet must have what was withdrawn');
    await this.feed.follow('withdrawal', await this.#withdrawTo('bank_account'), 'completed');
    await this.#readTransactions();
  }

  /** Withdraws an amount: the id of the withdrawal. */
  async #withdrawTo(destination: 'wallet' | 'bank_account'): Promise<string> {
    const { data: withdrawal, response } = await answered(
      this.marina.POST('/v1/withdrawals', {
        params: { header: { 'Idempotency-Key': randomUUID() } },
        body: { account: this.#account, amount_kobo: withdrawnKobo, destination },
      }),
    );
    this.#say(`${response.status} ${withdrawal.id} ${withdrawal.state}: ${naira(withdrawnKobo)} to the ${destination}`);
    return withdrawal.id;
  }

  /** Shows what changed the money of the account, newest first, and adds it up. */
  async #readTransactions(): Promise<void> {
    const path = { account: this.#account };
    const listed = this.marina.GET('/v1/accounts/{account}/transactions', { params: { path, query: { limit: 100 } } });
    const { data: page } = await answered(listed);
    for (const { type, amount_kobo: amount, balance_kobo: balance, date } of page.data) {
      this.#say(`${date} ${type.padEnd(17)} ${naira(amount).padStart(16)} ${naira(balance).padStart(22)}`);
    }
    const addUp = page.data.every(({ amount_kobo: amount, balance_kobo: balance }, at) => {
      const older = page.data[at + 1];
      return older === undefined || balance - amount === older.balance_kobo;
    });
    check(addUp, 'each balance must be the one before it and the amount of the transaction');
    const { data: balance } = await answered(this.marina.GET('/v1/accounts/{account}/balance', { params: { path } }));
    const booked = (balance.settled_kobo ?? 0) + (balance.unsettled_kobo ?? 0);
    check(page.data[0]?.balance_kobo === booked, 'the newest balance must be the money of the account');
  }

  async #limits(): Promise<void> {
    const { data: limits } = await answered(this.marina.GET('/v1/limits'));
    const { orders_kobo_per_day: orders, allocations_kobo_per_day: allocations, requests_per_second: rate } = limits;
    this.#say(`on ${limits.day}, a new day:`);
    for (const [what, { limit, used, remaining }] of Object.entries({ orders, allocations })) {
      this.#say(`${what}: ${naira(used)} of ${naira(limit)} used, ${naira(remaining)} left`);
      check(used + remaining === limit, `what is used and left of the ${what} must be the limit`);
    }
    this.#say(`requests: ${rate.limit} a second, ${rate.burst} at once`);
  }

  /** Places an order, or finds the one the key placed before. */
  async #place(body: Order, key: string): Promise<{ id: string; isReplayed: boolean; line: string }> {
    const params = { header: { 'Idempotency-Key': key } };
    const { data: order, response } = await answered(this.marina.POST('/v1/orders', { params, body }));
    const isReplayed = response.headers.get('Idempotent-Replayed') === 'true';
    const line = `${response.status} ${order.id} ${order.state}${isReplayed ? ', Idempotent-Replayed: true' : ''}`;
    return { id: order.id, isReplayed, line };
  }

  /** Shows that a request is refused, with its code. */
  async #refusal(code: string, rule: string, call: Promise<{ error?: Schemas['ErrorBody']; response: Response }>) {
    const { error, response } = await call;
    this.#say(`${response.status} ${error?.error.code}: ${error?.error.message}`);
    check(error?.error.code === code, rule);
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
