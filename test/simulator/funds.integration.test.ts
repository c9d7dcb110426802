import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import fc from 'fast-check';
import { Accounts } from '../../src/gen/marina/broker/v1/accounts_pb.ts';
import {
  AccountStatus,
  OrderType,
  RejectReason,
  ReportKind,
  Side,
  TimeInForce,
} from '../../src/gen/marina/broker/v1/orders_pb.ts';
import { Outcome } from '../../src/gen/marina/simulator/v1/controls_pb.ts';
import { createGrpcClient } from '../../src/kit/grpc-client.ts';
import { roundKoboDecimal } from '../../src/kit/money.ts';
import { eventually } from '../support/eventually.ts';
import { startGateway, type TestGateway, type TestPartner } from '../support/gateway.ts';
import { patient } from '../support/patience.ts';
import { newAllocation, newOrder, soon, startTestSimulator, type TestOrder } from './fixture.ts';

const { ACCEPTED } = ReportKind;
const { INSUFFICIENT_FUNDS, SETTLEMENT_LOCKOUT, UNSPECIFIED } = RejectReason;
/** A stock whose price stands still: a buy at 900 and a sale at 1,100 wait. */
const symbol = 'STILL';
const [lowest, highest] = [900n, 1_100n];
const dayMs = 86_400_000;

type Fields = Partial<TestOrder>;

async function startBroker(startCashKobo = 0n, sharesElsewhere = 0n) {
  const simulator = await startTestSimulator(undefined, { startCashKobo, sharesElsewhere });
  let { orders, controls } = simulator;
  const accounts = createGrpcClient(Accounts, `127.0.0.1:${simulator.port}`);
  after(() => accounts.close());
  await controls.setInstrument({ instrument: { symbol, name: 'Still Plc', lastPriceKobo: 1_000n } }, soon);
  /** Why an order is rejected; UNSPECIFIED if it is taken. */
  const submit = async (fields: Fields): Promise<RejectReason> => {
    const { report } = await orders.submitOrder(newOrder({ symbol, priceKobo: lowest, ...fields }), soon);
    return report?.kind === ACCEPTED ? UNSPECIFIED : (report?.rejectReason ?? assert.fail());
  };
  return {
    ...simulator,
    submit,
    buy: (account: string, quantity: bigint, fields: Fields = {}) => submit({ account, quantity, ...fields }),
    sell: (account: string, quantity: bigint, fields: Fields = {}) =>
      submit({ account, quantity, side: Side.SELL, priceKobo: highest, ...fields }),
    async open(code: string, cashKobo?: bigint): Promise<string> {
      await controls.setAccount({ account: code, status: AccountStatus.ACTIVE }, soon);
      if (cashKobo !== undefined) await controls.setCash({ account: code, cashKobo }, soon);
      return code;
    },
    /** Returns the cost of a buy with its charges. */
    async costOf(account: string, quantity: bigint, priceKobo: bigint): Promise<bigint> {
      const type = OrderType.LIMIT;
      const order = { account, symbol, side: Side.BUY, quantity, type, priceKobo };
      return roundKoboDecimal((await orders.estimateOrder(order, soon)).totalKoboDecimal, 'up');
    },
    balance: (account: string) => accounts.getBalance({ account }, soon),
    async trade(account: string, side: Side, quantity: bigint, daysAgo = 0): Promise<void> {
      const executedAt = timestampFromMs(Date.now() - daysAgo * dayMs);
      await controls.addTrades({ account, symbol, side, quantity, priceKobo: 1_000n, executedAt }, soon);
    },
    async status(account: string): Promise<AccountStatus> {
      return (await orders.getTradingContext({ account, symbol }, soon)).accountStatus;
    },
    async restarted(): Promise<void> {
      ({ orders, controls } = await simulator.restart());
    },
  };
}

const broker = await startBroker();

