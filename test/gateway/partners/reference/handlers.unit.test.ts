/** The calendar, the session and the instruments, over a broker whose answers the test gives. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { Cursors } from '../../../../src/gateway/edge/paging.ts';
import { referenceHandlers } from '../../../../src/gateway/partners/reference/handlers.ts';
import { GetMarketResponseSchema, MarketSession } from '../../../../src/gen/marina/broker/v1/accounts_pb.ts';
import { MarketDaySchema } from '../../../../src/gen/marina/broker/v1/reference_pb.ts';
import { daysAfter } from '../../../../src/kit/clock.ts';
import { onlyKey } from '../../../../src/kit/key-ring.ts';
import { fc } from '../../../support/properties.ts';

const now = Date.parse('2026-03-03T00:30:00+01:00');
const context = { caller: { partnerId: 'par_a' }, origin: { partnerId: 'par_a' } } as never;

type Parts = Parameters<typeof referenceHandlers>[0];

/** The handlers over these answers, with the key of their cursors. */
function open(parts: Partial<Record<keyof Parts, object | number>> = {}) {
  return referenceHandlers({
    ...{ clock: { now: () => now, realNow: () => now }, readTimeoutMs: 5_000, environment: { paused: false } },
    cursors: new Cursors(onlyKey(Buffer.alloc(32, 1))),
    reads: { read: (_: unknown, work: (time: object) => unknown) => work({}) },
    ...parts,
  } as unknown as Parts);
}

describe('the calendar of the exchange, in pages', () => {
  it('the calendar of the exchange, in pages, has each day of the range once, and none behind the last one that the broker knows', async () => {
    const asked = {
      range: fc.record({ days: fc.integer({ min: 1, max: 9 }), limit: fc.integer({ min: 1, max: 4 }) }),
      known: fc.integer({ min: 0, max: 12 }),
    };
    await fc.assert(
      fc.asyncProperty(fc.record(asked), async ({ range: { days, limit }, known }) => {
        const [from, lastKnown] = ['2026-02-26', daysAfter('2026-02-25', known)];
        const to = daysAfter(from, days - 1);
        const marketDays = async (first: string, last: string) => {
          const dates = Array.from({ length: 400 }, (_, at) => daysAfter(from, at));
          const wanted = dates.filter((date) => date >= first && date <= last && date <= lastKnown);
          return wanted.map((date) => create(MarketDaySchema, { date, kind: 1 }));
        };
        const { listMarketDays } = open({ records: { marketDays } });
        const seen: string[] = [];
        for (let cursor: string | undefined; ; ) {
          const page = await listMarketDays({ from, to, limit, cursor } as never, context);
          seen.push(...(page.data ?? []).map(({ date = '' }) => date));
          assert.ok((page.data ?? []).length <= limit && seen.length <= days);
          assert.equal(page.hasMore, page.nextCursor !== undefined);
          if (seen.length === days) assert.equal(page.hasMore, false, 'the last day was on this page');
          if (!page.hasMore) break;
          cursor = page.nextCursor;
        }
        const expected = Array.from({ length: days }, (_, at) => daysAfter(from, at));
        assert.deepEqual(
          seen,
          expected.filter((date) => date <= lastKnown),
        );
      }),
      { numRuns: 200 },
    );
  });

  it('the calendar of the exchange, in pages, goes on only for the partner and the range for which a page was made', async () => {
    const marketDays = async (first: string) => [create(MarketDaySchema, { date: first, kind: 1 })];
    const { listMarketDays } = open({ records: { marketDays } });
    const range = { from: '2026-03-02', to: '2026-03-09', limit: 1 };
    const { nextCursor: cursor } = await listMarketDays(range as never, context);
    const again = (more: object, of = context) => listMarketDays({ ...range, cursor, ...more } as never, of);
    assert.equal((await again({})).data?.[0]?.date, '2026-03-03');
    const other = { caller: { partnerId: 'par_b' }, origin: { partnerId: 'par_b' } } as never;
    for (const refused of [again({ to: '2026-03-10' }), again({ from: '2026-03-01' }), again({}, other)]) {
      await assert.rejects(refused, { code: 'invalid_request', param: 'cursor' });
    }
  });

  it('the calendar of the exchange, in pages, begins in a default range with today in Lagos, and a page goes on in it on the day after', async () => {
    const clock = { ms: now, now: () => clock.ms, realNow: () => clock.ms };
    const marketDays = async (first: string, last: string) =>
      [first, last].map((date) => create(MarketDaySchema, { date, kind: 1 }));
    const { listMarketDays } = open({ records: { marketDays }, clock });
    const first = await listMarketDays({ limit: 2 } as never, context);
    assert.deepEqual(
      first.data?.map(({ date }) => date),
      ['2026-03-03', '2026-03-04'],
    );
    clock.ms += 86_400_000;
    const second = await listMarketDays({ limit: 2, cursor: first.nextCursor } as never, context);
    assert.deepEqual(
      second.data?.map(({ date }) => date),
      ['2026-03-05', '2026-03-06'],
    );
  });
});

