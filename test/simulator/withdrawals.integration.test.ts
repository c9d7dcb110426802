import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { timestampFromMs, timestampMs } from '@bufbuild/protobuf/wkt';
import { status } from '@grpc/grpc-js';
import {
  AccountActivity,
  AccountRestrictionCode,
  AccountState,
  Accounts,
  TransactionType,
} from '../../src/gen/marina/broker/v1/accounts_pb.ts';
import { AccountStatus, Side, TimeInForce } from '../../src/gen/marina/broker/v1/orders_pb.ts';
import {
  type GetStatementResponse,
  StatementSection,
  Statements,
  StatementWithdrawalState,
} from '../../src/gen/marina/broker/v1/statements_pb.ts';
import { Submissions } from '../../src/gen/marina/broker/v1/submissions_pb.ts';
import {
  WithdrawalDestination,
  WithdrawalRejectReason,
  type WithdrawalReport,
  WithdrawalReportKind,
} from '../../src/gen/marina/broker/v1/withdrawals_pb.ts';
import { Call, StatementLie, WireFault, WithdrawalOutcome } from '../../src/gen/marina/simulator/v1/controls_pb.ts';
import { lagosDay } from '../../src/kit/clock.ts';
import { createGrpcClient } from '../../src/kit/grpc-client.ts';
import { magicWithdrawals } from '../../src/simulator/back-office/withdrawal-magic.ts';
import { MarketCalendar, readHolidays, usualHolidays } from '../../src/simulator/market/calendar.ts';
import { eventually } from '../support/eventually.ts';
import {
  cashOf,
  deadlineFor,
  fails,
  messagesOf,
  newOrder,
  newWithdrawal,
  soon,
  startTestSimulator,
} from './fixture.ts';

const simulator = await startTestSimulator(undefined, { startCashKobo: 0n, sharesElsewhere: 1_000_000n });
const { orders } = simulator;
let { withdrawals, controls } = simulator;
const submissions = createGrpcClient(Submissions, `127.0.0.1:${simulator.port}`);
const accounts = createGrpcClient(Accounts, `127.0.0.1:${simulator.port}`);
const statements = createGrpcClient(Statements, `127.0.0.1:${simulator.port}`);
after(() => {
  submissions.close();
  accounts.close();
  statements.close();
});
const dayMs = 86_400_000;
const { ACCEPTED, PAID, REJECTED, RETURNED } = WithdrawalReportKind;
const { WALLET, BANK_ACCOUNT } = WithdrawalDestination;
const reasons = WithdrawalRejectReason;
/** A stock whose price stands still: a buy at 900 waits. */
const symbol = 'STILL';
await controls.setInstrument({ instrument: { symbol, name: 'Still Plc', lastPriceKobo: 1_000n } }, soon);

let opened = 0;

/** Opens an account with some money. */
async function open(cashKobo: bigint): Promise<string> {
  opened += 1;
  const code = `OWNER${opened}`;
  await controls.setAccount({ account: code, status: AccountStatus.ACTIVE }, soon);
  await controls.setCash({ account: code, cashKobo }, soon);
  return code;
}

/** Submits a withdrawal and returns its first report. */
async function withdraw(from: string, amountKobo: bigint, destination: WithdrawalDestination = WALLET) {
  const withdrawal = newWithdrawal(amountKobo, destination, from);
  const { report } = await withdrawals.submitWithdrawal(withdrawal, soon);
  return report ?? assert.fail('The answer has no report');
}

async function reportsOf(clientWithdrawalId: string): Promise<WithdrawalReport[]> {
  return (await withdrawals.lookUpWithdrawal({ clientWithdrawalId }, soon)).reports;
}

/** Waits until the reports about a withdrawal are of these kinds. */
function untilReports(id: string, kinds: readonly WithdrawalReportKind[]): Promise<WithdrawalReport[]> {
  return eventually(async () => {
    const reports = await reportsOf(id);
    assert.deepEqual(
      reports.map(({ kind }) => WithdrawalReportKind[kind]),
      kinds.map((kind) => WithdrawalReportKind[kind]),
    );
    return reports;
  });
}

async function held(clientWithdrawalId: string) {
  return (await controls.listWithdrawals({ clientWithdrawalId }, soon)).withdrawals[0];
}

async function everyWithdrawal() {
  return (await controls.listWithdrawals({}, soon)).withdrawals;
}