describe('an account that must pay', () => {
  it('can spend what it has to the last kobo, charges included, and one more is insufficient_funds', async () => {
    const cost = await broker.costOf('ANY', 100n, lowest);
    const rich = await broker.open('EXACTLY', cost);
    const poor = await broker.open('ONELESS', cost - 1n);
    assert.equal(await broker.buy(poor, 100n), INSUFFICIENT_FUNDS);
    assert.equal(await broker.buy(rich, 100n), UNSPECIFIED);
    const { pendingDebitsKobo, availableKobo } = await broker.balance(rich);
    assert.deepEqual([pendingDebitsKobo, availableKobo], [cost, 0n], 'what waits may cost is a pending debit');
    assert.equal(await broker.buy(rich, 1n), INSUFFICIENT_FUNDS);
  });

  it('has its money back when the order is cancelled, expires, or trades for less', async () => {
    const cost = await broker.costOf('ANY', 100n, lowest);
    const owner = await broker.open('BACK', cost);
    const order = newOrder({ account: owner, symbol, quantity: 100n, priceKobo: lowest });
    await broker.orders.submitOrder(order, soon);
    await broker.orders.cancelOrder({ clientOrderId: order.clientOrderId }, soon);
    assert.equal((await broker.balance(owner)).availableKobo, cost);
    const again = newOrder({ account: owner, symbol, quantity: 100n, priceKobo: lowest });
    await broker.orders.submitOrder(again, soon);
    await broker.controls.fillOrder({ clientOrderId: again.clientOrderId, quantity: 60n, priceKobo: 850n }, soon);
    const half = await broker.balance(owner);
    assert.ok(half.availableKobo > 0n, 'cheaper than its limit');
    assert.equal(half.availableKobo, cost - half.pendingDebitsKobo);
    await broker.controls.expireOrder({ clientOrderId: again.clientOrderId }, soon);
    const paid = await broker.costOf(owner, 60n, 850n);
    assert.deepEqual((await broker.balance(owner)).pendingDebitsKobo, paid);
  });

  it('is checked for the highest price of the day when its order has no limit', async () => {
    const market = { type: OrderType.MARKET, priceKobo: undefined, timeInForce: TimeInForce.FOK };
    const cost = await broker.costOf('ANY', 100n, highest);
    assert.equal(await broker.buy(await broker.open('MARKET1', cost - 1n), 100n, market), INSUFFICIENT_FUNDS);
    assert.equal(await broker.buy(await broker.open('MARKET2', cost), 100n, market), UNSPECIFIED);
  });

  it('spends nothing twice, however many orders come at once', async () => {
    const cost = await broker.costOf('ANY', 10n, lowest);
    const owner = await broker.open('ATONCE', cost * 20n + cost / 2n);
    const answers = await Promise.all(Array.from({ length: 60 }, () => broker.buy(owner, 10n)));
    assert.equal(answers.filter((reason) => reason === UNSPECIFIED).length, 20);
    assert.equal(answers.filter((reason) => reason === INSUFFICIENT_FUNDS).length, 40);
    assert.equal((await broker.balance(owner)).availableKobo, cost / 2n);
  });

  it('can spend an allocation at once', async () => {
    const owner = await broker.open('FUNDED', 0n);
    assert.equal(await broker.buy(owner, 10n), INSUFFICIENT_FUNDS);
    await broker.allocations.submitAllocation(newAllocation(await broker.costOf(owner, 10n, lowest), owner), soon);
    assert.equal(await broker.buy(owner, 10n), UNSPECIFIED);
  });

  it('may give any order for a magic symbol, or one whose outcome is decided', async () => {
    const owner = await broker.open('MAGIC', 0n);
    const magic = { symbol: 'SIM-REST', priceKobo: 1_000n };
    assert.equal(await broker.buy(owner, 1_000n, magic), UNSPECIFIED);
    assert.equal(await broker.sell(owner, 1_000n, magic), UNSPECIFIED);
    await broker.controls.forceOutcome({ account: owner, outcome: Outcome.REST }, soon);
    assert.equal(await broker.buy(owner, 1_000n), UNSPECIFIED);
    assert.equal((await broker.balance(owner)).pendingDebitsKobo, 0n);
  });
});

