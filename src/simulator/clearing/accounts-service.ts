import type { MessageInitShape } from '@bufbuild/protobuf';
import { type Timestamp, timestampMs } from '@bufbuild/protobuf/wkt';
import { status } from '@grpc/grpc-js';
import type {
  Accounts,
  GetBalanceResponseSchema,
  GetMarketResponseSchema,
  ListContractNotesResponseSchema,
  ListPositionsResponseSchema,
  ListTradesResponseSchema,
} from '../../gen/marina/broker/v1/accounts_pb.ts';
import { AccountStatus } from '../../gen/marina/broker/v1/orders_pb.ts';
import { Call } from '../../gen/marina/simulator/v1/controls_pb.ts';
import { isDate } from '../../lib/clock.ts';
import { unrecorded } from '../legs.ts';
import { marketMessage } from '../market/message.ts';
import { RpcError, type UnaryHandlers, type unanswered, type WireCall } from '../rpc.ts';
import { check } from '../validation.ts';
import type { Wire } from '../wire.ts';
import type { World } from '../world.ts';
import type { ClearingNonsense } from './nonsense.ts';
import type { Reads } from './reads.ts';
import type { ClearingRecords } from './records.ts';

/** What the service of accounts is made of. */
export interface AccountsContext {
  readonly world: World;
  readonly wire: Wire;
  readonly records: ClearingRecords;
  readonly reads: Reads;
  readonly nonsense: ClearingNonsense;
}

const maxPage = 100;

/** The broker's records of accounts: each call goes over the wire of faults first. */
export function accountsService(context: AccountsContext): UnaryHandlers<typeof Accounts> {
  const { world, records, nonsense } = context;
  return {
    getBalance: ({ account }, call) =>
      carry<MessageInitShape<typeof GetBalanceResponseSchema>>(context, call, {
        kind: Call.GET_BALANCE,
        account,
        take: () => records.balance(account),
        nonsense: nonsense.balance,
      }),
    listPositions: ({ account, afterSymbol, limit }, call) =>
      carry<MessageInitShape<typeof ListPositionsResponseSchema>>(context, call, {
        kind: Call.LIST_POSITIONS,
        account,
        take: () => records.positions(account, afterSymbol, pageSize(limit)),
        nonsense: nonsense.positions,
      }),
    listTrades: (request, call) =>
      carry<MessageInitShape<typeof ListTradesResponseSchema>>(context, call, {
        kind: Call.LIST_TRADES,
        account: request.account,
        take: () => {
          const { after } = request;
          const place = after && { executedAtMs: instant(after.executedAt), number: numberOf(after.id, 'TRD') };
          return records.trades({ ...rangeOf(request), after: place });
        },
        nonsense: nonsense.trades,
      }),
    listContractNotes: (request, call) =>
      carry<MessageInitShape<typeof ListContractNotesResponseSchema>>(context, call, {
        kind: Call.LIST_CONTRACT_NOTES,
        account: request.account,
        take: () => {
          const { after } = request;
          check(after === undefined || isDate(after.tradeDate), 'after.trade_date');
          const place = after && { tradeDate: after.tradeDate, number: numberOf(after.ticket, 'CN') };
          return records.contractNotes({ ...rangeOf(request), after: place });
        },
        nonsense: nonsense.contractNotes,
      }),
    getMarket: (_, call) =>
      context.wire.carry<MessageInitShape<typeof GetMarketResponseSchema>>(call, {
        ...unrecorded(Call.GET_MARKET, ''),
        take: async () => world.saidMarket ?? marketMessage(world.venue, world.clock.now()),
        nonsense: nonsense.market,
      }),
  };
}

interface Read<Answer> {
  readonly kind: Call;
  readonly account: string;
  readonly take: () => Promise<Answer>;
  readonly nonsense: () => Answer;
}

function carry<Answer>(
  { wire, reads, world }: AccountsContext,
  call: WireCall,
  { kind, account, take, nonsense }: Read<Answer>,
): Promise<Answer | typeof unanswered> {
  return reads.count(call, account, () =>
    wire.carry<Answer>(call, {
      ...unrecorded(kind, account),
      take: async () => {
        const known = world.accounts.get(account) ?? AccountStatus.NOT_AT_BROKER;
        if (known !== AccountStatus.NOT_AT_BROKER) return take();
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

function instant(at: Timestamp | undefined): number {
  check(at !== undefined, 'after.executed_at');
  return timestampMs(at);
}

function numberOf(id: string, prefix: string): number {
  const digits = id.slice(prefix.length);
  check(id.startsWith(prefix) && /^\d{1,15}$/.test(digits), 'after');
  return Number(digits);
}
