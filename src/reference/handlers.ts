import { create } from '@bufbuild/protobuf';
import { timestampMs } from '@bufbuild/protobuf/wkt';
import type { HandlersOf } from '../auth/call.ts';
import type { RecordsBroker } from '../broker/records.ts';
import {
  MarketSession as BrokerSession,
  type GetMarketResponse,
  MarketSessionSchema,
} from '../gen/marina/broker/v1/accounts_pb.ts';
import {
  ListLgasResponseSchema,
  ListStatesResponseSchema,
  MarketSchema,
  MarketSession,
  type Reference,
} from '../gen/marina/gateway/v1/reference_pb.ts';
import { translateEnum, unnamed, withStoredNames } from '../lib/enums.ts';
import type { Origin } from '../lib/origin.ts';
import { toSecond } from '../lib/timestamps.ts';
import type { ReadQueue } from '../limits/read-queue.ts';

interface ReferenceHandlerParts {
  readonly records: RecordsBroker;
  readonly reads: ReadQueue;
  /** The deadline for reading the exchange's session. */
  readonly readTimeoutMs: number;
  /** Whether trading is paused, as far as this process knows. */
  readonly environment: { readonly paused: boolean };
}

const sessionOf = translateEnum(BrokerSession, MarketSession, MarketSessionSchema);

/** The operations on the reference lists and the exchange's session. */
export function referenceHandlers(parts: ReferenceHandlerParts): HandlersOf<typeof Reference> {
  const { records, reads, readTimeoutMs, environment } = parts;
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
  };
}