describe('a withdrawal', () => {
  it('is paid at once to the wallet, and its money is gone from the account', async () => {
    const owner = await open(10_000n);
    const report = await withdraw(owner, 4_000n);
    assert.equal(report.kind, PAID);
    assert.match(report.brokerReference, /^WDL\d{12}$/);
    assert.ok(report.at);
    assert.equal(await cashOf(simulator, owner), 6_000n);
    assert.deepEqual(await reportsOf(report.clientWithdrawalId), [report]);
    assert.equal((await held(report.clientWithdrawalId))?.dutyKobo, 0n);
  });

  it('is accepted to a bank account with its money taken, and paid a moment later', async () => {
    const owner = await open(10_000n);
    const report = await withdraw(owner, 4_000n, BANK_ACCOUNT);
    assert.equal(report.kind, ACCEPTED);
    assert.equal(await cashOf(simulator, owner), 6_000n);
    const reports = await untilReports(report.clientWithdrawalId, [ACCEPTED, PAID]);
    assert.deepEqual(
      reports.map(({ brokerReference }) => brokerReference),
      [report.brokerReference, report.brokerReference],
    );
    assert.equal(await cashOf(simulator, owner), 6_000n);
  });

  it('takes the settled money to the last kobo, and one kobo more is insufficient_withdrawable_funds', async () => {
    const owner = await open(10_000n);
    const tooMuch = await withdraw(owner, 10_001n);
    assert.equal(tooMuch.kind, REJECTED);
    assert.equal(tooMuch.rejectReason, reasons.INSUFFICIENT_WITHDRAWABLE_FUNDS);
    assert.equal(tooMuch.brokerReference, '');
    assert.equal((await withdraw(owner, 10_000n)).kind, PAID);
    assert.equal(await cashOf(simulator, owner), 0n);
  });

  it('takes no proceeds of a sale before it has settled', async () => {
    const owner = await open(0n);
    await controls.addTrades({ account: owner, symbol, side: Side.SELL, quantity: 100n, priceKobo: 1_000n }, soon);
    assert.equal((await withdraw(owner, 1n)).rejectReason, reasons.INSUFFICIENT_WITHDRAWABLE_FUNDS);
    await controls.settle({ account: owner }, soon);
    assert.equal((await withdraw(owner, 90_000n)).kind, PAID);
  });

  it('leaves the money for a buy that has not settled and for an order that waits', async () => {
    const bought = await open(200_000n);
    await controls.addTrades({ account: bought, symbol, side: Side.BUY, quantity: 100n, priceKobo: 1_000n }, soon);
    assert.equal((await withdraw(bought, 100_000n)).rejectReason, reasons.INSUFFICIENT_WITHDRAWABLE_FUNDS);
    assert.equal((await withdraw(bought, 97_000n)).kind, PAID);
    const waits = await open(200_000n);
    const order = newOrder({ account: waits, symbol, quantity: 100n, priceKobo: 900n, timeInForce: TimeInForce.GTC });
    await orders.submitOrder(order, soon);
    assert.equal((await withdraw(waits, 110_000n)).rejectReason, reasons.INSUFFICIENT_WITHDRAWABLE_FUNDS);
    await orders.cancelOrder({ clientOrderId: order.clientOrderId }, soon);
    assert.equal((await withdraw(waits, 110_000n)).kind, PAID);
  });

  it('never shares money with another withdrawal or with a buy that comes at the same time', async () => {
    const owner = await open(100_000n);
    const buy = newOrder({ account: owner, symbol, quantity: 70n, priceKobo: 900n });
    const [one, other, bought] = await Promise.all([
      withdraw(owner, 60_000n),
      withdraw(owner, 60_000n, BANK_ACCOUNT),
      orders.submitOrder(buy, soon),
    ]);
    const taken = [one.kind !== REJECTED, other.kind !== REJECTED, bought.report?.rejectReason === 0];
    assert.equal(taken.filter(Boolean).length, 1, String(taken));
  });

  it('is rejected as account_not_at_broker if the broker does not have the account', async () => {
    const report = await withdraw('NOBODY', 1n);
    assert.deepEqual([report.kind, report.rejectReason], [REJECTED, reasons.ACCOUNT_NOT_AT_BROKER]);
  });

  it('is rejected as account_restricted if a restriction forbids it or the account is closed', async () => {
    const owner = await open(1_000n);
    const restricted = async (state: AccountState, ...forbids: AccountActivity[]) => {
      const restrictions = forbids.length === 0 ? [] : [{ code: AccountRestrictionCode.BROKER_HOLD, forbids }];
      await controls.setAccountState({ account: owner, state, restrictions }, soon);
      return (await withdraw(owner, 1n)).rejectReason;
    };
    const { BUY, SELL, FUND, WITHDRAW } = AccountActivity;
    assert.equal(await restricted(AccountState.RESTRICTED, BUY, SELL, FUND), reasons.UNSPECIFIED);
    assert.equal(await restricted(AccountState.RESTRICTED, WITHDRAW), reasons.ACCOUNT_RESTRICTED);
    assert.equal(await restricted(AccountState.CLOSED), reasons.ACCOUNT_RESTRICTED);
    assert.equal(await restricted(AccountState.ACTIVE), reasons.UNSPECIFIED);
    assert.equal(await cashOf(simulator, owner), 998n);
  });

  it('is taken once, and never after its time', async () => {
    const owner = await open(1_000n);
    const withdrawal = newWithdrawal(10n, WALLET, owner);
    const results = await Promise.allSettled(
      Array.from({ length: 8 }, () => withdrawals.submitWithdrawal(withdrawal, soon)),
    );
    assert.equal(results.filter((each) => each.status === 'fulfilled').length, 1);
    for (const result of results) if (result.status === 'rejected') fails(status.ALREADY_EXISTS)(result.reason);
    const late = { ...newWithdrawal(9n, WALLET, owner), notAfter: timestampFromMs(Date.now() - 1_000) };
    await assert.rejects(withdrawals.submitWithdrawal(late, soon), fails(status.FAILED_PRECONDITION));
    const fresh = { ...late, notAfter: timestampFromMs(Date.now() + 60_000) };
    await assert.rejects(withdrawals.submitWithdrawal(fresh, soon), fails(status.ALREADY_EXISTS));
    const lookUp = await withdrawals.lookUpWithdrawal({ clientWithdrawalId: late.clientWithdrawalId }, soon);
    assert.deepEqual([lookUp.found, lookUp.reports], [false, []]);
    assert.ok(lookUp.completeUntil);
    assert.equal(await cashOf(simulator, owner), 990n);
  });

  it('is an invalid argument if it makes no sense, and is not taken', async () => {
    const owner = await open(1_000n);
    for (const wrong of [
      { amountKobo: 0n },
      { amountKobo: -1n },
      { amountKobo: 10_000_000_001n },
      { destination: WithdrawalDestination.UNSPECIFIED },
      { account: '' },
      { clientWithdrawalId: '' },
    ]) {
      const withdrawal = { ...newWithdrawal(1n, WALLET, owner), ...wrong };
      await assert.rejects(withdrawals.submitWithdrawal(withdrawal, soon), fails(status.INVALID_ARGUMENT));
    }
    assert.equal(await cashOf(simulator, owner), 1_000n);
  });
});

