/** The simulated broker's money and shares after everything that can happen to two accounts, with a restart at any moment. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { AccountActivity, AccountRestrictionCode, AccountState } from '../../src/gen/marina/broker/v1/accounts_pb.ts';
import {
  AccountStatus,
  InstrumentKind,
  ReportKind,
  Side,
  TimeInForce,
} from '../../src/gen/marina/broker/v1/orders_pb.ts';
import { WithdrawalDestination, WithdrawalReportKind } from '../../src/gen/marina/broker/v1/withdrawals_pb.ts';
import { Outcome, WithdrawalOutcome } from '../../src/gen/marina/simulator/v1/controls_pb.ts';
import { lagosDay } from '../../src/kit/clock.ts';
import { submitAllocation } from '../../src/simulator/back-office/operations.ts';
import { setDestinations } from '../../src/simulator/back-office/withdrawal-controls.ts';
import {
  decideWithdrawal,
  decideWithdrawalIfDue,
  returnWithdrawalIfDue,
  submitWithdrawal,
} from '../../src/simulator/back-office/withdrawals.ts';
import { ClearingRecords } from '../../src/simulator/clearing/records.ts';
import { advanceMarket, end, fill, submit } from '../../src/simulator/exchange/exchange.ts';
import type { OrderRequest } from '../../src/simulator/model.ts';
import { dayMs, orderRequest, SimulatedBroker } from '../support/simulated-broker.ts';

const { SELL } = Side;
const { BANK_ACCOUNT, WALLET } = WithdrawalDestination;
const { PAID, REJECTED, RETURNED } = WithdrawalReportKind;
const accounts = ['A1', 'A2'] as const;
/** More than the amount up to which a transfer to a bank bears no duty. */
const large = 2_000_000;
const days = [0, 2, 9];

class Broker {
  readonly #records: ClearingRecords;

  private constructor(readonly broker: SimulatedBroker) {
    this.#records = new ClearingRecords(broker.database.asDatabase, broker.world);
  }

  static async start(): Promise<Broker> {
    const broker = new Broker(await SimulatedBroker.start({ startCashKobo: 20_000_000n, sharesElsewhere: 300n }));
    await broker.broker.change({}, (unit) => {
      for (const account of accounts) unit.setAccount(account, AccountStatus.ACTIVE);
      const prices = { lowerKobo: 900, upperKobo: 1_100, quoteKobo: 1_000, lastKobo: 1_000 };
      const about = { symbol: 'OWN', name: 'Own Plc', kind: InstrumentKind.EQUITY, halted: false, pinned: true };
      unit.setInstrument({ ...about, ...prices, position: 500 });
    });
    return broker;
  }

  order(clientOrderId: string, fields: Partial<OrderRequest>, outcome?: Outcome) {
    const { directives } = this.broker;
    const request = orderRequest({ clientOrderId, symbol: 'OWN', timeInForce: TimeInForce.GTC, ...fields });
    if (outcome !== undefined) {
      directives.addOutcome({ account: request.account, symbol: '', behaviour: { outcome, delayMs: 0 } }, 1);
    }
    return this.broker.change({ orders: [clientOrderId] }, (unit) =>
      submit(unit, request, undefined, { fillDelay: { min: 0, max: 0 }, directives }),
    );
  }

  fill(id: string, quantity: number) {
    return this.broker.change({ orders: [id] }, (unit) => fill(unit, id, quantity, 905));
  }

  end(id: string, kind: ReportKind.CANCELLED | ReportKind.EXPIRED | ReportKind.REJECTED) {
    return this.broker.change({ orders: [id] }, (unit) => end(unit, id, kind));
  }

  allocate(account: string, amountKobo: number) {
    const clientAllocationId = `alc_${account}_${amountKobo}`;
    const settings = { decisionDelay: { min: 0, max: 0 }, directives: this.broker.directives };
    return this.broker.change({ allocations: [clientAllocationId] }, (unit) =>
      submitAllocation(unit, { clientAllocationId, account, amountKobo }, undefined, settings),
    );
  }

