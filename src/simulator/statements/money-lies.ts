import type { MessageInitShape } from '@bufbuild/protobuf';
import type { GetBalanceResponseSchema, TransactionSchema } from '../../gen/marina/broker/v1/accounts_pb.ts';
import { StatementLie } from '../../gen/marina/simulator/v1/controls_pb.ts';
import type { Lies } from './lies.ts';

type Balance = Omit<MessageInitShape<typeof GetBalanceResponseSchema>, '$typeName' | '$unknown'>;
type Booked = Omit<MessageInitShape<typeof TransactionSchema>, '$typeName' | '$unknown'>;

/** An id that no gateway makes, without its prefix. */
const nobodys = 'nobodysent2222222222';
/** Lies about transactions are in force on every day. */
const anyDay = '9999-12-31';

/** An account's balance with the lies about it. */
export function liedBalance(lies: Lies, balance: Balance): Balance {
  const own = lies.until(anyDay, StatementLie.OPENING_BALANCE).filter(({ account }) => account === balance.account);
  return own.length === 0 ? balance : { ...balance, openingKobo: (balance.openingKobo ?? 0n) + BigInt(own.length) };
}

/** Transactions with the lies about them. */
export function liedTransactions(lies: Lies, transactions: readonly Booked[]): Booked[] {
  const { TRANSACTION_NAME, TRANSACTION_AMOUNT, TRANSACTION_BALANCE } = StatementLie;
  const told = lies.until(anyDay, TRANSACTION_NAME, TRANSACTION_AMOUNT, TRANSACTION_BALANCE);
  return transactions.map((booked) => {
    const { clientAllocationId, clientWithdrawalId, amountKobo = 0n, balanceKobo = 0n } = booked;
    const own = told.filter(
      ({ clientId }) => clientId !== '' && [clientAllocationId, clientWithdrawalId].includes(clientId),
    );
    if (own.length === 0) return booked;
    const count = (wanted: StatementLie) => BigInt(own.filter(({ lie }) => lie === wanted).length);
    const isOther = count(TRANSACTION_NAME) > 0n;
    return {
      ...booked,
      amountKobo: amountKobo + count(TRANSACTION_AMOUNT),
      balanceKobo: balanceKobo + count(TRANSACTION_BALANCE),
      clientAllocationId: isOther && clientAllocationId ? `alc_${nobodys}` : clientAllocationId,
      clientWithdrawalId: isOther && clientWithdrawalId ? `wdr_${nobodys}` : clientWithdrawalId,
    };
  });
}
