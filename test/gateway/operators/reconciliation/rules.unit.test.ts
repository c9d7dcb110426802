import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import {
  compareMoney,
  type OurMoney,
  type StatedMoney,
} from '../../../../src/gateway/operators/reconciliation/money-rules.ts';
import {
  breakId,
  compareOrder,
  type Difference,
  dueDays,
  goneNow,
  type HoldingRecord,
  Holdings,
  lastDueDay,
  maxTrades,
  noTrades,
  type OurOrder,
  pairTrades,
  type StatedOrder,
  seenAgain,
  type TradeFacts,
  withTrade,
} from '../../../../src/gateway/operators/reconciliation/rules.ts';
import { csvLine } from '../../../../src/kit/csv.ts';

const account = { account: 'ACC1', symbol: 'DANGCEM' };
const stated: StatedOrder = {
  ...account,
  ...{ side: 'buy', quantity: 100n, exchangeOrderId: 'X1', filledQuantity: 60n, state: 'open' },
};
const ours: OurOrder = {
  ...stated,
  ...{ partnerId: 'par_a', state: 'partially_filled', isUnsettled: false, isReported: true, trades: noTrades },
};
const kinds = (found: readonly Difference[]) => found.map(({ kind }) => kind);
const trade = (key: string, quantity: number, price: number, at = 1): TradeFacts => ({
  ...{ key, quantity: BigInt(quantity), priceKobo: BigInt(price), at },
});
const tradesOf = (list: readonly TradeFacts[]) => list.reduce(withTrade, noTrades);
const trades = fc.array(
  fc.record({ quantity: fc.integer({ min: 1, max: 3 }), price: fc.integer({ min: 1, max: 3 }), at: fc.nat(3) }),
  { maxLength: 12 },
);

