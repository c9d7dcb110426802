import { createHash } from 'node:crypto';
import { RejectReason } from '../../gen/marina/broker/v1/orders_pb.ts';
import type { FindingKind, FixOrder, FixOrderState, FixReport, FixReportKind } from '../store/table.ts';
import { tags } from '../wire/tags.ts';

/** An application message of the exchange. */
export interface Message {
  readonly type: string;
  get(tag: number): string | undefined;
}

/** A report before it has its number. */
export type NewReport = Omit<FixReport, 'number'>;

/** What a message changes of an order. */
export interface Effect {
  readonly order: FixOrder;
  readonly reports: readonly NewReport[];
  readonly finding?: { readonly what: FindingKind; readonly detail: string };
  /** The exchange answered that it does not have the order. */
  readonly isUnknown?: boolean;
}

export interface ReadContext {
  /** The price of a trade in kobo; undefined if it is none. */
  readonly toKobo: (text: string) => bigint | undefined;
  /** When it happened, by the message, in milliseconds. */
  readonly at: number;
}

/** ExecType (150). */
const execTypes = {
  new: '0',
  doneForDay: '3',
  cancelled: '4',
  replaced: '5',
  pendingCancel: '6',
  rejected: '8',
  pendingNew: 'A',
  expired: 'C',
  restated: 'D',
  pendingReplace: 'E',
  trade: 'F',
  tradeCorrect: 'G',
  tradeCancel: 'H',
  orderStatus: 'I',
} as const;

/** OrdStatus (39) of an order that has ended, with the kind of its report. */
const ends: Readonly<Record<string, 'cancelled' | 'expired' | 'rejected' | undefined>> = {
  '4': 'cancelled',
  C: 'expired',
  '8': 'rejected',
};
const doneForDayStatus = '3';
const pendingNewStatus = 'A';

/** OrdRejReason (103) of an answer about an order that the exchange does not have. */
const unknownOrder = '5';
const duplicateOrder = '6';

const rejectReasons: Readonly<Record<string, RejectReason | undefined>> = {
  '1': RejectReason.UNKNOWN_SYMBOL,
  '2': RejectReason.MARKET_CLOSED,
  '4': RejectReason.MARKET_CLOSED,
  '15': RejectReason.ACCOUNT_NOT_AT_BROKER,
};

/**
 * What an ExecutionReport changes of its order. It must not have been applied before: the caller compares ExecIDs.
 * Nothing is left out: an execution that no report of ours can express is a finding.
 */
export function applyExecution(order: FixOrder, message: Message, context: ReadContext): Effect {
  const type = message.get(tags.ExecType) ?? '';
  const builder = reportBuilder(order, message, context);
  switch (type) {
    case execTypes.pendingNew:
    case execTypes.pendingCancel:
    case execTypes.pendingReplace:
      return { order, reports: [] };
    case execTypes.new:
      return builder.accepted();
    case execTypes.trade:
      return trade(order, message, context, builder);
    case execTypes.cancelled:
      return builder.ended('cancelled');
    case execTypes.expired:
      return builder.ended('expired');
    case execTypes.doneForDay:
      // A good-till-cancelled order goes on the next day.
      return order.timeInForce === 'gtc' ? builder.accepted() : builder.ended('expired');
    case execTypes.rejected:
      // The exchange has the first of two orders of one id, and the second is not ours to give up for.
      if (message.get(tags.OrdRejReason) === duplicateOrder) return builder.finding('not_understood');
      return builder.ended('rejected');
    case execTypes.orderStatus:
      return status(order, message, builder);
    case execTypes.tradeCancel:
      return builder.finding('trade_cancelled');
    case execTypes.tradeCorrect:
      return builder.finding('trade_corrected');
    case execTypes.restated:
      return restated(order, message, context, builder);
    case execTypes.replaced:
      return builder.finding('restated');
    default:
      return builder.finding('not_understood');
  }
}

/** A Reject or BusinessMessageReject of an order: the exchange has not taken it. */
export function applyReject(order: FixOrder, message: Message, context: ReadContext): Effect {
  if (order.state !== 'sending') return { order, reports: [] };
  return reportBuilder(order, message, context).ended('rejected');
}

