import { create } from '@bufbuild/protobuf';
import { InstrumentKind as BrokerKind, InstrumentKindSchema } from '../../../gen/marina/broker/v1/orders_pb.ts';
import {
  Board as BrokerBoard,
  TradingStatus as BrokerStatus,
  type ListedInstrument,
  BoardSchema as SentBoardSchema,
  TradingStatusSchema as SentStatusSchema,
} from '../../../gen/marina/broker/v1/reference_pb.ts';
import {
  Board,
  type Instrument,
  InstrumentKind,
  InstrumentSchema,
  TradingStatus,
} from '../../../gen/marina/gateway/v1/reference_pb.ts';
import { atMost } from '../../../kit/at-most.ts';
import { translateEnum, unnamed, withStoredNames } from '../../../kit/enums.ts';
import { Refusal } from '../../../kit/refusal.ts';
import type { Origin } from '../../edge/origin.ts';
import type { BrokerRecords } from '../../trading/broker/broker.ts';
import type { ReadQueue } from '../../trading/broker/read-queue.ts';
import type { ReadTime } from '../../trading/broker/records.ts';

/** How long a list of instruments is used, in milliseconds, as a trading context is. */
const usableMs = 5_000;
/** How long a check that goes on without the list waits for it, in milliseconds. */
const soonMs = 1_000;

type List = readonly Instrument[];

/** The exchange's instruments, cached for a few seconds, because they are the same for all. */
export class Instruments {
  #cached: { readonly list: List; readonly until: number } | undefined;
  /** Until when checks go on without the list, because a read of it failed. */
  #failedUntil = Number.NEGATIVE_INFINITY;
  /** The read that runs now. */
  #reading: Promise<List> | undefined;
  /** What callers wait for, by partner: each partner has one read in the queue, behind its own other reads. */
  readonly #queued = new Map<string, Promise<List>>();

  constructor(
    private readonly records: Pick<BrokerRecords, 'instruments'>,
    private readonly reads: Pick<ReadQueue, 'read'>,
  ) {}

  /** All instruments, by symbol. Throws `exchange_unavailable` or `exchange_error`. */
  async list(origin: Origin): Promise<List> {
    return this.#usable() ?? this.#queue(origin);
  }

  /**
   * The list for a check that goes on without it. Undefined: it does not come within a second, or a read of it failed in the last
   * seconds.
   */
  async listSoon(origin: Origin): Promise<List | undefined> {
    const usable = this.#usable();
    if (usable !== undefined || performance.now() < this.#failedUntil) return usable;
    const queued = this.#queue(origin);
    try {
      return (await atMost(soonMs, queued)) ? await queued : undefined;
    } catch (error) {
      if (error instanceof Refusal) return undefined;
      throw error;
    }
  }

  /** Concurrent callers of a partner share one turn in the queue of reads. */
  #queue(origin: Origin): Promise<List> {
    const { partnerId } = origin;
    const known = this.#queued.get(partnerId);
    if (known !== undefined) return known;
    // Another partner's caller may have read them while this one waited for its turn.
    const queued = this.reads
      .read(origin, async (time) => this.#usable() ?? this.#read(time))
      .finally(() => this.#queued.delete(partnerId));
    this.#queued.set(partnerId, queued);
    return queued;
  }

  /** Callers whose turns have come share one read. */
  #read(time: ReadTime): Promise<List> {
    this.#reading ??= this.#readNow(time).finally(() => {
      this.#reading = undefined;
    });
    return this.#reading;
  }

  async #readNow(time: ReadTime): Promise<List> {
    const until = performance.now() + usableMs;
    try {
      const list = (await this.records.instruments(time)).map(toInstrument);
      this.#cached = { list, until };
      return list;
    } catch (error) {
      this.#failedUntil = performance.now() + usableMs;
      throw error;
    }
  }

  #usable(): List | undefined {
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