describe('the stamp duty of a withdrawal', () => {
  it('is ₦50 for more than ₦10,000 to a bank account, and nothing otherwise', async () => {
    for (const [amountKobo, destination, duty] of [
      [1_000_000n, BANK_ACCOUNT, 0n],
      [1_000_001n, BANK_ACCOUNT, 5_000n],
      [1_000_001n, WALLET, 0n],
    ] as const) {
      const owner = await open(2_000_000n);
      const { clientWithdrawalId: id } = await withdraw(owner, amountKobo, destination);
      await eventually(async () => assert.equal((await held(id))?.state, PAID));
      assert.equal((await held(id))?.dutyKobo, duty);
      assert.equal(await cashOf(simulator, owner), 2_000_000n - amountKobo - duty);
    }
  });

  it('is set aside until it is due, so that neither a withdrawal nor a buy can use it', async () => {
    const short = await open(2_004_999n);
    assert.equal(
      (await withdraw(short, 2_000_000n, BANK_ACCOUNT)).rejectReason,
      reasons.INSUFFICIENT_WITHDRAWABLE_FUNDS,
    );
    const owner = await open(2_005_000n);
    await controls.forceWithdrawal({ account: owner, outcome: WithdrawalOutcome.HOLD }, soon);
    const { clientWithdrawalId: id } = await withdraw(owner, 2_000_000n, BANK_ACCOUNT);
    assert.equal(await cashOf(simulator, owner), 5_000n);
    assert.equal((await withdraw(owner, 1n)).rejectReason, reasons.INSUFFICIENT_WITHDRAWABLE_FUNDS);
    await controls.decideWithdrawal({ clientWithdrawalId: id, kind: PAID }, soon);
    assert.equal(await cashOf(simulator, owner), 0n);
  });

  it('is not taken from a withdrawal that is rejected later, and not given back by a return', async () => {
    const owner = await open(2_005_000n);
    await controls.forceWithdrawal({ account: owner, outcome: WithdrawalOutcome.HOLD, times: 2 }, soon);
    const { clientWithdrawalId: rejected } = await withdraw(owner, 2_000_000n, BANK_ACCOUNT);
    await controls.decideWithdrawal({ clientWithdrawalId: rejected, kind: REJECTED }, soon);
    assert.equal(await cashOf(simulator, owner), 2_005_000n);
    const { clientWithdrawalId: returned } = await withdraw(owner, 2_000_000n, BANK_ACCOUNT);
    await controls.decideWithdrawal({ clientWithdrawalId: returned, kind: PAID }, soon);
    await controls.decideWithdrawal({ clientWithdrawalId: returned, kind: RETURNED }, soon);
    assert.equal(await cashOf(simulator, owner), 2_000_000n);
    assert.equal((await withdraw(owner, 2_000_000n)).kind, PAID);
  });
});

