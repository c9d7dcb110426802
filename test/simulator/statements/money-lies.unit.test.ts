import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { status } from '@grpc/grpc-js';
import { StatementLie } from '../../../src/gen/marina/simulator/v1/controls_pb.ts';
import { Lies, lieControls } from '../../../src/simulator/statements/lies.ts';
import { liedBalance, liedTransactions } from '../../../src/simulator/statements/money-lies.ts';
import { World } from '../../../src/simulator/world.ts';
import { wednesday } from '../../support/simulated-broker.ts';
import { refusalOf, wireCall } from '../../support/simulated-services.ts';

const { OPENING_BALANCE, TRANSACTION_NAME, TRANSACTION_AMOUNT, TRANSACTION_BALANCE, CASH, POSITION } = StatementLie;
const lieOf = (lie: StatementLie, changes: object = {}) => ({
  lie,
  day: '2026-07-01',
  clientId: '',
  account: '',
  symbol: '',
  ...changes,
});

describe('the lies of a broker', () => {
  it('50 lies are in force at most, until they are cleared', async () => {
    const lies = new Lies();
    for (let at = 0; at < 50; at += 1) lies.add(lieOf(CASH));
    assert.equal((await refusalOf(() => lies.add(lieOf(CASH))))?.code, status.RESOURCE_EXHAUSTED);
    lies.clear();
    assert.deepEqual(lies.of('2026-07-01', CASH), []);
    lies.add(lieOf(CASH));
    assert.equal(lies.of('2026-07-01', CASH).length, 1);
  });

  it('a lie is of its day and kind, what follows from it is of each later day, and it has its object', () => {
    const lies = new Lies();
    lies.add(lieOf(CASH, { clientId: 'a' }));
    lies.add(lieOf(POSITION, { day: '2026-07-02', clientId: 'b' }));
    const count = (day: string) => [
      lies.of(day, CASH, POSITION).length,
      lies.until(day, CASH, POSITION).length,
      lies.until(day, CASH).length,
    ];
    assert.deepEqual(['2026-06-30', '2026-07-01', '2026-07-02', '2026-07-03'].map(count), [
      [0, 0, 0],
      [1, 1, 1],
      [1, 2, 1],
      [0, 2, 1],
    ]);
    const has = [
      lies.has('2026-07-01', CASH, 'a'),
      lies.has('2026-07-01', CASH, 'b'),
      lies.has('2026-07-02', CASH, 'a'),
    ];
    assert.deepEqual([...has, lies.has('2026-07-01', POSITION, 'a')], [true, false, false, false]);
  });

  it('the control adds a lie of the day that it names or of today, and refuses what makes no sense', async () => {
    const world = new World(7);
    world.clock.now = () => wednesday;
    const lies = new Lies();
    const { lieInStatements } = lieControls(world, lies);
    const ask = (changes: object) => refusalOf(() => lieInStatements(lieOf(CASH, changes) as never, wireCall()));
    assert.equal(await ask({ day: '', account: 'A1', symbol: 'UBA', clientId: 'x' }), undefined);
    assert.equal(await ask({ day: '2026-06-30' }), undefined);
    assert.deepEqual(lies.of('2026-07-01', CASH), [lieOf(CASH, { account: 'A1', symbol: 'UBA', clientId: 'x' })]);
    assert.equal(lies.of('2026-06-30', CASH).length, 1);
    const long = 'x'.repeat(65);
    for (const [changes, field] of [
      [{ lie: StatementLie.UNSPECIFIED }, 'lie'],
      [{ lie: 99 }, 'lie'],
      [{ day: '2026-02-30' }, 'day'],
      [{ clientId: long }, 'client_id'],
      [{ account: long }, 'account'],
      [{ symbol: long }, 'symbol'],
    ] as const) {
      assert.match((await ask(changes))?.message ?? '', new RegExp(`of ${field} is`), field);
    }
    assert.equal(await ask({ clientId: 'x'.repeat(64) }), undefined);
  });
});

describe('the lies about money', () => {
  it('the opening balance of an account is a kobo more for each lie about it, on any day', () => {
    const lies = new Lies();
    const balance = { account: 'A1', openingKobo: 10n, settledKobo: 5n };
    assert.equal(liedBalance(lies, balance), balance);
    lies.add(lieOf(OPENING_BALANCE, { account: 'A1' }));
    lies.add(lieOf(OPENING_BALANCE, { account: 'A1', day: '2030-01-01' }));
    lies.add(lieOf(OPENING_BALANCE, { account: 'A2' }));
    lies.add(lieOf(CASH, { account: 'A1' }));
    assert.deepEqual(liedBalance(lies, balance), { account: 'A1', openingKobo: 12n, settledKobo: 5n });
  });

  it('a transaction’s name, amount and balance are wrong by the lies about its object, and no other', () => {
    const lies = new Lies();
    lies.add(lieOf(TRANSACTION_NAME, { clientId: 'alc_1' }));
    lies.add(lieOf(TRANSACTION_AMOUNT, { clientId: 'wdr_1' }));
    for (let times = 0; times < 2; times += 1) lies.add(lieOf(TRANSACTION_BALANCE, { clientId: 'wdr_1' }));
    lies.add(lieOf(TRANSACTION_NAME, { clientId: 'wdr_2' }));
    lies.add(lieOf(TRANSACTION_AMOUNT));
    const booked = (clientAllocationId: string, clientWithdrawalId: string) => ({
      ...{ clientAllocationId, clientWithdrawalId, amountKobo: 10n, balanceKobo: 20n, symbol: 'UBA' },
    });
    const told = liedTransactions(lies, [
      booked('alc_1', ''),
      booked('', 'wdr_1'),
      booked('', 'wdr_2'),
      booked('', ''),
      booked('alc_2', ''),
    ]);
    const nobodys = 'nobodysent2222222222';
    assert.deepEqual(told, [
      booked(`alc_${nobodys}`, ''),
      { ...booked('', 'wdr_1'), amountKobo: 11n, balanceKobo: 22n },
      booked('', `wdr_${nobodys}`),
      booked('', ''),
      booked('alc_2', ''),
    ]);
  });
});
