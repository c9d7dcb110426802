import { applyMessages } from '../../src/fix-adapter/orders/apply-messages.ts';
import type { ExchangeMessage } from '../../src/fix-adapter/orders/execution.ts';
import type { Executed } from '../../src/fix-adapter/store/store.ts';
import type { FixOrder } from '../../src/fix-adapter/store/table.ts';
import { tags } from '../../src/fix-adapter/wire/tags.ts';
import { execution, weighing } from './fix-order.ts';

/** The rules by which messages that are received together are applied. */
export const about = { ...weighing, timeOf: () => 5, now: 9 };

export const trade = (quantity: string, price: string) =>
  execution('F', { [tags.LastQty]: quantity, [tags.LastPx]: price });

/** A trade at 1.00 naira. */
export const last = (quantity: string, more = {}) =>
  execution('F', { [tags.LastQty]: quantity, [tags.LastPx]: '1.00', ...more });

/** A trade after which the exchange counts so many shares. */
export const counted = (quantity: string, cumQty: string) => last(quantity, { [tags.CumQty]: cumQty });

/** An end or a rejection, with the trades that the exchange counts. */
export const ended = (execType: string, cumQty = '0', more = {}) =>
  execution(execType, { [tags.CumQty]: cumQty, ...more });

/** The answer to a question about the order. */
export const status = (ordStatus: string, cumQty = '0', more = {}) =>
  execution('I', {
    ...{ [tags.OrdStatus]: ordStatus, [tags.CumQty]: cumQty, [tags.OrderID]: ordStatus === '8' ? 'NONE' : 'X1' },
    ...more,
  });

/** A record that has one order. */
export const known = (order: FixOrder) => ({
  ...{ startedAt: 7, orders: [order], cancels: [] },
  executed: new Map<string, ReadonlyMap<string, Executed>>(),
});

/** The changes that messages make to a record of one order, and their answers. */
export const found = (order: FixOrder, ...received: readonly ExchangeMessage[]) =>
  applyMessages(received, known(order), about);