describe('an account that must deliver', () => {
  it('can sell the shares it has and no more, however many sales wait', async () => {
    const owner = await broker.open('SELLER', 0n);
    await broker.trade(owner, Side.BUY, 100n, 30);
    await broker.controls.setCash({ account: owner, cashKobo: 10_000_000n }, soon);
    const answers = await Promise.all(Array.from({ length: 7 }, () => broker.sell(owner, 20n)));
    assert.equal(answers.filter((reason) => reason === UNSPECIFIED).length, 5);
    assert.equal(answers.filter((reason) => reason === INSUFFICIENT_FUNDS).length, 2);
  });

  it('can sell shares that it has elsewhere, as many as are set', async () => {
    const owner = await broker.open('ELSEWHERE', 0n);
    assert.equal(await broker.sell(owner, 1n), INSUFFICIENT_FUNDS);
    await broker.controls.setCash({ account: owner, cashKobo: 0n, sharesElsewhere: 50n }, soon);
    assert.equal(await broker.sell(owner, 51n), INSUFFICIENT_FUNDS);
    assert.equal(await broker.sell(owner, 50n), UNSPECIFIED);
    assert.equal(await broker.sell(owner, 1n), INSUFFICIENT_FUNDS);
  });
});

describe('an account that waits for a settlement', () => {
  it('cannot sell shares before their purchase has settled', async () => {
    const owner = await broker.open('UNSETTLED', 10_000_000n);
    await broker.trade(owner, Side.BUY, 100n);
    assert.equal(await broker.sell(owner, 100n), SETTLEMENT_LOCKOUT);
    assert.equal(await broker.sell(owner, 101n), INSUFFICIENT_FUNDS, 'more than it will ever have');
    await broker.controls.settle({ account: owner }, soon);
    assert.equal(await broker.sell(owner, 100n), UNSPECIFIED);
  });

  it('cannot spend the proceeds of a sale before it has settled', async () => {
    const owner = await broker.open('PROCEEDS', 0n);
    await broker.trade(owner, Side.SELL, 100n);
    assert.equal(await broker.buy(owner, 50n), SETTLEMENT_LOCKOUT);
    assert.equal(await broker.buy(owner, 5_000n), INSUFFICIENT_FUNDS);
    await broker.controls.settle({ account: owner }, soon);
    assert.equal(await broker.buy(owner, 50n), UNSPECIFIED);
  });

  it('is locked while it owes for settled trades, and trades again once money has come', async () => {
    const owner = await broker.open('DEBTOR', 0n);
    await broker.trade(owner, Side.BUY, 100n);
    assert.equal(await broker.status(owner), AccountStatus.ACTIVE, 'the purchase has not settled yet');
    await broker.controls.settle({ account: owner }, soon);
    assert.equal(await broker.status(owner), AccountStatus.SETTLEMENT_LOCKOUT);
    assert.equal(await broker.sell(owner, 1n), SETTLEMENT_LOCKOUT, 'whatever it orders');
    const { availableKobo } = await broker.balance(owner);
    assert.ok(availableKobo < 0n);
    await broker.allocations.submitAllocation(newAllocation(-availableKobo, owner), soon);
    assert.equal(await broker.status(owner), AccountStatus.ACTIVE);
    assert.equal(await broker.sell(owner, 1n), UNSPECIFIED);
  });

  it('is locked by a settlement that the clock brings', async () => {
    const owner = await broker.open('OVERNIGHT', 0n);
    await broker.trade(owner, Side.BUY, 100n);
    await broker.controls.setClock({ offsetMs: BigInt(10 * dayMs) }, soon);
    assert.equal(await broker.status(owner), AccountStatus.SETTLEMENT_LOCKOUT);
  });
});

describe('what accounts begin with', () => {
  it('is theirs to spend and to sell, and shown as money', async () => {
    const generous = await startBroker(1_000_000n, 500n);
    const owner = await generous.open('BEGINNER');
    const { openingKobo, availableKobo } = await generous.balance(owner);
    assert.deepEqual([openingKobo, availableKobo], [1_000_000n, 1_000_000n]);
    assert.equal(await generous.sell(owner, 500n), UNSPECIFIED);
    assert.equal(await generous.sell(owner, 1n), INSUFFICIENT_FUNDS);
    assert.equal(await generous.buy(owner, 2_000n), INSUFFICIENT_FUNDS);
    await generous.controls.setCash({ account: owner, cashKobo: 5n }, soon);
    assert.equal((await generous.balance(owner)).availableKobo, 5n, 'cash is set with what it began with');
  });
});

