import type { RenewedSubmission } from '../submission/kind.ts';
import type { Facts } from '../submission/notes.ts';
import type { ShownOrder, StoredOrder } from './store.ts';

/** What must be known of an order to store it anew. */
export function factsOf(row: StoredOrder): Facts {
  return {
    account: row.account,
    symbol: row.symbol,
    side: row.side,
    type: row.type,
    timeInForce: row.timeInForce,
    quantity: row.quantity.toString(),
    priceKobo: row.priceKobo === null ? null : row.priceKobo.toString(),
    clientReference: row.clientReference,
    createdAt: row.createdAt,
    countedDay: row.countedDay,
    countedPriceKobo: row.countedPriceKobo.toString(),
    notAfter: row.notAfter,
  };
}

/** An order as it is when it was sent and nothing more is known of it. */
export function renewedOrder(id: string, submission: RenewedSubmission, facts: Facts, realNow: number): StoredOrder {
  return {
    ...submission,
    id,
    state: 'uncertain',
    account: String(facts.account),
    symbol: String(facts.symbol),
    side: facts.side as ShownOrder['side'],
    type: facts.type as ShownOrder['type'],
    timeInForce: facts.timeInForce as ShownOrder['timeInForce'],
    quantity: BigInt(String(facts.quantity)),
    priceKobo: facts.priceKobo === null ? null : BigInt(String(facts.priceKobo)),
    clientReference: facts.clientReference === null ? null : String(facts.clientReference),
    createdAt: Number(facts.createdAt),
    updatedAt: Number(facts.createdAt),
    countedDay: String(facts.countedDay),
    countedPriceKobo: BigInt(String(facts.countedPriceKobo)),
    notAfter: Number(facts.notAfter),
    checkAt: realNow,
    filledQuantity: 0n,
    filledValueKobo: 0n,
    filledAt: null,
    exchangeOrderId: null,
    reason: 'It is not known whether the exchange received it; the gateway is finding out.',
    rejectReason: null,
    firstAnswer: null,
    lastReport: 0n,
    steps: 1,
    checks: 0,
    missingSince: null,
    cancelUntil: null,
  };
}
