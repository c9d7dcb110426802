import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Shared, StoredSum } from '../../../src/gateway/store/facts.ts';
import { PartnerCache, PartnerTransaction } from '../../../src/gateway/store/partner-transaction.ts';
import { statement } from '../../../src/gateway/store/statement.ts';

const row = { id: 'par_1', version: 1n, orders_kobo_per_day: null, allocations_kobo_per_day: null };
const none = new Map<string, unknown>();

describe('what a process remembers of a partner', () => {
  it('is doubted longer after each wrong transaction, and shorter after each right one', () => {
    let now = 0;
    const cache = new PartnerCache(() => now);
    const doubtedFor = () => {
      cache.noteMiss('par_1');
      cache.learn('par_1', { row, shared: none });
      const began = now;
      while (cache.expected('par_1') === undefined) now += 500;
      return now - began;
    };
    assert.deepEqual([doubtedFor(), doubtedFor(), doubtedFor()], [1_000, 2_000, 4_000]);
    cache.noteHit('par_1');
    assert.equal(doubtedFor(), 4_000, 'twice the half of before');
    for (let count = 0; count < 3; count += 1) cache.noteHit('par_1');
    assert.equal(doubtedFor(), 1_000);
  });

  it('lets its transactions go with those of others once three in a row were right', () => {
    const cache = new PartnerCache(() => 0);
    cache.learn('par_1', { row, shared: none });
    const steady = [cache.isSteady('par_1')];
    for (let count = 0; count < 3; count += 1) {
      cache.noteHit('par_1');
      steady.push(cache.isSteady('par_1'));
    }
    assert.deepEqual(steady, [false, false, false, true]);
    cache.noteMiss('par_1');
    assert.equal(cache.isSteady('par_1'), false);
  });

  it('keeps the values that are used, and forgets those of days long over', () => {
    const cache = new PartnerCache(() => 0);
    const counter = (name: string): StoredSum => ({
      name,
      read: statement(''),
      value: () => 0n,
      guard: () => statement(''),
      save: () => [],
      add: () => statement(''),
    });
    let shared: ReadonlyMap<string, unknown> = new Map<string, unknown>([['wallet', 5n]]);
    for (let day = 0; day < 20; day += 1) {
      const transaction = new PartnerTransaction({
        row,
        shared: new Map<string, unknown>([
          ['wallet', 5n],
          [`day ${day}`, 0n],
        ]),
      });
      transaction.add(counter('wallet'), 1n);
      transaction.add(counter(`day ${day}`), 1n);
      cache.learn('par_1', transaction.after(shared));
      shared = cache.values('par_1');
    }
    assert.equal(shared.size, 8);
    assert.deepEqual([shared.get('wallet'), shared.get('day 19'), shared.has('day 0')], [6n, 1n, false]);
  });
});

describe('a transaction that several pieces of work share', () => {
  const wallet: Shared<bigint> = {
    name: 'wallet',
    read: statement(''),
    value: () => 0n,
    guard: () => statement(''),
    save: (before, after) => [statement('save', before, after)],
  };
  const used: StoredSum = { ...wallet, name: 'used', add: (amount) => statement('add', amount) };

  it('a transaction keeps nothing of a piece of work that is refused, the first time and after others', () => {
    const transaction = new PartnerTransaction({
      row,
      shared: new Map<string, unknown>([
        ['wallet', 5n],
        ['used', 7n],
      ]),
    });
    const refuse = () => {
      throw new TypeError('refused');
    };
    const change = () => {
      transaction.takeVersions(2);
      transaction.set(wallet, transaction.get(wallet) + 1n);
      transaction.add(used, 3n);
    };
    const found = () => [transaction.version, transaction.get(wallet), transaction.get(used)];
    for (const [version, money, sum] of [
      [1n, 5n, 7n],
      [3n, 6n, 10n],
      [5n, 7n, 13n],
    ]) {
      assert.throws(
        () =>
          transaction.attempt(() => {
            change();
            refuse();
          }),
        TypeError,
      );
      assert.deepEqual(found(), [version, money, sum]);
      transaction.attempt(change);
    }
    const saved = transaction.save().map(({ sql, values }) => `${sql} ${values}`);
    assert.deepEqual(saved, ['UPDATE partners SET version = ? WHERE id = ? 7,par_1', 'add 9', 'save 5,8']);
    const { row: after, shared } = transaction.after(new Map());
    assert.deepEqual([after.version, shared.get('wallet'), shared.get('used')], [7n, 8n, 16n]);
  });

  it('a transaction to which nothing was added and in which no version was taken writes nothing', () => {
    const transaction = new PartnerTransaction({ row, shared: none });
    assert.deepEqual(transaction.save(), []);
    transaction.add(used, 0n);
    assert.deepEqual(transaction.save(), []);
    assert.throws(() => transaction.get(used), /used was not read/);
  });
});