describe('after a restart', () => {
  it('every account has what it had, and orders that wait still promise what they may cost', async () => {
    const kept = await startBroker(2_000_000n);
    const codes = ['ONE', 'TWO', 'THREE'];
    for (const code of codes) await kept.open(code);
    const act = fc.record({
      code: fc.constantFrom(...codes),
      what: fc.constantFrom('buy', 'sell', 'trade', 'fill', 'settle'),
      quantity: fc.bigInt(1n, 400n),
    });
    for (const { code, what, quantity } of fc.sample(act, { numRuns: 80, seed: 7 })) {
      if (what === 'buy') await kept.buy(code, quantity, { timeInForce: TimeInForce.GTC });
      if (what === 'sell') await kept.sell(code, quantity, { timeInForce: TimeInForce.GTC });
      if (what === 'trade') await kept.trade(code, Side.BUY, quantity / 10n + 1n, Number(quantity % 3n));
      if (what === 'fill') await kept.buy(code, quantity / 10n + 1n, { priceKobo: highest });
      if (what === 'settle') await kept.controls.settle({ account: code }, soon);
    }
    const shown = () =>
      Promise.all(
        codes.map(async (code) => {
          const { openingKobo, pendingDebitsKobo, availableKobo } = await kept.balance(code);
          return { openingKobo, pendingDebitsKobo, availableKobo };
        }),
      );
    const before = await shown();
    await kept.restarted();
    await eventually(async () => assert.deepEqual(await shown(), before));
    for (const [at, code] of codes.entries()) {
      const { availableKobo } = before[at] ?? assert.fail();
      // The largest order that its money is enough for, and one share more.
      let most = 0n;
      for (let step = 4_096n; step > 0n; step /= 2n) {
        if ((await kept.costOf(code, most + step, lowest)) <= availableKobo) most += step;
      }
      assert.notEqual(await kept.buy(code, most + 1n), UNSPECIFIED, code);
      if (most > 0n) assert.equal(await kept.buy(code, most), UNSPECIFIED, code);
    }
  });
});

describe('a partner in a sandbox whose accounts must pay', () => {
  let gateway: TestGateway;
  let partner: TestPartner;
  before(async () => {
    gateway = await startGateway({}, { funds: { startCashKobo: 1_000_000_000n, sharesElsewhere: 1_000n } });
    partner = await gateway.newPartner();
  });
  after(() => gateway.stop());

  const post = (body: object) => gateway.rest('POST', '/v1/sandbox/funds', { key: partner.key, body });
  const price = async () => (await gateway.rest('GET', '/v1/instruments/UBA', { key: partner.key })).body;

  it('sees an order rejected as insufficient_funds, sets its cash, and sees one taken', async () => {
    const { account } = partner;
    const { lower_price_kobo: lower } = await price();
    const order = { symbol: 'UBA', quantity: 100, price_kobo: lower };
    const set = await post({ account: account.toLowerCase(), cash_kobo: 1_000 });
    assert.deepEqual(set.body, { object: 'sandbox_funds', account, cash_kobo: 1_000, shares_elsewhere: null });
    const refused = await gateway.place(partner, order);
    assert.deepEqual([refused.status, refused.body.error.reject_reason], [422, 'insufficient_funds']);
    await post({ account, cash_kobo: 100_000_000, shares_elsewhere: 0 });
    assert.equal((await gateway.place(partner, { ...order, quantity: 101 })).status, 201);
    const balance = await gateway.rest('GET', `/v1/accounts/${account}/balance`, { key: partner.key });
    assert.ok(balance.body.pending_debits_kobo > 101 * lower);
    const sale = await gateway.place(partner, { ...order, side: 'sell' });
    assert.equal(sale.body.error.reject_reason, 'insufficient_funds', 'it has no shares now');
  });

  it('is refused settlement_lockout while its account owes money, and nothing is stored', async () => {
    const { account } = partner;
    await post({ account, cash_kobo: -1 });
    const { lower_price_kobo: lower } = await price();
    await eventually(async () => {
      const refused = await gateway.place(partner, { symbol: 'UBA', quantity: 1, price_kobo: lower });
      assert.deepEqual([refused.status, refused.body.error?.code], [422, 'settlement_lockout']);
    }, patient(15_000));
  });

  it('cannot set the funds of an account that is not its own', async () => {
    const { account } = await gateway.newPartner();
    assert.equal((await post({ account, cash_kobo: 1 })).body.error.code, 'unknown_account');
  });
});