describe('the account of a withdrawal', () => {
  it('has as withdrawable_kobo what a withdrawal to the wallet can take, to the kobo', async () => {
    const owner = await open(3_000_000n);
    const order = newOrder({ account: owner, symbol, quantity: 100n, priceKobo: 900n, timeInForce: TimeInForce.GTC });
    await orders.submitOrder(order, soon);
    const sold = { account: owner, symbol, quantity: 10n, priceKobo: 1_000n };
    await controls.addTrades({ ...sold, side: Side.SELL }, soon);
    await controls.addTrades({ ...sold, side: Side.BUY }, soon);
    await controls.forceWithdrawal({ account: owner, outcome: WithdrawalOutcome.HOLD }, soon);
    await withdraw(owner, 1_000_001n, BANK_ACCOUNT);
    const { withdrawableKobo = 0n } = await accounts.getBalance({ account: owner }, soon);
    assert.ok(withdrawableKobo > 1_800_000n);
    const more = await withdraw(owner, withdrawableKobo + 1n);
    assert.equal(more.rejectReason, reasons.INSUFFICIENT_WITHDRAWABLE_FUNDS);
    assert.equal((await withdraw(owner, withdrawableKobo)).kind, PAID);
    assert.equal((await accounts.getBalance({ account: owner }, soon)).withdrawableKobo, 0n);
  });

  it('has a transaction when the money is taken, when it comes back and for the duty', async () => {
    const owner = await open(5_000_000n);
    await controls.forceWithdrawal({ account: owner, outcome: WithdrawalOutcome.HOLD, times: 2 }, soon);
    const { clientWithdrawalId: rejected } = await withdraw(owner, 7n, BANK_ACCOUNT);
    await controls.decideWithdrawal({ clientWithdrawalId: rejected, kind: REJECTED }, soon);
    const { clientWithdrawalId: returned } = await withdraw(owner, 2_000_000n, BANK_ACCOUNT);
    await controls.decideWithdrawal({ clientWithdrawalId: returned, kind: PAID }, soon);
    await controls.decideWithdrawal({ clientWithdrawalId: returned, kind: RETURNED }, soon);
    const day = lagosDay(Date.now());
    const asked = { account: owner, fromDate: day, toDate: day, limit: 100 };
    const { transactions } = await accounts.listTransactions(asked, soon);
    assert.deepEqual(
      transactions.map(({ type, amountKobo, balanceKobo, clientWithdrawalId }) => [
        ...[TransactionType[type], amountKobo, balanceKobo, clientWithdrawalId],
      ]),
      [
        ['WITHDRAWAL_RETURN', 2_000_000n, 4_995_000n, returned],
        ['FEE', -5_000n, 2_995_000n, returned],
        ['WITHDRAWAL', -2_000_000n, 3_000_000n, returned],
        ['WITHDRAWAL_RETURN', 7n, 5_000_000n, rejected],
        ['WITHDRAWAL', -7n, 4_999_993n, rejected],
        ['ADJUSTMENT', 5_000_000n, 5_000_000n, ''],
      ],
    );
  });
});

describe('a magic amount of a withdrawal', () => {
  const { UNSPECIFIED, PAY_AT_ONCE, PAY_LATER, REJECT, REJECT_LATER, HOLD, RETURN } = WithdrawalOutcome;
  /** The reports that follow from an outcome. */
  const kindsOf: Readonly<Record<WithdrawalOutcome, readonly WithdrawalReportKind[]>> = {
    [UNSPECIFIED]: [],
    [PAY_AT_ONCE]: [PAID],
    [PAY_LATER]: [ACCEPTED, PAID],
    [REJECT]: [REJECTED],
    [REJECT_LATER]: [ACCEPTED, REJECTED],
    [HOLD]: [ACCEPTED],
    [RETURN]: [ACCEPTED, PAID],
  };
  /** The status that the caller sees of a fault, and whether the broker has the withdrawal. */
  const ends: Readonly<Partial<Record<WireFault, readonly [status, taken: boolean]>>> = {
    [WireFault.HANG]: [status.DEADLINE_EXCEEDED, false],
    [WireFault.LOSE_ANSWER]: [status.DEADLINE_EXCEEDED, true],
    [WireFault.RESET_BEFORE]: [status.UNAVAILABLE, false],
    [WireFault.RESET_AFTER]: [status.UNAVAILABLE, true],
    [WireFault.LATE_ANSWER]: [status.DEADLINE_EXCEEDED, true],
    [WireFault.TOO_LATE]: [status.FAILED_PRECONDITION, false],
  };

  for (const { endsIn, does, outcome, rejectReason = reasons.UNSPECIFIED, wire } of magicWithdrawals) {
    it(`does what the table says if it ends in ${endsIn}: ${does}`, async () => {
      for (const destination of [WALLET, BANK_ACCOUNT]) {
        const owner = await open(20_000_000n);
        const amountKobo = 10_000_000n + BigInt(endsIn);
        const withdrawal = newWithdrawal(amountKobo, destination, owner);
        const { clientWithdrawalId: id } = withdrawal;
        const end = wire === undefined ? undefined : ends[wire];
        if (end !== undefined)
          await assert.rejects(withdrawals.submitWithdrawal(withdrawal, deadlineFor(end[0])), fails(end[0]));
        else if (wire === WireFault.NONSENSE) {
          const { report } = await withdrawals.submitWithdrawal(withdrawal, soon);
          assert.notEqual(report?.clientWithdrawalId, id);
        } else await withdrawals.submitWithdrawal(withdrawal, soon);
        if (end?.[1] === false) {
          assert.equal(await held(id), undefined);
          assert.equal(await cashOf(simulator, owner), 20_000_000n);
          continue;
        }
        const isPlainWallet = outcome === RETURN && destination === WALLET;
        const reports = await untilReports(id, isPlainWallet ? [PAID] : kindsOf[outcome]);
        const last = reports.at(-1) ?? assert.fail();
        assert.equal(last.rejectReason, rejectReason);
        const duty = destination === BANK_ACCOUNT && last.kind === PAID ? 5_000n : 0n;
        const left = last.kind === REJECTED ? 20_000_000n : 20_000_000n - amountKobo - duty;
        assert.equal(await cashOf(simulator, owner), left);
        assert.equal((await held(id))?.returnAt !== undefined, outcome === RETURN && destination === BANK_ACCOUNT);
      }
    });
  }

  it('decides nothing that the account cannot pay', async () => {
    const owner = await open(10n);
    for (const endsIn of [998_001n, 998_002n, 998_009n, 998_010n, 998_011n]) {
      const report = await withdraw(owner, endsIn, BANK_ACCOUNT);
      assert.equal(report.rejectReason, reasons.INSUFFICIENT_WITHDRAWABLE_FUNDS);
    }
  });
});

