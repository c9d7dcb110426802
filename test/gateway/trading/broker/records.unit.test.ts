import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  isAccountStatus,
  isAreaList,
  isBalance,
  isInitialsOrNone,
  isMarket,
  isNotesPage,
  isPositionsPage,
  isTradesPage,
  isTransactionsPage,
} from '../../../../src/gateway/trading/broker/records.ts';
import {
  AccountActivity,
  AccountRestrictionCode,
  AccountState,
  GetAccountStatusResponseSchema,
  GetBalanceResponseSchema,
  GetMarketResponseSchema,
  ListContractNotesResponseSchema,
  ListPositionsResponseSchema,
  ListTradesResponseSchema,
  ListTransactionsResponseSchema,
  MarketSession,
  TransactionType,
} from '../../../../src/gen/marina/broker/v1/accounts_pb.ts';
import { Side } from '../../../../src/gen/marina/broker/v1/orders_pb.ts';

const account = 'C1';
/** 10:00 in Lagos on 2026-03-02. */
const tenOClock = Date.UTC(2026, 2, 2, 9);
const range = { account, from: '2026-03-01', to: '2026-03-03', limit: 2, after: undefined };
const deal = { symbol: 'GTCO', side: Side.BUY, quantity: 10n, priceKobo: 300n, amountKobo: 3_000n };

/** Pages of one kind of record, however the records are told apart. */
interface Pages {
  /** Whether a page of the records at some places is what was asked for; places count up in the order of the list. */
  isAnswer(
    places: readonly number[],
    page?: { hasMore?: boolean; after?: number; inRange?: number; account?: string },
  ): boolean;
}

const pages: Record<string, Pages> = {
  positions: {
    isAnswer(places, { hasMore = false, after, account: of = account } = {}) {
      const positions = places.map((place) => ({
        symbol: `S${place}`,
        name: 'A stock',
        quantity: 10n,
        priceKobo: 300n,
        marketValueKobo: 3_000n,
        averageCostKoboDecimal: '299.5',
      }));
      const page = create(ListPositionsResponseSchema, { account: of, positions, hasMore });
      return isPositionsPage(page, account, { afterSymbol: after === undefined ? '' : `S${after}`, limit: 2 });
    },
  },
  'trades of different instants': tradePages((place) => ({ id: 'T1', executedAtMs: tenOClock - place })),
  'trades of one instant': tradePages((place) => ({ id: `T${9 - place}`, executedAtMs: tenOClock })),
  'transactions of different instants': transactionPages((place) => ({ id: 'X1', bookedAtMs: tenOClock - place })),
  'transactions of one instant': transactionPages((place) => ({ id: `X${9 - place}`, bookedAtMs: tenOClock })),
  'contract notes of different days': notePages((place) => ({ ticket: 'N1', tradeDate: `2026-03-0${3 - place}` })),
  'contract notes of one day': notePages((place) => ({ ticket: `N${9 - place}`, tradeDate: '2026-03-02' })),
};

function tradePages(at: (place: number) => { id: string; executedAtMs: number }): Pages {
  return {
    isAnswer(places, { hasMore = false, after, account: of = account, inRange = places.length } = {}) {
      const trades = places.map(at).map(({ id, executedAtMs }) => {
        return { ...deal, id, executedAt: timestampFromMs(executedAtMs) };
      });
      const page = create(ListTradesResponseSchema, { account: of, trades, hasMore, inRange });
      return isTradesPage(page, { ...range, after: after === undefined ? undefined : at(after) });
    },
  };
}

function transactionPages(at: (place: number) => { id: string; bookedAtMs: number }): Pages {
  return {
    isAnswer(places, { hasMore = false, after, account: of = account, inRange = places.length } = {}) {
      const transactions = places.map((place) => {
        const { id, bookedAtMs } = at(place);
        const bookedAt = timestampFromMs(bookedAtMs);
        // The older one comes later: a place further down the list has less money.
        return { id, bookedAt, type: TransactionType.ALLOCATION, amountKobo: 5n, balanceKobo: BigInt(-5 * place) };
      });
      const page = create(ListTransactionsResponseSchema, { account: of, transactions, hasMore, inRange });
      const asked = { ...range, type: TransactionType.UNSPECIFIED, after: after === undefined ? undefined : at(after) };
      return isTransactionsPage(page, asked);
    },
  };
}

