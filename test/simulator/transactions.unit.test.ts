/** The bookings of a unit of work, after others of their accounts. */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { TransactionChains } from '../../src/simulator/clearing/transactions.ts';
import { type Booked, TransactionsUnit } from '../../src/simulator/clearing/transactions-unit.ts';

it('bookings of an account add up, and none is earlier than the one before it or later than now', () => {
  const [chains, clock] = [new TransactionChains(), { ms: 100 }];
  const book = (account: string, amountKobo: bigint, happenedAtMs?: number) => {
    const unit = new TransactionsUnit({ transactions: chains, clock: { now: () => clock.ms } } as never);
    unit.book(account, { type: 1, amountKobo, ...(happenedAtMs === undefined ? {} : { happenedAtMs }) } as Booked);
    const { balanceKobo, bookedAtMs } = chains.newest(account);
    return [chains.lastNumber, balanceKobo, bookedAtMs];
  };
  assert.deepEqual(book('A', 500n, 60), [1, 500n, 60], 'what happened earlier is booked at its time');
  assert.deepEqual(book('A', -200n, 59), [2, 300n, 60], 'behind the booking before it');
  assert.deepEqual(book('B', 7n, 59), [3, 7n, 59], 'another account has times of its own');
  assert.deepEqual(book('A', 1n, 101), [4, 301n, 100], 'nothing is booked for later');
  assert.deepEqual(book('A', 0n, 100), [4, 301n, 100], 'nothing is booked for nothing');
  clock.ms = 90;
  assert.deepEqual(book('A', 1n), [5, 302n, 100], 'a clock that was set back moves no booking back');
});