describe('the controls of withdrawals', () => {
  it('decide what becomes of the next withdrawals from an account', async () => {
    const owner = await open(10_000n);
    const rejectReason = reasons.NO_BANK_ACCOUNT;
    await controls.forceWithdrawal({ account: owner, outcome: WithdrawalOutcome.REJECT, rejectReason }, soon);
    assert.equal((await withdraw(await open(10n), 10n)).kind, PAID);
    assert.equal((await withdraw(owner, 10n)).rejectReason, rejectReason);
    assert.equal((await withdraw(owner, 10n)).kind, PAID);
    await controls.forceWithdrawal({ account: owner, outcome: WithdrawalOutcome.REJECT_LATER }, soon);
    const later = await withdraw(owner, 10n);
    const [, rejected] = await untilReports(later.clientWithdrawalId, [ACCEPTED, REJECTED]);
    assert.equal(rejected?.rejectReason, reasons.REJECTED_BY_BROKER);
    assert.equal(rejected.brokerReference, later.brokerReference);
    assert.equal(await cashOf(simulator, owner), 9_990n);
  });

  it('pay, reject or return a withdrawal only if its state allows it', async () => {
    const owner = await open(10_000n);
    const decide = (clientWithdrawalId: string, kind: WithdrawalReportKind) =>
      controls.decideWithdrawal({ clientWithdrawalId, kind }, soon);
    await assert.rejects(decide('wdr_unknown', PAID), fails(status.NOT_FOUND));
    const wallet = await withdraw(owner, 10n);
    for (const kind of [PAID, REJECTED, RETURNED]) {
      await assert.rejects(decide(wallet.clientWithdrawalId, kind), fails(status.FAILED_PRECONDITION));
    }
    await assert.rejects(decide(wallet.clientWithdrawalId, ACCEPTED), fails(status.INVALID_ARGUMENT));
    await controls.forceWithdrawal({ account: owner, outcome: WithdrawalOutcome.HOLD }, soon);
    const { clientWithdrawalId: id } = await withdraw(owner, 10n, BANK_ACCOUNT);
    await assert.rejects(decide(id, RETURNED), fails(status.FAILED_PRECONDITION));
    assert.equal((await decide(id, PAID)).report?.kind, PAID);
    assert.equal((await decide(id, RETURNED)).report?.kind, RETURNED);
    await assert.rejects(decide(id, RETURNED), fails(status.FAILED_PRECONDITION));
    assert.equal(await cashOf(simulator, owner), 9_990n);
  });

  it('let a call of withdrawals meet a fault, by account or by id', async () => {
    const owner = await open(10_000n);
    const { SUBMIT_WITHDRAWAL, LOOK_UP_WITHDRAWAL } = Call;
    await controls.injectFault({ call: SUBMIT_WITHDRAWAL, fault: WireFault.UNAVAILABLE_BEFORE, account: owner }, soon);
    const withdrawal = newWithdrawal(10n, WALLET, owner);
    const { clientWithdrawalId: id } = withdrawal;
    await assert.rejects(withdrawals.submitWithdrawal(withdrawal, soon), fails(status.UNAVAILABLE));
    await withdrawals.submitWithdrawal(withdrawal, soon);
    await controls.injectFault({ call: LOOK_UP_WITHDRAWAL, fault: WireFault.NONSENSE, clientId: id }, soon);
    const { reports } = await withdrawals.lookUpWithdrawal({ clientWithdrawalId: id }, soon);
    assert.deepEqual(
      reports.map(({ clientWithdrawalId }) => clientWithdrawalId),
      ['nobody-sent-this'],
    );
    const received = await messagesOf(simulator, id);
    assert.deepEqual(
      received.map(({ call, taken, account }) => [call, taken, account]),
      [
        [SUBMIT_WITHDRAWAL, false, owner],
        [SUBMIT_WITHDRAWAL, true, owner],
        [LOOK_UP_WITHDRAWAL, true, owner],
      ],
    );
  });

  it('leave out destinations, and a broker without any takes no withdrawals', async () => {
    const owner = await open(10_000n);
    const destinations = async () => (await orders.getCapabilities({}, soon)).withdrawalDestinations;
    assert.deepEqual(await destinations(), [WALLET, BANK_ACCOUNT]);
    await controls.setCapabilities({ honoursNotAfter: true, withdrawalsToBankAccount: false }, soon);
    assert.deepEqual(await destinations(), [WALLET]);
    assert.equal((await withdraw(owner, 10n, BANK_ACCOUNT)).rejectReason, reasons.REJECTED_BY_BROKER);
    await controls.setCapabilities({ honoursNotAfter: true, withdrawalsToWallet: false }, soon);
    assert.deepEqual(await destinations(), []);
    const withdrawal = newWithdrawal(10n, WALLET, owner);
    await assert.rejects(withdrawals.submitWithdrawal(withdrawal, soon), fails(status.UNIMPLEMENTED));
    await assert.rejects(withdrawals.lookUpWithdrawal(withdrawal, soon), fails(status.UNIMPLEMENTED));
    await assert.rejects(async () => {
      for await (const _ of withdrawals.streamWithdrawalReports({})) assert.fail('It streams');
    }, fails(status.UNIMPLEMENTED));
    const all = { withdrawalsToWallet: true, withdrawalsToBankAccount: true };
    await controls.setCapabilities({ honoursNotAfter: true, ...all }, soon);
    assert.deepEqual(await destinations(), [WALLET, BANK_ACCOUNT]);
    assert.equal(await cashOf(simulator, owner), 10_000n);
  });
});

