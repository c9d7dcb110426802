import type { MessageInitShape } from '@bufbuild/protobuf';
import type {
  GetAccountStatusResponseSchema,
  GetBalanceResponseSchema,
  GetMarketResponseSchema,
  ListContractNotesResponseSchema,
  ListPositionsResponseSchema,
  ListTradesResponseSchema,
  ListTransactionsResponseSchema,
} from '../../gen/marina/broker/v1/accounts_pb.ts';

/** Well-formed answers about accounts that make no sense, which a caller must not believe. */
export type ClearingNonsense = typeof clearingNonsense;

export const clearingNonsense = {
  balance: (): MessageInitShape<typeof GetBalanceResponseSchema> => ({ account: 'NOBODYASKED', availableKobo: 1n }),
  /** A position of no shares, in another account. */
  positions: (): MessageInitShape<typeof ListPositionsResponseSchema> => ({
    account: 'NOBODYASKED',
    positions: [{ symbol: 'NONSENSE', name: 'Nonsense' }],
  }),
  /** No trades, but more to follow. */
  trades: (): MessageInitShape<typeof ListTradesResponseSchema> => ({ account: 'NOBODYASKED', hasMore: true }),
  /** No contract notes, but more to follow. */
  contractNotes: (): MessageInitShape<typeof ListContractNotesResponseSchema> => ({
    account: 'NOBODYASKED',
    hasMore: true,
  }),
  /** A state that is none, of another account. */
  accountStatus: (): MessageInitShape<typeof GetAccountStatusResponseSchema> => ({ account: 'NOBODYASKED' }),
  /** No transactions, but more to follow. */
  transactions: (): MessageInitShape<typeof ListTransactionsResponseSchema> => ({
    account: 'NOBODYASKED',
    hasMore: true,
  }),
  /** No session. */
  market: (): MessageInitShape<typeof GetMarketResponseSchema> => ({}),
};
