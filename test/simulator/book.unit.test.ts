import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Side } from '../../src/gen/marina/broker/v1/orders_pb.ts';
import { Book, type BookTrade, type Remainder } from '../../src/simulator/market/book.ts';
import type { Interest } from '../../src/simulator/market/ladder.ts';
import { fc } from '../support/properties.ts';

interface Asked {
  readonly side: Side;
  readonly limitKobo: number | null;
  readonly quantity: number;
  readonly remainder: Remainder;
}

const band = { lowerKobo: 90, upperKobo: 110 };

const anyOrder = fc.record<Asked>({
  side: fc.constantFrom(Side.BUY, Side.SELL),
  limitKobo: fc.oneof({ weight: 6, arbitrary: fc.integer({ min: 85, max: 115 }) }, fc.constant(null)),
  quantity: fc.integer({ min: 1, max: 50 }),
  remainder: fc.oneof(
    { weight: 4, arbitrary: fc.constant<Remainder>('rests') },
    fc.constant<Remainder>('lapses'),
    fc.constant<Remainder>('all_or_nothing'),
  ),
});
const anyOrders = fc.array(anyOrder, { maxLength: 60 });

const interestOf = ({ side, limitKobo, quantity }: Asked, id: number): Interest => ({
  id,
  side,
  limitKobo,
  left: quantity,
});

const shown = ({ buy, sell, quantity, priceKobo }: BookTrade<Interest>) => [buy.id, sell.id, quantity, priceKobo];

/** Brings orders to a book one after another, and gives the trades of each. */
function trades(book: Book<Interest>, orders: readonly Asked[]) {
  return orders.map((asked, id) => {
    const interest = interestOf(asked, id);
    const executions: number[][] = [];
    book.enter(interest, asked.remainder, (execution) => executions.push(shown(execution)));
    return { asked, interest, executions };
  });
}

/** The rules again, as plainly as they can be said: the best price first, then who came first, at his price. */
function plainly(orders: readonly Asked[]): number[][][] {
  const waiting: { id: number; side: Side; at: number | null; left: number }[] = [];
  return orders.map(({ side, limitKobo, quantity, remainder }, id) => {
    const at = limitKobo === null ? null : side === Side.BUY ? Math.min(limitKobo, 110) : Math.max(limitKobo, 90);
    const sleeps = at !== null && (at < 90 || at > 110);
    const eager = side === Side.BUY ? 1 : -1;
    const others = waiting
      .filter((each) => each.side !== side)
      .sort((one, other) => rank(one.at, eager) - rank(other.at, eager) || one.id - other.id);
    const bestOfOthers = () => others.find((each) => each.left > 0 && each.at !== null)?.at ?? null;
    const meets = (each: { at: number | null }) => each.at === null || at === null || (at - each.at) * eager >= 0;
    const there = others.filter(meets).reduce((sum, each) => sum + each.left, 0);
    const executions: number[][] = [];
    let left = quantity;
    if (!sleeps && (remainder !== 'all_or_nothing' || there >= quantity)) {
      for (const each of others) {
        if (left === 0 || !meets(each)) break;
        const best = bestOfOthers();
        const better =
          best === null || at === null ? (at ?? best) : eager > 0 ? Math.min(best, at) : Math.max(best, at);
        const price = each.at ?? better;
        if (price === null) break;
        const traded = Math.min(left, each.left);
        left -= traded;
        each.left -= traded;
        executions.push(side === Side.BUY ? [id, each.id, traded, price] : [each.id, id, traded, price]);
      }
    }
    if (remainder === 'rests' && left > 0 && !sleeps) waiting.push({ id, side, at, left });
    for (let index = waiting.length - 1; index >= 0; index -= 1)
      if (waiting[index]?.left === 0) waiting.splice(index, 1);
    return executions;
  });
}

const rank = (price: number | null, eager: number) => (price === null ? Number.NEGATIVE_INFINITY : price * eager);