function notePages(at: (place: number) => { ticket: string; tradeDate: string }): Pages {
  return {
    isAnswer(places, { hasMore = false, after, account: of = account, inRange = places.length } = {}) {
      const notes = places.map(at).map((place) => ({
        ...deal,
        ...place,
        name: 'A stock',
        transactionDate: '2026-03-04',
      }));
      const page = create(ListContractNotesResponseSchema, { account: of, notes, hasMore, inRange });
      return isNotesPage(page, { ...range, after: after === undefined ? undefined : at(after) });
    },
  };
}

for (const [kind, { isAnswer }] of Object.entries(pages)) {
  const hasInRange = kind !== 'positions';

  describe(`a page of ${kind}`, () => {
    it('is believed when it is in order, not too long, and full if more follow', () => {
      const good = [
        isAnswer([]),
        isAnswer([1]),
        isAnswer([1, 2]),
        isAnswer([1, 2], { hasMore: true }),
        isAnswer([2], { after: 1 }),
      ];
      assert.deepEqual(good, [true, true, true, true, true]);
    });

    it('is not believed when it is short and says that more follow: its reader would ask for ever', () => {
      assert.equal(isAnswer([1], { hasMore: true }), false, 'one record of two, and more to follow, was believed');
      assert.equal(isAnswer([], { hasMore: true }), false, 'no record, and more to follow, was believed');
    });

    it('is not believed when it repeats the last record of the page before it, or one of its own', () => {
      assert.equal(isAnswer([1], { after: 1 }), false, 'the record it was to begin after was believed');
      assert.equal(isAnswer([1, 2], { after: 1 }), false, 'the record it was to begin after was believed');
      assert.equal(isAnswer([1, 1]), false, 'the same record twice was believed');
    });

    it('is not believed when it goes back, is too long, or is of another account', () => {
      assert.equal(isAnswer([2, 1]), false, 'records in the wrong order were believed');
      assert.equal(isAnswer([1], { after: 2 }), false, 'a record from before the page was believed');
      assert.equal(isAnswer([0, 1, 2]), false, 'three records where two were asked for were believed');
      assert.equal(isAnswer([1], { account: 'C2' }), false, 'the records of another account were believed');
      if (hasInRange)
        assert.equal(isAnswer([1, 2], { inRange: 1 }), false, 'fewer in all than on the page was believed');
    });
  });
}

describe('a record', () => {
  const isTrade = (change: object) => {
    const trade = { ...deal, id: 'T1', executedAt: timestampFromMs(tenOClock), ...change };
    return isTradesPage(create(ListTradesResponseSchema, { account, trades: [trade], inRange: 1 }), range);
  };

  it('a record of a day that was not asked for is not believed; the first and the last day are asked for', () => {
    const days = ['2026-02-28', '2026-03-01', '2026-03-03', '2026-03-04'];
    const believed = days.map((day) => isTrade({ executedAt: timestampFromMs(Date.parse(`${day}T12:00:00+01:00`)) }));
    assert.deepEqual(believed, [false, true, true, false], `which of ${days} were believed`);
  });

  it('a record whose amount is not its quantity times its price, or that has no quantity or price, is not believed', () => {
    assert.equal(isTrade({}), true);
    for (const change of [
      { amountKobo: 3_001n },
      { quantity: 0n, amountKobo: 0n },
      { priceKobo: 0n, amountKobo: 0n },
      { quantity: -10n, priceKobo: -300n },
      { side: Side.UNSPECIFIED },
      { symbol: 'gtco' },
      { id: '' },
      { executedAt: undefined },
    ]) {
      assert.equal(isTrade(change), false, `a trade with ${Object.keys(change)} wrong was believed`);
    }
  });
});