  withdraw(clientWithdrawalId: string, account: string, outcome: WithdrawalOutcome, destination = BANK_ACCOUNT) {
    const { directives } = this.broker;
    directives.addWithdrawal({ account, behaviour: { outcome, rejectReason: 0 } }, 1);
    const settings = { decisionDelay: { min: 1_000, max: 1_000 }, directives };
    const submission = { clientWithdrawalId, account, amountKobo: large, destination };
    return this.broker.change({ withdrawals: [clientWithdrawalId] }, (unit) =>
      submitWithdrawal(unit, submission, undefined, settings),
    );
  }

  decide(id: string, kind: WithdrawalReportKind) {
    return this.broker.change({ withdrawals: [id] }, (unit) => decideWithdrawal(unit, id, kind));
  }

  due(id: string) {
    return this.broker.change({ withdrawals: [id] }, (unit) => {
      decideWithdrawalIfDue(unit, id);
      returnWithdrawalIfDue(unit, id);
    });
  }

  settle(account: string) {
    return this.broker.change({}, (unit) => {
      unit.clearing.settle(account, lagosDay(this.broker.nowMs));
      unit.payOutSales();
    });
  }

  async pass(ms: number) {
    this.broker.passTime(ms);
    await this.broker.change({}, (unit) => {
      unit.payOutSales();
      advanceMarket(unit);
    });
  }

  /** Why an account can sell 0, 10, 20 … shares today, or not. */
  #salesOf(account: string): string {
    const { world, nowMs } = this.broker;
    const sales = Array.from({ length: 61 }, (_, at) =>
      orderRequest({ account, symbol: 'OWN', side: SELL, quantity: at * 10 }),
    );
    return sales.map((sale) => world.funds.shortfall(sale, 0, lagosDay(nowMs)) ?? 0).join('');
  }

  /** Everything that the broker has in memory about its accounts, by days. */
  inMemory() {
    const { world, nowMs } = this.broker;
    const { funds, directSales } = world;
    const byDay = days.map((after) => lagosDay(nowMs + after * dayMs));
    const ofAccount = (account: string) => ({
      status: world.accountStatus(account),
      state: world.stateOf(account),
      cash: world.cash.get(account) ?? 0,
      newest: world.transactions.newest(account),
      promised: [funds.promisedKobo(account), funds.promisedShares(account, 'OWN')],
      free: byDay.map((day) => funds.withdrawableKobo(account, day)),
      inDebt: byDay.map((day) => funds.isInDebt(account, day)),
      canSell: this.#salesOf(account),
      directSales: byDay.map((day) => directSales.settledKobo(account, day)),
    });
    const { lastMessage, lastReport, lastSequence, lastSubmission, lastAllocation, lastCashEntry, lastDeal } = world;
    return {
      ...{ lastMessage, lastReport, lastSequence, lastSubmission, lastAllocation, lastCashEntry, lastDeal },
      withdrawals: [world.withdrawals.lastReport, world.withdrawals.lastSequence, world.withdrawals.destinations],
      lastTransaction: world.transactions.lastNumber,
      isDirect: directSales.isOn,
      capabilities: { ...world.capabilities },
      accounts: Object.fromEntries(accounts.map((account) => [account, ofAccount(account)])),
    };
  }

  /** Checks that what the tables say of each account's money is what the memory says. */
  async checkTables(step: string): Promise<void> {
    const { world, nowMs } = this.broker;
    for (const account of accounts) {
      const {
        availableKobo = 0n,
        settledKobo = 0n,
        unsettledKobo = 0n,
      } = (await this.#records.balance(account)) as {
        [name: string]: bigint;
      };
      const free = world.funds.withdrawableKobo(account, lagosDay(nowMs));
      assert.equal(free, availableKobo > 0n ? availableKobo : 0n, `${step}: what ${account} can spend`);
      const booked = world.transactions.newest(account).balanceKobo + world.funds.startCashKobo;
      assert.equal(settledKobo + unsettledKobo, booked, `${step}: what is booked of ${account}`);
    }
  }
}

type Step = readonly [name: string, run: (broker: Broker) => Promise<unknown>];

