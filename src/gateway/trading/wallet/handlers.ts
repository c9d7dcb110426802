import { create } from '@bufbuild/protobuf';
import {
  ListTransfersResponseSchema,
  type Wallet,
  WalletTotalsSchema,
  WalletTransferSchema,
} from '../../../gen/marina/gateway/v1/wallet_pb.ts';
import type { HandlersOf } from '../../edge/call.ts';
import type { Cursors } from '../../edge/paging.ts';
import type { Database } from '../../store/database.ts';
import { shownMessage } from '../shown-message.ts';
import { listTransfers, provenSums, toShownTransfer, type WalletSeals, wallets } from './store.ts';

/** The operations on the wallet. */
export function walletHandlers(database: Database, cursors: Cursors, seals: WalletSeals): HandlersOf<typeof Wallet> {
  return {
    async getWallet(_, { caller }) {
      const [row] = await database.read(wallets.find({ partnerId: caller.partnerId }));
      return shownMessage(WalletTotalsSchema, provenSums(caller.partnerId, row, seals));
    },

    async listTransfers({ limit = 25, cursor }, { caller: { partnerId } }) {
      const issuedFor = ['wallet-transfers', partnerId];
      const before = cursor === undefined ? undefined : BigInt(cursors.read(issuedFor, cursor));
      const rows = await database.read(listTransfers(partnerId, before, limit + 1));
      const page = cursors.page(issuedFor, rows.map(toShownTransfer), limit, ({ sequence }) => String(sequence));
      const data = page.data.map((entry) => shownMessage(WalletTransferSchema, entry));
      return create(ListTransfersResponseSchema, { ...page, data });
    },
  };
}
