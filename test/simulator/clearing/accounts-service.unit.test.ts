import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { status } from '@grpc/grpc-js';
import { AccountState, MarketSession, TransactionType } from '../../../src/gen/marina/broker/v1/accounts_pb.ts';
import { AccountStatus, Side } from '../../../src/gen/marina/broker/v1/orders_pb.ts';
import { Call, StatementLie, WireFault } from '../../../src/gen/marina/simulator/v1/controls_pb.ts';
import { accountsService } from '../../../src/simulator/clearing/accounts-service.ts';
import { unanswered } from '../../../src/simulator/wire/rpc.ts';
import { dayMs, SimulatedBroker, wednesday } from '../../support/simulated-broker.ts';
import { refusalOf, simulatedServices, wireCall } from '../../support/simulated-services.ts';

const range = { account: 'A1', fromDate: '2026-07-01', toDate: '2026-07-01', limit: 100 };

async function start() {
  const broker = await SimulatedBroker.start();
  await broker.change({}, (unit) => {
    unit.setAccount('A1', AccountStatus.ACTIVE);
    unit.setAccount('A2', AccountStatus.NOT_AT_BROKER);
    const terms = { account: 'A1', clientOrderId: 'ord_1', symbol: 'UBA', name: 'UBA', side: Side.BUY, quantity: 1 };
    for (let at = 0; at < 3; at += 1) unit.clearing.book({ ...terms, priceKobo: 1_000, executedAtMs: wednesday + at });
  });
  broker.nowMs = wednesday + dayMs;
  const parts = simulatedServices(broker);
  const service = accountsService({ ...parts, records: parts.clearing, nonsense: parts.clearingNonsense });
  /** Calls by name, with plain fields. */
  const ask = (name: keyof typeof service, request: object) =>
    (service[name] as (request: object, call: object) => Promise<Record<string, unknown>>)(request, wireCall());
  return { broker, ...parts, service, ask };
}

const calls = {
  getBalance: { account: 'A1' },
  listPositions: { account: 'A1', afterSymbol: '', limit: 100 },
  listTrades: range,
  listContractNotes: range,
  getAccountStatus: { account: 'A1' },
  listTransactions: { ...range, type: TransactionType.UNSPECIFIED },
} as const;
const names = Object.keys(calls) as (keyof typeof calls)[];
const callOf = {
  ...{ getBalance: Call.GET_BALANCE, listPositions: Call.LIST_POSITIONS, listTrades: Call.LIST_TRADES },
  ...{ listContractNotes: Call.LIST_CONTRACT_NOTES, getAccountStatus: Call.GET_ACCOUNT_STATUS },
  ...{ listTransactions: Call.LIST_TRANSACTIONS },
} as const;

