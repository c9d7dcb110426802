import { create } from '@bufbuild/protobuf';
import type { Timestamp } from '@bufbuild/protobuf/wkt';
import type {
  ContractNote as BrokerNote,
  Trade as BrokerTrade,
  Transaction as BrokerTransaction,
  GetAccountStatusResponse,
  GetBalanceResponse,
} from '../../../gen/marina/broker/v1/accounts_pb.ts';
import * as broker from '../../../gen/marina/broker/v1/accounts_pb.ts';
import { type GetCapabilitiesResponse, Side, SideSchema } from '../../../gen/marina/broker/v1/orders_pb.ts';
import {
  AccountActivity,
  AccountActivitySchema,
  AccountRestrictionCode,
  AccountRestrictionSchema,
  AccountSchema,
  AccountState,
  type AccountStatus,
  AccountStatusSchema,
  type Accounts,
  type AccountTransaction,
  AccountTransactionSchema,
  AccountTransactionType,
  type Balance,
  BalanceSchema,
  type ContractNote,
  ContractNoteSchema,
  ListAccountsResponseSchema,
  ListAccountTransactionsResponseSchema,
  ListContractNotesResponseSchema,
  ListPositionsResponseSchema,
  ListTradesResponseSchema,
  PositionSchema,
  type Trade,
  TradeSchema,
  TradeSide,
} from '../../../gen/marina/gateway/v1/accounts_pb.ts';
import { type Clock, toMilliseconds, toSecond } from '../../../kit/clock.ts';
import { enumNames, translateEnum, unnamed, withStoredNames } from '../../../kit/enums.ts';
import type { HandlersOf } from '../../edge/call.ts';
import { ApiError } from '../../edge/errors.ts';
import type { Origin } from '../../edge/origin.ts';
import type { Cursors } from '../../edge/paging.ts';
import type { Database } from '../../store/database.ts';
import type { BrokerOrders, BrokerRecords } from '../broker/broker.ts';
import type { ReadQueue } from '../broker/read-queue.ts';
import {
  placeOfTrade,
  placeOfTransaction,
  type ReadTime,
  type RecordRange,
  tradeDate,
  transactionDate,
} from '../broker/records.ts';
import { StatedCapabilities } from '../broker/stated-capabilities.ts';
import { shownMessage } from '../shown-message.ts';
import { checkInRange, type DayRange, dayRange } from './rules.ts';
import { type AccountPosition, accounts, listAccounts, toShownAccount } from './store.ts';

/** Whose accounts a call reads. */
export interface AccountCaller {
  readonly caller: { readonly partnerId: string };
  readonly origin: Origin;
}

/** The operations, for partners and for operators who read for them. */
type AccountHandlers = {
  readonly [Name in keyof HandlersOf<typeof Accounts>]: (
    request: Parameters<HandlersOf<typeof Accounts>[Name]>[0],
    call: AccountCaller,
  ) => ReturnType<HandlersOf<typeof Accounts>[Name]>;
};

export interface AccountHandlerParts {
  readonly database: Database;
  readonly records: BrokerRecords;
  readonly orders: Pick<BrokerOrders, 'capabilities'>;
  readonly reads: Pick<ReadQueue, 'read'>;
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
  /** Of transactions only. */
  readonly type?: number | undefined;
  readonly cursor?: string | undefined;
  readonly limit?: number | undefined;
}

/** The capabilities without which a read is refused, each with the sentence for partners. */
const notOffered = {
  accountStatus: 'The broker does not offer the status of accounts.',
  accountTransactions: 'The broker does not offer the transactions of accounts.',
} as const satisfies Partial<Record<keyof GetCapabilitiesResponse, string>>;

