import { create } from '@bufbuild/protobuf';
import type { Call, Handler } from '../auth/call.ts';
import type { ReadTime } from '../broker/port.ts';
import { placeOfTrade, type RecordRange, type RecordsBroker } from '../broker/records.ts';
import type { Database } from '../db/database.ts';
import type { ContractNote } from '../gen/marina/broker/v1/accounts_pb.ts';
import {
  type Balance,
  BalanceSchema,
  type GetBalanceRequest,
  type ListAccountsRequest,
  type ListAccountsResponse,
  ListAccountsResponseSchema,
  type ListContractNotesRequest,
  type ListContractNotesResponse,
  ListContractNotesResponseSchema,
  type ListPositionsRequest,
  type ListPositionsResponse,
  ListPositionsResponseSchema,
  type ListTradesRequest,
  type ListTradesResponse,
  ListTradesResponseSchema,
} from '../gen/marina/gateway/v1/accounts_pb.ts';
import type { Clock } from '../lib/clock.ts';
import { ApiError } from '../lib/errors.ts';
import type { Cursors } from '../lib/paging.ts';
import type { ReadQueue } from '../limits/read-queue.ts';
import { toAccountMessage, toContractNoteMessage, toPositionMessage, toTradeMessage } from './messages.ts';
import { checkInRange, type DayRange, dayRange } from './rules.ts';
import { type AccountPlace, findAccount, listAccounts, toShownAccount } from './store.ts';

export interface AccountHandlerParts {
  readonly database: Database;
  readonly records: RecordsBroker;
  readonly reads: ReadQueue;
  readonly cursors: Cursors;
  readonly clock: Clock;
}

/** What a cursor in a range of days holds: the range of the first page, so that midnight does not move it, and a place. */
interface PlaceInRange<Place> extends DayRange {
  readonly after: Place;
}

interface RangeRequest {
  readonly account?: string | undefined;
  readonly from?: string | undefined;
  readonly to?: string | undefined;
  readonly cursor?: string | undefined;
  readonly limit?: number | undefined;
}

/** The operations on accounts. All but the list of accounts is read from the broker on each call. */
export function accountHandlers({ database, records, reads, cursors, clock }: AccountHandlerParts) {
  /** Another partner's account is found exactly as little, and as fast, as one that does not exist. */
  async function ownAccount({ caller }: Call, account = ''): Promise<string> {
    const [row] = await database.read(findAccount(caller.partnerId, account));
    if (row === undefined) throw new ApiError('account_not_found');
    return account;
  }

  /** Reads a page of a list in a range of days. */
  async function pageOf<Item, Place>(
    list: string,
    request: RangeRequest,
    call: Call,
    placeOf: (item: Item) => Place,
    read: (range: RecordRange<Place>, time: ReadTime) => Promise<{ items: Item[]; hasMore: boolean; inRange: number }>,
  ) {
    const { from, to, cursor, limit = 25 } = request;
    const issuedFor = [list, call.caller.partnerId, request.account ?? '', JSON.stringify({ from, to })];
    // The dates are looked at first, as a first page would.
    const range = dayRange({ from, to }, clock.now());
    const place =
      cursor === undefined ? undefined : (JSON.parse(cursors.read(issuedFor, cursor)) as PlaceInRange<Place>);
    const { from: first, to: last } = place ?? range;
    const account = await ownAccount(call, request.account);
    const { items, hasMore, inRange } = await reads.read(call.origin, (time) =>
      read({ account, from: first, to: last, after: place?.after, limit }, time),
    );
    if (cursor === undefined) checkInRange(inRange);
    const end = items.at(-1);
    const after: PlaceInRange<Place> | undefined = end && { from: first, to: last, after: placeOf(end) };
    const nextCursor = hasMore && after ? cursors.issue(issuedFor, JSON.stringify(after)) : undefined;
    return { account, items, page: { hasMore, nextCursor } };
  }

  const listAccounts_: Handler<ListAccountsRequest, ListAccountsResponse> = async (request, { caller }) => {
    const { limit = 25, cursor } = request;
    const issuedFor = ['accounts', caller.partnerId];
    const before = cursor === undefined ? undefined : (JSON.parse(cursors.read(issuedFor, cursor)) as AccountPlace);
    const rows = await database.read(listAccounts(caller.partnerId, before, limit + 1));
    const shown = rows.slice(0, limit).map(toShownAccount);
    const hasMore = rows.length > limit;
    const last = shown.at(-1);
    const place = last && ({ account: last.account, createdAt: last.createdAt } satisfies AccountPlace);
    return create(ListAccountsResponseSchema, {
      hasMore,
      nextCursor: hasMore && place !== undefined ? cursors.issue(issuedFor, JSON.stringify(place)) : undefined,
      data: shown.map(toAccountMessage),
    });
  };

  const getBalance: Handler<GetBalanceRequest, Balance> = async (request, call) => {
    const account = await ownAccount(call, request.account);
    const balance = await reads.read(call.origin, (time) => records.balance(account, time));
    const { openingKobo, pendingDebitsKobo, availableKobo } = balance;
    return create(BalanceSchema, { account, currency: 'NGN', openingKobo, pendingDebitsKobo, availableKobo });
  };

  const listPositions: Handler<ListPositionsRequest, ListPositionsResponse> = async (request, call) => {
    const { limit = 25, cursor, account = '' } = request;
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
      data: positions.map((position) => toPositionMessage(account, position)),
    });
  };

  const listTrades: Handler<ListTradesRequest, ListTradesResponse> = async (request, call) => {
    const { account, items, page } = await pageOf('trades', request, call, placeOfTrade, async (range, time) => {
      const { trades, ...rest } = await records.trades(range, time);
      return { ...rest, items: trades };
    });
    return create(ListTradesResponseSchema, { ...page, data: items.map((trade) => toTradeMessage(account, trade)) });
  };

  const listContractNotes: Handler<ListContractNotesRequest, ListContractNotesResponse> = async (request, call) => {
    const placeOf = ({ tradeDate, ticket }: ContractNote) => ({ tradeDate, ticket });
    const { items, page } = await pageOf('contract-notes', request, call, placeOf, async (range, time) => {
      const { notes, ...rest } = await records.contractNotes(range, time);
      return { ...rest, items: notes };
    });
    return create(ListContractNotesResponseSchema, { ...page, data: items.map(toContractNoteMessage) });
  };

  return { listAccounts: listAccounts_, getBalance, listPositions, listTrades, listContractNotes };
}
