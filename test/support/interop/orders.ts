import type { PriceUnit } from './acceptor.ts';
import type { OrderTerms } from './book.ts';
import type { WireMessage } from './wire.ts';

/** Reads what an order, or a question about one, says of its terms. */
export function readTerms(message: WireMessage, unit: PriceUnit): OrderTerms {
  const price = message.find(44);
  return {
    clOrdId: message.text(11),
    account: message.text(1),
    symbol: message.text(55),
    side: message.text(54),
    type: message.find(40) ?? '2',
    timeInForce: message.find(59) ?? '0',
    quantity: BigInt(message.find(38) ?? '0'),
    limitKobo: price === undefined ? undefined : readPrice(price, unit),
  };
}

/** A price of the session in kobo. */
export function readPrice(text: string, unit: PriceUnit): bigint {
  const found = /^(\d+)(?:\.(\d{1,2})0*)?$/.exec(text);
  if (found === null) throw new Error(`the adapter sent the price ${text}`);
  const [, whole = '0', places = ''] = found;
  if (unit === 'kobo') return BigInt(whole);
  return BigInt(whole) * 100n + BigInt(places.padEnd(2, '0'));
}