/**
 * Whether a status means that the exchange does not have the order. Some exchanges give no reason then. A rejection would have
 * come before, as a report of its own.
 */
function meansUnknown(message: Message): boolean {
  const reason = message.get(tags.OrdRejReason);
  const traded = wholeOf(message.get(tags.CumQty)) ?? 0n;
  return message.get(tags.OrdStatus) === '8' && (reason === unknownOrder || reason === undefined) && traded === 0n;
}

function trade(order: FixOrder, message: Message, { toKobo }: ReadContext, builder: ReportBuilder): Effect {
  const quantity = wholeOf(message.get(tags.LastQty));
  const priceKobo = toKobo(message.get(tags.LastPx) ?? '');
  if (quantity === undefined || quantity < 1n || priceKobo === undefined) return builder.finding('not_understood');
  const filled = order.filled + quantity;
  const isFilled = filled >= order.quantity;
  const what = wrongCount(filled, order, message);
  const first = builder.accepted();
  return {
    order: { ...first.order, filled, state: isFilled ? 'final' : stateAfter(first.order.state) },
    reports: [...first.reports, builder.report('trade', { quantity, priceKobo })],
    ...(what === undefined ? {} : { finding: { what, detail: builder.detail } }),
  };
}

/** What is wrong with the count of an order's trades after one more. The exchange states its own in CumQty. */
function wrongCount(filled: bigint, { quantity }: FixOrder, message: Message): FindingKind | undefined {
  if (filled > quantity) return 'overfilled';
  const counted = wholeOf(message.get(tags.CumQty)) ?? filled;
  if (counted === filled) return undefined;
  return counted > filled ? 'trades_missing' : 'counted_twice';
}

/** An order that was restated as it is, as a good-till-cancelled one is each day, needs no person. */
function restated(order: FixOrder, message: Message, { toKobo }: ReadContext, builder: ReportBuilder): Effect {
  const quantity = message.get(tags.OrderQty);
  const price = message.get(tags.Price);
  const ordStatus = message.get(tags.OrdStatus) ?? '';
  const isSame =
    (quantity === undefined || wholeOf(quantity) === order.quantity) &&
    (price === undefined || order.priceKobo === null || toKobo(price) === order.priceKobo) &&
    (ends[ordStatus] === undefined || order.state === 'final');
  const first = builder.accepted();
  if (!isSame) return { ...first, ...builder.finding('restated'), order: first.order, reports: first.reports };
  return missesTrades(order, message)
    ? { ...first, finding: { what: 'trades_missing', detail: builder.detail } }
    : first;
}

/** What a status adds: the acceptance or the end of an order that no other message reported. */
function status(order: FixOrder, message: Message, builder: ReportBuilder): Effect {
  if (meansUnknown(message)) return { order, reports: [], isUnknown: true };
  const ordStatus = message.get(tags.OrdStatus) ?? '';
  if (ordStatus === pendingNewStatus) return { order, reports: [] };
  const traded = wholeOf(message.get(tags.CumQty));
  if (traded === undefined) return builder.finding('not_understood');
  const end = ordStatus === doneForDayStatus && order.timeInForce !== 'gtc' ? 'expired' : ends[ordStatus];
  // A rejected order was never accepted.
  const first = end === 'rejected' && order.state === 'sending' ? { order, reports: [] } : builder.accepted();
  // The price of a trade that did not come is not in a status.
  if (traded > order.filled) return { ...first, finding: { what: 'trades_missing', detail: builder.detail } };
  if (end === undefined || order.state === 'final') return first;
  const last = builder.ended(end, false);
  return { ...last, reports: [...first.reports, ...last.reports] };
}

/** The trades that the exchange counts in a status beyond those that were reported. */
export function missesTrades(order: FixOrder, message: Message): boolean {
  return (wholeOf(message.get(tags.CumQty)) ?? 0n) > order.filled;
}

type ReportBuilder = ReturnType<typeof reportBuilder>;

