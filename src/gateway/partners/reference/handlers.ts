import { create } from '@bufbuild/protobuf';
import { timestampMs } from '@bufbuild/protobuf/wkt';
import {
  MarketSession as BrokerSession,
  type GetMarketResponse,
  MarketSessionSchema,
} from '../../../gen/marina/broker/v1/accounts_pb.ts';
import {
  ListInstrumentsResponseSchema,
  ListLgasResponseSchema,
  ListMarketDaysResponseSchema,
  ListStatesResponseSchema,
  MarketSchema,
  MarketSession,
  type Reference,
} from '../../../gen/marina/gateway/v1/reference_pb.ts';
import { type Clock, daysAfter, toSecond } from '../../../kit/clock.ts';
import { translateEnum, unnamed, withStoredNames } from '../../../kit/enums.ts';
import type { HandlersOf } from '../../edge/call.ts';
import { ApiError } from '../../edge/errors.ts';
import type { Origin } from '../../edge/origin.ts';
import type { Cursors } from '../../edge/paging.ts';
import type { BrokerRecords } from '../../trading/broker/broker.ts';
import type { ReadQueue } from '../../trading/broker/read-queue.ts';
import { type Calendar, calendarRange, toMarketDay } from './calendar.ts';
import type { Instruments } from './instruments.ts';

interface ReferenceHandlerParts {
  readonly records: BrokerRecords;
  readonly reads: ReadQueue;
  readonly cursors: Cursors;
  readonly clock: Clock;
  readonly instruments: Instruments;
  /** The deadline for reading the exchange's session. */
  readonly readTimeoutMs: number;
  /** Whether trading is paused, as far as this process knows. */
  readonly environment: { readonly paused: boolean };
}

const sessionOf = translateEnum(BrokerSession, MarketSession, MarketSessionSchema);

/** The operations on the reference lists, the instruments, and the exchange's session and calendar. */
export function referenceHandlers(parts: ReferenceHandlerParts): HandlersOf<typeof Reference> {
  const { records, reads, cursors, clock, readTimeoutMs, environment, instruments } = parts;
  let marketRead: Promise<GetMarketResponse> | undefined;

  /** The session is the same for all, so concurrent callers share one read. */
  function readMarket(origin: Origin): Promise<GetMarketResponse> {
    marketRead ??= records.market({ timeoutMs: readTimeoutMs, origin }).finally(() => {
      marketRead = undefined;
    });
    return marketRead;
  }

  return {
    async listStates(_, { origin }) {
      const states = await reads.read(origin, (time) => records.states(time));
      const data = states.map(({ code, name }) => ({ code, name }));
      return create(ListStatesResponseSchema, { hasMore: false, data });
    },

    async listLgas({ state = '' }, { origin }) {
      const lgas = await reads.read(origin, (time) => records.lgas(state, time));
      return create(ListLgasResponseSchema, { hasMore: false, data: lgas.map(({ code, name }) => ({ code, name })) });
    },

    async getMarket(_, { origin }) {
      const { session, nextOpenAt, nextCloseAt } = await readMarket(origin);
      const message = create(MarketSchema, {
        session: sessionOf(session),
        nextOpenAt: nextOpenAt && toSecond(timestampMs(nextOpenAt)),
        nextCloseAt: nextCloseAt && toSecond(timestampMs(nextCloseAt)),
        tradingPaused: environment.paused,
      });
      return withStoredNames(message, { session: unnamed });
    },

    async listMarketDays({ from, to, limit = 25, cursor }, { caller, origin }) {
      const issuedFor = ['market-days', caller.partnerId, JSON.stringify({ from, to })];
      const asked = calendarRange({ from, to }, clock.now());
      const range = cursor === undefined ? asked : (JSON.parse(cursors.read(issuedFor, cursor)) as Calendar);
      const lastOnPage = daysAfter(range.from, limit - 1);
      const end = lastOnPage < range.to ? lastOnPage : range.to;
      const days = await reads.read(origin, (time) => records.marketDays(range.from, end, time));
      // A calendar that ends before the page does has nothing more.
      const hasMore = days.at(-1)?.date === end && end < range.to;
      const next: Calendar = { from: daysAfter(end, 1), to: range.to };
      return create(ListMarketDaysResponseSchema, {
        hasMore,
        nextCursor: hasMore ? cursors.issue(issuedFor, JSON.stringify(next)) : undefined,
        data: days.map(toMarketDay),
      });
    },

    async listInstruments({ kind, board, symbolPrefix = '', limit = 25, cursor }, { caller, origin }) {
      const issuedFor = ['instruments', caller.partnerId, JSON.stringify({ kind, board, symbolPrefix })];
      const afterSymbol = cursor === undefined ? '' : cursors.read(issuedFor, cursor);
      const found = (await instruments.list(origin)).filter(
        (each) =>
          each.symbol > afterSymbol &&
          each.symbol.startsWith(symbolPrefix) &&
          (kind === undefined || each.kind === kind) &&
          (board === undefined || each.board === board),
      );
      const page = cursors.page(issuedFor, found.slice(0, limit + 1), limit, ({ symbol }) => symbol);
      return create(ListInstrumentsResponseSchema, page);
    },

    async getInstrument({ symbol }, { origin }) {
      const found = (await instruments.list(origin)).find((each) => each.symbol === symbol);
      if (found === undefined) {
        throw new ApiError('not_found', { message: 'There is no instrument with this symbol.' });
      }
      return found;
    },
  };
}