describe('the session of the exchange', () => {
  it('the session of the exchange is read once for callers at the same time, and again after it was read or could not be', async () => {
    const asked: { resolve(answer: object): void; reject(error: Error): void }[] = [];
    const market = () => new Promise((resolve, reject) => asked.push({ resolve, reject }));
    const environment = { paused: false };
    const { getMarket } = open({ records: { market }, environment });
    const get = () => getMarket({} as never, context);
    for (let round = 0; round < 2; round += 1) {
      const failed = [get(), get()].map((one) => assert.rejects(one, /away/));
      assert.equal(asked.length, 2 * round + 1);
      asked.at(-1)?.reject(new Error('away'));
      await Promise.all(failed);
      const read = [get(), get()];
      assert.equal(asked.length, 2 * round + 2);
      const nextOpenAt = timestampFromMs(now + 1_999);
      asked.at(-1)?.resolve(create(GetMarketResponseSchema, { session: MarketSession.OPEN, nextOpenAt }));
      environment.paused = round === 1;
      for (const one of await Promise.all(read)) {
        assert.deepEqual([one.session, one.tradingPaused], [MarketSession.OPEN, round === 1]);
        assert.equal(Number((one.nextOpenAt as { seconds: bigint }).seconds), now / 1_000 + 1);
        assert.equal(one.nextCloseAt, undefined);
      }
    }
  });
});

describe('the instruments of a partner', () => {
  const list = ['ACCESS', 'GUINNESS', 'MTNN', 'UBA', 'UBAETF', 'UCAP'].map((symbol, at) => ({
    ...{ symbol, kind: at % 2, board: at % 3 },
  }));
  const instruments = { list: async () => list };

  it('the instruments of a partner are each on one page, by all filters together, whatever the size of pages is', async () => {
    const { listInstruments } = open({ instruments });
    const filters = [{}, { kind: 0 }, { board: 2 }, { symbolPrefix: 'U' }, { kind: 1, symbolPrefix: 'U' }, { kind: 7 }];
    for (const filter of filters) {
      for (let limit = 1; limit <= 7; limit += 1) {
        const seen: unknown[] = [];
        for (let cursor: string | undefined; ; ) {
          const page = await listInstruments({ ...filter, limit, cursor } as never, context);
          assert.ok((page.data ?? []).length <= limit);
          seen.push(...(page.data ?? []).map(({ symbol }) => symbol));
          if (!page.hasMore) break;
          cursor = page.nextCursor;
        }
        const { kind, board, symbolPrefix = '' } = filter as { kind?: number; board?: number; symbolPrefix?: string };
        const isWanted = (one: (typeof list)[number]) =>
          (kind ?? one.kind) === one.kind && (board ?? one.board) === one.board && one.symbol.startsWith(symbolPrefix);
        const wanted = list.filter(isWanted).map(({ symbol }) => symbol);
        assert.deepEqual(seen, wanted, `${JSON.stringify(filter)}, ${limit}`);
      }
    }
  });

  it('the instruments of a partner are found by their whole symbol', async () => {
    const { getInstrument } = open({ instruments });
    assert.equal((await getInstrument({ symbol: 'UBA' } as never, context)).symbol, 'UBA');
    for (const symbol of ['UB', 'UBAETFS', '']) {
      await assert.rejects(getInstrument({ symbol } as never, context) as Promise<unknown>, { code: 'not_found' });
    }
  });
});