describe('what two sides have of one order', () => {
  it('is no break when they agree, in the states of each', () => {
    assert.deepEqual(compareOrder('ord_1', ours, stated, noTrades, account), []);
    for (const state of ['filled', 'cancelled', 'expired', 'rejected']) {
      assert.deepEqual(compareOrder('ord_1', { ...ours, state }, { ...stated, state }, noTrades, account), []);
    }
    const never = { ...stated, exchangeOrderId: null };
    assert.deepEqual(compareOrder('ord_1', ours, never, noTrades, account), [], 'an id that one side does not know');
  });

  it('makes one break for each member that differs', () => {
    const compare = (change: Partial<StatedOrder>) =>
      kinds(compareOrder('ord_1', ours, { ...stated, ...change }, noTrades, account));
    assert.deepEqual(compare({ state: 'filled' }), ['order_state']);
    assert.deepEqual(compare({ filledQuantity: 61n }), ['order_filled']);
    for (const change of [{ account: 'ACC2' }, { side: 'sell' }, { quantity: 99n }, { exchangeOrderId: 'X2' }]) {
      assert.deepEqual(compare(change), ['order_terms']);
    }
  });

  it('is missing only if the broker has reported it in the period', () => {
    assert.deepEqual(kinds(compareOrder('ord_1', ours, undefined, noTrades, account)), ['order_missing']);
    const unreported = { ...ours, isReported: false };
    assert.deepEqual(compareOrder('ord_1', unreported, undefined, noTrades, account), []);
  });

  it('says of an order with an unknown outcome only that the broker has it', () => {
    const unknown = { ...ours, state: 'uncertain', isUnsettled: true };
    const found = compareOrder('ord_1', unknown, stated, tradesOf([trade('T1', 60, 5)]), account);
    assert.deepEqual(
      found.map(({ kind, isUnsettled, ours: our }) => [kind, isUnsettled, our]),
      [['order_state', true, 'uncertain']],
    );
    assert.deepEqual(compareOrder('ord_1', unknown, undefined, noTrades, account), []);
  });

  it('names an order that was refused, and which the broker has', () => {
    const refused = { ...ours, state: 'refused', isReported: false, filledQuantity: 0n };
    const found = compareOrder('ord_1', refused, { ...stated, filledQuantity: 0n }, noTrades, account);
    assert.deepEqual(kinds(found), ['order_state']);
  });

  it('makes breaks of the trades of an order that nobody sent, too', () => {
    const found = compareOrder('ord_x', undefined, stated, tradesOf([trade('T1', 1, 1), trade('T2', 1, 1)]), account);
    assert.deepEqual(kinds(found), ['order_extra', 'trade_extra', 'trade_extra']);
    assert.equal(new Set(found.map((one) => breakId({ day: '2026-01-01' }, one))).size, 3);
  });

  it('has no break whatever the order of the trades, and keeps every trade when some differ', () => {
    const shuffled = trades.chain((list) =>
      fc.tuple(
        fc.constant(list),
        fc.shuffledSubarray(list, { minLength: list.length, maxLength: list.length }),
        trades,
      ),
    );
    fc.assert(
      fc.property(shuffled, ([list, again, others]) => {
        const made = (some: typeof list, name: string) =>
          some.map(({ quantity, price, at }, index) => trade(`${name}${index}`, quantity, price, at));
        const mine = made(list, 'o');
        assert.deepEqual(
          compareOrder('o', { ...ours, trades: tradesOf(mine) }, stated, tradesOf(made(again, 's')), account),
          [],
        );
        const theirs = made(others, 's');
        const { pairs, onlyOurs, onlyStated } = pairTrades(mine, theirs);
        const same = mine.length - onlyOurs.length - pairs.length;
        assert.equal(theirs.length - onlyStated.length - pairs.length, same);
        assert.ok(same >= 0);
        for (const [our, their] of pairs) {
          assert.equal(our.at, their.at);
          assert.ok(our.quantity !== their.quantity || our.priceKobo !== their.priceKobo);
        }
      }),
    );
  });

  it('pairs a trade with another price or quantity, and leaves one that only one side has', () => {
    const mine = [trade('1', 10, 5, 1), trade('2', 20, 5, 2), trade('3', 30, 5, 3)];
    const compare = (theirs: readonly TradeFacts[]) =>
      compareOrder('o', { ...ours, trades: tradesOf(mine) }, stated, tradesOf(theirs), account);
    const [first, second, third] = mine as [TradeFacts, TradeFacts, TradeFacts];
    assert.deepEqual(kinds(compare([first, { ...second, priceKobo: 6n }, third])), ['trade_terms']);
    assert.deepEqual(kinds(compare([first, { ...second, quantity: 21n }, third])), ['trade_terms']);
    assert.deepEqual(kinds(compare([first, third])), ['trade_missing']);
    assert.deepEqual(kinds(compare([...mine, trade('4', 10, 5, 1)])), ['trade_extra']);
  });

  it('trades are compared one by one up to as many as are kept, and one more by their sums', () => {
    // Both sides have 4 shares for 26 kobo.
    const own = [trade('1', 1, 5), trade('2', 3, 7)];
    const theirs = [trade('1', 1, 8), trade('2', 3, 6)];
    const rest = (count: number) => Array.from({ length: count - 2 }, () => trade('3', 1, 6));
    for (const [count, isFound] of [
      [maxTrades, true],
      [maxTrades + 1, false],
    ] as const) {
      const mine = { ...ours, trades: tradesOf([...own, ...rest(count)]) };
      const found = compareOrder('o', mine, stated, tradesOf([...theirs, ...rest(count)]), account);
      assert.equal(found.length > 0, isFound, `${count} trades`);
    }
  });

  it('compares more trades than are kept by their sums', () => {
    const one = trade('1', 1, 5);
    const many = { listed: [one], count: maxTrades + 1, quantity: BigInt(maxTrades + 1), valueKobo: 5n };
    const mine = { ...ours, trades: many };
    assert.deepEqual(compareOrder('o', mine, stated, { ...many, listed: [] }, account), []);
    assert.deepEqual(kinds(compareOrder('o', mine, stated, { ...many, valueKobo: 6n }, account)), ['trade_terms']);
    assert.equal(tradesOf(Array.from({ length: maxTrades + 9 }, () => one)).listed.length, maxTrades);
  });
});

describe('what two sides have of one allocation', () => {
  const theirs: StatedMoney = { account: 'ACC1', amountKobo: 500n, destination: '', reference: 'R1', state: 'booked' };
  const mine: OurMoney = { ...theirs, partnerId: 'par_a', isUnsettled: false, isReported: true, moves: [] };
  it('makes one break for what differs', () => {
    const compare = (our: OurMoney | undefined, their: StatedMoney | undefined) =>
      kinds(compareMoney('allocation', 'a', our, their));
    assert.deepEqual(compare(mine, theirs), []);
    assert.deepEqual(compare(mine, undefined), ['allocation_missing']);
    assert.deepEqual(compare({ ...mine, isReported: false }, undefined), []);
    assert.deepEqual(compare(undefined, theirs), ['allocation_extra']);
    assert.deepEqual(compare(mine, { ...theirs, state: 'rejected' }), ['allocation_state']);
    assert.deepEqual(compare(mine, { ...theirs, amountKobo: 501n }), ['allocation_terms']);
    const unknown = { ...mine, state: 'uncertain', isUnsettled: true, isReported: false, reference: null };
    assert.deepEqual(compare(unknown, undefined), []);
    assert.deepEqual(compare(unknown, theirs), ['allocation_state']);
  });
});

