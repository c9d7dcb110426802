import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { Scope } from '../../../src/gen/marina/options/v1/options_pb.ts';
import { assertConnectRefusal } from '../../support/e2e/assert-connect.ts';
import { assertHeaders } from '../../support/e2e/assert-rest.ts';
import { type Call, goodBody, type Members, nobodysOrder } from '../../support/e2e/calls.ts';
import { type Outcome, outcomeOf } from '../../support/e2e/outcome.ts';
import { type Protocol, protocols } from '../../support/e2e/protocols.ts';
import { useGateway } from '../../support/e2e/suite.ts';
import { eventually } from '../../support/eventually.ts';
import type { TestPartner } from '../../support/gateway.ts';
import { createKey } from '../../support/keys.ts';

/** The partner and objects that the cases find when they run. */
interface World {
  readonly partner: TestPartner;
  /** A key of the partner that may only trade. */
  readonly tradeKey: string;
  readonly resting: string;
  readonly filled: string;
}

/** One call, the same through every protocol. */
interface Case {
  readonly name: string;
  readonly call: (world: World, protocol: Protocol) => Omit<Call, 'key'> & { key?: string | undefined };
  /** The error code of the answer; absent: the call is answered. */
  readonly code?: string;
  readonly param?: string;
  /** It makes an order of its own through each protocol, so that what is made there differs. */
  readonly isNew?: true;
}

const create = (body: Members, idempotencyKey?: string): Case['call'] => {
  return ({ partner }, protocol) => ({
    operation: 'createOrder',
    idempotencyKey: [idempotencyKey ?? `${protocol} ${JSON.stringify(body)}`],
    body: { ...goodBody(partner.account), ...body },
  });
};
const estimate = (body: Members): Case['call'] => {
  return ({ partner }) => ({ operation: 'estimateOrder', body: { ...goodBody(partner.account), ...body } });
};
const list = (query: Record<string, string>): Case['call'] => {
  return () => ({ operation: 'listOrders', query });
};

const ofAccount = (operation: Call['operation'], query: Record<string, string> = {}, id?: string): Case['call'] => {
  return ({ partner }) => ({ operation, id: id ?? partner.account, query });
};
const calendar = (query: Record<string, string>): Case['call'] => {
  return () => ({ operation: 'listMarketDays', query });
};
// Their prices do not move.
const instruments = (query: Record<string, string>): Case['call'] => {
  return () => ({ operation: 'listInstruments', query });
};
const badRange = { code: 'invalid_request', param: 'from' } as const;