describe('the record of withdrawals', () => {
  /** Every report of the stream, until it has the given number of them. */
  async function streamed(count: number): Promise<WithdrawalReport[]> {
    const seen: WithdrawalReport[] = [];
    for await (const { reports } of withdrawals.streamWithdrawalReports({})) {
      seen.push(...reports);
      if (seen.length >= count) break;
    }
    return seen;
  }

  it('streams the reports that look-ups have, in the order of their numbers without a gap', async () => {
    const owner = await open(10_000n);
    const { clientWithdrawalId } = await withdraw(owner, 10n, BANK_ACCOUNT);
    const [, last] = await untilReports(clientWithdrawalId, [ACCEPTED, PAID]);
    const seen = await streamed(Number(last?.number));
    assert.deepEqual(
      seen.map(({ number }) => Number(number)),
      seen.map((_, index) => index + 1),
    );
    for (const { clientWithdrawalId: id } of await everyWithdrawal()) {
      const own = seen.filter((report) => report.clientWithdrawalId === id);
      assert.deepEqual(own, await reportsOf(id), id);
    }
  });

  it('streams reports apart from those of orders, also when the stream misbehaves', async () => {
    await controls.disturbReports({ withdrawals: true, omit: 1, breakStreams: true }, soon);
    const owner = await open(10_000n);
    const [first, second] = [await withdraw(owner, 10n), await withdraw(owner, 10n)];
    const seen: bigint[] = [];
    for await (const { reports } of withdrawals.streamWithdrawalReports({ afterNumber: first.number - 1n })) {
      seen.push(...reports.map(({ number }) => number));
      if (seen.length > 0) break;
    }
    assert.deepEqual(seen, [second.number]);
  });

  it('lists each withdrawal with its note among the submissions, in the order taken', async () => {
    const owner = await open(10_000n);
    const notes = ['one', 'two', 'rejected'].map((note) => Buffer.from(note));
    const sent = notes.map((note, at) => ({ ...newWithdrawal(at === 2 ? 999_999n : 10n, WALLET, owner), note }));
    for (const withdrawal of sent) await withdrawals.submitWithdrawal(withdrawal, soon);
    const listed = await submissions.listSubmissions({ limit: 1_000 }, soon);
    assert.deepEqual(
      listed.submissions.slice(-3).map(({ clientId, note }) => [clientId, Buffer.from(note)]),
      sent.map(({ clientWithdrawalId, note }) => [clientWithdrawalId, note]),
    );
  });
});

