import { orderIdOfName } from '../orders/names.ts';
import type { Field } from '../wire/message.ts';
import { tags } from '../wire/tags.ts';

/** Which order a message is about. Empty texts: none. */
export interface MessageSubject {
  /** The gateway's id of the order, also where the message names it by a request to cancel it. */
  readonly orderId: string;
  /** ClOrdID (11) as it is in the message. */
  readonly clOrdId: string;
}

/** Finds the order that a message is about, by ClOrdID (11), OrigClOrdID (41) or BusinessRejectRefID (379). */
export function subjectOf(fields: readonly Field[]): MessageSubject {
  const get = (wanted: number) => fields.find(([tag]) => tag === wanted)?.[1] ?? '';
  const clOrdId = get(tags.ClOrdID);
  const original = get(tags.OrigClOrdID) || clOrdId || get(tags.BusinessRejectRefID);
  return { orderId: orderIdOfName(original), clOrdId };
}