describe('a position, a contract note and the times of the market', () => {
  const isPosition = (change: object) => {
    const position = {
      ...{ symbol: 'GTCO', name: 'A stock', quantity: 1n, priceKobo: 1n, marketValueKobo: 1n },
      ...{ averageCostKoboDecimal: '1.5', ...change },
    };
    const page = create(ListPositionsResponseSchema, { account, positions: [position] });
    return isPositionsPage(page, account, { afterSymbol: '', limit: 2 });
  };
  const isNote = (change: object) => {
    const dates = { tradeDate: '2026-03-02', transactionDate: '2026-03-02' };
    const note = { ...deal, ...dates, ticket: 'N1', name: 'A stock', ...change };
    return isNotesPage(create(ListContractNotesResponseSchema, { account, notes: [note], inRange: 1 }), range);
  };

  it('a position has at least one share, at a price of at least one kobo', () => {
    assert.equal(isPosition({}), true);
    assert.equal(isPosition({ quantity: 0n, marketValueKobo: 0n }), false, 'a position without shares was believed');
    assert.equal(isPosition({ priceKobo: 0n, marketValueKobo: 0n }), false, 'a position without a price was believed');
  });

  it('a note is written on the day of its trade or later, its charges are none or more', () => {
    assert.equal(isNote({}), true);
    assert.equal(isNote({ transactionDate: '2026-03-03' }), true);
    assert.equal(isNote({ transactionDate: '2026-03-01' }), false, 'a note from before its trade was believed');
    for (const charge of ['commissionKobo', 'statutoryFeesKobo', 'otherFeesKobo']) {
      assert.equal(isNote({ [charge]: 0n }), true);
      assert.equal(isNote({ [charge]: -1n }), false, `a negative ${charge} was believed`);
    }
  });

  it('the market opens at an instant from 1970 to the end of the year 9999', () => {
    const last = Date.UTC(10_000, 0, 1) - 1;
    for (const [at, isBelieved] of [
      [-1, false],
      [0, true],
      [last, true],
      [last + 1, false],
    ] as const) {
      const market = create(GetMarketResponseSchema, {
        session: MarketSession.CLOSED,
        nextOpenAt: timestampFromMs(at),
      });
      assert.equal(isMarket(market), isBelieved, `${at}`);
    }
  });
});

describe('a list of places', () => {
  const list = (...codes: string[]) => codes.map((code) => ({ code, name: 'A place' }));

  it('is believed when each has a code of its own, and none is without', () => {
    assert.equal(isAreaList(list('LAGOS', 'OGUN'), 5), true);
    assert.equal(isAreaList([], 5), false, 'an empty list was believed');
    assert.equal(isAreaList(list('LAGOS', 'LAGOS'), 5), false, 'a code twice was believed');
    assert.equal(isAreaList(list('LAGOS', ''), 5), false, 'a place without a code was believed');
    assert.equal(isAreaList(list('LAGOS'), 4), false, 'a code that is too long was believed');
    assert.equal(isAreaList([{ code: 'LAGOS', name: '' }], 5), false, 'a place without a name was believed');
  });

  it('has at most 1,000 of them', () => {
    const many = Array.from({ length: 1_000 }, (_, at) => `A${at}`);
    assert.equal(isAreaList(list(...many), 5), true);
    assert.equal(isAreaList(list(...many, 'B'), 5), false);
  });
});

