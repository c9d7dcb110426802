import type { World } from '../world.ts';
import { type Transaction, transactions } from './tables.ts';

/** Everything about a transaction besides the account, its number, the balance and the time. */
export type Booked = Pick<Transaction, 'type' | 'amountKobo'> &
  Partial<Pick<Transaction, 'deal' | 'clientAllocationId' | 'clientWithdrawalId' | 'reverses'>> & {
    /** When it happened, if that was earlier than now. */
    readonly happenedAtMs?: number;
  };

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