/** The operations on accounts. All but those on the accounts themselves read from the broker on each call. */
export function accountHandlers(parts: AccountHandlerParts): AccountHandlers {
  const { database, records, orders, reads, cursors, clock } = parts;
  const capabilities = new StatedCapabilities(orders);

  /** An unknown account and another partner's get the same answer in the same time. */
  async function storedAccount({ caller }: AccountCaller, account = '') {
    const [row] = await database.read(accounts.find({ partnerId: caller.partnerId, account }));
    if (row === undefined) throw new ApiError('account_not_found');
    return row;
  }

  async function ownAccount(call: AccountCaller, account = ''): Promise<string> {
    await storedAccount(call, account);
    return account;
  }

  /** Throws `feature_not_enabled` if the broker does not have a read, which is then not asked for. */
  async function checkOffered(capability: keyof typeof notOffered, time: ReadTime): Promise<void> {
    if (await capabilities.has((stated) => stated[capability], time)) return;
    throw new ApiError('feature_not_enabled', { message: notOffered[capability] });
  }

  /** Reads a page of a list in a range of days. */
  async function pageOf<Item, Position, Shown>(
    list: string,
    request: RangeRequest,
    call: AccountCaller,
    positionOf: (item: Item) => Position,
    toMessage: (account: string, item: Item) => Shown,
    read: (
      range: RecordRange<Position>,
      time: ReadTime,
    ) => Promise<{ items: Item[]; hasMore: boolean; inRange: number }>,
  ) {
    const { from, to, type, cursor, limit = 25 } = request;
    const issuedFor = [list, call.caller.partnerId, request.account ?? '', JSON.stringify({ from, to, type })];
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

    async getAccount(request, call) {
      const account = toShownAccount(await storedAccount(call, request.account));
      return shownMessage(AccountSchema, account, { application: account.applicationId });
    },

    async getAccountStatus(request, call) {
      const account = await ownAccount(call, request.account);
      const answer = await reads.read(call.origin, async (time) => {
        await checkOffered('accountStatus', time);
        return records.accountStatus(account, time);
      });
      return toStatusMessage(answer);
    },

    async getBalance(request, call) {
      const account = await ownAccount(call, request.account);
      const balance = await reads.read(call.origin, (time) => records.balance(account, time));
      return toBalanceMessage(balance);
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
        data: positions.map(({ settledQuantity, availableQuantity, ...position }) =>
          shownMessage(PositionSchema, position, { account, settledQuantity, availableQuantity }),
        ),
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

    async listAccountTransactions(request, call) {
      const type = typeAsked(request.type);
      const list = 'transactions';
      const page = await pageOf(list, request, call, placeOfTransaction, toTransactionMessage, async (range, time) => {
        await checkOffered('accountTransactions', time);
        const { transactions, ...rest } = await records.transactions({ ...range, type }, time);
        return { ...rest, items: transactions };
      });
      return create(ListAccountTransactionsResponseSchema, page);
    },
  };
}

/** The forms of this gateway's ids. A record may be about an object that is none of ours. */
const ownIds = { order: /^ord_[a-z2-7]{20}$/, allocation: /^alc_[a-z2-7]{20}$/, withdrawal: /^wdr_[a-z2-7]{20}$/ };

const stateOf = translateEnum(broker.AccountState, AccountState, broker.AccountStateSchema);
const codeOf = translateEnum(
  broker.AccountRestrictionCode,
  AccountRestrictionCode,
  broker.AccountRestrictionCodeSchema,
);
const activityOf = translateEnum(broker.AccountActivity, AccountActivity, broker.AccountActivitySchema);
const activityNames = enumNames(AccountActivitySchema);
const typeOf = translateEnum(broker.TransactionType, AccountTransactionType, broker.TransactionTypeSchema);
const typeAsked = translateEnum(AccountTransactionType, broker.TransactionType);

export function toStatusMessage({ account, state, chn, asOf, ...answer }: GetAccountStatusResponse): AccountStatus {
  const restrictions = answer.restrictions.map(({ code, forbids, since }) => {
    const known = forbids.map(activityOf);
    const restriction = create(AccountRestrictionSchema, {
      code: codeOf(code),
      forbids: known,
      since: secondOf(since),
    });
    const names = known.map((activity) => activityNames.get(activity) ?? unnamed);
    return withStoredNames(restriction, { code: unnamed, forbids: names });
  });
  const message = create(AccountStatusSchema, {
    account,
    state: stateOf(state),
    restrictions,
    chn: chn || undefined,
    asOf: secondOf(asOf),
  });
  return withStoredNames(message, { state: unnamed });
}

function toBalanceMessage(balance: GetBalanceResponse): Balance {
  const { account, openingKobo, pendingDebitsKobo, availableKobo } = balance;
  const { settledKobo, unsettledKobo, withdrawableKobo } = balance;
  return create(BalanceSchema, {
    ...{ account, currency: 'NGN', openingKobo, pendingDebitsKobo, availableKobo },
    ...{ settledKobo, unsettledKobo, withdrawableKobo },
    asOf: secondOf(balance.asOf),
  });
}

export function toTransactionMessage(account: string, transaction: BrokerTransaction): AccountTransaction {
  const { clientOrderId, clientAllocationId, clientWithdrawalId, quantity } = transaction;
  const message = shownMessage(AccountTransactionSchema, transaction, {
    ...{ account, quantity },
    type: undefined,
    symbol: transaction.symbol || undefined,
    order: ownIds.order.test(clientOrderId) ? clientOrderId : undefined,
    trade: transaction.trade || undefined,
    contractNote: transaction.contractNote || undefined,
    allocation: ownIds.allocation.test(clientAllocationId) ? clientAllocationId : undefined,
    withdrawal: ownIds.withdrawal.test(clientWithdrawalId) ? clientWithdrawalId : undefined,
    reverses: transaction.reverses || undefined,
    date: transactionDate(transaction),
    settlementDate: transaction.settlementDate || undefined,
    bookedAt: placeOfTransaction(transaction).bookedAtMs,
  });
  message.type = typeOf(transaction.type);
  return withStoredNames(message, { type: unnamed });
}

function secondOf(at: Timestamp | undefined): Timestamp | undefined {
  return at && toSecond(toMilliseconds(at));
}

export function toTradeMessage(account: string, trade: BrokerTrade): Trade {
  const message = shownMessage(TradeSchema, trade, {
    account,
    // A trade's order may not be one of ours.
    order: ownIds.order.test(trade.clientOrderId) ? trade.clientOrderId : undefined,
    side: undefined,
    tradeDate: tradeDate(trade),
    executedAt: placeOfTrade(trade).executedAtMs,
    settlementDate: trade.settlementDate || undefined,
    settled: trade.settled,
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
