import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { status } from '@grpc/grpc-js';
import {
  AccountActivity,
  AccountRestrictionCode,
  AccountState,
  MarketSession,
} from '../../src/gen/marina/broker/v1/accounts_pb.ts';
import { AccountStatus, RejectReason, ReportKind, Side } from '../../src/gen/marina/broker/v1/orders_pb.ts';
import { WithdrawalDestination, WithdrawalReportKind } from '../../src/gen/marina/broker/v1/withdrawals_pb.ts';
import {
  Call,
  Outcome,
  StatedTime,
  StatementLie,
  WireFault,
  WithdrawalOutcome,
} from '../../src/gen/marina/simulator/v1/controls_pb.ts';
import { controlsService } from '../../src/simulator/controls-service.ts';
import { maxAccounts, maxInstruments } from '../../src/simulator/world.ts';
import { dayMs, orderRequest, SimulatedBroker, wednesday } from '../support/simulated-broker.ts';
import { refusalOf, simulatedServices, wireCall } from '../support/simulated-services.ts';

const none = { times: 1, delayMs: 0, partner: '', account: '' };

async function start() {
  const broker = await SimulatedBroker.start({ startCashKobo: 1_000n, sharesElsewhere: 0n });
  const parts = simulatedServices(broker);
  const service = controlsService(parts);
  const ask = (name: keyof typeof service, request: object = {}) =>
    (service[name] as (request: object, call: object) => Promise<Record<string, unknown>>)(request, wireCall());
  /** The field that a request is refused by; undefined: it is taken. */
  const wrong = async (name: keyof typeof service, request: object) => {
    const refused = await refusalOf(() => ask(name, request));
    assert.ok(refused === undefined || refused.code === status.INVALID_ARGUMENT, refused?.message);
    return /value of (\S+) is/.exec(refused?.message ?? '')?.[1];
  };
  const order = (id = 'ord_1') =>
    broker.change({ orders: [id] }, (unit) => {
      unit.report(unit.addOrder(orderRequest({ clientOrderId: id }), true), ReportKind.ACCEPTED);
    });
  return { broker, ...parts, service, ask, wrong, order };
}

/** Tries each request of a table, with the field that is wrong with it. */
async function tryAll(
  wrong: Awaited<ReturnType<typeof start>>['wrong'],
  name: Parameters<Awaited<ReturnType<typeof start>>['wrong']>[0],
  good: object,
  cases: readonly (readonly [object, string | undefined])[],
): Promise<void> {
  assert.equal(await wrong(name, good), undefined, name);
  for (const [changes, field] of cases) {
    assert.equal(await wrong(name, { ...good, ...changes }), field, `${name} ${Object.entries(changes)}`.slice(0, 90));
  }
}

