import type { Changes, Known, Subjects } from '../store/store.ts';
import type { Finding, FixCancel, FixOrder, FixReport } from '../store/table.ts';
import { messageTypes, tags } from '../wire/tags.ts';
import {
  applyExecution,
  applyReject,
  describe,
  type Effect,
  execIdOf,
  type Message,
  missesTrades,
} from './executions.ts';

/** How the exchange answered a question about an order. */
export type StatusAnswer = 'known' | 'unknown' | 'trades missing';

/** The answers to requests among some messages. The execution reports are in the changes. */
export interface Answers {
  readonly statuses: readonly { readonly orderId: string; readonly requestId: string; readonly answer: StatusAnswer }[];
  readonly refusedCancels: readonly FixCancel[];
  /** The exchange refused a question about orders. */
  readonly isQuestionRefused: boolean;
}

export interface ApplyContext {
  readonly toKobo: (text: string) => bigint | undefined;
  /** The time of a message, in milliseconds. */
  readonly timeOf: (message: Message) => number;
  readonly now: number;
}

/** ExecType (150). */
const rejected = '8';
/** What asks the exchange for something, and what only asks about it. */
const sendTypes: readonly string[] = [messageTypes.NewOrderSingle, messageTypes.OrderCancelRequest];
const questionTypes: readonly string[] = [messageTypes.OrderStatusRequest, messageTypes.OrderMassStatusRequest];

/** The marks of a request to cancel: the order's id, a point, `c` and a number. */
const cancelMark = /\.c\d+$/;

/** Whether an id looks like that of a request to cancel. No order may have it. */
export function isCancelId(id: string): boolean {
  return cancelMark.test(id);
}

/** The id of the nth request to cancel an order. */
export function cancelIdOf(orderId: string, nth: number): string {
  return `${orderId}.c${nth}`;
}

/** Which rows the messages are about. */
export function subjectsOf(messages: readonly Message[]): Subjects {
  const orderIds = new Set<string>();
  const numbers = new Set<bigint>();
  for (const message of messages) {
    const id = orderIdOf(message);
    if (id !== undefined) orderIds.add(id);
    const number = rejectedNumber(message);
    if (number !== undefined) numbers.add(number);
  }
  return { orderIds: [...orderIds], numbers: [...numbers] };
}

