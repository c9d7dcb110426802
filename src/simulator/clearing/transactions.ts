import type { RowDataPacket } from 'mysql2/promise';
import { TransactionType } from '../../gen/marina/broker/v1/accounts_pb.ts';
import { Side } from '../../gen/marina/broker/v1/orders_pb.ts';
import type { WriterConnection } from '../store/database.ts';
import type { World } from '../world.ts';
import { type Transaction, transactions } from './tables.ts';

/** Everything about a transaction besides the account, its number, the balance and the time. */
export type Booked = Pick<Transaction, 'type' | 'amountKobo'> &
  Partial<Pick<Transaction, 'deal' | 'clientAllocationId' | 'clientWithdrawalId' | 'reverses'>> & {
    /** When it happened, if that was earlier than now. */
    readonly happenedAtMs?: number;
  };

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

/** A unit of work's bookings. Each account's add up, and their times never go back. */
export class TransactionsUnit {
  readonly #booked: Transaction[] = [];

  constructor(private readonly world: World) {}

  /** Books an amount on an account. Nothing is booked for 0. */
  book(account: string, { amountKobo, happenedAtMs, ...booked }: Booked): void {
    if (amountKobo === 0n) return;
    const { transactions: chains, clock } = this.world;
    const { balanceKobo, bookedAtMs } = chains.newest(account);
    const now = clock.now();
    const transaction: Transaction = {
      deal: 0,
      clientAllocationId: '',
      clientWithdrawalId: '',
      reverses: 0,
      ...booked,
      number: chains.lastNumber + 1,
      account,
      amountKobo,
      balanceKobo: balanceKobo + amountKobo,
      bookedAtMs: Math.max(bookedAtMs, Math.min(happenedAtMs ?? now, now)),
    };
    chains.add(transaction);
    this.#booked.push(transaction);
  }

  statements(): string[] {
    return transactions.save(this.#booked);
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
