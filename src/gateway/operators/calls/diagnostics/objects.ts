import { type Statement, statement } from '../../../store/statement.ts';
import { transfers } from '../../../trading/wallet/store.ts';

/** The entries of the ledger about an allocation or a withdrawal, oldest first. */
export function findTransfers(partnerId: string, objectId: string): Statement {
  const inOrder = statement('ORDER BY sequence');
  return transfers.find({ partnerId, allocationId: objectId }, transfers.all, inOrder, 'wallet_transfers_allocation');
}