/** Applies messages in their order to the rows that they are about. Messages that were applied before change nothing. */
export function applyMessages(
  messages: readonly Message[],
  known: Known,
  context: ApplyContext,
): { readonly changes: Changes; readonly result: Answers } {
  const before = new Map(known.orders.map((order) => [order.id, order]));
  const orders = new Map(before);
  const cancels = new Map(known.cancels.map((cancel) => [cancel.id, cancel]));
  const execIds = new Map([...known.execIds].map(([id, seen]) => [id, new Set(seen)]));
  const reports: Omit<FixReport, 'number'>[] = [];
  const findings: Finding[] = [];
  const statuses: Answers['statuses'][number][] = [];
  const refusedCancels: FixCancel[] = [];
  let isQuestionRefused = false;

  const note = (message: Message, orderId: string, effect: Pick<Effect, 'finding'>) => {
    if (effect.finding === undefined) return;
    const execId = execIdOf(message) ?? '';
    findings.push({ ...effect.finding, at: context.now, orderId: printable(orderId), execId });
  };
  const take = (message: Message, order: FixOrder, effect: Effect) => {
    orders.set(order.id, effect.order);
    reports.push(...effect.reports);
    for (const { execId } of effect.reports) if (execId !== null) seen(order.id).add(execId);
    note(message, order.id, effect);
  };
  const seen = (orderId: string) => {
    const found = execIds.get(orderId) ?? new Set<string>();
    execIds.set(orderId, found);
    return found;
  };
  const endCancel = (cancel: FixCancel | undefined, state: 'done' | 'refused') => {
    if (cancel === undefined || cancel.state === 'done') return;
    const after = { ...cancel, state };
    cancels.set(cancel.id, after);
    if (state === 'refused') refusedCancels.push(after);
  };

  for (const message of messages) {
    const at = context.timeOf(message);
    const about = { toKobo: context.toKobo, at };
    if (message.type === messageTypes.ExecutionReport) {
      const orderId = orderIdOf(message) ?? '';
      const order = orders.get(orderId);
      if (order === undefined) {
        const detail = `OrderID=${message.get(tags.OrderID) ?? ''} ExecType=${message.get(tags.ExecType) ?? ''}`;
        // An answer to a mass status names orders of the firm that are not ours.
        if (message.get(tags.MassStatusReqID) === undefined)
          note(message, orderId, { finding: { what: 'unknown_order', detail } });
        continue;
      }
      const isStatus = message.get(tags.ExecType) === 'I';
      const execId = execIdOf(message);
      if (!isStatus && execId !== undefined && seen(orderId).has(execId)) continue;
      // It rejects the request to cancel, not the order.
      const refusesCancel = message.get(tags.ExecType) === rejected && isCancelId(message.get(tags.ClOrdID) ?? '');
      if (refusesCancel) endCancel(cancels.get(message.get(tags.ClOrdID) ?? ''), 'refused');
      const effect = refusesCancel ? unread(order, message) : applyExecution(order, message, about);
      take(message, order, effect);
      if (isStatus) {
        const requestId = message.get(tags.OrdStatusReqID) ?? '';
        const missing = missesTrades(effect.order, message) ? 'trades missing' : 'known';
        statuses.push({ orderId, requestId, answer: effect.isUnknown === true ? 'unknown' : missing });
      }
      if (effect.reports.some(({ kind }) => kind === 'cancelled')) {
        for (const cancel of cancels.values()) if (cancel.orderId === orderId) endCancel(cancel, 'done');
      }
    } else if (message.type === messageTypes.OrderCancelReject) {
      endCancel(cancels.get(message.get(tags.ClOrdID) ?? ''), 'refused');
    } else if (isReject(message) && isOfQuestion(message)) {
      // It says nothing of an order, and comes once for each question that the exchange does not take.
      isQuestionRefused = true;
    } else if (isReject(message)) {
      const number = rejectedNumber(message);
      const name = rejectedName(message);
      const isOurs = (row: FixOrder | FixCancel) =>
        number === undefined ? row.id === name : row.startedAt === known.startedAt && row.number === number;
      // Numbers that an operator set back were given twice: the exchange means the later one.
      const order = [...orders.values()]
        .filter(isOurs)
        .sort((one, other) => one.receivedAt - other.receivedAt)
        .at(-1);
      const cancel = [...cancels.values()]
        .filter(isOurs)
        .sort((one, other) => one.requestedAt - other.requestedAt)
        .at(-1);
      const isCancel = cancel !== undefined && cancel.requestedAt >= (order?.receivedAt ?? 0);
      if (order !== undefined && !isCancel) take(message, order, applyReject(order, message, about));
      else endCancel(cancel, 'refused');
      note(message, order?.id ?? '', {
        finding: { what: 'not_understood', detail: `rejected: ${message.get(tags.Text) ?? ''}` },
      });
    }
  }
  const changed = <Row extends { readonly id: string }>(from: readonly Row[], to: ReadonlyMap<string, Row>) =>
    from.flatMap((row) => {
      const after = to.get(row.id);
      return after === undefined || after === row ? [] : [{ before: row, after }];
    });
  return {
    changes: {
      orders: changed([...before.values()], orders),
      cancels: changed(known.cancels, cancels),
      reports,
      findings,
    },
    result: { statuses, refusedCancels, isQuestionRefused },
  };
}

/** The order that a message is about. A report about a cancelled order may name the request to cancel instead. */
function orderIdOf(message: Message): string | undefined {
  const id = message.get(tags.ClOrdID) ?? message.get(tags.OrigClOrdID) ?? rejectedName(message);
  // The suffix is ours, so it is surer than the exchange's other fields.
  return id?.replace(cancelMark, '');
}

/**
 * The ClOrdID of our order or cancel that was rejected, where the exchange names it and not its number. A question about an
 * order has the order's ClOrdID too, so the type of what was rejected decides.
 */
function rejectedName(message: Message): string | undefined {
  const isByName = message.type === messageTypes.BusinessMessageReject && rejectedNumber(message) === undefined;
  const isOfOrder = sendTypes.includes(message.get(tags.RefMsgType) ?? '');
  return isByName && isOfOrder ? message.get(tags.BusinessRejectRefID) : undefined;
}

function isReject({ type }: Message): boolean {
  return type === messageTypes.Reject || type === messageTypes.BusinessMessageReject;
}

/** Whether a reject is of one of our questions about orders. */
function isOfQuestion(message: Message): boolean {
  return questionTypes.includes(message.get(tags.RefMsgType) ?? '');
}

/** A report that no rule reads. */
function unread(order: FixOrder, message: Message): Effect {
  return { order, reports: [], finding: { what: 'not_understood', detail: describe(message) } };
}

/** What the record keeps of a name that is not ours. */
function printable(name: string): string {
  return name.replaceAll(/[^!-~]/g, '?').slice(0, 64);
}

/** The number of our message that was rejected. */
function rejectedNumber(message: Message): bigint | undefined {
  const text = message.get(tags.RefSeqNum) ?? '';
  return isReject(message) && /^\d{1,15}$/.test(text) ? BigInt(text) : undefined;
}
