import type { ExchangeMessage } from '../../src/fix-adapter/orders/execution.ts';
import { rejectReasonOf } from '../../src/fix-adapter/orders/reject-reasons.ts';
import type { FixOrder } from '../../src/fix-adapter/store/table.ts';
import { isAverage, toKobo } from '../../src/fix-adapter/wire/prices.ts';
import { tags } from '../../src/fix-adapter/wire/tags.ts';

/** How messages are weighed in a session whose prices are in naira. */
export const weighing = {
  toKobo: (text: string) => toKobo(text, 'naira'),
  isAverage: (text: string, value: bigint, quantity: bigint) => isAverage(text, 'naira', value, quantity),
  symbolOf: (symbol: string) => symbol,
  reasonOf: (message: ExchangeMessage) => rejectReasonOf(message, []),
};

/** A buy of 100 shares at 1.00 naira that was sent, and of which nothing is known. */
export function fixOrder(more: Partial<FixOrder> = {}): FixOrder {
  return {
    ...{ id: 'ord_a', account: 'NG-1', symbol: 'MTNN', side: 'buy', quantity: 100n, type: 'limit', timeInForce: 'day' },
    ...{ priceKobo: 100n, notAfter: 0, receivedAt: 0, note: Buffer.alloc(0), startedAt: 7, number: 12n },
    ...{ state: 'sending', exchangeOrderId: '', filled: 0n, acknowledged: false, passedOver: false, mustAsk: false },
    ...{ asked: false, adjusted: 0n, filledValueKobo: (more.filled ?? 0n) * 100n, referenceKobo: null },
    ...{ endedAs: null, endedCount: null, noted: '', settled: false, partner: '', clOrdId: more.id ?? 'ord_a' },
    ...more,
  } as FixOrder;
}

/** A message with these fields, as it was received. */
export function fixMessage(fields: Readonly<Record<number, string | undefined>>, type = '8'): ExchangeMessage {
  return { type, get: (tag) => fields[tag] };
}

/** An ExecutionReport about the order. Its OrdStatus is that of its ExecType. */
export function execution(execType: string, more: Readonly<Record<number, string | undefined>> = {}): ExchangeMessage {
  return fixMessage({
    [tags.ExecType]: execType,
    [tags.OrdStatus]: execType,
    [tags.ExecID]: 'e1',
    [tags.OrderID]: 'X1',
    [tags.ClOrdID]: 'ord_a',
    ...more,
  });
}
