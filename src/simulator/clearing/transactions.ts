import type { RowDataPacket } from 'mysql2/promise';
import { TransactionType } from '../../gen/marina/broker/v1/accounts_pb.ts';
import { Side } from '../../gen/marina/broker/v1/orders_pb.ts';
import type { WriterConnection } from '../store/database.ts';
import { type Transaction, transactions } from './tables.ts';

/** The end of an account's chain of transactions. */
interface Newest {
  readonly balanceKobo: bigint;
  readonly bookedAtMs: number;
}

/** The newest transaction of each account, in memory. It follows the writer's changes one by one. */
export class TransactionChains {
  lastNumber = 0;
  readonly #newest = new Map<string, Newest>();

  newest(account: string): Newest {
    return this.#newest.get(account) ?? { balanceKobo: 0n, bookedAtMs: 0 };
  }

  add({ number, account, balanceKobo, bookedAtMs }: Omit<Transaction, 'type' | 'amountKobo'>): void {
    this.lastNumber = Math.max(this.lastNumber, number);
    this.#newest.set(account, { balanceKobo, bookedAtMs });
  }

  /** Reads the newest transactions from the tables. */
  async load(connection: WriterConnection): Promise<void> {
    await connection.commit([carryEarlierMoney]);
    this.#newest.clear();
    this.lastNumber = 0;
    const rows = await connection.read<RowDataPacket>(
      `SELECT ${transactions.columns} FROM account_transactions
       WHERE number IN (SELECT MAX(number) FROM account_transactions GROUP BY account)`,
    );
    for (const row of rows) this.add(transactions.fromRow(row));
  }
}

/**
 * The money of a database from before there were transactions: one adjustment of each account carries it. Does nothing when there
 * are transactions.
 */
const carryEarlierMoney = `
  INSERT INTO account_transactions
    (number, account, type, amount_kobo, balance_kobo, deal, client_allocation_id, client_withdrawal_id, reverses,
     booked_at_ms)
  SELECT ROW_NUMBER() OVER (ORDER BY account), account, ${TransactionType.ADJUSTMENT}, kobo, kobo, 0, '', '', 0, at_ms
  FROM (
    SELECT account, SUM(kobo) AS kobo, MAX(at_ms) AS at_ms FROM (
      SELECT account, amount_kobo AS kobo, at_ms FROM cash_entries
      UNION ALL
      SELECT account, IF(side = ${Side.BUY}, -consideration_kobo, consideration_kobo), executed_at_ms FROM deals
    ) AS earlier GROUP BY account
  ) AS money
  WHERE kobo <> 0 AND NOT EXISTS (SELECT 1 FROM account_transactions)`;
