import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { status } from '@grpc/grpc-js';
import { MarketSession } from '../../gen/marina/broker/v1/accounts_pb.ts';
import type { Controls } from '../../gen/marina/simulator/v1/controls_pb.ts';
import { lagosDay, nextLagosMidnight } from '../../kit/clock.ts';
import { settlementDate } from '../clearing/settlement.ts';
import { advanceMarket } from '../exchange/exchange.ts';
import { reportMessage } from '../exchange/messages.ts';
import type { Records } from '../exchange/records.ts';
import type { OrderReport } from '../model.ts';
import type { SimulatorWriter } from '../store/writer.ts';
import { check, text } from '../validation.ts';
import { RpcError, type SimulatorHandlers } from '../wire/rpc.ts';
import type { World } from '../world.ts';
import { exchangeHours } from './hours.ts';
import { listingOf, listings } from './instruments.ts';
import { marketMessage } from './message.ts';

const maxMove = 2_000;

export interface MarketControlsContext {
  readonly world: World;
  readonly writer: SimulatorWriter;
  readonly records: Records;
  readonly streams: { repeat(report: OrderReport): void };
  /** Drops the connections of all peers but one, and returns their number. */
  readonly dropOthers: (peer: string) => number;
}

type MarketControls = Pick<
  SimulatorHandlers<typeof Controls>,
  'setSession' | 'setHours' | 'getDay' | 'haltSymbol' | 'movePrice' | 'settle' | 'dropSession' | 'repeatReport'
>;

/** The controls that concern everyone: the session, the prices, settlement, the connections to the broker. */
export function marketControls(context: MarketControlsContext): MarketControls {
  const { world, writer, records } = context;
  return {
    setSession: async ({ session }) => {
      check(session in MarketSession, 'session');
      await writer.run([], (unit) => {
        world.venue.forced = session;
        advanceMarket(unit);
      });
      return {};
    },
    setHours: async ({ keepsHours }) => {
      await writer.run([], (unit) => {
        world.venue.keepsHours = keepsHours;
        advanceMarket(unit);
      });
      return {};
    },
    getDay: async () => dayOf(world),
    haltSymbol: async ({ symbol, halted }) => {
      text(symbol, 'symbol', 32);
      await writer.run([], (unit) => {
        const instrument = world.instrument(symbol);
        if (instrument === undefined) throw unknownSymbol();
        unit.setInstrument({ ...instrument, halted });
        advanceMarket(unit);
      });
      return {};
    },
    movePrice: async ({ symbol, basisPoints }) => {
      check(Math.abs(basisPoints) <= maxMove, 'basis_points');
      const moved = symbol === '' ? listings.map((each) => each.symbol) : [text(symbol, 'symbol', 32)];
      await writer.run([], (unit) => {
        const isMoving = listingOf(symbol) !== undefined && world.instruments.get(symbol)?.pinned === false;
        if (symbol !== '' && !isMoving) throw unknownSymbol();
        for (const each of moved) world.venue.move(each, basisPoints, world.clock.now());
        advanceMarket(unit);
      });
      return {};
    },
    settle: async ({ account }) => {
      if (account !== '') text(account, 'account', 64);
      await writer.run([], (unit) => {
        unit.clearing.settle(account, lagosDay(world.clock.now()));
        unit.payOutSales();
      });
      return {};
    },
    dropSession: async (_, call) => ({ connections: context.dropOthers(call.getPeer()) }),
    repeatReport: async ({ clientOrderId }) => {
      const report = await records.lastReportOf(clientOrderId);
      if (report === undefined) throw new RpcError(status.NOT_FOUND, 'The exchange has no such order.');
      context.streams.repeat(report);
      return { report: reportMessage(report) };
    },
  };
}

function dayOf({ venue, calendar, clock }: World) {
  const now = clock.now();
  const today = lagosDay(now);
  const nextMidnight = nextLagosMidnight(now);
  const opensAtMs = exchangeHours(calendar, nextMidnight - 1).nextOpenAtMs ?? nextMidnight;
  const nextDay = venue.keepsHours ? calendar.tradingDayAfter(today, 1) : lagosDay(nextMidnight);
  return {
    now: timestampFromMs(now),
    today,
    tradingDay: !venue.keepsHours || calendar.isTradingDay(today),
    nextTradingDay: nextDay,
    nextDayAt: timestampFromMs(venue.keepsHours ? opensAtMs : nextMidnight),
    settlementDay: settlementDate(calendar, today),
    market: marketMessage(venue, now),
    keepsHours: venue.keepsHours,
    indexChangeBasisPoints: Math.round(venue.indexChange(now) * 10_000),
  };
}

function unknownSymbol(): RpcError {
  return new RpcError(status.NOT_FOUND, 'No stock with a price that moves has the symbol.');
}
