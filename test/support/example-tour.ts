import { randomUUID } from 'node:crypto';
import createClient, { type Client } from 'openapi-fetch';
import { AccountStatus } from '../../src/gen/marina/broker/v1/orders_pb.ts';
import { WithdrawalReportKind } from '../../src/gen/marina/broker/v1/withdrawals_pb.ts';
import type { paths } from '../../src/gen/openapi.ts';
import { linkAccount } from '../../src/sandbox/provision.ts';
import { type Example, type Examples, recordedBaseUrl } from '../../src/site/examples.ts';
import { adminClient } from './admin.ts';
import { goodApplication } from './applications.ts';
import { assertDescribed, described } from './described.ts';
import { eventually } from './eventually.ts';
import { callTimeout, startGateway, type TestGateway, type TestPartner } from './gateway.ts';
import { plain } from './images.ts';
import type { WebhookReceiver } from './webhook-receiver.ts';

const shownHeaders = ['idempotency-key', 'content-type'];
const shownAnswerHeaders = ['location', 'idempotent-replayed', 'retry-after'];
/** The requests that are refused, with the code of each: all others are carried out. */
const refusals: Readonly<Record<string, string>> = {
  'The exchange rejects it': 'order_rejected',
  'A field is wrong': 'invalid_request',
  'The key was used for another order': 'duplicate_order',
  'There is no such order': 'order_not_found',
  'It has traded already': 'order_not_cancelable',
  'The wallet has too little': 'wallet_too_low',
  'The account has less': 'withdrawal_rejected',
  'The broker does not take a field': 'application_rejected',
};
/** How much of a list that comes whole is kept. */
const keptItems = 3;

/** Every type of event there is: an object's name and a state, but for the one in which nothing happened yet. */
export const eventTypes: readonly string[] = ['Order', 'Application', 'Allocation', 'Withdrawal'].flatMap((name) =>
  described.components.schemas[`${name}State`]['x-extensible-enum']
    .filter((state: string) => state !== 'sending')
    .map((state: string) => `${name.toLowerCase()}.${state}`),
);

/** Does everything a partner can do, with a client made of the OpenAPI document, and writes down what came of it. */
export async function takeTour(gateway: TestGateway, receiver: WebhookReceiver): Promise<Examples> {
  const partner = await newcomer(gateway);
  const tour = new Tour(gateway, partner);
  await tour.orders();
  await tour.money();
  await tour.application();
  await tour.sandbox();
  await tour.records();
  await tour.keys();
  const events = { ...(await tour.events()), ...(await refusedEvents()) };
  await register(gateway, partner, receiver);
  await tour.tools(receiver);
  const text = JSON.stringify({ operations: tour.recorded, events });
  return JSON.parse(text.replaceAll(`http://127.0.0.1:${gateway.app.restPort}`, recordedBaseUrl));
}

/** Registers an endpoint of a partner, as an operator does. */
async function register(gateway: TestGateway, { id }: TestPartner, receiver: WebhookReceiver): Promise<void> {
  const admin = adminClient(gateway.app.adminPort);
  try {
    await admin.webhooks.registerEndpoint({ partnerId: id, url: receiver.url('/tour') }, admin.options);
  } finally {
    admin.close();
  }
}

/** A partner with one account that reads well. */
async function newcomer(gateway: TestGateway): Promise<TestPartner> {
  const partner = await gateway.newPartner();
  const account = 'LAG0012345';
  await linkAccount(gateway.database, { partnerId: partner.id, account });
  await gateway.controls.setAccount({ account, status: AccountStatus.ACTIVE }, callTimeout);
  await gateway.fund(partner, 10_000_000n);
  await gateway.controls.setCash({ account, cashKobo: 500_000_000n }, callTimeout);
  return { ...partner, account };
}

class Tour {
  readonly recorded: Record<string, Example[]> = {};
  readonly #client: Client<paths>;
  /** The title of the next request; undefined: it is not written down. */
  #title: string | undefined;