describe('the controls of the clock and of calls', () => {
  it('the clock moves ahead up to a hundred years, is stored, and what is due then is done', async () => {
    const { ask, wrong, done, broker } = await start();
    const century = 100 * 366 * dayMs;
    await tryAll(wrong, 'setClock', { offsetMs: 5_000n }, [
      [{ offsetMs: -1n }, 'offset_ms'],
      [{ offsetMs: BigInt(century + 1) }, 'offset_ms'],
    ]);
    assert.deepEqual([done, broker.world.clock.offsetMs], [['clock moved'], 5_000]);
    assert.equal(broker.database.rows('settings').find(({ name }) => name === 'clock_offset_ms')?.value, 5_000);
    assert.deepEqual(await ask('setClock', { offsetMs: BigInt(century) }), { now: timestampFromMs(wednesday) });
  });

  it('the clock is wrong by a year at most, ahead or behind', async () => {
    const { wrong, broker } = await start();
    const year = 366 * dayMs;
    await tryAll(wrong, 'setClockError', { errorMs: -5n, stated: StatedTime.NONE }, [
      [{ errorMs: BigInt(year + 1) }, 'error_ms'],
      [{ errorMs: BigInt(-year - 1) }, 'error_ms'],
      [{ stated: 99 }, 'stated'],
      [{ errorMs: BigInt(-year), stated: StatedTime.RIGHT }, undefined],
    ]);
    assert.deepEqual([broker.world.clock.errorMs, broker.world.clock.stated], [-year, StatedTime.RIGHT]);
  });

  it('a forced outcome has the terms that were asked for, and one part if none are', async () => {
    const { wrong, ask, directives } = await start();
    const good = {
      ...none,
      outcome: Outcome.FILL,
      rejectReason: RejectReason.MARKET_CLOSED,
      parts: 2,
      symbol: 'UBA',
      account: 'A1',
      delayMs: 7,
    };
    await tryAll(wrong, 'forceOutcome', { ...good, times: 2 }, [
      [{ times: -1 }, 'times'],
      [{ times: 1_000_001 }, 'times'],
      [{ delayMs: 3_600_001 }, 'delay_ms'],
      [{ partner: 'a b' }, 'partner'],
      [{ outcome: 99 }, 'outcome'],
      [{ parts: 101 }, 'parts'],
    ]);
    const behaviour = { outcome: Outcome.FILL, rejectReason: RejectReason.MARKET_CLOSED, parts: 2, delayMs: 7 };
    assert.equal(directives.takeOutcome('A2', 'UBA'), undefined);
    assert.equal(directives.takeOutcome('A1', 'GTCO'), undefined);
    const taken = [1, 2, 3].map(() => directives.takeOutcome('A1', 'UBA'));
    assert.deepEqual(taken, [behaviour, behaviour, undefined]);
    await ask('forceOutcome', { ...good, parts: 0 });
    assert.equal(directives.takeOutcome('A1', 'UBA')?.parts, 1);
  });

  it('a fault is injected for its call, account and object, and is its partner’s', async () => {
    const { wrong, ask, directives } = await start();
    const good = {
      ...none,
      call: Call.SUBMIT_ORDER,
      fault: WireFault.HANG,
      account: 'A1',
      clientId: 'ord_1',
      delayMs: 3,
      partner: 'par_1',
    };
    await tryAll(wrong, 'injectFault', good, [
      [{ call: Call.UNSPECIFIED }, 'call'],
      [{ call: 999 }, 'call'],
      [{ fault: 99 }, 'fault'],
      [{ times: 1_000_001 }, 'times'],
      [{ delayMs: -1 }, 'delay_ms'],
    ]);
    for (const [call, account, id] of [
      [Call.CANCEL_ORDER, 'A1', 'ord_1'],
      [Call.SUBMIT_ORDER, 'A2', 'ord_1'],
      [Call.SUBMIT_ORDER, 'A1', 'ord_2'],
    ] as const) {
      assert.equal(directives.takeFault(call, account, id), undefined);
    }
    const fault = directives.takeFault(Call.SUBMIT_ORDER, 'A1', 'ord_1');
    assert.deepEqual(
      [fault?.wire, fault?.delayMs, fault?.partner, fault?.meetsCallOnly],
      [WireFault.HANG, 3, 'par_1', true],
    );
    await ask('injectFault', { ...good, partner: '' });
    assert.equal(directives.takeFault(Call.SUBMIT_ORDER, 'A1', 'ord_1')?.meetsCallOnly, false);
  });

  it('directives are cleared by account or object, and lies only with all of them', async () => {
    const { ask, directives, lies } = await start();
    const fault = { call: Call.SUBMIT_ORDER, wire: WireFault.HANG, delayMs: 0 };
    const lie = { lie: StatementLie.CASH, day: '2026-07-01', clientId: '', account: '', symbol: '' };
    for (const [account, clientId, leaves, lied] of [
      ['A1', '', 1, 1],
      ['', 'ord_2', 1, 1],
      ['A1', 'ord_2', 2, 1],
      ['', '', 0, 0],
    ] as const) {
      directives.clear();
      lies.clear();
      lies.add(lie);
      directives.addFault({ ...fault, account: 'A1', clientId: 'ord_1' }, 1);
      directives.addFault({ ...fault, account: 'A2', clientId: 'ord_2' }, 1);
      await ask('clearDirectives', { account, clientId });
      const left = [
        directives.takeFault(Call.SUBMIT_ORDER, 'A1', 'ord_1'),
        directives.takeFault(Call.SUBMIT_ORDER, 'A2', 'ord_2'),
      ];
      assert.equal(left.filter((each) => each !== undefined).length, leaves, `${account} ${clientId}`);
      assert.equal(lies.of('2026-07-01', StatementLie.CASH).length, lied);
    }
  });
});

