/** Which of our messages a message of the exchange is about. */
import { messageTypes, tags } from '../wire/tags.ts';
import type { ExchangeMessage } from './execution.ts';
import { orderIdOfName } from './names.ts';

const questionTypes: readonly string[] = [messageTypes.OrderStatusRequest, messageTypes.OrderMassStatusRequest];
const sessionTypes: readonly string[] = [
  messageTypes.Heartbeat,
  messageTypes.TestRequest,
  messageTypes.ResendRequest,
  messageTypes.Reject,
  messageTypes.SequenceReset,
  messageTypes.Logout,
  messageTypes.Logon,
];
const nameTags: ReadonlySet<number> = new Set([tags.ClOrdID, tags.OrigClOrdID]);
const orderTags: ReadonlySet<number> = new Set([...nameTags, tags.OrderID, tags.ExecID, tags.Side]);
const appliedTypes: readonly string[] = [messageTypes.ExecutionReport, messageTypes.OrderCancelReject];
const sendTypes: readonly string[] = [messageTypes.NewOrderSingle, messageTypes.OrderCancelRequest];

/** The order that a message is about. A report about a cancelled order may name the request to cancel instead. */
export function orderIdOf(message: ExchangeMessage): string | undefined {
  const name = message.get(tags.ClOrdID) ?? message.get(tags.OrigClOrdID) ?? rejectedName(message);
  // The form of the name is ours, so it is surer than the exchange's other fields.
  return name === undefined ? undefined : orderIdOfName(name);
}

/** Every id that a message names an order by. */
export function orderIdsOf(message: ExchangeMessage): string[] {
  const names = [message.get(tags.ClOrdID), message.get(tags.OrigClOrdID), rejectedName(message)];
  return [...new Set(names.flatMap((name) => (name === undefined ? [] : [orderIdOfName(name)])))];
}

/** The most names that are read of a message that is not supported: it may have groups. */
const maxNames = 50;

/**
 * Every id that a message of an unsupported type names an order by, over all of its groups. `isComplete`: it has no further
 * names.
 */
export function orderIdsOfUnsupported(message: ExchangeMessage): {
  readonly ids: string[];
  readonly isComplete: boolean;
} {
  const names = (message.fields ?? []).flatMap(([tag, value]) => (nameTags.has(tag) ? [value] : []));
  const all = [...new Set([...names.map(orderIdOfName), ...orderIdsOf(message)])];
  return { ids: all.slice(0, maxNames), isComplete: all.length <= maxNames };
}

/** Whether a message of an unsupported type may be about an order: it has a name, a side or an execution. */
export function mayBeOfOrder(message: ExchangeMessage): boolean {
  return [...orderTags].some((tag) => message.get(tag) !== undefined);
}

/** Whether the record applies messages of this type. */
export function isSupported(message: ExchangeMessage): boolean {
  return appliedTypes.includes(message.type) || isReject(message);
}

export function isReject({ type }: ExchangeMessage): boolean {
  return type === messageTypes.Reject || type === messageTypes.BusinessMessageReject;
}

/** Whether a reject is of one of our questions about orders. */
export function isOfQuestion(message: ExchangeMessage): boolean {
  return questionTypes.includes(message.get(tags.RefMsgType) ?? '');
}

/** Whether a reject is of a message of the session, which is about no order. */
export function isOfSession(message: ExchangeMessage): boolean {
  return sessionTypes.includes(message.get(tags.RefMsgType) ?? '');
}

/**
 * The ClOrdID of our order or cancel that was rejected, if the exchange names it. A question about an order has the order's ClOrdID
 * too, so the type of what was rejected decides.
 */
export function rejectedName(message: ExchangeMessage): string | undefined {
  const isOfOrder = sendTypes.includes(message.get(tags.RefMsgType) ?? '');
  const isByName = message.type === messageTypes.BusinessMessageReject && isOfOrder;
  return isByName ? message.get(tags.BusinessRejectRefID) : undefined;
}

/** The number of our message that was rejected. */
export function rejectedNumber(message: ExchangeMessage): bigint | undefined {
  const [, digits] = /^0*(\d{1,15})$/.exec(message.get(tags.RefSeqNum) ?? '') ?? [];
  return isReject(message) && digits !== undefined ? BigInt(digits) : undefined;
}