describe('a book', () => {
  it('trades by price, then by time, at the price of who was there first', () => {
    fc.assert(
      fc.property(anyOrders, (orders) => {
        const book = new Book<Interest>(band);
        assert.deepEqual(
          trades(book, orders).map(({ executions }) => executions),
          plainly(orders),
        );
      }),
      { numRuns: 500 },
    );
  });

  it('trades nothing through a limit or outside the band, and keeps count of every share', () => {
    fc.assert(
      fc.property(anyOrders, (orders) => {
        const book = new Book<Interest>(band);
        const entered = trades(book, orders);
        const traded = new Map<number, number>();
        for (const [buy = 0, sell = 0, quantity = 0, price = 0] of entered.flatMap(({ executions }) => executions)) {
          assert.ok(quantity > 0 && price >= band.lowerKobo && price <= band.upperKobo, `${quantity} at ${price}`);
          assert.ok(price <= (orders[buy]?.limitKobo ?? price), 'no buy above its limit');
          assert.ok(price >= (orders[sell]?.limitKobo ?? price), 'no sale below its limit');
          for (const id of [buy, sell]) traded.set(id, (traded.get(id) ?? 0) + quantity);
        }
        for (const { asked, interest } of entered) {
          assert.equal((traded.get(interest.id) ?? 0) + interest.left, asked.quantity);
        }
        const [bid, offer] = [book.bestPrice(Side.BUY), book.bestPrice(Side.SELL)];
        assert.ok(bid === undefined || offer === undefined || bid < offer, 'what waits does not cross');
      }),
    );
  });

  it('trades all of a fill-or-kill order or nothing, and lets neither it nor an immediate one wait', () => {
    fc.assert(
      fc.property(anyOrders, (orders) => {
        const book = new Book<Interest>(band);
        for (const { asked, interest } of trades(book, orders)) {
          if (asked.remainder === 'rests') continue;
          assert.equal(book.get(interest.id), undefined);
          if (asked.remainder === 'all_or_nothing') assert.ok([0, asked.quantity].includes(interest.left));
        }
      }),
    );
  });

  it('keeps everyone’s place in time when the day’s band changes, and lets sleep what no price can satisfy', () => {
    fc.assert(
      fc.property(anyOrders, fc.integer({ min: 80, max: 100 }), (orders, lowerKobo) => {
        const book = new Book<Interest>(band);
        trades(book, orders);
        const before = [...book.interests()].map(({ id }) => id);
        const next = { lowerKobo, upperKobo: lowerKobo + 20 };
        book.setBand(next);
        assert.deepEqual(
          [...book.interests()].map(({ id }) => id),
          before,
        );
        const all = { side: Side.BUY, limitKobo: next.upperKobo, quantity: 10_000, remainder: 'lapses' as const };
        for (const asked of [all, { ...all, side: Side.SELL, limitKobo: next.lowerKobo }]) {
          book.enter(interestOf(asked, 1_000), 'lapses', ({ priceKobo, buy, sell }) => {
            assert.ok(priceKobo >= next.lowerKobo && priceKobo <= next.upperKobo);
            assert.ok(priceKobo <= (buy.limitKobo ?? priceKobo) && priceKobo >= (sell.limitKobo ?? priceKobo));
          });
        }
      }),
    );
  });
});

describe('an auction', () => {
  it('trades at one price as much as any price allows, by price and time, and leaves nothing that crosses', () => {
    fc.assert(
      fc.property(anyOrders, fc.integer({ min: 90, max: 110 }), (orders, reference) => {
        const book = new Book<Interest>(band);
        const interests = orders.map(interestOf);
        for (const interest of interests) book.rest(interest);
        const executions: BookTrade<Interest>[] = [];
        const willing = (side: Side, price: number) =>
          interests
            .filter((each) => each.side === side && each.left > 0)
            .filter(({ limitKobo }) => limitKobo === null || (price - limitKobo) * (side === Side.BUY ? -1 : 1) >= 0)
            .reduce((sum, each) => sum + each.left, 0);
        const prices = Array.from({ length: 21 }, (_, index) => 90 + index);
        const most = Math.max(...prices.map((price) => Math.min(willing(Side.BUY, price), willing(Side.SELL, price))));
        book.auction(reference, (execution) => executions.push(execution));
        assert.equal(
          executions.reduce((sum, each) => sum + each.quantity, 0),
          most,
        );
        assert.ok(new Set(executions.map(({ priceKobo }) => priceKobo)).size <= 1, 'one price');
        for (const { buy, sell, priceKobo } of executions) {
          assert.ok(priceKobo <= (buy.limitKobo ?? priceKobo) && priceKobo >= (sell.limitKobo ?? priceKobo));
          assert.ok(priceKobo >= band.lowerKobo && priceKobo <= band.upperKobo);
        }
        const [bid, offer] = [book.bestPrice(Side.BUY), book.bestPrice(Side.SELL)];
        assert.ok(bid === undefined || offer === undefined || bid < offer);
      }),
    );
  });

  it('takes the price nearest to the reference of those at which as much trades', () => {
    const book = new Book<Interest>(band);
    book.rest({ id: 1, side: Side.BUY, limitKobo: 105, left: 10 });
    book.rest({ id: 2, side: Side.SELL, limitKobo: 95, left: 10 });
    const executions: number[][] = [];
    book.auction(101, (execution) => executions.push(shown(execution)));
    assert.deepEqual(executions, [[1, 2, 10, 101]]);
  });
});