describe('the money of an account', () => {
  const booked = {
    ...{ id: 'X2', type: TransactionType.BUY, amountKobo: -30n, balanceKobo: 70n },
    bookedAt: timestampFromMs(tenOClock),
  };
  const older = { ...booked, id: 'X1', balanceKobo: 100n };
  const isListed = (transactions: readonly object[], type = TransactionType.UNSPECIFIED) => {
    const page = create(ListTransactionsResponseSchema, { account, transactions: [...transactions], inRange: 2 });
    return isTransactionsPage(page, { ...range, type });
  };

  it('a page of transactions that does not add up is not believed, unless only one type was asked for', () => {
    assert.equal(isListed([booked, older]), true);
    const wrong = { ...older, balanceKobo: 101n };
    assert.equal(isListed([booked, wrong]), false, 'one kobo more before it was believed');
    assert.equal(isListed([booked, wrong], TransactionType.BUY), true, 'others may lie between them');
    assert.equal(isListed([booked, wrong], TransactionType.SALE), false, 'another type than asked for was believed');
  });

  it('a transaction with an impossible member is not believed', () => {
    const safe = BigInt(Number.MAX_SAFE_INTEGER);
    assert.equal(isListed([{ ...booked, amountKobo: safe, balanceKobo: -safe, symbol: 'GTCO', quantity: -1n }]), true);
    for (const change of [
      { id: '' },
      { type: TransactionType.UNSPECIFIED },
      { amountKobo: 0n },
      { amountKobo: safe + 1n },
      { balanceKobo: -safe - 1n },
      { symbol: 'gtco' },
      { quantity: 0n },
      { trade: 'a b' },
      { contractNote: 'a b' },
      { reverses: 'X2' },
      { settlementDate: '2026-02-30' },
      { bookedAt: undefined },
      { bookedAt: timestampFromMs(tenOClock + 2 * 86_400_000) },
    ]) {
      assert.equal(isListed([{ ...booked, ...change }]), false, `one with ${Object.keys(change)} wrong was believed`);
    }
  });

  it('a balance may leave out what is settled; its withdrawable part is neither negative nor more than that', () => {
    const isRight = (change: object) => isBalance(create(GetBalanceResponseSchema, { account, ...change }), account);
    const right = [{}, { settledKobo: 5n, withdrawableKobo: 5n }, { settledKobo: -5n, withdrawableKobo: 0n }];
    assert.deepEqual(right.map(isRight), [true, true, true]);
    const wrong = [{ settledKobo: 5n, withdrawableKobo: 6n }, { withdrawableKobo: -1n }, { unsettledKobo: 2n ** 53n }];
    assert.deepEqual(wrong.map(isRight), [false, false, false]);
  });

  it('a status is of the account that was asked about, and has restrictions if and only if it is restricted', () => {
    const { ACTIVE, RESTRICTED, CLOSED, UNSPECIFIED } = AccountState;
    const hold = { code: AccountRestrictionCode.BROKER_HOLD, forbids: [AccountActivity.BUY] };
    const isRight = (answer: object) =>
      isAccountStatus(create(GetAccountStatusResponseSchema, { account, ...answer }), account);
    const right = [
      { state: ACTIVE, chn: 'C0000000001' },
      { state: RESTRICTED, restrictions: [hold] },
      { state: CLOSED },
    ];
    assert.deepEqual(right.map(isRight), [true, true, true]);
    for (const wrong of [
      { state: UNSPECIFIED },
      { state: ACTIVE, restrictions: [hold] },
      { state: RESTRICTED },
      { state: ACTIVE, account: 'C2' },
      { state: ACTIVE, chn: 'C 1' },
      { state: RESTRICTED, restrictions: [{ ...hold, code: AccountRestrictionCode.UNSPECIFIED }] },
      { state: RESTRICTED, restrictions: [{ ...hold, forbids: [] }] },
      { state: RESTRICTED, restrictions: [{ ...hold, forbids: [AccountActivity.BUY, AccountActivity.BUY] }] },
      { state: RESTRICTED, restrictions: Array.from({ length: 101 }, () => hold) },
    ]) {
      assert.equal(isRight(wrong), false, `${Object.keys(wrong)} wrong was believed`);
    }
  });

  it('shows initials of at most eight capital letters, points and spaces, and never a name', () => {
    for (const text of ['', 'A. O.', 'A', 'AO', 'Ọ. A.', 'A. B. C.']) assert.equal(isInitialsOrNone(text), true, text);
    const wrong = ['Ada', 'Adaeze Okafor', '. A', ' A', 'A. B. C. D.', 'A1', 'A\n', 'A. o.'];
    for (const text of wrong) assert.equal(isInitialsOrNone(text), false, text);
  });
});