describe('the statement of a day', () => {
  const page = (section: StatementSection, cursor = '', limit = 1_000) =>
    statements.getStatement({ day: lagosDay(Date.now()), section, cursor, limit }, soon);
  const cashIn = ({ cash }: GetStatementResponse, account: string) => cash.find((each) => each.account === account);

  it('has each withdrawal with its state, by id, and its money among the other changes', async () => {
    const owner = await open(5_000_000n);
    const before = cashIn(await page(StatementSection.CASH), owner);
    await controls.forceWithdrawal({ account: owner, outcome: WithdrawalOutcome.HOLD, times: 3 }, soon);
    const [waits, rejected, returned] = [
      await withdraw(owner, 1n, BANK_ACCOUNT),
      await withdraw(owner, 2n, BANK_ACCOUNT),
      await withdraw(owner, 1_000_001n, BANK_ACCOUNT),
    ];
    const paid = await withdraw(owner, 4n);
    const refused = await withdraw('NOBODY', 5n);
    await controls.decideWithdrawal({ clientWithdrawalId: rejected.clientWithdrawalId, kind: REJECTED }, soon);
    await controls.decideWithdrawal({ clientWithdrawalId: returned.clientWithdrawalId, kind: PAID }, soon);
    const { report } = await controls.decideWithdrawal(
      { clientWithdrawalId: returned.clientWithdrawalId, kind: RETURNED },
      soon,
    );
    const all: GetStatementResponse['withdrawals'] = [];
    for (let cursor: string | undefined = ''; cursor !== undefined; ) {
      const { withdrawals: some, nextCursor }: GetStatementResponse = await page(
        StatementSection.WITHDRAWALS,
        cursor,
        52,
      );
      all.push(...some);
      cursor = nextCursor || undefined;
    }
    const ids = all.map(({ clientWithdrawalId }) => clientWithdrawalId);
    assert.deepEqual(ids, [...ids].sort());
    const stated = ({ clientWithdrawalId }: WithdrawalReport) => all[ids.indexOf(clientWithdrawalId)];
    const state = StatementWithdrawalState;
    assert.equal(stated(waits)?.state, state.ACCEPTED);
    assert.equal(stated(rejected)?.state, state.REJECTED);
    assert.equal(stated(paid)?.state, state.PAID);
    assert.deepEqual([stated(refused)?.state, stated(refused)?.brokerReference], [state.REJECTED, '']);
    const { $typeName: _, ...last } = stated(returned) ?? assert.fail();
    assert.deepEqual(last, {
      clientWithdrawalId: returned.clientWithdrawalId,
      account: owner,
      amountKobo: 1_000_001n,
      destination: BANK_ACCOUNT,
      state: state.RETURNED,
      brokerReference: returned.brokerReference,
      at: report?.at,
    });
    const after = cashIn(await page(StatementSection.CASH), owner);
    const change = -1n - 4n - 5_000n;
    assert.equal(after?.balanceKobo, (before?.balanceKobo ?? 0n) + change);
    assert.equal(after.otherChangesKobo, (before?.otherChangesKobo ?? 0n) + change);
  });

  it('lies about withdrawals when told to, and its money stays right', async () => {
    const owner = await open(1_000n);
    const [one, two, three] = [await withdraw(owner, 1n), await withdraw(owner, 2n), await withdraw(owner, 3n)];
    const right = cashIn(await page(StatementSection.CASH), owner);
    const lie = (of: StatementLie, clientId = '') =>
      controls.lieInStatements({ lie: of, clientId, account: owner }, soon);
    await lie(StatementLie.WITHDRAWAL_MISSING, one.clientWithdrawalId);
    await lie(StatementLie.WITHDRAWAL_AMOUNT, two.clientWithdrawalId);
    await lie(StatementLie.WITHDRAWAL_STATE, three.clientWithdrawalId);
    await lie(StatementLie.WITHDRAWAL_EXTRA);
    const { withdrawals: stated } = await page(StatementSection.WITHDRAWALS);
    const own = (id: string) => {
      const found = stated.find((each) => each.account === owner && each.clientWithdrawalId === id);
      return found && [found.amountKobo, StatementWithdrawalState[found.state]];
    };
    assert.equal(own(one.clientWithdrawalId), undefined);
    assert.deepEqual(own(two.clientWithdrawalId), [3n, 'PAID']);
    assert.deepEqual(own(three.clientWithdrawalId), [3n, 'REJECTED']);
    assert.deepEqual(own('wdr_nobodysent2222222222'), [100n, 'PAID']);
    assert.deepEqual(cashIn(await page(StatementSection.CASH), owner), right);
    await controls.clearDirectives({}, soon);
  });
});

