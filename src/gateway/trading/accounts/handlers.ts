import { create } from '@bufbuild/protobuf';
import type { ContractNote as BrokerNote, Trade as BrokerTrade } from '../../../gen/marina/broker/v1/accounts_pb.ts';
import { Side, SideSchema } from '../../../gen/marina/broker/v1/orders_pb.ts';
import {
  AccountSchema,
  type Accounts,
  BalanceSchema,
  type ContractNote,
  ContractNoteSchema,
  ListAccountsResponseSchema,
  ListContractNotesResponseSchema,
  ListPositionsResponseSchema,
  ListTradesResponseSchema,
  PositionSchema,
  type Trade,
  TradeSchema,
  TradeSide,
} from '../../../gen/marina/gateway/v1/accounts_pb.ts';
import type { Clock } from '../../../kit/clock.ts';
import { translateEnum, unnamed, withStoredNames } from '../../../kit/enums.ts';
import type { Call, HandlersOf } from '../../edge/call.ts';
import { ApiError } from '../../edge/errors.ts';
import type { Cursors } from '../../edge/paging.ts';
import type { Database } from '../../store/database.ts';
import type { BrokerRecords } from '../broker/broker.ts';
import type { ReadQueue } from '../broker/read-queue.ts';
import { placeOfTrade, type ReadTime, type RecordRange, tradeDate } from '../broker/records.ts';
import { shownMessage } from '../shown-message.ts';
import { checkInRange, type DayRange, dayRange } from './rules.ts';
import { type AccountPosition, accounts, listAccounts, toShownAccount } from './store.ts';

interface AccountHandlerParts {
  readonly database: Database;
  readonly records: BrokerRecords;
  readonly reads: ReadQueue;
  readonly cursors: Cursors;
  readonly clock: Clock;
}

/** A cursor's content: a position, and the range of the first page, so that midnight does not move it. */
interface PositionInRange<Position> extends DayRange {
  readonly after: Position;
}

interface RangeRequest {
  readonly account?: string | undefined;
  readonly from?: string | undefined;
  readonly to?: string | undefined;
  readonly cursor?: string | undefined;
  readonly limit?: number | undefined;
}

/** The operations on accounts. All but the list of accounts read from the broker on each call. */
export function accountHandlers(parts: AccountHandlerParts): HandlersOf<typeof Accounts> {
  const { database, records, reads, cursors, clock } = parts;

  /** An unknown account and another partner's get the same answer in the same time. */
  async function ownAccount({ caller }: Call, account = ''): Promise<string> {
    const [row] = await database.read(accounts.find({ partnerId: caller.partnerId, account }));
    if (row === undefined) throw new ApiError('account_not_found');
    return account;
  }

  /** Reads a page of a list in a range of days. */
  async function pageOf<Item, Position, Shown>(
    list: string,
    request: RangeRequest,
    call: Call,
    positionOf: (item: Item) => Position,
    toMessage: (account: string, item: Item) => Shown,
    read: (
      range: RecordRange<Position>,
      time: ReadTime,
    ) => Promise<{ items: Item[]; hasMore: boolean; inRange: number }>,
  ) {
    const { from, to, cursor, limit = 25 } = request;
    const issuedFor = [list, call.caller.partnerId, request.account ?? '', JSON.stringify({ from, to })];
    // The dates are checked first, as on a first page.
    const range = dayRange({ from, to }, clock.now());
    const given =
      cursor === undefined ? undefined : (JSON.parse(cursors.read(issuedFor, cursor)) as PositionInRange<Position>);
    const { from: first, to: last } = given ?? range;
    const account = await ownAccount(call, request.account);
    const { items, hasMore, inRange } = await reads.read(call.origin, (time) =>
      read({ account, from: first, to: last, after: given?.after, limit }, time),
    );
    if (cursor === undefined) checkInRange(inRange);
    const end = items.at(-1);
    const after: PositionInRange<Position> | undefined = end && { from: first, to: last, after: positionOf(end) };
    const nextCursor = hasMore && after ? cursors.issue(issuedFor, JSON.stringify(after)) : undefined;
    return { hasMore, nextCursor, data: items.map((item) => toMessage(account, item)) };
  }

  return {
    async listAccounts({ limit = 25, cursor }, { caller }) {
      const issuedFor = ['accounts', caller.partnerId];
      const after = cursor === undefined ? undefined : (JSON.parse(cursors.read(issuedFor, cursor)) as AccountPosition);
      const rows = await database.read(listAccounts(caller.partnerId, after, limit + 1));
      const page = cursors.page(issuedFor, rows.map(toShownAccount), limit, ({ account, createdAt }) =>
        JSON.stringify({ account, createdAt } satisfies AccountPosition),
      );
      const data = page.data.map((each) => shownMessage(AccountSchema, each, { application: each.applicationId }));
      return create(ListAccountsResponseSchema, { ...page, data });
    },

    async getBalance(request, call) {
      const account = await ownAccount(call, request.account);
      const balance = await reads.read(call.origin, (time) => records.balance(account, time));
      const { openingKobo, pendingDebitsKobo, availableKobo } = balance;
      return create(BalanceSchema, { account, currency: 'NGN', openingKobo, pendingDebitsKobo, availableKobo });
    },

    async listPositions({ limit = 25, cursor, account = '' }, call) {
      const issuedFor = ['positions', call.caller.partnerId, account];
      const afterSymbol = cursor === undefined ? '' : cursors.read(issuedFor, cursor);
      await ownAccount(call, account);
      const { positions, hasMore } = await reads.read(call.origin, (time) =>
        records.positions(account, { afterSymbol, limit }, time),
      );
      const last = positions.at(-1);
      return create(ListPositionsResponseSchema, {
        hasMore,
        nextCursor: hasMore && last !== undefined ? cursors.issue(issuedFor, last.symbol) : undefined,
        data: positions.map((position) => shownMessage(PositionSchema, position, { account })),
      });
    },

    async listTrades(request, call) {
      const page = await pageOf('trades', request, call, placeOfTrade, toTradeMessage, async (range, time) => {
        const { trades, ...rest } = await records.trades(range, time);
        return { ...rest, items: trades };
      });
      return create(ListTradesResponseSchema, page);
    },

    async listContractNotes(request, call) {
      const positionOf = ({ tradeDate, ticket }: BrokerNote) => ({ tradeDate, ticket });
      const toMessage = (_: string, note: BrokerNote) => toContractNoteMessage(note);
      const page = await pageOf('contract-notes', request, call, positionOf, toMessage, async (range, time) => {
        const { notes, ...rest } = await records.contractNotes(range, time);
        return { ...rest, items: notes };
      });
      return create(ListContractNotesResponseSchema, page);
    },
  };
}

const orderId = /^ord_[a-z2-7]{20}$/;

export function toTradeMessage(account: string, trade: BrokerTrade): Trade {
  const message = shownMessage(TradeSchema, trade, {
    account,
    // A trade's order may not be one of ours.
    order: orderId.test(trade.clientOrderId) ? trade.clientOrderId : undefined,
    side: undefined,
    tradeDate: tradeDate(trade),
    executedAt: placeOfTrade(trade).executedAtMs,
  });
  return withSide(message, trade.side);
}

export function toContractNoteMessage(note: BrokerNote): ContractNote {
  return withSide(shownMessage(ContractNoteSchema, note, { side: undefined }), note.side);
}

const sideOf = translateEnum(Side, TradeSide, SideSchema);

function withSide<Shape extends Trade | ContractNote>(message: Shape, side: Side): Shape {
  message.side = sideOf(side);
  return withStoredNames(message, { side: unnamed });
}
