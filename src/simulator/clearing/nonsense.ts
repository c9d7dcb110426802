import type { MessageInitShape } from '@bufbuild/protobuf';
import type {
  GetBalanceResponseSchema,
  GetMarketResponseSchema,
  ListContractNotesResponseSchema,
  ListPositionsResponseSchema,
  ListTradesResponseSchema,
} from '../../gen/marina/broker/v1/accounts_pb.ts';

/** Answers about accounts that are well formed and make no sense: what a caller must not believe. */
export type ClearingNonsense = typeof clearingNonsense;

export const clearingNonsense = {
  /** The balance of another account. */
  balance: (): MessageInitShape<typeof GetBalanceResponseSchema> => ({ account: 'NOBODYASKED', availableKobo: 1n }),
  /** A stock nobody holds any of, in an account nobody asked for. */
  positions: (): MessageInitShape<typeof ListPositionsResponseSchema> => ({
    account: 'NOBODYASKED',
    positions: [{ symbol: 'NONSENSE', name: 'Nonsense' }],
  }),
  /** No trades at all, and more behind them. */
  trades: (): MessageInitShape<typeof ListTradesResponseSchema> => ({ account: 'NOBODYASKED', hasMore: true }),
  /** The same of contract notes. */
  contractNotes: (): MessageInitShape<typeof ListContractNotesResponseSchema> => ({
    account: 'NOBODYASKED',
    hasMore: true,
  }),
  /** A session there is not. */
  market: (): MessageInitShape<typeof GetMarketResponseSchema> => ({}),
};