/** The one table: whatever is asked, and however wrongly, every protocol answers alike. */
const cases: readonly Case[] = [
  { name: 'an order that rests', call: create({}), isNew: true },
  { name: 'an order with everything', call: create({ time_in_force: 'gtc', client_reference: 'a b~' }), isNew: true },
  { name: 'an order in lower case', call: create({ symbol: 'sim-rest' }), isNew: true },
  { name: 'an order seen before', call: create({ quantity: 7 }, 'resting') },
  { name: 'the estimate of a limit order', call: estimate({}) },
  { name: 'the estimate of a market order', call: estimate({ type: 'market', price_kobo: undefined }) },
  { name: 'the estimate of a sale', call: estimate({ side: 'sell', quantity: 100_000_000 }) },
  { name: 'an order that rests, read', call: ({ resting }) => ({ operation: 'getOrder', id: resting }) },
  { name: 'an order that filled, read', call: ({ filled }) => ({ operation: 'getOrder', id: filled }) },
  { name: 'the history of an order', call: ({ filled }) => ({ operation: 'getOrderHistory', id: filled }) },
  { name: 'the events of an order', call: ({ filled }) => ({ operation: 'listOrderEvents', id: filled }) },
  { name: 'a page of filled orders', call: list({ state: 'filled', limit: '1' }) },
  { name: 'an empty page', call: list({ symbol: 'NOTHING' }) },
  { name: 'the events', call: () => ({ operation: 'listEvents', query: { limit: '2' } }) },
  { name: 'no credential', call: () => ({ operation: 'listOrders', key: undefined }), code: 'unauthorized' },
  {
    name: 'a key that is none',
    call: () => ({ operation: 'listOrders', key: 'marina_test_x' }),
    code: 'unauthorized',
  },
  {
    name: 'a key without the scope',
    call: ({ tradeKey }) => ({ operation: 'listOrders', key: tradeKey }),
    code: 'insufficient_scope',
  },
  {
    name: 'no Idempotency-Key',
    call: (world, protocol) => ({ ...create({})(world, protocol), idempotencyKey: [] }),
    code: 'missing_required_field',
  },
  {
    name: 'an Idempotency-Key that is too long',
    call: create({}, 'k'.repeat(256)),
    code: 'invalid_request',
  },
  { name: 'an Idempotency-Key of another order', call: create({ quantity: 8 }, 'resting'), code: 'duplicate_order' },
  { name: 'no side', call: estimate({ side: undefined }), code: 'missing_required_field' },
  { name: 'no price', call: estimate({ price_kobo: undefined }), code: 'missing_required_field' },
  { name: 'a price that does not belong', call: estimate({ type: 'market' }), code: 'invalid_request' },
  { name: 'a quantity of 0', call: estimate({ quantity: 0 }), code: 'invalid_request' },
  { name: 'a text that is too long', call: estimate({ symbol: 'A'.repeat(21) }), code: 'invalid_request' },
  { name: 'an account nobody has', call: estimate({ account: 'NOBODYS' }), code: 'unknown_account' },
  { name: 'a symbol nobody knows', call: create({ symbol: 'NOTHING' }), code: 'unknown_symbol' },
  { name: 'a limit of 101', call: list({ limit: '101' }), code: 'invalid_request' },
  { name: 'a made-up cursor', call: list({ cursor: 'AAAA' }), code: 'invalid_request' },
  { name: 'an id that is none', call: () => ({ operation: 'getOrder', id: 'x' }), code: 'order_not_found' },
  { name: 'an id nobody has', call: () => ({ operation: 'getOrder', id: nobodysOrder }), code: 'order_not_found' },
  { name: 'the accounts', call: () => ({ operation: 'listAccounts' }) },
  { name: 'an account', call: ofAccount('getAccount') },
  { name: 'an account nobody has', call: ofAccount('getAccount', {}, 'NOBODYS'), code: 'account_not_found' },
  { name: 'an account that is none', call: ofAccount('getAccount', {}, 'A-B'), code: 'account_not_found' },
  { name: 'the status of an account', call: ofAccount('getAccountStatus') },
  {
    name: 'the status of an account nobody has',
    call: ofAccount('getAccountStatus', {}, 'NOBODYS'),
    code: 'account_not_found',
  },
  { name: 'the transactions', call: ofAccount('listAccountTransactions') },
  { name: 'a page of the charges', call: ofAccount('listAccountTransactions', { limit: '1', type: 'charge' }) },
  {
    name: 'the transactions of no type',
    call: ofAccount('listAccountTransactions', { type: 'bribe' }),
    code: 'invalid_request',
    param: 'type',
  },
  { name: 'the transactions from no day', call: ofAccount('listAccountTransactions', { from: 'today' }), ...badRange },
  { name: 'a balance', call: ofAccount('getBalance') },
  {
    name: 'a balance in lower case',
    call: (world) => ofAccount('getBalance', {}, world.partner.account.toLowerCase())(world, 'REST'),
  },
  { name: 'the positions', call: ofAccount('listPositions') },
  { name: 'the trades', call: ofAccount('listTrades') },
  { name: 'a page of trades', call: ofAccount('listTrades', { limit: '1' }) },
  { name: 'the contract notes', call: ofAccount('listContractNotes') },
  {
    name: 'the contract notes of a day',
    call: ofAccount('listContractNotes', { from: '2026-01-02', to: '2026-01-02' }),
  },
  { name: 'a day that is none', call: ofAccount('listTrades', { from: '2026-02-30' }), ...badRange },
  {
    name: 'a day before the other',
    call: ofAccount('listContractNotes', { from: '2026-01-02', to: '2026-01-01' }),
    ...badRange,
  },
  { name: 'a day to come', call: ofAccount('listTrades', { to: '9999-12-31' }), code: 'invalid_request', param: 'to' },
  {
    name: 'too many trades on a page',
    call: ofAccount('listTrades', { limit: '101' }),
    code: 'invalid_request',
    param: 'limit',
  },
  {
    name: 'the balance of an account nobody has',
    call: ofAccount('getBalance', {}, 'NOBODYS'),
    code: 'account_not_found',
  },
  {
    name: 'the trades of an account that is none',
    call: ofAccount('listTrades', {}, 'A-B'),
    code: 'account_not_found',
  },
  { name: 'the states', call: () => ({ operation: 'listStates' }) },
  { name: 'the areas of a state', call: () => ({ operation: 'listLgas', id: 'lagos' }) },
  { name: 'the areas of no state', call: () => ({ operation: 'listLgas', id: 'NOWHERE' }), code: 'not_found' },
  { name: 'the session', call: () => ({ operation: 'getMarket' }) },
  { name: 'the calendar', call: calendar({ from: '2026-12-23', to: '2026-12-30', limit: '3' }) },
  { name: 'a calendar from a day that is none', call: calendar({ from: '2026-02-30' }), ...badRange },
  {
    name: 'a calendar of too many days',
    call: calendar({ from: '2026-01-01', to: '2027-01-02' }),
    code: 'invalid_request',
    param: 'to',
  },
  { name: 'some instruments', call: instruments({ symbol_prefix: 'sim-', limit: '2' }) },
  { name: 'the funds of some instruments', call: instruments({ symbol_prefix: 'SIM-', kind: 'etf', board: 'etf' }) },
  { name: 'an instrument', call: () => ({ operation: 'getInstrument', id: 'sim-rest' }) },
  {
    name: 'an instrument nobody knows',
    call: () => ({ operation: 'getInstrument', id: 'NOTHING' }),
    code: 'not_found',
  },
  { name: 'the limits', call: () => ({ operation: 'getLimits' }) },
  {
    name: 'the cancel of an order that filled',
    call: ({ filled }) => ({ operation: 'cancelOrder', id: filled }),
    code: 'order_not_cancelable',
  },
  { name: 'an order that is rejected', call: create({ symbol: 'SIM-FUNDS' }), code: 'order_rejected', isNew: true },
  {
    name: 'an order past the day',
    call: create({ quantity: 100_000_000, price_kobo: 1100 }),
    code: 'limit_exceeded',
  },
];

