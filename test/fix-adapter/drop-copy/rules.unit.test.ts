import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  dueMark,
  faultOfBooked,
  faultOfCopied,
  isOver,
  type Mark,
  type Trade,
  withMark,
} from '../../../src/fix-adapter/drop-copy/rules.ts';
import { tradesIn } from '../../../src/fix-adapter/drop-copy/trades.ts';
import { FixMessage } from '../../../src/fix-adapter/wire/message.ts';
import { toKobo } from '../../../src/fix-adapter/wire/prices.ts';

const grace = 1_000;
const trade: Trade = { execId: 'e1', quantity: 100n, priceKobo: 25_050n };

/** A trade with the times at which each side has it; undefined: never. */
interface Happening {
  readonly copied: Trade;
  readonly booked: Trade;
  readonly copiedAt: number | undefined;
  readonly bookedAt: number | undefined;
}

/** Compares as the adapter does, at these times, and returns the ExecID of each finding. */
function run(happenings: readonly Happening[], ticks: readonly number[]): string[] {
  const found: string[] = [];
  const isCompared = new Set<string>();
  const booked = happenings
    .filter(({ bookedAt }) => bookedAt !== undefined)
    .sort((one, other) => (one.bookedAt ?? 0) - (other.bookedAt ?? 0));
  let marks: readonly Mark[] = [];
  let bookedTo = 0n;
  for (const now of ticks) {
    const known = booked.filter(({ bookedAt = 0 }) => bookedAt <= now);
    marks = withMark(marks, { number: BigInt(known.length), changed: 0n, at: now }, grace);
    for (const { copied, copiedAt } of happenings) {
      if (copiedAt === undefined || !isOver(copiedAt, now, grace) || isCompared.has(copied.execId)) continue;
      isCompared.add(copied.execId);
      const own = known.find((each) => each.booked.execId === copied.execId)?.booked;
      if (faultOfCopied(copied, own) !== undefined) found.push(copied.execId);
    }
    const due = dueMark(marks, 0, now, grace)?.number ?? 0n;
    for (const one of booked.slice(Number(bookedTo), Number(due))) {
      const has = happenings.filter(
        ({ copied, copiedAt }) => copied.execId === one.booked.execId && copiedAt !== undefined && copiedAt <= now,
      );
      if (
        faultOfBooked(
          one.booked,
          has.map(({ copied }) => copied),
          false,
        ) !== undefined
      )
        found.push(one.booked.execId);
    }
    if (due > bookedTo) bookedTo = due;
  }
  return found;
}

