import type { Unmatched } from '../store/marks.ts';
import { withNote } from '../store/notes.ts';
import type { Changes, Executed, Known, Subjects } from '../store/store.ts';
import type { Finding, FixCancel, FixOrder, FixReport, FixTradeChange } from '../store/table.ts';
import type { UnsupportedMessage } from '../store/unsupported.ts';
import { plain } from '../wire/plain.ts';
import { messageTypes, tags } from '../wire/tags.ts';
import { applyExecution, type Effect, type NewFinding } from './apply-execution.ts';
import { answersQuestion, type ExchangeMessage, execIdOf, wholeOf } from './execution.ts';
import { describe, factsOf, type ShowValue } from './facts.ts';
import { isCancelName } from './names.ts';
import {
  isOfQuestion,
  isOfSession,
  isReject,
  isSupported,
  mayBeOfOrder,
  orderIdOf,
  orderIdsOf,
  orderIdsOfUnsupported,
  rejectedName,
  rejectedNumber,
} from './references.ts';
import { type Said, saidIn, saidNothing } from './reject-reasons.ts';
import { applyReject } from './rejects.ts';
import {
  acknowledgesInCancelReject,
  cancelOfUnknown,
  countOf,
  statedTraits,
  traitsOf,
  type WeighContext,
} from './weigh.ts';

/** How the exchange answered a question about an order. `unclear`: the answer is a finding, and proves nothing. */
export type StatusAnswer = 'known' | 'unknown' | 'trades missing' | 'unclear';

/** The answers to requests among some messages. The execution reports are in the changes. */
export interface Answers {
  readonly statuses: readonly {
    readonly orderId: string;
    /** The question that it names; '' if it names none. */
    readonly requestId: string;
    /** It answers a question about all orders. */
    readonly isOfMass: boolean;
    readonly answer: StatusAnswer;
  }[];
  readonly refusedCancels: readonly FixCancel[];
  /** The exchange refused a question about orders. */
  readonly isQuestionRefused: boolean;
}

export interface MessagesContext extends WeighContext {
  /** The time of a message, in milliseconds. */
  readonly timeOf: (message: ExchangeMessage) => number;
  readonly now: number;
  /** When the present session day began, in milliseconds; absent: with the numbering. */
  readonly dayStartedAt?: number;
  /** Makes values fit to be stored; absent: they are stored as they came. */
  readonly show?: ShowValue;
  /** The order that the question with this OrdStatusReqID is about; undefined if no such question waits for its answer. */
  readonly askedAbout?: (requestId: string) => string | undefined;
  /** Whether an answer leaves no question about an order open. It names its question, or none: ''. Absent: it does. */
  readonly leavesNone?: (orderId: string, requestId: string) => boolean;
}

/** ExecType (150). */
const rejected = '8';

/** Which rows the messages are about. */
export function subjectsOf(messages: readonly ExchangeMessage[]): Subjects {
  const orderIds = new Set<string>();
  const numbers = new Set<bigint>();
  for (const message of messages) {
    const ids = isSupported(message) ? orderIdsOf(message) : orderIdsOfUnsupported(message).ids;
    for (const id of ids) orderIds.add(id);
    const number = rejectedNumber(message);
    if (number !== undefined) numbers.add(number);
  }
  return { orderIds: [...orderIds], numbers: [...numbers] };
}

/** Applies messages in their order to the rows that they are about. Messages that were applied before change nothing. */
export function applyMessages(
  messages: readonly ExchangeMessage[],
  known: Known,
  context: MessagesContext,
): { readonly changes: Changes; readonly result: Answers } {
  const applying = new Applying(known, context);
  for (const message of messages) applying.apply(message);
  return { changes: applying.changes, result: applying.answers };
}

