import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { timestampFromMs, timestampMs } from '@bufbuild/protobuf/wkt';
import {
  AccountActivity,
  AccountRestrictionCode,
  AccountState,
  Accounts,
  type Transaction,
  TransactionType,
} from '../../src/gen/marina/broker/v1/accounts_pb.ts';
import { AllocationOutcome, AllocationRejectReason } from '../../src/gen/marina/broker/v1/allocations_pb.ts';
import { AccountStatus, RejectReason, ReportKind, Side } from '../../src/gen/marina/broker/v1/orders_pb.ts';
import { lagosDay } from '../../src/kit/clock.ts';
import { createGrpcClient } from '../../src/kit/grpc-client.ts';
import { seededRandom } from '../../src/simulator/random.ts';
import { eventually } from '../support/eventually.ts';
import { execute } from '../support/servers.ts';
import { exchangeOrder, newAllocation, newOrder, soon, startTestSimulator } from './fixture.ts';

const startCashKobo = 5_000_000n;
const dayMs = 86_400_000;
const symbol = 'SIM-FILL';
const { BUY, SALE, CHARGE, ALLOCATION, ADJUSTMENT } = TransactionType;

const broker = await startTestSimulator(undefined, { startCashKobo, sharesElsewhere: 0n });
const accounts = createGrpcClient(Accounts, `127.0.0.1:${broker.port}`);
after(() => accounts.close());
const { orders, controls, allocations } = broker;

/** Starts the broker again on its database, at the same port. */
async function restart(): Promise<void> {
  await broker.restart();
  await eventually(() => Promise.all([accounts.getMarket({}, soon), orders.getCapabilities({}, soon)]));
  await eventually(() => Promise.all([controls.getDay({}, soon), allocations.lookUpAllocation({}, soon)]));
}

async function open(account: string): Promise<string> {
  await controls.setAccount({ account, status: AccountStatus.ACTIVE }, soon);
  return account;
}

const range = { fromDate: '2020-01-01', toDate: '2099-12-31' };

/** All transactions of an account, page by page, newest first. */
async function transactionsOf(account: string, limit = 100, asked: object = {}): Promise<Transaction[]> {
  const all: Transaction[] = [];
  for (;;) {
    const last = all.at(-1);
    const after = last?.bookedAt && { bookedAt: last.bookedAt, id: last.id };
    const request = { ...range, account, limit, ...asked, ...(after && { after }) };
    const page = await accounts.listTransactions(request, soon);
    all.push(...page.transactions);
    if (!page.hasMore) {
      assert.equal(page.inRange, all.length);
      return all;
    }
  }
}

/** Trades an order whole. */
async function trade(account: string, side: Side, quantity: bigint): Promise<string> {
  const order = newOrder({ account, symbol, side, quantity, priceKobo: 1_000n });
  await orders.submitOrder(order, soon);
  await eventually(async () => {
    assert.equal((await exchangeOrder(broker, order.clientOrderId))?.endedBy, ReportKind.TRADE);
  });
  return order.clientOrderId;
}

/** Fails unless an account's transactions, its balance and its day add up. */
async function checkAccount(account: string): Promise<readonly Transaction[]> {
  const all = await transactionsOf(account);
  for (const [at, newer] of all.entries()) {
    const older = all[at + 1];
    assert.equal(newer.balanceKobo - newer.amountKobo, older?.balanceKobo ?? startCashKobo);
  }
  const balance = await accounts.getBalance({ account }, soon);
  const { openingKobo, settledKobo = 0n, unsettledKobo = 0n, withdrawableKobo = 0n } = balance;
  const now = await controls.getDay({}, soon);
  const isOfToday = ({ bookedAt }: Transaction) => bookedAt && lagosDay(timestampMs(bookedAt)) === now.today;
  const ofToday = all.filter(isOfToday).reduce((sum, { amountKobo }) => sum + amountKobo, 0n);
  const booked = all[0]?.balanceKobo ?? startCashKobo;
  assert.equal(openingKobo + ofToday, booked, 'the opening balance and the day');
  assert.equal(settledKobo + unsettledKobo, booked, 'the settled and the unsettled part');
  assert.ok(withdrawableKobo >= 0n && withdrawableKobo <= (settledKobo > 0n ? settledKobo : 0n));
  return all;
}