describe('the controls of orders and streams', () => {
  it('an order is filled, expired and rejected, each with the report of it', async () => {
    const { ask, order } = await start();
    for (const id of ['ord_1', 'ord_2', 'ord_3']) await order(id);
    const filled = await ask('fillOrder', { clientOrderId: 'ord_1', quantity: 40n, priceKobo: 990n });
    const { kind, quantity, priceKobo } = filled.report as { kind: number; quantity: bigint; priceKobo: bigint };
    assert.deepEqual([kind, quantity, priceKobo], [ReportKind.TRADE, 40n, 990n]);
    const expired = await ask('expireOrder', { clientOrderId: 'ord_2' });
    assert.equal((expired.report as { kind: number }).kind, ReportKind.EXPIRED);
    const rejected = await ask('rejectOrder', { clientOrderId: 'ord_3', rejectReason: RejectReason.MARKET_CLOSED });
    const report = rejected.report as { kind: number; rejectReason: number };
    assert.deepEqual([report.kind, report.rejectReason], [ReportKind.REJECTED, RejectReason.MARKET_CLOSED]);
  });

  it('a change that an order does not allow is refused with a code of its own', async () => {
    const { ask, order } = await start();
    await order();
    const { NOT_FOUND, FAILED_PRECONDITION, INVALID_ARGUMENT } = status;
    const fill = { clientOrderId: 'ord_1', quantity: 1n, priceKobo: 0n };
    for (const [name, request, code] of [
      ['fillOrder', { ...fill, clientOrderId: 'ord_9' }, NOT_FOUND],
      ['fillOrder', { ...fill, quantity: 101n }, INVALID_ARGUMENT],
      ['fillOrder', { ...fill, priceKobo: 1_001n }, INVALID_ARGUMENT],
      ['fillOrder', { ...fill, quantity: -1n }, INVALID_ARGUMENT],
      ['fillOrder', { ...fill, priceKobo: -1n }, INVALID_ARGUMENT],
      ['expireOrder', { clientOrderId: 'ord_1' }, undefined],
      ['expireOrder', { clientOrderId: 'ord_1' }, FAILED_PRECONDITION],
      ['rejectOrder', { clientOrderId: 'ord_9' }, NOT_FOUND],
    ] as const) {
      assert.equal((await refusalOf(() => ask(name, request)))?.code, code, name);
    }
  });

  it('reports of one kind of object are disturbed, and its streams broken', async () => {
    const { ask, wrong, done } = await start();
    const good = { repeat: 1, swap: 2, omit: 3, breakStreams: false, applications: false, withdrawals: false };
    await tryAll(wrong, 'disturbReports', good, [
      [{ repeat: 100_001 }, 'repeat'],
      [{ swap: -1 }, 'swap'],
      [{ omit: 100_001 }, 'omit'],
      [{ applications: true, withdrawals: true }, 'withdrawals'],
    ]);
    await ask('disturbReports', { ...good, applications: true });
    await ask('disturbReports', { ...good, withdrawals: true, breakStreams: true });
    await ask('disturbReports', { ...good, repeat: 0, swap: 0, omit: 0, breakStreams: true });
    await ask('disturbReports', { ...good, repeat: 0, swap: 0, omit: 0 });
    assert.deepEqual(done, [
      ...[
        'orders disturbed 1 2 3',
        'applications disturbed 1 2 3',
        'withdrawals disturbed 1 2 3',
        'withdrawals broken',
      ],
      'orders broken',
    ]);
  });

  it('the last report of an order is repeated, and the connections of others are dropped', async () => {
    const { ask, order, done } = await start();
    await order('ord_1');
    await order('ord_2');
    await ask('repeatReport', { clientOrderId: 'ord_1' });
    assert.equal((await refusalOf(() => ask('repeatReport', { clientOrderId: 'ord_9' })))?.code, status.NOT_FOUND);
    assert.deepEqual(await ask('dropSession'), { connections: 3 });
    assert.deepEqual(done, ['orders repeat 1', 'drop others than peer']);
  });

  it('messages and orders are listed behind a number, of one order if it is named', async () => {
    const { ask, order, broker } = await start();
    for (const id of ['ord_1', 'ord_2']) {
      await order(id);
      await broker.change({}, (unit) =>
        unit.message({
          call: Call.SUBMIT_ORDER,
          clientOrderId: id,
          account: '',
          receivedAtMs: 0,
          taken: true,
          requestId: '',
          traceParent: '',
        }),
      );
    }
    const count = async (name: 'listMessages' | 'listExchangeOrders', request: object) => {
      const answer = await ask(name, request);
      return ((answer.messages ?? answer.orders) as object[]).length;
    };
    const listed = [
      await count('listMessages', { afterNumber: 0n, clientOrderId: '' }),
      await count('listMessages', { afterNumber: 1n, clientOrderId: '' }),
      await count('listMessages', { afterNumber: 0n, clientOrderId: 'ord_2' }),
      await count('listExchangeOrders', { afterSequence: 1n, clientOrderId: '' }),
      await count('listExchangeOrders', { afterSequence: 0n, clientOrderId: 'ord_1' }),
    ];
    assert.deepEqual(listed, [2, 1, 1, 1, 1]);
    assert.equal(
      (await refusalOf(() => ask('listMessages', { afterNumber: -1n, clientOrderId: '' })))?.code,
      status.INVALID_ARGUMENT,
    );
  });
});