describe('what two sides have of one withdrawal', () => {
  const theirs: StatedMoney = { account: 'A', amountKobo: 500n, destination: 'wallet', reference: 'R1', state: 'paid' };
  const mine: OurMoney = {
    ...theirs,
    state: 'completed',
    partnerId: 'par_a',
    isUnsettled: false,
    isReported: true,
    moves: [],
  };
  const compare = (our: OurMoney | undefined, their: StatedMoney | undefined) =>
    kinds(compareMoney('withdrawal', 'w', our, their));

  it('is no break when they agree, in the states of each', () => {
    assert.deepEqual(compare(mine, theirs), []);
    const both = [
      ['processing', 'accepted'],
      ['rejected', 'rejected'],
      ['returned', 'returned'],
    ] as const;
    for (const [our, their] of both) {
      assert.deepEqual(compare({ ...mine, state: our }, { ...theirs, state: their }), []);
    }
    assert.deepEqual(compare(mine, { ...theirs, reference: null }), [], 'a reference that one side does not know');
  });

  it('makes one break for what differs', () => {
    assert.deepEqual(compare(mine, undefined), ['withdrawal_missing']);
    assert.deepEqual(compare({ ...mine, isReported: false }, undefined), []);
    assert.deepEqual(compare(undefined, theirs), ['withdrawal_extra']);
    for (const state of ['accepted', 'rejected', 'returned', '9']) {
      assert.deepEqual(compare(mine, { ...theirs, state }), ['withdrawal_state']);
    }
    const others = [{ account: 'B' }, { amountKobo: 501n }, { destination: 'bank_account' }, { reference: 'R2' }];
    for (const change of others) assert.deepEqual(compare(mine, { ...theirs, ...change }), ['withdrawal_terms']);
  });

  it('is a break if nobody here knows the outcome and the statement has it', () => {
    const unknown = { ...mine, state: 'uncertain', isUnsettled: true, isReported: false, reference: null };
    assert.deepEqual(compare(unknown, undefined), []);
    const [found] = compareMoney('withdrawal', 'w', unknown, theirs);
    assert.deepEqual([found?.kind, found?.isUnsettled, found?.ours], ['withdrawal_state', true, 'uncertain']);
    assert.deepEqual(compare({ ...mine, state: 'refused', isReported: false }, theirs), ['withdrawal_state']);
  });
});

describe('what an account holds', () => {
  const big = 2n ** 60n;
  const blank = { account: 'A', symbol: '', side: '', state: '', quantity: 0n, amountKobo: null, otherKobo: null };
  const record = (section: HoldingRecord['section'], more: Partial<HoldingRecord>): HoldingRecord => ({
    ...blank,
    section,
    ...more,
  });
  const follow = (records: readonly HoldingRecord[]) => {
    const holdings = new Holdings();
    return [...records.flatMap((one) => holdings.add(one)), ...holdings.end()];
  };
  const day = [
    record('cash', { amountKobo: big - 90n, otherKobo: 10n }),
    record('cash_before', { amountKobo: big }),
    record('allocation', { state: 'booked', amountKobo: 400n }),
    record('allocation', { state: 'rejected', amountKobo: 7n }),
    record('position', { symbol: 'X', quantity: 15n }),
    record('position_before', { symbol: 'X', quantity: 10n }),
    record('trade', { symbol: 'X', side: 'buy', quantity: 8n, amountKobo: -600n }),
    record('trade', { symbol: 'X', side: 'sell', quantity: 3n, amountKobo: 100n }),
  ];
  it('follows from the day before, to the kobo, at any size', () => {
    assert.deepEqual(follow(day), []);
    const short = day.map((one) => (one.section === 'position' ? { ...one, quantity: 14n } : one));
    assert.deepEqual(kinds(follow(short)), ['position']);
    const rich = day.map((one) => (one.section === 'cash' ? { ...one, amountKobo: big - 89n } : one));
    assert.deepEqual(kinds(follow(rich)), ['cash']);
  });
  it('is not checked for money whose changes the broker does not state', () => {
    const unstated = (section: string) =>
      day.map((one) => (one.section === section ? { ...one, amountKobo: null } : one));
    assert.deepEqual(follow(unstated('trade')), []);
    const other = day.map((one) => (one.section === 'cash' ? { ...one, amountKobo: 1n, otherKobo: null } : one));
    assert.deepEqual(follow(other), []);
  });
  it('is followed for each account and symbol on its own', () => {
    const symbols = fc.array(
      fc.record({ account: fc.constantFrom('A', 'B'), symbol: fc.constantFrom('X', 'Y'), quantity: fc.integer() }),
    );
    fc.assert(
      fc.property(symbols, fc.nat(20), (list, wrongAt) => {
        const sums = new Map<string, bigint>();
        for (const { account: of, symbol, quantity } of list) {
          const key = `${of} ${symbol}`;
          sums.set(key, (sums.get(key) ?? 0n) + BigInt(quantity));
        }
        const records = [
          ...list.map(({ quantity, ...of }) =>
            record('trade', { ...of, side: quantity < 0 ? 'sell' : 'buy', quantity: BigInt(Math.abs(quantity)) }),
          ),
          ...[...sums].map(([key, quantity], at) => {
            const [of = '', symbol = ''] = key.split(' ');
            return record('position', { account: of, symbol, quantity: quantity + (at === wrongAt ? 1n : 0n) });
          }),
        ].sort((one, other) => (`${one.account} ${one.symbol}` < `${other.account} ${other.symbol}` ? -1 : 1));
        assert.equal(follow(records).length, wrongAt < sums.size ? 1 : 0);
      }),
    );
  });
});