/** The steps of an account. They come again with further ids, because the second time is not the first. */
function stepsOf(account: string, round: number): Step[] {
  const id = (name: string) => `${name}_${account}_${round}`;
  const kind =
    ([ReportKind.CANCELLED, ReportKind.EXPIRED, ReportKind.REJECTED] as const)[round % 3] ?? ReportKind.CANCELLED;
  const [buy, sell] = [id('other_buy'), id('other_sell')];
  const [later, held, rejected, back] = [id('later'), id('held'), id('rejected'), id('back')];
  return [
    ['allocates', (broker) => broker.allocate(account, 1_000_000 + round)],
    ['buys', (broker) => broker.order(id('buy'), { account, quantity: 100, priceKobo: 905 })],
    ['fills in part', (broker) => broker.fill(id('buy'), 40)],
    ['offers', (broker) => broker.order(id('sell'), { account, side: SELL, quantity: 60, priceKobo: 1_095 })],
    ['sells in part', (broker) => broker.fill(id('sell'), 25)],
    ['fills the rest', (broker) => broker.fill(id('buy'), 60)],
    ['cancels its offer', (broker) => broker.end(id('sell'), ReportKind.CANCELLED)],
    ['buys again', (broker) => broker.order(buy, { account, quantity: 30, priceKobo: 905 })],
    ['offers again', (broker) => broker.order(sell, { account, side: SELL, quantity: 20, priceKobo: 1_095 })],
    [`has ${ReportKind[kind]} of its buy`, (broker) => broker.end(buy, kind)],
    [`has ${ReportKind[kind]} of its offer`, (broker) => broker.end(sell, kind)],
    ['settles', (broker) => broker.settle(account)],
    ['buys on', (broker) => broker.order(id('more'), { account, quantity: 10, priceKobo: 1_100 }, Outcome.FILL)],
    ['settles again on the day', (broker) => broker.settle(account)],
    ['is paid at once', (broker) => broker.withdraw(id('paid'), account, WithdrawalOutcome.PAY_AT_ONCE)],
    [
      'is paid to the wallet',
      (broker) => broker.withdraw(id('wallet'), account, WithdrawalOutcome.PAY_AT_ONCE, WALLET),
    ],
    ['is rejected at once', (broker) => broker.withdraw(id('not'), account, WithdrawalOutcome.REJECT)],
    ['waits for its money', (broker) => broker.withdraw(later, account, WithdrawalOutcome.PAY_LATER)],
    ['waits for no', (broker) => broker.withdraw(rejected, account, WithdrawalOutcome.REJECT_LATER)],
    ['waits for people', (broker) => broker.withdraw(held, account, WithdrawalOutcome.HOLD)],
    ['waits for the bank', (broker) => broker.withdraw(back, account, WithdrawalOutcome.RETURN)],
    ['time passes', (broker) => broker.pass(2_000)],
    ['has its money', (broker) => broker.due(later)],
    ['has its no', (broker) => broker.due(rejected)],
    ['has it at the bank', (broker) => broker.due(back)],
    ['is refused by people', (broker) => broker.decide(held, REJECTED)],
    ['is refused again', (broker) => broker.decide(held, REJECTED)],
    ['asks people again', (broker) => broker.withdraw(`${held}x`, account, WithdrawalOutcome.HOLD)],
    ['is paid by people', (broker) => broker.decide(`${held}x`, PAID)],
    ['is given back by its bank', (broker) => broker.decide(`${held}x`, RETURNED)],
    [
      'sells with direct settlement',
      async ({ broker }) => broker.change({}, (unit) => unit.clearing.directSales.setOn(true)),
    ],
    ['sells directly', (broker) => broker.order(id('direct'), { account, side: SELL, quantity: 5 }, Outcome.FILL)],
    ['sells directly again', (broker) => broker.order(id('too'), { account, side: SELL, quantity: 6 }, Outcome.FILL)],
    ['is paid out', (broker) => broker.settle(account)],
    ['sells without', async ({ broker }) => broker.change({}, (unit) => unit.clearing.directSales.setOn(false))],
    ['sells on', (broker) => broker.order(id('last'), { account, side: SELL, quantity: 7 }, Outcome.FILL)],
    ['days pass', (broker) => broker.pass(4 * dayMs)],
    ['has it back from the bank', (broker) => broker.due(back)],
  ];
}