describe('the account service of the simulated broker', () => {
  it('each call is about an account that the broker has, and names it', async () => {
    const { ask } = await start();
    for (const name of names) {
      assert.equal((await ask(name, calls[name])).account, 'A1', name);
      for (const account of ['A2', 'A9']) {
        assert.equal((await refusalOf(() => ask(name, { ...calls[name], account })))?.code, status.NOT_FOUND, name);
      }
    }
  });

  it('each call meets the faults of its own kind and account, and no other', async () => {
    const { ask, directives } = await start();
    for (const name of names) {
      directives.addFault({ call: callOf[name], account: 'A2', clientId: '', wire: WireFault.HANG, delayMs: 0 }, 1);
      directives.addFault(
        { call: callOf[name], account: 'A1', clientId: '', wire: WireFault.UNAVAILABLE_BEFORE, delayMs: 0 },
        1,
      );
      for (const other of names) if (other !== name) await ask(other, calls[other]);
      assert.equal((await refusalOf(() => ask(name, calls[name])))?.code, status.UNAVAILABLE, name);
      await ask(name, calls[name]);
      directives.clear();
    }
  });

  it('each call counts as a read of its account until it is answered or refused', async () => {
    const { ask, reads } = await start();
    for (const name of names) {
      await ask(name, calls[name]);
      await refusalOf(() => ask(name, { ...calls[name], account: 'A9' }));
      assert.deepEqual(reads.take(), { most: 1, mostOfAccount: 1, now: 0 }, name);
    }
  });

  it('a page has 1 to 100 records, and a range has dates', async () => {
    const { ask } = await start();
    for (const name of names.filter((each) => 'limit' in calls[each])) {
      for (const [limit, isGood] of [
        [0, false],
        [1, true],
        [100, true],
        [101, false],
      ] as const) {
        const refused = await refusalOf(() => ask(name, { ...calls[name], limit }));
        assert.equal(refused?.code, isGood ? undefined : status.INVALID_ARGUMENT, `${name} ${limit}`);
      }
    }
    for (const name of names.filter((each) => 'fromDate' in calls[each])) {
      for (const field of ['fromDate', 'toDate']) {
        const refused = await refusalOf(() => ask(name, { ...calls[name], [field]: '2026-02-30' }));
        assert.match(refused?.message ?? '', field === 'fromDate' ? /from_date/ : /to_date/, name);
      }
    }
  });

  it('pages follow each other by the place of the last record', async () => {
    const { ask } = await start();
    const ids = async (
      name: 'listTrades' | 'listContractNotes' | 'listTransactions',
      list: string,
      after?: object,
      limit = 2,
    ) => {
      const answer = await ask(name, { ...calls[name], limit, after });
      return (answer[list] as { id?: string; ticket?: string }[]).map(({ id, ticket }) => id ?? ticket);
    };
    const at = (ms: number) => timestampFromMs(wednesday + ms);
    assert.deepEqual(await ids('listTrades', 'trades'), ['TRD000000000003', 'TRD000000000002']);
    assert.deepEqual(await ids('listTrades', 'trades', { executedAt: at(1), id: 'TRD000000000002' }), [
      'TRD000000000001',
    ]);
    const note = { tradeDate: '2026-07-01', ticket: 'CN000000000002' };
    assert.deepEqual(await ids('listContractNotes', 'notes', note), ['CN000000000001']);
    const place = { bookedAt: at(0), id: 'TXN000000000002' };
    assert.deepEqual(await ids('listTransactions', 'transactions', place), ['TXN000000000001']);
  });

  it('a place that makes no sense is refused', async () => {
    const { ask } = await start();
    const at = timestampFromMs(wednesday);
    const cases: [keyof typeof calls, object][] = [
      ['listTrades', { executedAt: at, id: 'TXN1' }],
      ['listTrades', { executedAt: at, id: 'TRD' }],
      ['listTrades', { executedAt: at, id: `TRD${'1'.repeat(16)}` }],
      ['listTrades', { executedAt: at, id: 'TRD1x' }],
      ['listTrades', { executedAt: undefined, id: 'TRD1' }],
      ['listContractNotes', { tradeDate: 'x', ticket: 'CN1' }],
      ['listContractNotes', { tradeDate: '2026-07-01', ticket: 'TRD1' }],
      ['listTransactions', { bookedAt: at, id: 'TRD1' }],
      ['listTransactions', { bookedAt: undefined, id: 'TXN1' }],
    ];
    for (const [name, after] of cases) {
      const refused = await refusalOf(() => ask(name, { ...calls[name], after }));
      assert.equal(refused?.code, status.INVALID_ARGUMENT, `${name} ${Object.values(after)}`);
    }
    assert.equal(
      await refusalOf(() => ask('listTrades', { ...range, after: { executedAt: at, id: `TRD${'1'.repeat(15)}` } })),
      undefined,
    );
    assert.equal(
      (await refusalOf(() => ask('listTransactions', { ...range, type: 99 })))?.code,
      status.INVALID_ARGUMENT,
    );
  });

  it('lies about the balance and transactions are told, and only about their account', async () => {
    const { ask, lies, broker } = await start();
    const before = await ask('getBalance', calls.getBalance);
    const lie = { day: '2026-07-01', clientId: '', account: 'A1', symbol: '' };
    lies.add({ ...lie, lie: StatementLie.OPENING_BALANCE });
    assert.equal((await ask('getBalance', calls.getBalance)).openingKobo, (before.openingKobo as bigint) + 1n);
    await broker.change({}, (unit) => {
      unit.setAccount('A3', AccountStatus.ACTIVE);
      unit.backOffice.addAllocation({ clientAllocationId: 'alc_1', account: 'A3', amountKobo: 700 }, 1);
    });
    assert.equal((await ask('getBalance', { account: 'A3' })).openingKobo, 0n);
    lies.add({ ...lie, lie: StatementLie.TRANSACTION_AMOUNT, clientId: 'alc_1' });
    const request = { ...range, account: 'A3', toDate: '2026-07-02', type: 0 };
    const { transactions } = await ask('listTransactions', request);
    assert.deepEqual(
      (transactions as { amountKobo: bigint }[]).map(({ amountKobo }) => amountKobo),
      [701n],
    );
  });

  it('the status and the market are those of now, and of the session that a control reports', async () => {
    const { ask, world, broker } = await start();
    world.clock.errorMs = 5_000;
    const { asOf, state } = await ask('getAccountStatus', { account: 'A1' });
    assert.deepEqual([asOf, state], [timestampFromMs(broker.nowMs + 5_000), AccountState.ACTIVE]);
    assert.equal((await ask('getMarket', {})).session, MarketSession.OPEN);
    world.reportedMarket = { session: MarketSession.HALTED } as never;
    assert.equal((await ask('getMarket', {})).session, MarketSession.HALTED);
  });

  it('a call that hangs has no answer', async () => {
    const { ask, directives } = await start();
    directives.addFault({ call: Call.GET_MARKET, account: '', clientId: '', wire: WireFault.HANG, delayMs: 0 }, 1);
    assert.equal(await ask('getMarket', {}), unanswered);
  });
});