class Applying {
  readonly #orders: Map<string, FixOrder>;
  readonly #cancels: Map<string, FixCancel>;
  readonly #executed: Map<string, Map<string, Executed>>;
  readonly #reports: Omit<FixReport, 'number'>[] = [];
  readonly #tradeChanges: FixTradeChange[] = [];
  readonly #findings: Finding[] = [];
  readonly #unsupported: UnsupportedMessage[] = [];
  readonly #statuses: Answers['statuses'][number][] = [];
  readonly #refusedCancels: FixCancel[] = [];
  #isQuestionRefused = false;
  #passedOver = false;
  readonly #unmatched: Unmatched[] = [];
  readonly #misnamed: Unmatched[] = [];

  constructor(
    private readonly known: Known,
    private readonly context: MessagesContext,
  ) {
    this.#orders = new Map(known.orders.map((order) => [order.id, order]));
    this.#cancels = new Map(known.cancels.map((cancel) => [cancel.id, cancel]));
    this.#executed = new Map([...known.executed].map(([id, executed]) => [id, new Map(executed)]));
  }

  get changes(): Changes {
    return {
      orders: changed(this.known.orders, this.#orders),
      cancels: changed(this.known.cancels, this.#cancels),
      reports: this.#reports,
      tradeChanges: this.#tradeChanges,
      findings: this.#findings,
      unsupported: this.#unsupported,
      passedOver: this.#passedOver,
      unmatched: this.#unmatched,
      misnamed: this.#misnamed,
    };
  }

  get answers(): Answers {
    return {
      statuses: this.#statuses,
      refusedCancels: this.#refusedCancels,
      isQuestionRefused: this.#isQuestionRefused,
    };
  }

  apply(message: ExchangeMessage): void {
    if (message.isWhole === false) {
      this.#unreadable(message);
      return;
    }
    if (message.type === messageTypes.ExecutionReport) {
      this.#execution(message);
      return;
    }
    if (message.type === messageTypes.OrderCancelReject) {
      this.#cancelReject(message);
      return;
    }
    if (isReject(message)) {
      this.#reject(message);
      return;
    }
    this.#unsupportedType(message);
  }

  /** It is not applied, and shows all the same that the exchange has the orders that it names. */
  #unsupportedType(message: ExchangeMessage): void {
    const { ids, isComplete } = orderIdsOfUnsupported(message);
    const named = ids.flatMap((id) => this.#orders.get(id) ?? []);
    for (const order of named) {
      this.#acknowledge(order.id);
      const noted = order.state === 'unsent' ? withNote(order.noted, `revived:${message.type}`) : undefined;
      if (noted === undefined) continue;
      this.#orders.set(order.id, { ...order, acknowledged: true, noted });
      this.#find(message, order.id, { what: 'revived', detail: describe(message) });
    }
    if (!isComplete || (named.length === 0 && mayBeOfOrder(message))) this.#unmatched.push({});
    const about = { what: 'unsupported', detail: describe(message) } as const;
    const finding = this.#findingOf(message, orderIdOf(message) ?? '', about);
    this.#unsupported.push({ day: this.context.dayStartedAt ?? this.known.startedAt, type: message.type, finding });
  }

  /** It may have been a report about any order. */
  #unreadable(message: ExchangeMessage): void {
    this.#passedOver = true;
    this.#find(message, orderIdOf(message) ?? '', { what: 'unreadable', detail: describe(message) });
  }

  #execution(message: ExchangeMessage): void {
    // A confirmed cancel may have an id of the exchange's own, and name the order by OrigClOrdID.
    const orderId = orderIdsOf(message).find((id) => this.#orders.has(id)) ?? orderIdOf(message) ?? '';
    const order = this.#orders.get(orderId);
    if (order === undefined) {
      this.#unmatched.push(...traitsOf(message));
      // An answer to a mass status names orders of the firm that are not ours.
      if (message.get(tags.MassStatusReqID) !== undefined) return;
      this.#find(message, orderId, { what: 'unknown_order', detail: describe(message) });
      return;
    }
    const cancelId = message.get(tags.ClOrdID) ?? '';
    // It rejects the request to cancel, not the order.
    if (message.get(tags.ExecType) === rejected && isCancelName(cancelId)) {
      this.#endCancel(this.#cancelOf(orderId, cancelId), 'refused', message);
      this.#find(message, orderId, { what: 'not_understood', detail: describe(message) });
      return;
    }
    const executed = this.#executed.get(orderId) ?? new Map<string, Executed>();
    this.#executed.set(orderId, executed);
    const { toKobo, isAverage, symbolOf, reasonOf, timeOf } = this.context;
    const { startedAt } = this.known;
    const { dayStartedAt = startedAt } = this.context;
    const isCancelling = [...this.#cancels.values()].some(
      (each) => each.orderId === orderId && (each.state === 'sending' || each.state === 'lost'),
    );
    const times = { at: timeOf(message), startedAt, dayStartedAt };
    const effect = applyExecution(order, message, {
      ...{ toKobo, isAverage, symbolOf, reasonOf, executed, isCancelling, ...times },
      namesAnother: this.#namesAnother(orderId, message),
      isLastAnswer: this.#isLastAnswer(orderId, message),
    });
    this.#take(message, effect);
    if (effect.findings.some(({ what }) => what === 'identity_differs')) {
      const traits = statedTraits(message);
      this.#misnamed.push(traits);
      this.#unmatched.push(traits);
    }
    if (answersQuestion(message)) this.#answer(message, effect);
    if (effect.reports.some(({ kind }) => kind === 'cancelled')) {
      for (const cancel of this.#cancels.values()) if (cancel.orderId === orderId) this.#endCancel(cancel, 'done');
    }
  }

  /** Whether a message names two of our orders, or answers a question about another one than it names. */
  #namesAnother(orderId: string, message: ExchangeMessage): boolean {
    const asked = this.context.askedAbout?.(message.get(tags.OrdStatusReqID) ?? '') ?? orderId;
    return asked !== orderId || orderIdsOf(message).some((id) => id !== orderId && this.#orders.has(id));
  }

  #isLastAnswer(orderId: string, message: ExchangeMessage): boolean {
    const requestId = message.get(tags.OrdStatusReqID) ?? '';
    // One that comes again and names no question may answer one of an earlier connection.
    if (requestId === '' && message.get(tags.PossDupFlag) === 'Y') return false;
    return this.context.leavesNone?.(orderId, requestId) ?? true;
  }

  /** The exchange has shown that it has the order. */
  #acknowledge(orderId: string): void {
    const order = this.#orders.get(orderId);
    if (order !== undefined && !order.acknowledged) this.#orders.set(orderId, { ...order, acknowledged: true });
  }