describe('the controls of accounts, stocks and capabilities', () => {
  it('an account gets a status that there is, and no more accounts than may be are kept', async () => {
    const { ask, wrong, broker } = await start();
    await tryAll(wrong, 'setAccount', { account: 'A1', status: AccountStatus.SETTLEMENT_LOCKOUT }, [
      [{ account: '' }, 'account'],
      [{ account: 'x'.repeat(65) }, 'account'],
      [{ status: AccountStatus.UNSPECIFIED }, 'status'],
      [{ status: 99 }, 'status'],
    ]);
    assert.deepEqual(broker.database.rows('accounts'), [{ account: 'A1', status: AccountStatus.SETTLEMENT_LOCKOUT }]);
    const { accounts } = broker.world;
    for (let at = accounts.size; at < maxAccounts - 1; at += 1) accounts.set(`N${at}`, AccountStatus.ACTIVE);
    const set = (account: string) => refusalOf(() => ask('setAccount', { account, status: AccountStatus.ACTIVE }));
    assert.deepEqual(
      [await set('A2'), (await set('A3'))?.code, await set('A1')],
      [undefined, status.RESOURCE_EXHAUSTED, undefined],
    );
  });

  it('a stock is set, no more than may be are kept, and the list is by position at the prices of now', async () => {
    const { ask, broker } = await start();
    const set = (symbol: string) =>
      refusalOf(() =>
        ask('setInstrument', {
          instrument: { symbol, name: '', kind: 0, lastPriceKobo: 500n, lowerPriceKobo: 0n, upperPriceKobo: 0n },
          ...{ halted: false, moves: false },
        }),
      );
    assert.equal(await set('OWN'), undefined);
    const listed = (await ask('listInstruments')).instruments as { symbol: string; lastPriceKobo: bigint }[];
    const positions = listed.map(({ symbol }) => broker.world.instruments.get(symbol)?.position ?? 0);
    assert.deepEqual(
      positions,
      [...positions].sort((one, other) => one - other),
    );
    assert.equal(listed.find(({ symbol }) => symbol === 'OWN')?.lastPriceKobo, 500n);
    assert.equal(
      listed.find(({ symbol }) => symbol === 'UBA')?.lastPriceKobo,
      BigInt(broker.world.instrument('UBA')?.lastKobo ?? 0),
    );
    assert.equal((await refusalOf(() => ask('setInstrument', {})))?.code, status.INVALID_ARGUMENT);
    const { instruments } = broker.world;
    const own = instruments.get('OWN');
    assert.ok(own);
    for (let at = instruments.size; at < maxInstruments; at += 1) instruments.set(`N${at}`, own);
    assert.deepEqual([(await set('NEW'))?.code, await set('OWN')], [status.RESOURCE_EXHAUSTED, undefined]);
  });

  it('capabilities change as they are named, and a broker that takes no withdrawals ends their streams', async () => {
    const { ask, broker, done } = await start();
    const { world } = broker;
    await ask('setCapabilities', { honoursNotAfter: false });
    assert.deepEqual(world.capabilities, { honoursNotAfter: false, accountTransactions: true, accountStatus: true });
    await ask('setCapabilities', {
      honoursNotAfter: true,
      accountTransactions: false,
      accountStatus: false,
      withdrawalsToWallet: false,
    });
    assert.deepEqual(world.capabilities, { honoursNotAfter: true, accountTransactions: false, accountStatus: false });
    assert.deepEqual([world.withdrawals.destinations, done], [[WithdrawalDestination.BANK_ACCOUNT], []]);
    await ask('setCapabilities', { honoursNotAfter: true, withdrawalsToBankAccount: false });
    assert.deepEqual([world.withdrawals.destinations, done], [[], ['withdrawals broken']]);
    await broker.reload();
    assert.deepEqual([world.capabilities.accountTransactions, world.withdrawals.destinations], [false, []]);
    await ask('setCapabilities', { honoursNotAfter: true, withdrawalsToWallet: true });
    assert.deepEqual(world.withdrawals.destinations, [WithdrawalDestination.WALLET]);
  });

  it('cash and shares elsewhere are set, and the state of an account with its restrictions', async () => {
    const { wrong, broker } = await start();
    const bound = 10n ** 15n;
    await tryAll(wrong, 'setCash', { account: 'A1', cashKobo: 2_500n }, [
      [{ account: '' }, 'account'],
      [{ cashKobo: bound + 1n }, 'cash_kobo'],
      [{ cashKobo: -bound - 1n }, 'cash_kobo'],
      [{ account: 'x'.repeat(65) }, 'account'],
      [{ account: 'A3', cashKobo: bound }, undefined],
      [{ sharesElsewhere: -1n }, 'shares_elsewhere'],
      [{ account: 'A2', cashKobo: -bound, sharesElsewhere: 7n }, undefined],
    ]);
    const { world } = broker;
    // Every account begins with 1,000 kobo.
    assert.deepEqual([world.cash.get('A1'), world.cash.get('A2')], [1_500, Number(-bound) - 1_000]);
    assert.deepEqual(broker.database.rows('shares_elsewhere'), [{ account: 'A2', shares: 7 }]);
    const restrictions = [{ code: AccountRestrictionCode.OTHER, forbids: [AccountActivity.FUND] }];
    await tryAll(wrong, 'setAccountState', { account: 'A1', state: AccountState.RESTRICTED, restrictions }, [
      [{ account: '' }, 'account'],
      [{ restrictions: [] }, 'restrictions'],
    ]);
    assert.deepEqual(world.states.get('A1')?.restrictions[0]?.sinceMs, wednesday);
    const set = world.states.get('A1');
    assert.ok(set);
    for (let at = world.states.size; at < maxAccounts; at += 1) world.states.set(`N${at}`, set);
    const state = { state: AccountState.CLOSED, restrictions: [] };
    assert.equal(await wrong('setAccountState', { ...state, account: 'A9' }), 'account');
    assert.equal(await wrong('setAccountState', { ...state, account: 'A1' }), undefined);
  });

  it('trades are added one after the other, within a bound of their worth', async () => {
    const { ask, wrong, broker } = await start();
    const good = {
      account: 'A1',
      symbol: 'UBA',
      side: Side.BUY,
      quantity: 2n,
      priceKobo: 100n,
      count: 3,
      stepMs: 10,
      executedAt: timestampFromMs(wednesday - 5),
    };
    await tryAll(wrong, 'addTrades', good, [
      [{ account: '' }, 'account'],
      [{ symbol: 'x'.repeat(21) }, 'symbol'],
      [{ side: 0 }, 'side'],
      [{ quantity: 0n }, 'quantity'],
      [{ priceKobo: 0n }, 'price_kobo'],
      [{ count: 10_001 }, 'count'],
      [{ stepMs: -1 }, 'step_ms'],
      [{ quantity: 10n ** 9n, priceKobo: 10n ** 9n, count: 2 }, 'quantity'],
    ]);
    const deals = broker.database
      .rows('deals')
      .map((row) => [row.executed_at_ms, row.quantity, row.price_kobo, row.name]);
    const name = broker.world.instruments.get('UBA')?.name;
    assert.deepEqual(
      deals,
      [0, 10, 20].map((after) => [wednesday - 5 + after, 2, 100, name]),
    );
    await ask('addTrades', { ...good, count: 0, executedAt: undefined, symbol: 'NONE' });
    const [last] = broker.database.rows('deals').slice(3);
    assert.deepEqual([last?.executed_at_ms, last?.name, broker.database.rows('deals').length], [wednesday, 'NONE', 4]);
  });

  it('the reported market is set, and the reads are counted from the last question', async () => {
    const { ask, wrong, broker, reads } = await start();
    await tryAll(wrong, 'setMarket', { market: { session: MarketSession.PAUSED } }, [
      [{ market: undefined }, 'market.session'],
      [{ market: { session: MarketSession.UNSPECIFIED } }, 'market.session'],
    ]);
    assert.equal(broker.world.reportedMarket?.session, MarketSession.PAUSED);
    await reads.count(wireCall(), 'A1', async () => 1);
    assert.deepEqual(await ask('getReads'), { most: 1, mostOfAccount: 1, now: 0 });
  });

  it('withdrawals are forced, decided and listed, and direct settlement is kept', async () => {
    const { ask, wrong, broker, directives } = await start();
    const good = { ...none, account: 'A1', outcome: WithdrawalOutcome.HOLD, rejectReason: 2 };
    await tryAll(wrong, 'forceWithdrawal', good, [
      [{ times: -1 }, 'times'],
      [{ partner: 'a b' }, 'partner'],
      [{ outcome: 99 }, 'outcome'],
      [{ rejectReason: 99 }, 'reject_reason'],
    ]);
    assert.equal(directives.takeWithdrawal('A2'), undefined);
    assert.deepEqual(directives.takeWithdrawal('A1'), { outcome: WithdrawalOutcome.HOLD, rejectReason: 2 });
    await broker.change({}, (unit) => {
      const terms = {
        account: 'A1',
        amountKobo: 5,
        destination: WithdrawalDestination.BANK_ACCOUNT,
        course: WithdrawalOutcome.HOLD,
      };
      const rest = { state: 0, rejectReason: 0, dutyKobo: 0, decideAtMs: null, returnAtMs: null };
      for (const id of ['wdr_1', 'wdr_2']) {
        unit.withdrawals.report(
          unit.withdrawals.add({ clientWithdrawalId: id, ...terms, ...rest }, true),
          WithdrawalReportKind.ACCEPTED,
        );
      }
    });
    const decide = (changes: object) =>
      ask('decideWithdrawal', {
        clientWithdrawalId: 'wdr_1',
        kind: WithdrawalReportKind.REJECTED,
        rejectReason: 3,
        ...changes,
      });
    const report = (await decide({})).report as { kind: number; rejectReason: number };
    assert.deepEqual([report.kind, report.rejectReason], [WithdrawalReportKind.REJECTED, 3]);
    assert.equal((await refusalOf(() => decide({})))?.code, status.FAILED_PRECONDITION);
    assert.equal((await refusalOf(() => decide({ clientWithdrawalId: 'wdr_9' })))?.code, status.NOT_FOUND);
    assert.equal(
      (await refusalOf(() => decide({ kind: WithdrawalReportKind.ACCEPTED })))?.code,
      status.INVALID_ARGUMENT,
    );
    assert.equal((await refusalOf(() => decide({ rejectReason: 99 })))?.code, status.INVALID_ARGUMENT);
    for (const kind of [WithdrawalReportKind.PAID, WithdrawalReportKind.RETURNED])
      await decide({ clientWithdrawalId: 'wdr_2', kind });
    const listed = await ask('listWithdrawals', { afterSequence: 1n, clientWithdrawalId: '' });
    assert.deepEqual(
      (listed.withdrawals as { clientWithdrawalId: string }[]).map((one) => one.clientWithdrawalId),
      ['wdr_2'],
    );
    await ask('setDirectSettlement', { isDirect: true });
    await broker.reload();
    assert.equal(broker.world.directSales.isOn, true);
  });
});