describe('a break', () => {
  const row = {
    ...{ ours: '1', brokers: '2', isOpen: false, run: 1, lastSeenAt: 1, goneAt: 5 },
    ...{ acknowledgedBy: 'ann', acknowledgedAt: 2, acknowledgedReason: 'known' },
  };
  it('stays acknowledged while both sides stay as they were, and is open again when one changes', () => {
    const same = seenAgain(row, { ours: '1', brokers: '2' }, 2, 9);
    assert.deepEqual([same.isOpen, same.goneAt, same.run, same.acknowledgedBy], [false, null, 2, 'ann']);
    const changed = seenAgain(row, { ours: '1', brokers: '3' }, 2, 9);
    assert.deepEqual([changed.isOpen, changed.acknowledgedBy, changed.brokers], [true, null, '3']);
    assert.equal(seenAgain({ ...row, acknowledgedAt: null }, { ours: '1', brokers: '2' }, 2, 9).isOpen, true);
  });
  it('is gone since the first run that did not find it', () => {
    const gone = goneNow({ ...row, isOpen: true, goneAt: null }, 9);
    assert.deepEqual([gone.isOpen, gone.goneAt], [false, 9]);
    assert.equal(goneNow(gone, 20).goneAt, 9);
  });
});

describe('the evening', () => {
  const at = (text: string) => Date.parse(text);
  it('makes a day due at its time in Lagos, and the days that were missed, of a week at most', () => {
    assert.equal(lastDueDay(at('2026-03-05T17:29:59Z'), 18 * 60 + 30), '2026-03-04');
    assert.equal(lastDueDay(at('2026-03-05T17:30:00Z'), 18 * 60 + 30), '2026-03-05');
    assert.equal(lastDueDay(at('2026-03-05T23:10:00Z'), 18 * 60 + 30), '2026-03-05', 'after midnight in Lagos');
    assert.deepEqual(dueDays(at('2026-03-05T18:00:00Z'), 1_110, '2026-03-04'), ['2026-03-04', '2026-03-05']);
    assert.deepEqual(dueDays(at('2026-03-05T18:00:00Z'), 1_110, '2026-03-06'), []);
    const week = dueDays(at('2026-03-05T18:00:00Z'), 1_110, '2020-01-01');
    assert.deepEqual([week.length, week[0], week.at(-1)], [7, '2026-02-27', '2026-03-05']);
  });
});

describe('a line of CSV', () => {
  it('quotes what needs it, and has no formula for a spreadsheet', () => {
    assert.equal(csvLine(['a', 'b,c', 'd"e', 'f\ng']), 'a,"b,c","d""e","f\ng"\r\n');
    for (const formula of ['=1+1', '+1', '@SUM(A1)', '-cmd', '\tx', ' =1', '|x', '%x']) {
      const [cell = ''] = csvLine([formula]).split('\r\n');
      assert.match(cell, /^"?'/, formula);
    }
    assert.equal(csvLine(['-12', '3.50']), '-12,3.50\r\n', 'numbers stay numbers');
  });
  it('can be read back, whatever it has', () => {
    fc.assert(
      fc.property(fc.array(fc.string(), { minLength: 1, maxLength: 5 }), (values) => {
        const cells = [...csvLine(values).matchAll(/("(?:[^"]|"")*"|[^,\r\n]*)(,|\r\n)/g)].map(([, cell = '']) =>
          cell.startsWith('"') ? cell.slice(1, -1).replaceAll('""', '"') : cell,
        );
        assert.deepEqual(
          cells.map((cell, at) => (cell === `'${values[at]}` ? values[at] : cell)),
          values,
        );
      }),
    );
  });
});