  #take(message: ExchangeMessage, { order, reports, change, findings }: Effect): void {
    this.#orders.set(order.id, order);
    this.#reports.push(...reports.map((report) => ({ ...report, ...this.#shown(report) })));
    const executed = this.#executed.get(order.id) ?? new Map<string, Executed>();
    this.#executed.set(order.id, executed);
    for (const { execId, kind, quantity, priceKobo, counted } of reports) {
      if (execId !== null) executed.set(execId, { kind, quantity, priceKobo, counted, execRefId: null });
    }
    if (change !== undefined) {
      this.#tradeChanges.push(change);
      const { execId, execRefId, quantity, priceKobo, counted } = change;
      if (execId !== null) {
        executed.set(execId, { kind: `trade_${change.kind}`, quantity, priceKobo, counted, execRefId });
      }
    }
    for (const finding of findings) this.#find(message, order.id, finding);
  }

  /** Returns the exchange's words about a rejection, as operators are shown them. */
  #shown({ exchangeReason, exchangeText }: Said): Said {
    const { show = (_tag: number, value: string) => plain(value) } = this.context;
    return {
      exchangeReason: exchangeReason === null ? null : plain(exchangeReason),
      exchangeText: exchangeText === null ? null : show(tags.Text, exchangeText),
    };
  }

  #answer(message: ExchangeMessage, { order, isUnknown, isUnclear: proves }: Effect): void {
    const requestId = message.get(tags.OrdStatusReqID) ?? '';
    const isMissing = (wholeOf(message.get(tags.CumQty)) ?? 0n) > countOf(order);
    const isUnclear = proves === true || order.state === 'sending';
    const answer = isUnknown === true ? 'unknown' : isMissing ? 'trades missing' : isUnclear ? 'unclear' : 'known';
    const isOfMass = message.get(tags.MassStatusReqID) !== undefined;
    this.#statuses.push({ orderId: order.id, requestId, isOfMass, answer });
  }

  #cancelReject(message: ExchangeMessage): void {
    const orderId = orderIdOf(message) ?? '';
    const named = [...orderIdsOf(message)].find((id) => this.#orders.has(id)) ?? orderId;
    const cancel = this.#cancelOf(named, message.get(tags.ClOrdID) ?? '');
    const order = this.#orders.get(named);
    if (order === undefined) this.#unmatched.push({});
    else if (acknowledgesInCancelReject(order, message)) this.#acknowledge(order.id);
    if (cancel === undefined || order === undefined) {
      this.#find(message, named, { what: 'not_understood', detail: describe(message) });
      return;
    }
    if (message.get(tags.CxlRejReason) === cancelOfUnknown && order.state === 'open') {
      const noted = withNote(order.noted, `order_forgotten:${this.context.dayStartedAt ?? this.known.startedAt}`);
      if (noted !== undefined) this.#find(message, order.id, { what: 'order_forgotten', detail: describe(message) });
      this.#orders.set(order.id, { ...(this.#orders.get(order.id) ?? order), noted: noted ?? order.noted });
    }
    this.#endCancel(cancel, 'refused', message);
  }

  /** The request to cancel with this ClOrdID; otherwise the last one of the order that has no answer. */
  #cancelOf(orderId: string, id: string): FixCancel | undefined {
    const named = this.#cancels.get(id);
    if (named !== undefined) return named;
    const underWay = [...this.#cancels.values()].filter((each) => each.orderId === orderId && each.state === 'sending');
    return underWay.sort((one, other) => one.requestedAt - other.requestedAt).at(-1);
  }

  #endCancel(cancel: FixCancel | undefined, state: 'done' | 'refused', message?: ExchangeMessage): void {
    if (cancel === undefined || cancel.state === 'done' || cancel.state === state) return;
    const after = { ...cancel, state, ...(message === undefined ? saidNothing : this.#shown(saidIn(message))) };
    this.#cancels.set(cancel.id, after);
    if (state === 'refused') this.#refusedCancels.push(after);
  }

  #reject(message: ExchangeMessage): void {
    if (isOfQuestion(message)) {
      // It says nothing of an order, and comes once for each question that the exchange does not take.
      this.#isQuestionRefused = true;
      return;
    }
    // The session has a trouble of its own for what it says itself.
    if (isOfSession(message)) return;
    const rejects = applyReject(message, {
      orders: [...this.#orders.values()],
      cancels: [...this.#cancels.values()],
      startedAt: this.known.startedAt,
      number: rejectedNumber(message),
      name: rejectedName(message),
      reason: this.context.reasonOf(message),
      at: this.context.timeOf(message),
    });
    if (rejects.effect !== undefined) this.#take(message, rejects.effect);
    this.#endCancel(rejects.cancel, 'refused', message);
    this.#find(message, rejects.orderId, { what: 'not_understood', detail: describe(message) });
  }

  #find(message: ExchangeMessage, orderId: string, found: NewFinding): void {
    this.#findings.push(this.#findingOf(message, orderId, found));
  }

  #findingOf(message: ExchangeMessage, orderId: string, { what, detail }: NewFinding): Finding {
    return {
      ...{ what, detail, at: this.context.now, orderId: printable(orderId) },
      execId: printable(execIdOf(message) ?? ''),
      facts: factsOf(message, this.context.show),
      bytes: message.bytes ?? null,
    };
  }
}

function changed<Row extends { readonly id: string }>(from: readonly Row[], to: ReadonlyMap<string, Row>) {
  return from.flatMap((row) => {
    const after = to.get(row.id);
    return after === undefined || after === row ? [] : [{ before: row, after }];
  });
}

/** Returns a foreign name in the form that the record keeps. */
function printable(name: string): string {
  return name.replaceAll(/[^!-~]/g, '?').slice(0, 64);
}