describe('the broker', () => {
  it('books a buy and its charges with order, trade and settlement date, and with the contract note once it is settled', async () => {
    const account = await open('BUYER');
    const order = await trade(account, Side.BUY, 100n);
    const [charge, buy, ...others] = await checkAccount(account);
    assert.deepEqual(others, []);
    const { trades } = await accounts.listTrades({ ...range, account, limit: 1 }, soon);
    for (const booked of [charge, buy]) {
      assert.deepEqual(
        [booked?.clientOrderId, booked?.trade, booked?.symbol, booked?.settlementDate, booked?.contractNote],
        [order, trades[0]?.id, symbol, trades[0]?.settlementDate, ''],
      );
    }
    assert.deepEqual([buy?.type, buy?.amountKobo, buy?.quantity], [BUY, -100_000n, 100n]);
    assert.deepEqual([charge?.type, charge?.quantity], [CHARGE, undefined]);
    assert.ok(trades[0]?.settled === false && trades[0].settlementDate > lagosDay(Date.now()));
    await controls.settle({ account }, soon);
    const { notes } = await accounts.listContractNotes({ ...range, account, limit: 1 }, soon);
    const settled = await checkAccount(account);
    assert.deepEqual(
      settled.map(({ contractNote, settlementDate }) => [contractNote, settlementDate]),
      [charge, buy].map(() => [notes[0]?.ticket, notes[0]?.transactionDate]),
    );
    const { considerationKobo = 0n } = notes[0] ?? {};
    assert.equal(settled[0]?.balanceKobo, startCashKobo - considerationKobo);
    assert.equal((await accounts.getBalance({ account }, soon)).settledKobo, startCashKobo - considerationKobo);
  });

  it('books a sale, an allocation and money that a control sets, and nothing when nothing changes', async () => {
    const account = await open('MIXED');
    const allocation = newAllocation(70_000n, account);
    await allocations.submitAllocation(allocation, soon);
    await controls.setCash({ account, cashKobo: 1_000_000n, sharesElsewhere: 500n }, soon);
    await controls.setCash({ account, cashKobo: 1_000_000n }, soon);
    await trade(account, Side.SELL, 40n);
    const all = await checkAccount(account);
    assert.deepEqual(
      all.map(({ type, quantity }) => [type, quantity]),
      [
        [CHARGE, undefined],
        [SALE, -40n],
        [ADJUSTMENT, undefined],
        [ALLOCATION, undefined],
      ],
    );
    assert.deepEqual(
      all.map(({ clientAllocationId }) => clientAllocationId),
      ['', '', '', allocation.clientAllocationId],
    );
    assert.equal(all[1]?.amountKobo, 40_000n);
  });

  it('lists transactions in pages without a gap, of all types or of one, and counts the range', async () => {
    const account = await open('PAGES');
    const random = seededRandom('pages');
    for (let step = 0; step < 12; step += 1) {
      const days = random.whole(0, 3);
      const executedAt = timestampFromMs(Date.now() - days * dayMs);
      const dealt = { account, symbol: 'GTCO', side: random.whole(1, 2), quantity: 7n, priceKobo: 4_000n };
      await controls.addTrades({ ...dealt, executedAt, count: 2 }, soon);
      if (step % 4 === 0) await controls.setCash({ account, cashKobo: BigInt(random.whole(0, 9_000_000)) }, soon);
    }
    const all = await checkAccount(account);
    for (const limit of [1, 2, 7]) assert.deepEqual(await transactionsOf(account, limit), all);
    const charges = all.filter(({ type }) => type === CHARGE);
    assert.deepEqual(await transactionsOf(account, 3, { type: CHARGE }), charges);
    const today = lagosDay(Date.now());
    const ofToday = await transactionsOf(account, 5, { fromDate: today, toDate: today });
    assert.deepEqual(ofToday, all.slice(0, ofToday.length));
  });

  it('carries the money of an older database with one adjustment of each account', async () => {
    const account = await open('CARRIED');
    await controls.setCash({ account, cashKobo: startCashKobo + 250_000n }, soon);
    await trade(account, Side.BUY, 10n);
    const [newest] = await transactionsOf(account);
    await execute(broker.databaseUrl, 'DROP TABLE account_transactions');
    await restart();
    const [carried, ...others] = await checkAccount(account);
    assert.deepEqual(others, []);
    assert.deepEqual([carried?.type, carried?.balanceKobo], [ADJUSTMENT, newest?.balanceKobo]);
    await trade(account, Side.BUY, 10n);
    assert.equal((await checkAccount(account)).length, 3);
    await restart();
    assert.equal((await checkAccount(account)).length, 3);
    await trade(account, Side.BUY, 10n);
    assert.equal((await checkAccount(account)).length, 5);
  });
  const { REJECTED_BY_EXCHANGE, SETTLEMENT_LOCKOUT, UNSPECIFIED } = RejectReason;
  const rejected = async (account: string, side: Side) => {
    const order = newOrder({ account, symbol: 'SIM-REST', side, quantity: 1n, priceKobo: 1_000n });
    return (await orders.submitOrder(order, soon)).report?.rejectReason;
  };
  const funded = async (account: string) => {
    const { record } = await allocations.submitAllocation(newAllocation(100n, account), soon);
    return record?.outcome === AllocationOutcome.BOOKED ? 'booked' : record?.rejectReason;
  };
  const { BUY: TO_BUY, SELL, FUND } = AccountActivity;

  it('rejects what a restriction of an account forbids, until the restriction is gone', async () => {
    const account = await open('HELD');
    const hold = { code: AccountRestrictionCode.BROKER_HOLD, forbids: [TO_BUY, FUND] };
    const lockout = { code: AccountRestrictionCode.SETTLEMENT_LOCKOUT, forbids: [SELL] };
    const set = { account, state: AccountState.RESTRICTED, restrictions: [hold, lockout] };
    await controls.setAccountState(set, soon);
    await restart();
    const { state, restrictions, chn } = await accounts.getAccountStatus({ account }, soon);
    assert.deepEqual([state, restrictions.length], [AccountState.RESTRICTED, 2]);
    assert.ok(restrictions.every(({ since }) => since !== undefined));
    assert.match(chn, /^C\d{10}$/);
    assert.deepEqual(
      [await rejected(account, Side.BUY), await rejected(account, Side.SELL), await funded(account)],
      [REJECTED_BY_EXCHANGE, SETTLEMENT_LOCKOUT, AllocationRejectReason.ACCOUNT_RESTRICTED],
    );
    await controls.setAccountState({ account, state: AccountState.ACTIVE }, soon);
    assert.deepEqual([await rejected(account, Side.BUY), await funded(account)], [UNSPECIFIED, 'booked']);
    assert.deepEqual((await accounts.getAccountStatus({ account }, soon)).restrictions, []);
  });

  it('rejects everything for a closed account', async () => {
    const account = await open('CLOSED');
    await controls.setAccountState({ account, state: AccountState.CLOSED }, soon);
    assert.deepEqual(
      [await rejected(account, Side.BUY), await rejected(account, Side.SELL), await funded(account)],
      [REJECTED_BY_EXCHANGE, REJECTED_BY_EXCHANGE, AllocationRejectReason.ACCOUNT_RESTRICTED],
    );
  });

  it('shows an account that owes money as restricted by a settlement_lockout', async () => {
    const account = await open('OWES');
    await controls.setCash({ account, cashKobo: -1n }, soon);
    const { state, restrictions } = await accounts.getAccountStatus({ account }, soon);
    const shown = restrictions.map(({ code, forbids }) => [code, forbids]);
    assert.deepEqual(
      [state, shown],
      [AccountState.RESTRICTED, [[AccountRestrictionCode.SETTLEMENT_LOCKOUT, [TO_BUY, SELL]]]],
    );
    assert.equal(await rejected(account, Side.BUY), SETTLEMENT_LOCKOUT);
  });
});
