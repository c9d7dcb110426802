import { create } from '@bufbuild/protobuf';
import type { RecordsBroker } from '../broker/records.ts';
import { InstrumentKind as BrokerKind, InstrumentKindSchema } from '../gen/marina/broker/v1/orders_pb.ts';
import {
  Board as BrokerBoard,
  TradingStatus as BrokerStatus,
  type ListedInstrument,
  BoardSchema as SentBoardSchema,
  TradingStatusSchema as SentStatusSchema,
} from '../gen/marina/broker/v1/reference_pb.ts';
import {
  Board,
  type Instrument,
  InstrumentKind,
  InstrumentSchema,
  TradingStatus,
} from '../gen/marina/gateway/v1/reference_pb.ts';
import { translateEnum, unnamed, withStoredNames } from '../lib/enums.ts';
import type { Origin } from '../lib/origin.ts';
import type { ReadQueue } from '../limits/read-queue.ts';

/** How long a list of instruments is used, in milliseconds, as a trading context is. */
const usableMs = 5_000;

/** The exchange's instruments, cached for a few seconds, because they are the same for all. */
export class Instruments {
  #cached: { readonly list: readonly Instrument[]; readonly until: number } | undefined;

  constructor(
    private readonly records: Pick<RecordsBroker, 'instruments'>,
    private readonly reads: Pick<ReadQueue, 'read'>,
  ) {}

  /** All instruments, by symbol. Throws `exchange_unavailable` or `exchange_error`. */
  async list(origin: Origin): Promise<readonly Instrument[]> {
    return (
      this.#usable() ??
      this.reads.read(origin, async (time) => {
        // Another caller may have read them while this one waited for its turn.
        const usable = this.#usable();
        if (usable !== undefined) return usable;
        const until = performance.now() + usableMs;
        const list = (await this.records.instruments(time)).map(toInstrument);
        // Of two concurrent reads, the one that began later stays.
        if (until >= (this.#cached?.until ?? 0)) this.#cached = { list, until };
        return list;
      })
    );
  }

  #usable(): readonly Instrument[] | undefined {
    return this.#cached !== undefined && performance.now() < this.#cached.until ? this.#cached.list : undefined;
  }
}

const kindOf = translateEnum(BrokerKind, InstrumentKind, InstrumentKindSchema);
const boardOf = translateEnum(BrokerBoard, Board, SentBoardSchema);
const statusOf = translateEnum(BrokerStatus, TradingStatus, SentStatusSchema);

function toInstrument(listed: ListedInstrument): Instrument {
  const message = create(InstrumentSchema, {
    symbol: listed.symbol,
    name: listed.name,
    kind: kindOf(listed.kind),
    board: boardOf(listed.board),
    lotSize: listed.lotSize,
    tickSizes: listed.tickSizes.map(({ fromPriceKobo, tickSizeKobo }) => ({ fromPriceKobo, tickSizeKobo })),
    lowerPriceKobo: listed.lowerPriceKobo,
    upperPriceKobo: listed.upperPriceKobo,
    lastPriceKobo: listed.lastPriceKobo,
    tradingStatus: statusOf(listed.tradingStatus),
  });
  return withStoredNames(message, { kind: unnamed, board: unnamed, tradingStatus: unnamed });
}
