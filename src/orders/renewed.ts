import type { RenewedSubmission } from '../submission/kind.ts';
import type { FactReader, Facts } from '../submission/notes.ts';
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
export function renewedOrder(
  id: string,
  submission: RenewedSubmission,
  facts: FactReader,
  realNow: number,
): StoredOrder {
  const createdAt = facts.instant('createdAt');
  return {
    ...submission,
    id,
    state: 'uncertain',
    account: facts.text('account'),
    symbol: facts.text('symbol'),
    side: facts.text('side') as ShownOrder['side'],
    type: facts.text('type') as ShownOrder['type'],
    timeInForce: facts.text('timeInForce') as ShownOrder['timeInForce'],
    quantity: facts.whole('quantity'),
    priceKobo: facts.optionalWhole('priceKobo'),
    clientReference: facts.optionalText('clientReference'),
    createdAt,
    updatedAt: createdAt,
    countedDay: facts.day('countedDay'),
    countedPriceKobo: facts.whole('countedPriceKobo'),
    notAfter: facts.instant('notAfter'),
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
    missedReport: 0n,
  };
}