  constructor(
    private readonly gateway: TestGateway,
    private readonly partner: TestPartner,
  ) {
    this.#client = createClient<paths>({
      baseUrl: `http://127.0.0.1:${gateway.app.restPort}`,
      headers: { authorization: `Bearer ${partner.key}` },
    });
    const bodies = new Map<string, unknown>();
    this.#client.use({
      onRequest: async ({ id, request }) => {
        if (request.headers.get('content-type') === 'application/json') bodies.set(id, await request.clone().json());
      },
      onResponse: async ({ id, request, response, schemaPath }) => {
        const text = await response.clone().text();
        const { method } = request;
        const { pathname, search } = new URL(request.url);
        const path = pathname + search;
        const header = (name: string) => response.headers.get(name) ?? undefined;
        assertDescribed({ method, path, status: response.status, header, text });
        const title = this.#title;
        this.#title = undefined;
        if (title === undefined) return;
        const body = JSON.parse(text);
        const code: string | undefined = body.error?.code;
        if (code !== refusals[title]) throw new Error(`${title}: it was answered ${response.status} ${text}`);
        const { operationId } = described.paths[schemaPath][method.toLowerCase()];
        this.recorded[operationId] ??= [];
        this.recorded[operationId].push({
          title,
          request: { method, path, headers: only(request.headers, shownHeaders), body: bodies.get(id) },
          answer: {
            status: response.status,
            headers: only(response.headers, shownAnswerHeaders),
            body: shown(body),
          },
        });
      },
    });
  }

  async orders(): Promise<void> {
    const { account } = this.partner;
    const client = this.#client;
    const place = (title: string, symbol: string, key: string, priceKobo: number, quantity = 300) => {
      this.#title = title;
      return client.POST('/v1/orders', {
        params: { header: { 'Idempotency-Key': key } },
        body: { account, symbol, side: 'buy', quantity, type: 'limit', price_kobo: priceKobo },
      });
    };
    this.#title = 'What a purchase would cost';
    await client.POST('/v1/orders/estimate', {
      body: { account, symbol: 'ZENITHBANK', side: 'buy', quantity: 300, type: 'market' },
    });
    const key = randomUUID();
    const { data: placed } = await place('A limit order', 'SIM-REST', key, 1_000);
    await place('The same request again', 'SIM-REST', key, 1_000);
    await place('The exchange rejects it', 'SIM-FUNDS', randomUUID(), 1_000);
    await place('It is unknown whether the exchange has it', 'SIM-HANG', randomUUID(), 1_000);
    await place('A field is wrong', 'SIM-REST', randomUUID(), 1_000, 0);
    await place('The key was used for another order', 'SIM-REST', key, 1_005);
    const { data: filled } = await this.#quietly(() => place('', 'SIM-PARTS', randomUUID(), 1_000));
    await this.#quietly(() => place('', 'SIM-LAPSE', randomUUID(), 1_000));
    const params = (id = '') => ({ params: { path: { id } } });
    await eventually(async () => {
      const { data } = await client.GET('/v1/orders/{id}', params(filled?.id));
      if (data?.state !== 'filled') throw new Error(`the order is ${data?.state}`);
    });
    this.#title = 'An order that was filled';
    await client.GET('/v1/orders/{id}', params(filled?.id));
    this.#title = 'There is no such order';
    await client.GET('/v1/orders/{id}', params('ord_aaaaaaaaaaaaaaaaaaaa'));
    this.#title = 'What happened to it';
    await client.GET('/v1/orders/{id}/history', params(filled?.id));
    this.#title = 'Its events';
    await client.GET('/v1/orders/{id}/events', params(filled?.id));
    this.#title = 'The newest orders';
    await client.GET('/v1/orders', { params: { query: { limit: 2 } } });
    // On a busy machine an answer of the exchange may come too late, and a cancel is sent again.
    await eventually(async () => {
      this.#title = 'The exchange confirmed it';
      await client.DELETE('/v1/orders/{id}', params(placed?.id));
    });
    this.#title = 'It has traded already';
    await client.DELETE('/v1/orders/{id}', params(filled?.id));
  }

  async money(): Promise<void> {
    const { account } = this.partner;
    const client = this.#client;
    const allocate = (title: string | undefined, amount: number) => {
      this.#title = title;
      const params = { header: { 'Idempotency-Key': randomUUID() } };
      const body = { account, amount_kobo: amount, client_reference: 'salary-2026-11' };
      return client.POST('/v1/allocations', { params, body });
    };
    const { data: booked } = await allocate('Ten thousand naira for an account', 1_000_000);
    await allocate('The wallet has too little', 20_000_000);
    await allocate(undefined, 999_002);
    await allocate(undefined, 999_005);
    this.#title = 'One allocation';
    await client.GET('/v1/allocations/{id}', { params: { path: { id: booked?.id ?? '' } } });
    this.#title = 'Its events';
    await client.GET('/v1/allocations/{id}/events', { params: { path: { id: booked?.id ?? '' } } });
    this.#title = 'The newest allocations';
    await client.GET('/v1/allocations', { params: { query: { limit: 2 } } });
    const withdraw = (title: string | undefined, amount: number, destination: 'wallet' | 'bank_account') => {
      this.#title = title;
      const params = { header: { 'Idempotency-Key': randomUUID() } };
      return client.POST('/v1/withdrawals', { params, body: { account, amount_kobo: amount, destination } });
    };
    const { data: withdrawn } = await withdraw('Two thousand naira to the wallet', 200_000, 'wallet');
    await withdraw('The account has less', 998_003, 'bank_account');
    await withdraw(undefined, 998_010, 'bank_account');
    await withdraw(undefined, 998_015, 'bank_account');
    await withdraw(undefined, 998_019, 'bank_account');
    const { data: returned } = await withdraw(undefined, 998_001, 'bank_account');
    const sentBack = { clientWithdrawalId: returned?.id ?? '', kind: WithdrawalReportKind.RETURNED };
    await this.gateway.controls.decideWithdrawal(sentBack, callTimeout);
    const path = { id: withdrawn?.id ?? '' };
    this.#title = 'One withdrawal';
    await client.GET('/v1/withdrawals/{id}', { params: { path } });
    this.#title = 'Its history';
    await client.GET('/v1/withdrawals/{id}/history', { params: { path } });
    this.#title = 'Its events';
    await client.GET('/v1/withdrawals/{id}/events', { params: { path } });
    this.#title = 'The newest withdrawals';
    await client.GET('/v1/withdrawals', { params: { query: { limit: 2 } } });
    this.#title = 'What is in the wallet';
    await client.GET('/v1/wallet');
    this.#title = 'The newest entries';
    await client.GET('/v1/wallet/transfers', { params: { query: { limit: 3 } } });
  }

  async application(): Promise<void> {
    const client = this.#client;
    const apply = (title: string | undefined, names: Partial<typeof goodApplication> = {}) => {
      this.#title = title;
      const params = { header: { 'Idempotency-Key': randomUUID() } };
      return client.POST('/v1/applications', { params, body: { ...goodApplication, ...names } });
    };
    const { data: applied } = await apply('An account for a customer');
    await apply('The broker does not take a field', { last_name: 'SIM-REJECT-INVALID' });
    await apply(undefined, { last_name: 'SIM-HANG' });
    const id = applied?.id ?? '';
    const file = await plain(320, 240).jpeg().toBuffer();
    for (const type of ['photo', 'government_id', 'utility_bill', 'signature'] as const) {
      this.#title = type === 'photo' ? 'The first of four' : undefined;
      await client.PUT('/v1/applications/{id}/documents/{type}', {
        params: { path: { id, type } },
        headers: { 'content-type': 'image/jpeg' },
        body: file,
        bodySerializer: () => file,
      });
    }
    this.#title = 'All the broker has';
    await client.GET('/v1/applications/{id}/documents', { params: { path: { id } } });
    await eventually(async () => {
      const { data } = await client.GET('/v1/applications/{id}', { params: { path: { id } } });
      if (data?.state !== 'opened') throw new Error(`the application is ${data?.state}`);
    });
    this.#title = 'The account is open';
    await client.GET('/v1/applications/{id}', { params: { path: { id } } });
    this.#title = 'Its events';
    await client.GET('/v1/applications/{id}/events', { params: { path: { id } } });
    this.#title = 'The newest applications';
    await client.GET('/v1/applications', { params: { query: { limit: 2 } } });
  }

  /** Steers what comes next, and undoes nothing: each directive is used up here. */
  async sandbox(): Promise<void> {
    const { account } = this.partner;
    const client = this.#client;
    const path = (id = '') => ({ params: { path: { id } } });
    const place = () =>
      client.POST('/v1/orders', {
        params: { header: { 'Idempotency-Key': randomUUID() } },
        body: { account, symbol: 'SIM-REST', side: 'buy', quantity: 200, type: 'limit', price_kobo: 1_100 },
      });
    this.#title = 'The next order is rejected';
    await client.POST('/v1/sandbox/orders/next', {
      body: { account, outcome: 'reject', reject_reason: 'market_closed' },
    });
    await place();
    const [{ data: filled }, { data: rejected }] = [await place(), await place()];
    this.#title = 'A hundred shares trade';
    await client.POST('/v1/sandbox/orders/{id}/fill', {
      ...path(filled?.id),
      body: { quantity: 100, price_kobo: 1_050 },
    });
    this.#title = 'The exchange says it again';
    await client.POST('/v1/sandbox/orders/{id}/repeat', { ...path(filled?.id), body: {} });
    this.#title = 'What is left expires';
    await client.POST('/v1/sandbox/orders/{id}/expire', { ...path(filled?.id), body: {} });
    this.#title = 'The exchange gives it up';
    await client.POST('/v1/sandbox/orders/{id}/reject', { ...path(rejected?.id), body: {} });
    this.#title = 'The next answer is lost';
    await client.POST('/v1/sandbox/faults', { body: { call: 'submit_order', fault: 'lose_answer', account } });
    await place();
    this.#title = 'The next allocation is rejected';
    await client.POST('/v1/sandbox/allocations/next', {
      body: { account, outcome: 'rejected', reject_reason: 'account_restricted' },
    });
    await client.POST('/v1/allocations', {
      params: { header: { 'Idempotency-Key': randomUUID() } },
      body: { account, amount_kobo: 1_000 },
    });
    const withdraw = (amount_kobo: number) =>
      client.POST('/v1/withdrawals', {
        params: { header: { 'Idempotency-Key': randomUUID() } },
        body: { account, amount_kobo, destination: 'bank_account' },
      });
    this.#title = 'The next two withdrawals stay `processing`';
    await client.POST('/v1/sandbox/withdrawals/next', { body: { account, outcome: 'hold', times: 2 } });
    const [{ data: paid }, { data: declined }] = [await withdraw(150_000), await withdraw(250_000)];
    this.#title = 'The broker pays one';
    await client.POST('/v1/sandbox/withdrawals/{id}/decide', { ...path(paid?.id), body: { decision: 'paid' } });
    this.#title = 'The broker rejects one';
    await client.POST('/v1/sandbox/withdrawals/{id}/decide', {
      ...path(declined?.id),
      body: { decision: 'rejected', reject_reason: 'bank_account_mismatch' },
    });
    this.#title = 'An account that has five million naira and only the shares it bought';
    await client.POST('/v1/sandbox/funds', { body: { account, cash_kobo: 500_000_000, shares_elsewhere: 0 } });
    this.#title = 'A broker that holds an account';
    await client.POST('/v1/sandbox/accounts/state', {
      body: { account, state: 'restricted', code: 'broker_hold', forbids: ['buy', 'fund'] },
    });
    await client.POST('/v1/sandbox/accounts/state', { body: { account, state: 'active' } });
    this.#title = 'The trades of an account settle now';
    await client.POST('/v1/sandbox/settlement', { body: { account } });
    const { data: applied } = await client.POST('/v1/applications', {
      params: { header: { 'Idempotency-Key': randomUUID() } },
      body: goodApplication,
    });
    this.#title = 'The next document is refused';
    await client.POST('/v1/sandbox/applications/{id}/documents/next', {
      ...path(applied?.id),
      body: { type: 'photo', outcome: 'refused' },
    });
    this.#title = "The broker's staff decline";
    await client.POST('/v1/sandbox/applications/{id}/decide', { ...path(applied?.id), body: { outcome: 'decline' } });
  }

  /** Shows the broker's records: with trades of some days ago, which are settled today. */
  async records(): Promise<void> {
    const { account } = this.partner;
    const client = this.#client;
    const executedAt = { seconds: BigInt(Math.floor(Date.now() / 1_000) - 10 * 86_400), nanos: 0 };
    await this.gateway.controls.addTrades(
      { account, symbol: 'ZENITHBANK', side: 1, quantity: 500n, priceKobo: 6_250n, executedAt, count: 1 },
      callTimeout,
    );
    const params = { path: { account } };
    this.#title = 'The accounts one can trade for';
    await client.GET('/v1/accounts', { params: { query: { limit: 2 } } });
    this.#title = 'One account';
    await client.GET('/v1/accounts/{account}', { params });
    this.#title = 'What an account may do';
    await client.GET('/v1/accounts/{account}/status', { params });
    this.#title = 'The money of an account';
    await client.GET('/v1/accounts/{account}/balance', { params });
    this.#title = 'What an account holds';
    await client.GET('/v1/accounts/{account}/positions', { params });
    this.#title = 'The newest trades';
    await client.GET('/v1/accounts/{account}/trades', { params: { ...params, query: { limit: 2 } } });
    this.#title = 'Settled trades with their charges';
    await client.GET('/v1/accounts/{account}/contract-notes', { params: { ...params, query: { limit: 2 } } });
    this.#title = 'What changed the money of an account';
    await client.GET('/v1/accounts/{account}/transactions', { params: { ...params, query: { limit: 4 } } });
    this.#title = 'The states';
    await client.GET('/v1/reference/states');
    this.#title = 'The areas of one state';
    await client.GET('/v1/reference/states/{state}/lgas', { params: { path: { state: 'LAGOS' } } });
    this.#title = 'The session now';
    await client.GET('/v1/market');
    this.#title = 'The days around Christmas';
    await client.GET('/v1/market/calendar', { params: { query: { from: '2026-12-24', to: '2026-12-29' } } });
    this.#title = 'Two funds';
    await client.GET('/v1/instruments', { params: { query: { kind: 'etf', limit: 2 } } });
    this.#title = 'One instrument, before an order for it';
    await client.GET('/v1/instruments/{symbol}', { params: { path: { symbol: 'ZENITHBANK' } } });
    this.#title = 'The oldest events';
    await client.GET('/v1/events', { params: { query: { limit: 2 } } });
    const typical = { requestsPerSecond: 20, requestsBurst: 40, requestsUnderWay: 5 };
    const { key } = await this.gateway.newPartner({ limits: typical });
    this.#title = 'What is used and what remains';
    await client.GET('/v1/limits', { headers: { authorization: `Bearer ${key}` } });
  }

  async keys(): Promise<void> {
    const client = this.#client;
    this.#title = 'A key that can only read';
    const { data } = await client.POST('/v1/keys', { body: { scopes: ['read'], addresses: ['192.0.2.0/24'] } });
    this.#title = 'The newest keys';
    await client.GET('/v1/keys', { params: { query: { limit: 2 } } });
    this.#title = 'It stops at once';
    await client.DELETE('/v1/keys/{id}', { params: { path: { id: data?.id ?? '' } } });
  }

  /** Shows the webhooks, requests, events and time of a sandbox. */
  async tools(receiver: WebhookReceiver): Promise<void> {
    const { account } = this.partner;
    const client = this.#client;
    receiver.reply('/tour', ({ version }) => (version === undefined ? 500 : 200));
    this.#title = 'The endpoint answers a test with 500';
    await client.POST('/v1/sandbox/webhook/test', { body: {} });
    await client.POST('/v1/orders', {
      params: { header: { 'Idempotency-Key': randomUUID() } },
      body: { account, symbol: 'SIM-REST', side: 'buy', quantity: 400, type: 'limit', price_kobo: 1_000 },
    });
    await eventually(async () => {
      this.#title = 'The newest deliveries';
      const { data } = await client.GET('/v1/sandbox/webhook/deliveries', { params: { query: { limit: 2 } } });
      if (data?.data[0]?.state === 'delivered' && data.data[0].attempts.length > 0) return;
      this.recorded.listWebhookDeliveries = [];
      throw new Error('nothing was delivered yet');
    });
    await client.GET('/v1/orders/{id}', { params: { path: { id: 'ord_aaaaaaaaaaaaaaaaaaaa' } } });
    this.#title = 'The last request, which found nothing';
    await client.GET('/v1/sandbox/requests', { params: { query: { limit: 1 } } });
    this.#title = 'The last event';
    await client.GET('/v1/sandbox/events', { params: { query: { limit: 1 } } });
    this.#title = 'The time now';
    await client.GET('/v1/sandbox/clock');
  }

  /** The first event of each type, once all that are to come have come. */
  async events(): Promise<Record<string, unknown>> {
    const expected = eventTypes.filter((type) => type !== 'application.refused');
    return eventually(async () => {
      const { data } = await this.#client.GET('/v1/events', { params: { query: { limit: 100 } } });
      const byType: Record<string, unknown> = {};
      for (const event of data?.data ?? []) byType[event.type] ??= event;
      const missing = expected.filter((type) => !(type in byType));
      if (missing.length > 0) throw new Error(`there is no ${missing.join(', ')} yet`);
      return byType;
    }, 30_000);
  }

  #quietly<T>(work: () => Promise<T>): Promise<T> {
    const pending = work();
    this.#title = undefined;
    return pending;
  }
}

/** Makes the events of objects that never reached the broker: that takes a gateway without one. */
async function refusedEvents(): Promise<Record<string, unknown>> {
  const gateway = await startGateway();
  try {
    const { key } = await gateway.newPartner();
    await gateway.stopBroker();
    const request = { key, idempotencyKey: randomUUID(), body: goodApplication };
    await gateway.rest('POST', '/v1/applications', request);
    return await eventually(async () => {
      const [event] = (await gateway.rest('GET', '/v1/events', { key })).body.data;
      if (event?.type !== 'application.refused') throw new Error('there is no such event yet');
      return { 'application.refused': event };
    });
  } finally {
    await gateway.stop();
  }
}

function only(headers: Headers, names: readonly string[]): Record<string, string> {
  return Object.fromEntries([...headers].filter(([name]) => names.includes(name)));
}

/** An answer as a page may show it: without a key's secret, and with the beginning of a list that came whole. */
function shown(body: Record<string, unknown>): unknown {
  if (typeof body.secret === 'string') return { ...body, secret: 'marina_test_…' };
  if (Array.isArray(body.data)) return { ...body, data: body.data.slice(0, keptItems) };
  return body;
}