/** A generator whose numbers a seed decides. */
function numbersOf(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

function ticksOf(next: (below: number) => number): number[] {
  const ticks: number[] = [];
  for (let at = 0; at < 30_000; at += 1 + next(400)) ticks.push(at);
  return ticks;
}

function happeningOf(nth: number, next: (below: number) => number): Happening {
  const each = { execId: `e${nth}`, quantity: BigInt(1 + next(3)), priceKobo: BigInt(1 + next(3)) };
  const at = next(20_000);
  const late = next(grace);
  const isCopyFirst = next(2) === 0;
  const [copiedAt, bookedAt] = isCopyFirst ? [at, at + late] : [at + late, at];
  return { copied: each, booked: each, copiedAt, bookedAt };
}

describe('the rules of the drop copy', () => {
  const cases = [
    { of: 'the same trade', booked: trade, isFault: false },
    { of: 'a trade that was not booked', booked: undefined, isFault: true },
    { of: 'another quantity', booked: { ...trade, quantity: 99n }, isFault: true },
    { of: 'another price', booked: { ...trade, priceKobo: 25_051n }, isFault: true },
  ];
  for (const { of, booked, isFault } of cases) {
    it(`a trade of the drop copy that meets ${of} is ${isFault ? 'a finding' : 'none'}`, () => {
      assert.equal(faultOfCopied(trade, booked) !== undefined, isFault);
    });
  }

  it('a booked trade is a finding only if no copy has its ExecID', () => {
    assert.equal(faultOfBooked(trade, [trade], true), undefined);
    assert.equal(faultOfBooked(trade, [{ ...trade, quantity: 1n }], false), undefined);
    assert.notEqual(faultOfBooked(trade, [], false), undefined);
    assert.match(String(faultOfBooked(trade, [], true)), /passed over messages, so the trade is not confirmed$/);
  });

  it('a trade that is taken back is marked, though no report came', () => {
    const marks = withMark([{ number: 5n, changed: 1n, at: 0 }], { number: 5n, changed: 2n, at: 9 }, grace);
    assert.deepEqual(marks.at(-1), { number: 5n, changed: 2n, at: 9 });
    assert.equal(withMark(marks, { number: 5n, changed: 2n, at: 10 }, grace).length, 2);
  });

  it('nothing is due while the drop copy is down, and the grace begins anew when it comes up', () => {
    const marks = [{ number: 5n, changed: 0n, at: 0 }];
    assert.equal(dueMark(marks, undefined, 9_000, grace), undefined);
    assert.equal(dueMark(marks, 8_001, 9_000, grace), undefined);
    assert.equal(dueMark(marks, 8_000, 9_000, grace)?.number, 5n);
  });

  it('any interleaving of the two sides within the grace gives no finding', () => {
    for (let seed = 1; seed <= 300; seed += 1) {
      const next = numbersOf(seed);
      const all = Array.from({ length: 20 }, (_, nth) => happeningOf(nth, next));
      assert.deepEqual(run(all, ticksOf(next)), [], `seed ${seed}`);
    }
  });

  it('any trade that one side lacks or has differently gives exactly one finding', () => {
    for (let seed = 1; seed <= 300; seed += 1) {
      const next = numbersOf(seed);
      const all = Array.from({ length: 20 }, (_, nth) => happeningOf(nth, next));
      const wrong = new Set<string>();
      const spoilt = all.map((each) => {
        const how = next(8);
        if (how > 3) return each;
        wrong.add(each.copied.execId);
        if (how === 0) return { ...each, copiedAt: undefined };
        if (how === 1) return { ...each, bookedAt: undefined };
        if (how === 2) return { ...each, copied: { ...each.copied, quantity: each.copied.quantity + 1n } };
        return { ...each, copied: { ...each.copied, priceKobo: each.copied.priceKobo + 1n } };
      });
      assert.deepEqual(run(spoilt, ticksOf(next)).sort(), [...wrong].sort(), `seed ${seed}`);
    }
  });
});

describe('what a message of the drop copy brings', () => {
  const read = (text: string) => {
    const fields = text.split('|').map((field): [number, string] => {
      const [tag = '', value = ''] = field.split('=');
      return [Number(tag), value];
    });
    return tradesIn(new FixMessage(fields), (price) => toKobo(price, 'naira'));
  };
  const terms = {
    ...{
      kind: 'trade',
      execId: 'e1',
      execRefId: '',
      reportId: '',
      reportRefId: '',
      quantity: 100n,
      priceKobo: 25_050n,
      symbol: '',
      side: '',
      tradedAt: null,
    },
  };

  it('a trade of an ExecutionReport', () => {
    assert.deepEqual(read('35=8|37=X1|11=ord_2|17=e1|150=F|32=100|31=250.50'), [
      { ...terms, named: 'ord_2', exchangeOrderId: 'X1' },
    ]);
  });

  it('nothing of an acceptance, an answer, a status of a busted trade, a release or another message', () => {
    const texts = [
      '35=8|17=e1|150=0',
      '35=8|17=e1|150=I',
      '35=8|17=e1|150=H|790=q1',
      '35=9|17=e1|150=F',
      '35=AE|487=3|17=e1',
    ];
    for (const text of texts) {
      assert.deepEqual(read(text), []);
    }
  });

  it('a bust and a correction of an ExecutionReport, by the trade that it refers to', () => {
    const changed = { ...terms, execId: 'e2', execRefId: 'e1', named: 'ord_2', exchangeOrderId: 'X1' };
    assert.deepEqual(read('35=8|37=X1|11=ord_2|17=e2|19=e1|150=H|32=100|31=250.50'), [
      { ...changed, kind: 'cancelled', quantity: 0n, priceKobo: 0n },
    ]);
    assert.deepEqual(read('35=8|37=X1|11=ord_2|17=e2|19=e1|150=G|32=40|31=250.50'), [
      { ...changed, kind: 'corrected', quantity: 40n },
    ]);
  });

  for (const [transType, kind] of [
    ['1', 'cancelled'],
    ['2', 'corrected'],
    ['4', 'cancelled'],
    ['5', 'cancelled'],
  ] as const) {
    it(`a trade that is ${kind} by a TradeCaptureReport with 487=${transType}`, () => {
      const [found] = read(`35=AE|571=t2|572=t1|487=${transType}|17=e1|32=40|31=250.50|552=1|54=1|37=X1|11=ord_2`);
      const amounts = kind === 'cancelled' ? { quantity: 0n, priceKobo: 0n } : { quantity: 40n };
      const ids = { reportId: 't2', reportRefId: 't1', named: 'ord_2', exchangeOrderId: 'X1', side: '1' };
      assert.deepEqual(found, { ...terms, ...ids, kind, ...amounts });
    });
  }

  it('a trade for each side of a TradeCaptureReport', () => {
    const sides = '35=AE|571=t1|17=e1|32=100|31=250.50|552=2|54=1|37=X1|11=ord_2|54=2|37=X2';
    assert.deepEqual(read(sides), [
      { ...terms, reportId: 't1', named: 'ord_2', exchangeOrderId: 'X1', side: '1' },
      { ...terms, reportId: 't1', named: '', exchangeOrderId: 'X2', side: '2' },
    ]);
  });

  it('the symbol, the side and the time of a trade', () => {
    const [found] = read(
      '35=8|37=X1|17=e1|150=F|55=MTNN.LG|54=2|52=20261125-00:00:01|60=20261124-09:30:00.5|75=20261123',
    );
    assert.deepEqual(
      [found?.symbol, found?.side, found?.tradedAt],
      ['MTNN.LG', '2', Date.parse('2026-11-24T09:30:00.500Z')],
    );
  });

  const noon = Date.parse('2026-11-23T11:00:00Z');
  for (const [name, text, at] of [
    ['TradeDate, if the trade states no other time', '35=8|17=e1|150=F|52=20261125-00:00:01|75=20261123', noon],
    [
      'SendingTime, if there is nothing better',
      '35=8|17=e1|150=F|52=20261125-00:00:01',
      Date.UTC(2026, 10, 25, 0, 0, 1),
    ],
    [
      'OrigSendingTime, if the message was sent again',
      '35=8|17=e1|150=F|52=20261125-00:00:01|122=20261124-10:00:00',
      Date.UTC(2026, 10, 24, 10),
    ],
    ['no time that no trade can have', '35=8|17=e1|150=F|60=00010101-00:00:00|75=99991231', null],
    ['TradeDate of a bust, whose own time is later', '35=8|17=e2|19=e1|150=H|60=20261125-09:00:00|75=20261123', noon],
    ['no time of a bust without TradeDate', '35=8|17=e2|19=e1|150=H|60=20261125-09:00:00|52=20261125-09:00:00', null],
  ] as const) {
    it(`the day of a trade by ${name}`, () => assert.equal(read(text)[0]?.tradedAt, at));
  }

  it('no symbol or side that is longer than one can be', () => {
    const [found] = read(`35=8|37=X1|17=e1|150=F|55=${'S'.repeat(65)}|54=${'1'.repeat(9)}`);
    assert.deepEqual([found?.symbol, found?.side], ['?', '?']);
  });

  it('0 for a quantity or a price that cannot be read', () => {
    const [found] = read('35=8|37=X1|17=e1|150=F|32=1.5|31=-2');
    assert.deepEqual([found?.quantity, found?.priceKobo], [0n, 0n]);
  });
});