describe('a broker with direct settlement', () => {
  it('pays the proceeds of a sale to the bank when it settles, so that nobody can withdraw or spend them', async () => {
    const owner = await open(50_000n);
    const earlier = await open(0n);
    const sale = { symbol, side: Side.SELL, quantity: 100n, priceKobo: 1_000n };
    await controls.addTrades({ ...sale, account: earlier }, soon);
    await controls.setDirectSettlement({ isDirect: true }, soon);
    await controls.addTrades({ ...sale, account: owner, count: 2 }, soon);
    assert.equal((await withdraw(owner, 50_001n)).rejectReason, reasons.INSUFFICIENT_WITHDRAWABLE_FUNDS);
    await controls.settle({}, soon);
    assert.equal((await withdraw(owner, 50_001n)).rejectReason, reasons.INSUFFICIENT_WITHDRAWABLE_FUNDS);
    const buy = newOrder({ account: owner, symbol, quantity: 60n, priceKobo: 900n });
    assert.notEqual((await orders.submitOrder(buy, soon)).report?.rejectReason, 0);
    assert.equal((await withdraw(owner, 50_000n)).kind, PAID);
    assert.equal((await withdraw(earlier, 90_000n)).kind, PAID, 'a sale from before is not settled directly');
    await controls.setDirectSettlement({ isDirect: false }, soon);
  });

  it('keeps which sales it must pay out through a restart, and pays each once', async () => {
    const owner = await open(0n);
    await controls.setDirectSettlement({ isDirect: true }, soon);
    await controls.addTrades({ account: owner, symbol, side: Side.SELL, quantity: 100n, priceKobo: 1_000n }, soon);
    const restarted = await simulator.restart();
    await restarted.controls.setDirectSettlement({ isDirect: false }, soon);
    await restarted.controls.settle({ account: owner }, soon);
    const paidOut = await cashOf(restarted, owner);
    assert.ok(paidOut !== undefined && paidOut < -90_000n, 'the proceeds are without the money of deals');
    await restarted.controls.settle({ account: owner }, soon);
    assert.equal(await cashOf(restarted, owner), paidOut);
    await eventually(async () => assert.equal(await cashOf(simulator, owner), paidOut));
  });
});

describe('a withdrawal that the bank returns', () => {
  it('comes back on the second trading day after it was paid, and not before', async () => {
    const owner = await open(2_998_011n);
    const { clientWithdrawalId: id } = await withdraw(owner, 1_998_011n, BANK_ACCOUNT);
    const [, paid] = await untilReports(id, [ACCEPTED, PAID]);
    const calendar = new MarketCalendar(readHolidays(usualHolidays));
    const paidAtMs = timestampMs(paid?.at ?? assert.fail());
    const returnDay = calendar.tradingDayAfter(lagosDay(paidAtMs), 2);
    const dueAtMs = Date.parse(`${returnDay}T00:00:00+01:00`);
    const { returnAt } = (await held(id)) ?? assert.fail();
    assert.equal(timestampMs(returnAt ?? assert.fail()), dueAtMs);
    await controls.setClock({ offsetMs: BigInt(dueAtMs - Date.now() - 60_000) }, soon);
    assert.equal((await reportsOf(id)).length, 2);
    assert.equal(await cashOf(simulator, owner), 995_000n);
    await controls.setClock({ offsetMs: BigInt(dueAtMs - Date.now() + dayMs / 2) }, soon);
    await untilReports(id, [ACCEPTED, PAID, RETURNED]);
    assert.equal(await cashOf(simulator, owner), 2_993_011n);
    assert.equal((await held(id))?.returnAt, undefined);
  });
});

describe('a broker of withdrawals after a restart', () => {
  it('goes on with its numbers, with the money set aside and with what was planned', async () => {
    const owner = await open(2_005_010n);
    await controls.forceWithdrawal({ account: owner, outcome: WithdrawalOutcome.HOLD }, soon);
    const { clientWithdrawalId: waits, number } = await withdraw(owner, 2_000_000n, BANK_ACCOUNT);
    const quick = await open(10n);
    const { clientWithdrawalId: planned } = await withdraw(quick, 10n, BANK_ACCOUNT);
    const before = await everyWithdrawal();
    ({ withdrawals, controls } = await simulator.restart());
    assert.deepEqual(
      (await everyWithdrawal()).map(({ clientWithdrawalId, amountKobo }) => [clientWithdrawalId, amountKobo]),
      before.map(({ clientWithdrawalId, amountKobo }) => [clientWithdrawalId, amountKobo]),
    );
    await untilReports(planned, [ACCEPTED, PAID]);
    assert.equal((await withdraw(owner, 11n)).rejectReason, reasons.INSUFFICIENT_WITHDRAWABLE_FUNDS);
    const { number: next } = await withdraw(owner, 10n);
    assert.ok(next > number);
    await controls.decideWithdrawal({ clientWithdrawalId: waits, kind: PAID }, soon);
    assert.equal(await cashOf({ controls }, owner), 0n);
  });
});
