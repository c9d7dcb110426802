import { create } from '@bufbuild/protobuf';
import type { Handler } from '../auth/call.ts';
import type { Database } from '../db/database.ts';
import {
  type GetWalletRequest,
  type ListTransfersRequest,
  type ListTransfersResponse,
  ListTransfersResponseSchema,
  type WalletTotals,
  WalletTotalsSchema,
  type WalletTransfer,
  WalletTransferSchema,
  type WalletTransferType,
  WalletTransferTypeSchema,
} from '../gen/marina/gateway/v1/wallet_pb.ts';
import { enumWords, withStoredNames } from '../lib/enums.ts';
import type { Cursors } from '../lib/paging.ts';
import { toSecond } from '../lib/timestamps.ts';
import { listTransfers, type ShownTransfer, toShownTransfer, wallet } from './store.ts';

const typeWords = enumWords<typeof WalletTransferType>(WalletTransferTypeSchema);

export interface WalletHandlerParts {
  readonly database: Database;
  readonly cursors: Cursors;
}

/** The operations on the wallet. */
export function walletHandlers({ database, cursors }: WalletHandlerParts) {
  const getWallet: Handler<GetWalletRequest, WalletTotals> = async (_, { caller }) => {
    const own = wallet(caller.partnerId);
    const { availableKobo, reservedKobo, postedKobo } = own.value(await database.read(own.read)).head;
    return create(WalletTotalsSchema, { availableKobo, reservedKobo, postedKobo });
  };

  const listTransfers_: Handler<ListTransfersRequest, ListTransfersResponse> = async (request, { caller }) => {
    const { limit = 25, cursor } = request;
    const { partnerId } = caller;
    const issuedFor = ['wallet-transfers', partnerId];
    const before = cursor === undefined ? undefined : BigInt(cursors.read(issuedFor, cursor));
    const rows = await database.read(listTransfers(partnerId, before, limit + 1));
    const page = cursors.page(issuedFor, rows.map(toShownTransfer), limit, ({ sequence }) => String(sequence));
    return create(ListTransfersResponseSchema, { ...page, data: page.data.map(toTransferMessage) });
  };

  return { getWallet, listTransfers: listTransfers_ };
}

function toTransferMessage(entry: ShownTransfer): WalletTransfer {
  const { type } = entry;
  const message = create(WalletTransferSchema, {
    id: entry.id,
    type: typeWords.value(type),
    amountKobo: entry.amountKobo,
    availableChangeKobo: entry.availableChangeKobo,
    allocation: entry.allocation ?? undefined,
    account: entry.account ?? undefined,
    bankReference: entry.bankReference ?? undefined,
    createdAt: toSecond(entry.createdAt),
  });
  return withStoredNames(message, { type });
}
