import type { FixCancel, FixOrder } from '../store/table.ts';
import { messageTypes, tags } from '../wire/tags.ts';
import type { Effect, NewReport } from './apply-execution.ts';
import type { ExchangeMessage } from './execution.ts';
import { orderIdOfName } from './names.ts';
import { saidIn } from './reject-reasons.ts';

export interface RejectContext {
  readonly orders: readonly FixOrder[];
  readonly cancels: readonly FixCancel[];
  /** When the present numbering began, in milliseconds. */
  readonly startedAt: number;
  /** The number of our message that was rejected, if the reject has it. */
  readonly number: bigint | undefined;
  /** The ClOrdID of our message that was rejected, if the reject has it. */
  readonly name: string | undefined;
  /** The reason of the message, as partners are given it. */
  readonly reason: string;
  /** When it was rejected, in milliseconds. */
  readonly at: number;
}

/** The effect of a reject: an order or a request to cancel that the exchange did not take. */
export interface RejectEffect {
  /** The order that it is about; empty if it is about none. */
  readonly orderId: string;
  readonly effect?: Effect;
  readonly cancel?: FixCancel;
}

/**
 * A Reject (3) or BusinessMessageReject (j). It proves that an order was not taken only if it says that an order was rejected
 * (RefMsgType 372 = D), because the number that it names may meanwhile be that of a gap fill, and if the exchange has never
 * acknowledged the order.
 */
export function applyReject(message: ExchangeMessage, context: RejectContext): RejectEffect {
  const type = message.get(tags.RefMsgType);
  const order = type === messageTypes.NewOrderSingle ? rejected(context.orders, 'receivedAt', context) : undefined;
  const isOfCancel = type === messageTypes.OrderCancelRequest || type === undefined;
  const cancel = isOfCancel ? (rejected(context.cancels, 'requestedAt', context) ?? lastOf(context)) : undefined;
  const named = context.name === undefined ? '' : orderIdOfName(context.name);
  const orderId = order?.id ?? cancel?.orderId ?? named;
  if (cancel !== undefined) return { orderId, cancel };
  if (order === undefined || order.state !== 'sending' || order.acknowledged) return { orderId };
  const report: NewReport = {
    orderId: order.id,
    exchangeOrderId: order.exchangeOrderId,
    kind: 'rejected',
    at: context.at,
    quantity: null,
    priceKobo: null,
    rejectReason: context.reason,
    execId: null,
    counted: null,
    ...saidIn(message),
  };
  return { orderId, effect: { order: { ...order, state: 'final' }, reports: [report], findings: [] } };
}

/** The last request to cancel an order, if the reject names the order and not the request. */
function lastOf({ cancels, name }: RejectContext): FixCancel | undefined {
  const named = name === undefined ? undefined : orderIdOfName(name);
  const underWay = cancels.filter(({ orderId, state }) => orderId === named && state === 'sending');
  return underWay.sort((one, other) => one.requestedAt - other.requestedAt).at(-1);
}

/** The row that a reject names. Numbers that an operator set back were given twice: the exchange means the later row. */
function rejected<Row extends FixOrder | FixCancel>(
  rows: readonly Row[],
  at: keyof Row,
  { startedAt, number, name }: RejectContext,
): Row | undefined {
  const named = rows.filter((row) => {
    const isNumber = row.startedAt === startedAt && row.number === number;
    const isNamed = name === ('clOrdId' in row ? row.clOrdId : row.id);
    return number === undefined ? isNamed : isNumber && (name === undefined || isNamed);
  });
  return named.sort((one, other) => Number(one[at]) - Number(other[at])).at(-1);
}
