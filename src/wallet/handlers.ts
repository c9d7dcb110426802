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
  WalletTransferSchema,
} from '../gen/marina/gateway/v1/wallet_pb.ts';
import type { Cursors } from '../lib/paging.ts';
import { shownMessage } from '../lib/shown-message.ts';
import { listTransfers, toShownTransfer, wallet } from './store.ts';

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
    return create(ListTransfersResponseSchema, {
      ...page,
      data: page.data.map((entry) => shownMessage(WalletTransferSchema, entry)),
    });
  };

  return { getWallet, listTransfers: listTransfers_ };
}