/** Makes the reports of one message. */
function reportBuilder(order: FixOrder, message: Message, { at }: ReadContext) {
  const exchangeOrderId = exchangeIdOf(message) ?? order.exchangeOrderId;
  const execId = message.get(tags.ExecType) === execTypes.orderStatus ? null : (execIdOf(message) ?? null);
  const isFirst = order.state === 'sending' || order.state === 'unsent';
  const detail = describe(message);
  const report = (kind: FixReportKind, more: Partial<NewReport> = {}): NewReport => ({
    orderId: order.id,
    exchangeOrderId,
    kind,
    at,
    quantity: null,
    priceKobo: null,
    rejectReason: null,
    execId,
    ...more,
  });
  const taken = { ...order, exchangeOrderId, state: stateAfter(order.state) };
  const revived: Pick<Effect, 'finding'> = order.state === 'unsent' ? { finding: { what: 'revived', detail } } : {};
  return {
    detail,
    report,
    /** That the exchange has the order, unless it is known. The message itself may report more. */
    accepted(): Effect {
      if (!isFirst) return { order: taken, reports: [] };
      const isAcceptance = message.get(tags.ExecType) === execTypes.new;
      return { order: taken, reports: [report('accepted', isAcceptance ? {} : { execId: null })], ...revived };
    },
    /** The order's end. An end of an order that was never accepted is a rejection, or follows its acceptance. */
    ended(kind: 'cancelled' | 'expired' | 'rejected', withAcceptance = true): Effect {
      if (order.state === 'final') return { order, reports: [] };
      const rejectReason = kind === 'rejected' ? RejectReason[reasonOf(message)].toLowerCase() : null;
      const needsAcceptance = isFirst && kind !== 'rejected' && withAcceptance;
      return {
        order: { ...taken, state: 'final' },
        reports: [...(needsAcceptance ? [report('accepted', { execId: null })] : []), report(kind, { rejectReason })],
        ...revived,
      };
    },
    finding(what: FindingKind): Effect {
      return { order, reports: [], finding: { what, detail } };
    },
  };
}

/** The ExecID as the record keeps it: a long one by its digest. */
export function execIdOf(message: Message): string | undefined {
  const id = message.get(tags.ExecID);
  if (id === undefined || Buffer.byteLength(id) <= 64) return id;
  return createHash('sha256').update(id).digest('hex');
}

function reasonOf(message: Message): RejectReason {
  return rejectReasons[message.get(tags.OrdRejReason) ?? ''] ?? RejectReason.REJECTED_BY_EXCHANGE;
}

function stateAfter(state: FixOrderState): FixOrderState {
  return state === 'final' ? 'final' : 'open';
}

/** The exchange's id of the order. `NONE` stands where it has none. */
function exchangeIdOf(message: Message): string | undefined {
  const id = message.get(tags.OrderID);
  return id === undefined || id === 'NONE' || id.length > 64 ? undefined : id;
}

/** A whole number, which an exchange may write with zeros behind a decimal point. */
function wholeOf(text: string | undefined): bigint | undefined {
  const [, digits] = /^(\d{1,15})(?:\.0*)?$/.exec(text ?? '') ?? [];
  return digits === undefined ? undefined : BigInt(digits);
}

/** What an operator needs of a message: no account. */
export function describe(message: Message): string {
  const shown = { ...detailTags };
  return Object.entries(shown)
    .flatMap(([name, tag]) => {
      const value = message.get(tag);
      return value === undefined ? [] : [`${name}=${value}`];
    })
    .join(' ');
}

const detailTags = {
  MsgType: 35,
  ExecType: tags.ExecType,
  OrdStatus: tags.OrdStatus,
  OrderID: tags.OrderID,
  ExecID: tags.ExecID,
  ExecRefID: tags.ExecRefID,
  LastQty: tags.LastQty,
  LastPx: tags.LastPx,
  CumQty: tags.CumQty,
  LeavesQty: tags.LeavesQty,
  OrdRejReason: tags.OrdRejReason,
  Text: tags.Text,
};