/** Masks the members that differ between two orders that are otherwise the same. */
function masked(outcome: Outcome): Outcome {
  const mask = (text: string | undefined) =>
    text
      ?.replaceAll(/ord_[a-z2-7]{20}/g, 'ord_*')
      .replaceAll(/"exchange_order_id":"[^"]+"/g, '"exchange_order_id":"*"')
      .replaceAll(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ/g, '*');
  const { answer, location, ...rest } = outcome;
  return { ...rest, ...(answer === undefined ? {} : { answer: mask(answer) ?? '' }), location: mask(location) };
}

/** Masks the time for which the broker's figures hold, which differs between two reads. */
function withoutReadTime(outcome: Outcome): Outcome {
  const { answer } = outcome;
  return answer === undefined ? outcome : { ...outcome, answer: answer.replace(/"as_of":"[^"]+"/, '"as_of":"*"') };
}

describe('every protocol answers alike', () => {
  const suite = useGateway({}, { limits: { ordersKoboPerDay: 10n ** 9n } });
  let world: World;

  before(async () => {
    const { gateway, partner } = suite;
    const scopes = [Scope.TRADE];
    const { key: tradeKey } = await createKey(gateway.database, { partnerId: partner.id, scopes });
    const filled = await gateway.place(partner, { symbol: 'SIM-FILL' });
    await eventually(async () => {
      const { body } = await gateway.rest('GET', `/v1/orders/${filled.body.id}`, { key: partner.key });
      assert.equal(body.state, 'filled');
      const events = await gateway.rest('GET', '/v1/events', { key: partner.key });
      assert.equal(events.body.data.length, 2);
    });
    const resting = await gateway.place(partner, { symbol: 'SIM-REST', quantity: 7 }, 'resting');
    world = { partner, tradeKey, resting: resting.body.id, filled: filled.body.id };
  });

  for (const { name, call, code, param, isNew } of cases) {
    it(`${name}: ${code ?? 'answered'}`, async () => {
      const outcomes: Outcome[] = [];
      for (const protocol of protocols) {
        const made = { key: world.partner.key, ...call(world, protocol) };
        const outcome = await outcomeOf(suite.protocols, protocol, made as Call);
        outcomes.push(isNew ? masked(outcome) : withoutReadTime(outcome));
      }
      const [first, ...others] = outcomes;
      assert.equal(first?.error?.code, code, JSON.stringify(first));
      if (param !== undefined) assert.equal(first?.error?.param, param);
      for (const [at, other] of others.entries()) assert.deepEqual(other, first, protocols[at + 1]);
    });
  }
});

describe('the link in an error', () => {
  const suite = useGateway();
  for (const protocol of protocols) {
    it(`${protocol}: leads to what the code means`, async () => {
      const { error } = await outcomeOf(suite.protocols, protocol, { operation: 'listOrders' });
      const answer = await fetch(error?.doc_url ?? '');
      assert.equal(answer.status, 200, error?.doc_url);
      assert.match(await answer.text(), /unauthorized/);
    });
  }
});

describe("paths of Connect's protocol", () => {
  const suite = useGateway();
  const service = '/marina.gateway.v1.Orders';
  const good = () => [
    ['Authorization', `Bearer ${suite.partner.key}`] as const,
    ['Content-Type', 'application/json'] as const,
  ];

  for (const path of [
    `${service}/PlaceOrder`,
    `${service}/ListOrders/`,
    `${service}/listOrders`,
    `${service}/`,
    '/marina.gateway.v1.Nothing/Nothing',
    '/marina.gateway.v1.orders/ListOrders',
  ]) {
    it(`${path} is answered not_found, as Connect has it`, async () => {
      const answer = await suite.protocols.raw({ method: 'POST', path, headers: good(), body: '{}' });
      assertConnectRefusal(answer, { code: 'not_found' });
    });
  }

  for (const method of ['GET', 'PUT', 'DELETE', 'OPTIONS']) {
    it(`${method} is answered method_not_allowed`, async () => {
      const answer = await suite.protocols.raw({ method, path: `${service}/ListOrders?message={}`, headers: good() });
      assertConnectRefusal(answer, { code: 'method_not_allowed' });
      assert.deepEqual(answer.headers.get('allow'), ['POST']);
    });
  }

  it('operators are not served here', async () => {
    const path = '/marina.admin.v1.Trading/PauseTrading';
    await suite.protocols.refusesRaw({ method: 'POST', path, headers: good(), body: '{}' }, { code: 'not_found' });
  });

  it('a call by hand is answered', async () => {
    const answer = await suite.protocols.raw({
      method: 'POST',
      path: `${service}/ListOrders`,
      headers: good(),
      body: '{}',
    });
    assertHeaders(answer);
    assert.deepEqual([answer.status, JSON.parse(answer.text)], [200, { hasMore: false, data: [] }]);
  });
});

describe('behind a trusted proxy', () => {
  const suite = useGateway(
    { MARINA_TRUSTED_PROXIES: '127.0.0.0/8,10.0.0.0/8' },
    { addresses: ['198.51.100.0/24', '2001:db8::/32'] },
  );
  const from = (forwardedFor: string): Call => ({
    operation: 'listOrders',
    key: suite.partner.key,
    headers: forwardedFor === '' ? [] : [['X-Forwarded-For', forwardedFor]],
  });

  for (const protocol of protocols) {
    for (const address of [
      '198.51.100.9',
      '2001:db8::1',
      '198.51.100.9:80',
      '[2001:db8::1]',
      '[2001:db8::1]:80',
      '1.1.1.1, 198.51.100.9',
      '198.51.100.9, 10.1.1.1',
    ]) {
      it(`${protocol}: a key works from ${address}`, async () => {
        await suite.protocols.answers(protocol, from(address));
      });
    }
    for (const address of ['', '203.0.113.1', '198.51.100.9, 203.0.113.1', '198.51.100.9, x', '198.51.100.9:x']) {
      it(`${protocol}: a key does not work from ${JSON.stringify(address)}`, () =>
        suite.protocols.refuses(protocol, from(address), { code: 'unauthorized' }));
    }
  }
});

describe('without a trusted proxy', () => {
  const suite = useGateway({}, { addresses: ['198.51.100.0/24'] });
  for (const protocol of protocols) {
    it(`${protocol}: what is forwarded means nothing`, () => {
      const headers = [['X-Forwarded-For', '198.51.100.9']] as const;
      const call: Call = { operation: 'listOrders', key: suite.partner.key, headers };
      return suite.protocols.refuses(protocol, call, { code: 'unauthorized' });
    });
  }
});