describe('the controls of the market', () => {
  it('the session and the hours are those that were set', async () => {
    const { ask, wrong, broker } = await start();
    await tryAll(wrong, 'setSession', { session: MarketSession.CLOSED }, [[{ session: 99 }, 'session']]);
    assert.equal(broker.world.venue.session(broker.nowMs).phase, 'closed');
    await ask('setSession', { session: MarketSession.UNSPECIFIED });
    assert.equal(broker.world.venue.session(broker.nowMs).phase, 'continuous');
    await ask('setHours', { keepsHours: true });
    broker.nowMs = Date.UTC(2026, 6, 1, 20);
    assert.equal(broker.world.venue.session(broker.nowMs).phase, 'closed');
  });

  it('the day says when the next one begins and when its trades settle, with hours and without', async () => {
    const { ask, broker } = await start();
    const friday = Date.UTC(2026, 6, 3, 9);
    broker.nowMs = friday;
    const about = async () => {
      const { today, tradingDay, nextTradingDay, nextDayAt, settlementDay, keepsHours, now } = await ask('getDay');
      assert.deepEqual(now, timestampFromMs(broker.nowMs));
      return { today, tradingDay, nextTradingDay, nextDayAt, settlementDay, keepsHours };
    };
    assert.deepEqual(await about(), {
      ...{ today: '2026-07-03', tradingDay: true, nextTradingDay: '2026-07-04', settlementDay: '2026-07-06' },
      ...{ nextDayAt: timestampFromMs(Date.UTC(2026, 6, 3, 23)), keepsHours: false },
    });
    broker.world.venue.keepsHours = true;
    const monday = timestampFromMs(Date.UTC(2026, 6, 6, 9));
    const next = { nextTradingDay: '2026-07-06', settlementDay: '2026-07-06', keepsHours: true };
    const days = await about();
    assert.deepEqual(
      { ...days, nextDayAt: undefined },
      { today: '2026-07-03', tradingDay: true, ...next, nextDayAt: undefined },
    );
    assert.ok(Number((days.nextDayAt as { seconds: bigint }).seconds) <= Number(monday.seconds));
    broker.nowMs = friday + dayMs;
    assert.deepEqual(
      { ...(await about()), nextDayAt: undefined },
      { today: '2026-07-04', tradingDay: false, ...next, nextDayAt: undefined },
    );
  });

  it('a stock is halted and let go again, if there is one', async () => {
    const { ask, broker } = await start();
    await ask('haltSymbol', { symbol: 'UBA', halted: true });
    assert.equal(broker.world.instrument('UBA')?.halted, true);
    await ask('haltSymbol', { symbol: 'UBA', halted: false });
    assert.equal(broker.world.instrument('UBA')?.halted, false);
    assert.equal((await refusalOf(() => ask('haltSymbol', { symbol: 'NONE', halted: true })))?.code, status.NOT_FOUND);
    assert.equal(
      (await refusalOf(() => ask('haltSymbol', { symbol: '', halted: true })))?.code,
      status.INVALID_ARGUMENT,
    );
  });

  it('a price moves by 20 % at most, of one stock or of all, and only where it moves by itself', async () => {
    const { ask, wrong, broker } = await start();
    const quotes = () => ['UBA', 'GTCO'].map((symbol) => broker.world.instrument(symbol)?.quoteKobo ?? 0);
    const [uba = 0, gtco = 0] = quotes();
    await tryAll(wrong, 'movePrice', { symbol: 'UBA', basisPoints: -500 }, [
      [{ basisPoints: 2_001 }, 'basis_points'],
      [{ basisPoints: -2_001 }, 'basis_points'],
    ]);
    assert.ok((quotes()[0] ?? 0) < uba);
    assert.equal(quotes()[1], gtco);
    await ask('movePrice', { symbol: '', basisPoints: 500 });
    assert.ok((quotes()[0] ?? 0) > uba && (quotes()[1] ?? 0) > gtco);
    for (const symbol of ['NONE', 'SIM-REST']) {
      assert.equal(
        (await refusalOf(() => ask('movePrice', { symbol, basisPoints: 1 })))?.code,
        status.NOT_FOUND,
        symbol,
      );
    }
    const { instruments } = broker.world;
    const stock = instruments.get('UBA');
    assert.ok(stock);
    instruments.set('UBA', { ...stock, pinned: true });
    assert.equal((await refusalOf(() => ask('movePrice', { symbol: 'UBA', basisPoints: 1 })))?.code, status.NOT_FOUND);
    assert.equal(
      await refusalOf(() => ask('movePrice', { symbol: 'UBA', basisPoints: -2_001 })).then((each) => each?.code),
      status.INVALID_ARGUMENT,
    );
  });

  it('trades of one account or of all settle today', async () => {
    const { ask, broker } = await start();
    for (const account of ['A1', 'A2']) {
      await ask('addTrades', {
        account,
        symbol: 'UBA',
        side: Side.BUY,
        quantity: 1n,
        priceKobo: 100n,
        count: 1,
        stepMs: 0,
      });
    }
    const dates = () => broker.database.rows('deals').map(({ settlement_date: date }) => date);
    await ask('settle', { account: 'A1' });
    assert.deepEqual(dates(), ['2026-07-01', '2026-07-02']);
    await ask('settle', { account: '' });
    assert.deepEqual(dates(), ['2026-07-01', '2026-07-01']);
  });
});