const restrictions = [{ code: AccountRestrictionCode.SETTLEMENT_LOCKOUT, forbids: [AccountActivity.BUY], sinceMs: 5 }];

/** The steps of controls, for one account and for all. */
const controls: readonly Step[] = [
  ['cash is set', ({ broker }) => broker.change({}, (unit) => unit.backOffice.setCash('A1', 9_000_000))],
  ['cash is set again', ({ broker }) => broker.change({}, (unit) => unit.backOffice.setCash('A1', 30_000_000))],
  ['shares are elsewhere', ({ broker }) => broker.change({}, (unit) => unit.clearing.setSharesElsewhere('A2', 20))],
  [
    'an account is restricted',
    ({ broker }) =>
      broker.change({}, (unit) =>
        unit.clearing.setState({ account: 'A1', state: AccountState.RESTRICTED, restrictions }),
      ),
  ],
  [
    'an account is free again',
    ({ broker }) =>
      broker.change({}, (unit) =>
        unit.clearing.setState({ account: 'A1', state: AccountState.ACTIVE, restrictions: [] }),
      ),
  ],
  [
    'one destination',
    ({ broker }) => broker.change({}, (unit) => setDestinations(unit, { withdrawalsToWallet: false })),
  ],
  [
    'the other destination',
    ({ broker }) =>
      broker.change({}, (unit) =>
        setDestinations(unit, { withdrawalsToWallet: true, withdrawalsToBankAccount: false }),
      ),
  ],
  [
    'both destinations',
    ({ broker }) => broker.change({}, (unit) => setDestinations(unit, { withdrawalsToBankAccount: true })),
  ],
  ['a capability', ({ broker }) => broker.change({}, (unit) => unit.setCapabilities({ accountStatus: false }))],
  ['buys that settle', (broker) => broker.order('all_1', { account: 'A1', quantity: 9 }, Outcome.FILL)],
  [
    'buys of the other',
    (broker) => broker.order('all_2', { account: 'A2', quantity: 9, priceKobo: 1_100 }, Outcome.FILL),
  ],
  ['one settles', (broker) => broker.settle('A1')],
  ['all settle', (broker) => broker.settle('')],
  ['all settle again', (broker) => broker.settle('')],
];

/** The steps of both accounts in turn, those of one account again, and then what controls set. */
function allSteps(): Step[] {
  const others = stepsOf('A2', 2);
  const both = stepsOf('A1', 1).flatMap((step, at) => [step, ...others.slice(at, at + 1)]);
  return [...both, ...stepsOf('A1', 3), ...controls];
}

describe('a restart of the simulated broker', () => {
  it('a restart of the simulated broker changes nothing that it has in memory, whenever it comes', async () => {
    const [steady, restarted] = [await Broker.start(), await Broker.start()];
    for (const [at, [name, run]] of allSteps().entries()) {
      await run(steady);
      await run(restarted);
      if (at % 3 > 0) continue;
      await restarted.broker.reload();
      assert.deepEqual(restarted.inMemory(), steady.inMemory(), name);
      await steady.checkTables(name);
    }
    // Everything that was promised is free again.
    const { world, database } = steady.broker;
    for (const account of accounts) {
      assert.deepEqual([world.funds.promisedKobo(account), world.funds.promisedShares(account, 'OWN')], [0n, 0n]);
    }
    assert.equal(database.rows('direct_sales').length, 0);
    assert.deepEqual(
      database.rows('orders').flatMap(({ in_book: waits, client_order_id: id }) => (Number(waits) === 0 ? [] : [id])),
      [],
    );
    // All steps did what they are named for.
    const kinds = database.rows('withdrawal_reports').map(({ kind }) => WithdrawalReportKind[Number(kind)]);
    const count = (kind: string) => kinds.filter((each) => each === kind).length;
    assert.deepEqual(['ACCEPTED', 'PAID', 'REJECTED', 'RETURNED'].map(count), [15, 15, 9, 6]);
  });
});
