import { Orders1763650000000 } from './1763650000000-orders.ts';
import { Wallet1763660300000 } from './1763660300000-wallet.ts';

/** Every migration, oldest first. A migration that was released never changes. */
export const migrations = [Orders1763650000000, Wallet1763660300000];
