import { create } from '@bufbuild/protobuf';
import { status } from '@grpc/grpc-js';
import { CustomerAccounts } from '../../../gen/marina/admin/v1/customer_accounts_pb.ts';
import {
  GetAccountStatusRequestSchema,
  GetBalanceRequestSchema,
  ListAccountTransactionsRequestSchema,
  ListContractNotesRequestSchema,
  ListPositionsRequestSchema,
  ListTradesRequestSchema,
} from '../../../gen/marina/gateway/v1/accounts_pb.ts';
import { ApiError } from '../../edge/errors.ts';
import { type AccountCaller, type AccountHandlerParts, accountHandlers } from '../../trading/accounts/handlers.ts';
import type { ReadQueue } from '../../trading/broker/read-queue.ts';
import { type AdminCall, adminService, operatorsReader } from './call.ts';
import { AdminError } from './errors.ts';

interface CustomerAccountParts extends Omit<AccountHandlerParts, 'reads'> {
  readonly reads: Pick<ReadQueue, 'readFor'>;
}

interface AccountRequest {
  readonly partnerId: string;
  readonly account: string;
}

interface PageRequest extends AccountRequest {
  readonly limit: number;
  readonly cursor: string;
}

interface RangeRequest extends PageRequest {
  readonly from: string;
  readonly to: string;
}

/** The operators' reads of partners' accounts, by the handlers that partners' reads have. */
export function customerAccountService({ reads, ...parts }: CustomerAccountParts) {
  const handlers = accountHandlers({ ...parts, reads: { read: (_, work) => reads.readFor(operatorsReader, work) } });

  return adminService(CustomerAccounts, {
    async getAccountStatus(request, call) {
      const asked = create(GetAccountStatusRequestSchema, { account: request.account });
      return { status: await answered(handlers.getAccountStatus(asked, callerOf(request, call))) };
    },

    async getBalance(request, call) {
      const asked = create(GetBalanceRequestSchema, { account: request.account });
      return { balance: await answered(handlers.getBalance(asked, callerOf(request, call))) };
    },

    async listPositions(request, call) {
      const asked = create(ListPositionsRequestSchema, pageOf(request));
      const { data, hasMore, nextCursor } = await answered(handlers.listPositions(asked, callerOf(request, call)));
      return { hasMore, nextCursor, positions: data };
    },

    async listTrades(request, call) {
      const asked = create(ListTradesRequestSchema, rangeOf(request));
      const { data, hasMore, nextCursor } = await answered(handlers.listTrades(asked, callerOf(request, call)));
      return { hasMore, nextCursor, trades: data };
    },

    async listContractNotes(request, call) {
      const asked = create(ListContractNotesRequestSchema, rangeOf(request));
      const { data, hasMore, nextCursor } = await answered(handlers.listContractNotes(asked, callerOf(request, call)));
      return { hasMore, nextCursor, contractNotes: data };
    },

    async listAccountTransactions({ type, ...request }, call) {
      const ofType = type === 0 ? {} : { type };
      const asked = create(ListAccountTransactionsRequestSchema, { ...rangeOf(request), ...ofType });
      const { data, hasMore, nextCursor } = await answered(
        handlers.listAccountTransactions(asked, callerOf(request, call)),
      );
      return { hasMore, nextCursor, transactions: data };
    },
  });
}

function callerOf({ partnerId }: AccountRequest, { requestId }: AdminCall): AccountCaller {
  return { caller: { partnerId }, origin: { partnerId, requestId, traceParent: null } };
}

/** An empty field is absent in a partner's request. */
function pageOf({ account, limit, cursor }: PageRequest) {
  return { account, limit: limit || 25, ...(cursor === '' ? {} : { cursor }) };
}

function rangeOf({ from, to, ...page }: RangeRequest) {
  return { ...pageOf(page), ...(from === '' ? {} : { from }), ...(to === '' ? {} : { to }) };
}

/** The answer. An operator is told that it is the broker who gives none. */
async function answered<Answer>(answer: Promise<Answer>): Promise<Answer> {
  try {
    return await answer;
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== 'exchange_unavailable') throw error;
    const message = 'the broker gave no answer in time: call again, and see Diagnostics/GetStatus';
    throw new AdminError(status.UNAVAILABLE, message, { cause: error });
  }
}
