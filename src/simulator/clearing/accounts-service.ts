import { type Timestamp, timestampMs } from '@bufbuild/protobuf/wkt';
import { status } from '@grpc/grpc-js';
import { type Accounts, TransactionType } from '../../gen/marina/broker/v1/accounts_pb.ts';
import { AccountStatus } from '../../gen/marina/broker/v1/orders_pb.ts';
import { Call } from '../../gen/marina/simulator/v1/controls_pb.ts';
import { isDate } from '../../kit/clock.ts';
import { marketMessage } from '../market/message.ts';
import type { Lies } from '../statements/lies.ts';
import { liedBalance, liedTransactions } from '../statements/money-lies.ts';
import { check } from '../validation.ts';
import { unrecorded } from '../wire/legs.ts';
import { RpcError, type SimulatorHandlers, type unanswered, type WireCall } from '../wire/rpc.ts';
import type { Wire } from '../wire/wire.ts';
import type { World } from '../world.ts';
import { statusMessage } from './account-states.ts';
import type { ClearingNonsense } from './nonsense.ts';
import type { Reads } from './reads.ts';
import type { ClearingRecords } from './records.ts';

export interface AccountsContext {
  readonly world: World;
  readonly wire: Wire;
  readonly records: ClearingRecords;
  readonly lies: Lies;
  readonly reads: Reads;
  readonly nonsense: ClearingNonsense;
}

const maxPage = 100;

/** The broker's records of accounts. Each call passes the faults first. */
export function accountsService(context: AccountsContext): SimulatorHandlers<typeof Accounts> {
  const { world, wire, records, lies, nonsense } = context;
  return {
    getBalance: ({ account }, call) =>
      carry(context, call, [Call.GET_BALANCE, account], nonsense.balance, async () =>
        liedBalance(lies, await records.balance(account)),
      ),
    listPositions: ({ account, afterSymbol, limit }, call) =>
      carry(context, call, [Call.LIST_POSITIONS, account], nonsense.positions, () =>
        records.positions(account, afterSymbol, pageSize(limit)),
      ),
    listTrades: (request, call) =>
      carry(context, call, [Call.LIST_TRADES, request.account], nonsense.trades, () => {
        const { after } = request;
        const place = after && { atMs: instant(after.executedAt, 'executed_at'), number: numberOf(after.id, 'TRD') };
        return records.trades({ ...rangeOf(request), after: place });
      }),
    listContractNotes: (request, call) =>
      carry(context, call, [Call.LIST_CONTRACT_NOTES, request.account], nonsense.contractNotes, () => {
        const { after } = request;
        check(after === undefined || isDate(after.tradeDate), 'after.trade_date');
        const place = after && { tradeDate: after.tradeDate, number: numberOf(after.ticket, 'CN') };
        return records.contractNotes({ ...rangeOf(request), after: place });
      }),
    getAccountStatus: ({ account }, call) =>
      carry(context, call, [Call.GET_ACCOUNT_STATUS, account], nonsense.accountStatus, async () =>
        statusMessage(account, world.stateOf(account), world.clock.shownNow()),
      ),
    listTransactions: (request, call) =>
      carry(context, call, [Call.LIST_TRANSACTIONS, request.account], nonsense.transactions, async () => {
        const { after, type } = request;
        check(type in TransactionType, 'type');
        const place = after && { atMs: instant(after.bookedAt, 'booked_at'), number: numberOf(after.id, 'TXN') };
        const page = await records.transactions({ ...rangeOf(request), after: place, type });
        return { ...page, transactions: liedTransactions(lies, page.transactions ?? []) } as typeof page;
      }),
    getMarket: (_, call) =>
      wire.carry(call, {
        ...unrecorded(Call.GET_MARKET, ''),
        take: async () => world.reportedMarket ?? marketMessage(world.venue, world.clock.now()),
        nonsense: nonsense.market,
      }),
  };
}

/** Reads something about an existing account. */
function carry<Answer>(
  { wire, reads, world }: AccountsContext,
  call: WireCall,
  [kind, account]: readonly [Call, string],
  nonsense: () => Answer,
  read: () => Promise<Answer>,
): Promise<Answer | typeof unanswered> {
  return reads.count(call, account, () =>
    wire.carry<Answer>(call, {
      ...unrecorded(kind, account),
      take: async () => {
        const known = world.accounts.get(account) ?? AccountStatus.NOT_AT_BROKER;
        if (known !== AccountStatus.NOT_AT_BROKER) return read();
        throw new RpcError(status.NOT_FOUND, 'The broker has no such account.');
      },
      nonsense,
    }),
  );
}

function rangeOf(request: { account: string; fromDate: string; toDate: string; limit: number }) {
  const { account, fromDate: from, toDate: to, limit } = request;
  check(isDate(from), 'from_date');
  check(isDate(to), 'to_date');
  return { account, from, to, limit: pageSize(limit) };
}

function pageSize(limit: number): number {
  check(limit >= 1 && limit <= maxPage, 'limit');
  return limit;
}

function instant(at: Timestamp | undefined, name: string): number {
  check(at !== undefined, `after.${name}`);
  return timestampMs(at);
}

function numberOf(id: string, prefix: string): number {
  const digits = id.slice(prefix.length);
  check(id.startsWith(prefix) && /^\d{1,15}$/.test(digits), 'after');
  return Number(digits);
}
