import type { Logger } from '../../kit/log.ts';
import { pause } from '../../kit/worker.ts';
import type { FixStore } from '../store/store.ts';
import type { Finding, FixOrder } from '../store/table.ts';
import { filledIn } from '../template/render.ts';
import { messageTypes } from '../wire/tags.ts';
import type { Answers, StatusAnswer } from './apply-messages.ts';
import { provesAbsence } from './evidence.ts';
import { type SendingSession, send } from './own-message.ts';
import { massStatusRequest, type OrderStyle, statusRequest } from './requests.ts';
import type { Throttle } from './throttle.ts';
import { KeyedWaiters } from './waiting.ts';

export interface QuestionsOptions {
  readonly store: FixStore;
  readonly session: SendingSession;
  readonly style: OrderStyle;
  readonly throttle: Throttle;
  /** Real time, in milliseconds. */
  readonly now: () => number;
  /** The monotonic clock, in milliseconds. */
  readonly monotonicNow?: () => number;
  /** When the present session day began, in milliseconds. */
  readonly dayStartedAt: () => number;
  /** Makes ids of status requests. */
  readonly requestId: () => string;
  /** Whether the exchange answers OrderMassStatusRequest. */
  readonly asksMassStatus: boolean;
  /** The time after which the counterparty certifies that it knows of an order that it has read; 0: it does not. */
  readonly absenceProofMs: number;
  /** How many messages the exchange takes in a second. */
  readonly messagesPerSecond: number;
  /** How long an answer to a question may take, in milliseconds. */
  readonly answerTimeoutMs?: number;
  readonly log: Logger;
  /** A placeholder of the template had no value. */
  readonly onMissingValue?: () => void;
  /** A finding was stored. */
  readonly onFinding: (finding: Finding) => void;
  /** An order is proven to be absent for ever. */
  readonly onAbsent: (orderId: string) => void;
}

/** An answer, and whether it names the question that it answers. */
interface Answered {
  readonly answer: StatusAnswer;
  readonly isNamed: boolean;
}

/** The words for an answer about an order whose day is over. */
const sayings: Readonly<Record<StatusAnswer, string>> = {
  unknown: 'the exchange does not know it',
  known: 'the exchange says that it is not over',
  'trades missing': 'the exchange counts trades that it has not reported',
  unclear: 'the exchange answers what proves nothing',
};

const maxAtOnce = 1_000;
/** Orders in doubt that are looked at together at most: more than an exchange takes in a minute. */
const maxInDoubt = 20_000;
/** How many questions are under way at most when many orders are asked about: answers that do not come hold up few others. */
const maxAskers = 64;
/** How many questions without an answer are known of an order. */
const maxOpen = 20;
/** How long an answer to a question may take, in milliseconds. */
const usualAnswerMs = 5_000;
/** How long an order that stays in doubt is left alone at most between two questions. */
const longestDoubtWaitMs = 300_000;
/** If so many questions in a row have no answer, the exchange answers none on this connection. */
const maxUnanswered = 3;
/** Questions after a gap take this part of what the exchange takes in a second, so that orders do not wait for them. */
const partOfThrottle = 4;

/** Asks the exchange what became of orders, and concludes from its answers what they prove. */
export class Questions {
  readonly #answers = new KeyedWaiters<Answered>();
  readonly #asking = new Map<string, Promise<StatusAnswer | undefined>>();
  /** The question about an order that has no answer yet. Some exchanges do not repeat its id. */
  readonly #requests = new Map<string, string>();
  /** The orders of the questions that have no answer yet, by the questions' ids. */
  readonly #askedAbout = new Map<string, string>();
  /** The questions of the present connection that have no answer, by their orders, in their order. */
  readonly #open = new Map<string, string[]>();
  /** When orders were written on the present connection: what they are may still be on its way. */
  readonly #writtenAt = new Map<string, number>();
  /** When the present connection came up or the one before it ended: all other orders were written before. */
  #boundaryAt = 0;
  /** Orders that the exchange had not read when the connection ended that they were written to. */
  readonly #neverRead = new Set<string>();
  /** Messages of the exchange were passed over, and nobody has asked about all orders since. */
  #hasMissed = false;
  /** On this connection. It is logged once. */
  #isRefused = false;
  /** Orders about which the exchange did not answer on the present connection. */
  readonly #unanswered = new Set<string>();
  #isAskingPassedOver = false;
  #isAskingDoubts = false;
  /** When orders in doubt are asked about again, by the monotonic clock, and how often they were. */
  readonly #doubts = new Map<string, { readonly askAt: number; readonly times: number }>();
  /**
   * How long an order was written when it was asked about without an answer on the present connection: a late answer that does
   * not name its question may be to that one.
   */
  readonly #lateMs = new Map<string, number>();

  readonly #answerTimeoutMs: number;
  readonly #monotonicNow: () => number;

  constructor(private readonly options: QuestionsOptions) {
    this.#monotonicNow = options.monotonicNow ?? (() => performance.now());
    this.#answerTimeoutMs = options.answerTimeoutMs ?? usualAnswerMs;
  }

  /** An order was written now. */
  written(orderId: string): void {
    this.#writtenAt.set(orderId, this.#monotonicNow());
  }

  /** The exchange reported about an order, so it has read it. */
  reported(orderId: string): void {
    this.#writtenAt.delete(orderId);
    this.#neverRead.delete(orderId);
    this.#doubts.delete(orderId);
    this.#lateMs.delete(orderId);
  }

  /** The exchange answered. */
  answered({ statuses, isQuestionRefused }: Answers): void {
    for (const { orderId, requestId, isOfMass, answer } of statuses) {
      const isNamed = requestId !== '';
      if (!isOfMass) this.#close(orderId, requestId);
      // An answer that names the question about another order proves nothing of either.
      if (isNamed && this.askedAbout(requestId) !== orderId) continue;
      this.#answers.resolve(isNamed ? requestId : (this.#requests.get(orderId) ?? ''), { answer, isNamed });
    }
    if (!isQuestionRefused || this.#isRefused) return;
    this.#isRefused = true;
    this.options.log.warn('the exchange refuses questions about orders');
  }

  /** The order that a question is about; undefined if no such question waits for its answer. */
  askedAbout(requestId: string): string | undefined {
    return this.#askedAbout.get(requestId);
  }

  /**
   * Whether no question about an order is open any more after an answer. One that is overdue may still be answered. An answer that
   * names no question (`''`) is to the oldest.
   */
  leavesNone(orderId: string, requestId: string): boolean {
    const open = this.#open.get(orderId) ?? [];
    return requestId === '' ? open.length <= 1 : open.every((id) => id === requestId);
  }

  #close(orderId: string, requestId: string): void {
    const open = this.#open.get(orderId) ?? [];
    const left = requestId === '' ? open.slice(1) : open.filter((id) => id !== requestId);
    if (left.length === 0) this.#open.delete(orderId);
    else this.#open.set(orderId, left);
  }

  /** Asks about all that was sent before this connection, because no report may come of it. */
  async connected(): Promise<void> {
    const { asksMassStatus } = this.options;
    this.#writtenAt.clear();
    this.#open.clear();
    this.#unanswered.clear();
    this.#doubts.clear();
    this.#lateMs.clear();
    this.#isRefused = false;
    this.#boundaryAt = this.#monotonicNow();
    const inDoubt = await this.#inDoubt();
    if (asksMassStatus) await this.#askAboutAll();
    await this.#askEach(inDoubt);
    await this.askAboutPassedOver();
  }

  disconnected(): void {
    this.#writtenAt.clear();
    // A message written before is as good as one written now: nobody knows when the exchange reads it.
    this.#boundaryAt = this.#monotonicNow();
  }

  /** Messages of the exchange were passed over. The record knows which orders must be asked about. */
  async missed(): Promise<void> {
    this.#hasMissed = true;
    this.#unanswered.clear();
    await this.askAboutPassedOver();
  }

  /**
   * The exchange sent a ResendRequest for these numbers, and a gap fill answered it. Over a connection that was not up, they
   * are of earlier connections, so it has not read them. Later it may have asked before it read what was written meanwhile.
   */
  async gapFilled(from: number, to: number, wasUp: boolean): Promise<void> {
    const { store } = this.options;
    const [{ startedAt }, doubts] = await Promise.all([store.numbers(), this.#inDoubt()]);
    for (const order of ordersInGap(doubts, { startedAt, from, to })) {
      if (wasUp) void this.#quietly(order, () => this.ask(order));
      else this.#neverRead.add(order.id);
    }
  }

  /** Asks again about orders without a report for some time, and about all if a message was passed over. */
  async askAboutDoubts(): Promise<void> {
    const { session, asksMassStatus } = this.options;
    if (!session.isUp) return;
    if (this.#hasMissed && asksMassStatus) await this.#askAboutAll();
    const inDoubt = await this.#inDoubt();
    if (this.#isAskingDoubts) return;
    this.#isAskingDoubts = true;
    try {
      // Those that were asked about least come first: an order that stays in doubt for days holds up no new one.
      const due = inDoubt.filter((order) => this.#isDue(order));
      await this.#askEach(due.sort((one, other) => this.#timesOf(one) - this.#timesOf(other)));
    } finally {
      this.#isAskingDoubts = false;
    }
  }

  #timesOf({ id }: FixOrder): number {
    return this.#doubts.get(id)?.times ?? 0;
  }

  /** Whether an order in doubt is asked about now; then it is not for a while, each time for longer. */
  #isDue({ id, receivedAt }: FixOrder): boolean {
    const known = this.#doubts.get(id);
    const isYoung = known === undefined && this.options.now() - receivedAt <= this.#answerTimeoutMs;
    if (isYoung || (known !== undefined && this.#monotonicNow() <= known.askAt)) return false;
    const times = known?.times ?? 0;
    const waitMs = Math.min(this.#answerTimeoutMs * 2 ** Math.min(times, 10), longestDoubtWaitMs);
    this.#doubts.set(id, { askAt: this.#monotonicNow() + waitMs, times: times + 1 });
    return true;
  }

  /** Asks about orders, a few at a time and at a part of the throttle's rate, so that new orders do not wait for it. */
  async #askEach(
    orders: readonly FixOrder[],
    ask: (order: FixOrder) => Promise<unknown> = (order) => this.ask(order),
  ): Promise<void> {
    const { session, throttle, messagesPerSecond } = this.options;
    const queue = orders.values();
    const perSecond = messagesPerSecond / partOfThrottle;
    // Those of the first moment, too, are their part of a second at most.
    const askersAtOnce = Math.min(Math.max(1, Math.floor(perSecond)), maxAskers);
    // On the next connection others ask.
    const boundaryAt = this.#boundaryAt;
    const askers = Array.from({ length: Math.min(askersAtOnce, orders.length) }, async () => {
      for (const order of queue) {
        if (!session.isUp || this.#boundaryAt !== boundaryAt) return;
        await this.#quietly(order, ask);
        await pause((askersAtOnce * 1_000) / perSecond, throttle.stopping);
      }
    });
    await Promise.all(askers);
  }

  /**
   * Asks one by one about each open order of which a report may have been passed over, whatever the mass status named. Those
   * without an answer are asked about on the next connection.
   */
  async askAboutPassedOver(): Promise<void> {
    const { session, messagesPerSecond } = this.options;
    if (this.#isAskingPassedOver) return;
    this.#isAskingPassedOver = true;
    try {
      let unanswered = 0;
      for await (const order of this.#passedOver()) {
        if (!session.isUp || unanswered >= maxUnanswered) return;
        if (this.#unanswered.has(order.id) || this.#isForEnded(order)) continue;
        const answer = await this.#askOnce(order);
        unanswered = answer === undefined ? unanswered + 1 : 0;
        await pause((partOfThrottle * 1_000) / messagesPerSecond, this.options.throttle.stopping);
      }
    } finally {
      this.#isAskingPassedOver = false;
    }
  }

  /** The orders of which a report may have been passed over: those that are not asked about hide no others. */
  #passedOver(): AsyncIterable<FixOrder> {
    return pageByPage((last) => this.options.store.mustAsk(maxAtOnce, last));
  }

  /** The orders of which nothing is known, as many as can be kept in mind. */
  async #inDoubt(): Promise<FixOrder[]> {
    const orders: FixOrder[] = [];
    for await (const order of pageByPage((last) => this.options.store.inDoubt(maxAtOnce, last))) {
      if (orders.push(order) === maxInDoubt) break;
    }
    return orders;
  }

  /** Whether `askAboutEnded` asks about an order, as it does once in a session day. */
  #isForEnded({ state, timeInForce, receivedAt, noted }: FixOrder): boolean {
    const dayStartedAt = this.options.dayStartedAt();
    const isOver = state === 'open' && timeInForce === 'day' && receivedAt < dayStartedAt;
    return isOver && !noted.includes(notEndedKey(dayStartedAt));
  }

  /**
   * Asks about orders that were good for a day that is over, once in each session day: an exchange may forget them without a
   * report. Only a report of the exchange ends one. The newest come first: nobody was told yet that they are not over.
   */
  async askAboutEnded(): Promise<void> {
    const { store, session, dayStartedAt } = this.options;
    if (!session.isUp) return;
    const orders = await store.notEnded(dayStartedAt(), maxAtOnce);
    await this.#askEach(
      orders.filter(({ id }) => !this.#unanswered.has(id)),
      (order) => this.#askAboutEnd(order),
    );
  }

  /** Asks about one of them, and finds it if it is still open. */
  async #askAboutEnd(order: FixOrder): Promise<void> {
    const { store, session, now, dayStartedAt } = this.options;
    const answer = await this.#askOnce(order);
    if (answer === undefined && !session.isUp) return;
    const after = await store.order(order.id);
    if (after?.state !== 'open') return;
    const said = answer === undefined ? 'the exchange does not answer' : sayings[answer];
    const { exchangeOrderId, filled, quantity } = after;
    const day = new Date(after.startedAt).toISOString();
    const detail = `${said}; OrderID=${exchangeOrderId} session=${day} filled=${filled}/${quantity}`;
    await this.#note(after, { what: 'not_ended', at: now(), detail }, notEndedKey(dayStartedAt()));
  }

  /** Asks about an order. If there is no answer, it is not asked about in this way again on the present connection. */
  async #askOnce(order: FixOrder): Promise<StatusAnswer | undefined> {
    const boundaryAt = this.#boundaryAt;
    const answer = await this.ask(order);
    if (answer === undefined && this.#boundaryAt === boundaryAt) this.#unanswered.add(order.id);
    return answer;
  }

  /** Asks the exchange about an order, once for all who want to know. Undefined: no answer in time. */
  ask(order: FixOrder): Promise<StatusAnswer | undefined> {
    const asking = this.#asking.get(order.id) ?? this.#askNow(order).finally(() => this.#asking.delete(order.id));
    this.#asking.set(order.id, asking);
    return asking;
  }

  async #askNow(order: FixOrder): Promise<StatusAnswer | undefined> {
    const { session, style, requestId, throttle } = this.options;
    const id = requestId();
    const fields = filledIn(() => statusRequest(id, order, style), order.id, this.options);
    if (fields === undefined || !(await throttle.take(this.#answerTimeoutMs))) return undefined;
    // A message written a moment ago may be on its way through the exchange, and so may one written before a
    // disconnection.
    const boundaryAt = this.#boundaryAt;
    const writtenForMs = this.#monotonicNow() - (this.#writtenAt.get(order.id) ?? boundaryAt);
    this.#requests.set(order.id, id);
    this.#askedAbout.set(id, order.id);
    const open = this.#open.get(order.id) ?? [];
    // The exchange may answer before the session says that the question was written.
    if (open.length < maxOpen) this.#open.set(order.id, [...open, id]);
    const answer = this.#answers.wait(id, this.#answerTimeoutMs);
    const outcome = await send(session, {
      type: messageTypes.OrderStatusRequest,
      fields,
      kept: { kind: 'question', orderId: order.id },
    });
    if (outcome !== 'written') {
      this.#answers.forget(id);
      this.#close(order.id, id);
    }
    const found = outcome === 'written' ? await answer : undefined;
    if (this.#requests.get(order.id) === id) this.#requests.delete(order.id);
    this.#askedAbout.delete(id);
    const isOneConnection = this.#boundaryAt === boundaryAt;
    const lateMs = this.#lateMs.get(order.id) ?? writtenForMs;
    if (found === undefined && isOneConnection) this.#lateMs.set(order.id, Math.min(lateMs, writtenForMs));
    if (found?.answer !== 'unknown') return found?.answer;
    return this.#concludeUnknown(order.id, { isOneConnection, writtenForMs: found.isNamed ? writtenForMs : lateMs });
  }

  /** The exchange says that it does not have an order. */
  async #concludeUnknown(
    orderId: string,
    asked: { readonly isOneConnection: boolean; readonly writtenForMs: number },
  ): Promise<StatusAnswer> {
    const { store, absenceProofMs, now, onAbsent } = this.options;
    const [order, { startedAt, restored }] = await Promise.all([store.order(orderId), store.numbers()]);
    if (order?.state !== 'sending') return 'unknown';
    const isProven = provesAbsence({
      ...asked,
      certifiedAfterMs: absenceProofMs,
      isRestored: restored,
      isInDoubt: true,
      isSameNumbering: order.startedAt === startedAt,
      isAcknowledged: order.acknowledged,
      isPassedOver: order.passedOver,
      isNeverRead: this.#neverRead.has(orderId),
    });
    if (isProven && (await store.absent(orderId))) {
      this.#neverRead.delete(orderId);
      onAbsent(orderId);
      return 'unknown';
    }
    const day = new Date(order.startedAt).toISOString();
    const detail = `the exchange does not know it, which proves nothing; session=${day} MsgSeqNum=${order.number}`;
    // While the exchange may still come to know of it, the answer is no news.
    const isEarly = absenceProofMs > 0 && asked.writtenForMs < absenceProofMs && order.startedAt === startedAt;
    if (!isEarly) {
      await this.#note(order, { what: 'absence_unproven', at: now(), detail }, `absence_unproven:${startedAt}`);
    }
    return 'unknown';
  }

  async #note(order: FixOrder, found: Pick<Finding, 'what' | 'at' | 'detail'>, key: string): Promise<void> {
    const { store, onFinding } = this.options;
    const { symbol, side, quantity, priceKobo, filled, exchangeOrderId } = order;
    const facts = JSON.stringify({
      ...{ Symbol: symbol, Side: side, OrderQty: String(quantity), OrderID: exchangeOrderId, CumQty: String(filled) },
      ...(priceKobo === null ? {} : { PriceKobo: String(priceKobo) }),
    });
    const finding = { ...found, orderId: order.id, execId: '', facts, bytes: null };
    if (await store.note(finding, key)) onFinding(finding);
  }

  async #askAboutAll(): Promise<void> {
    const { session, requestId, throttle } = this.options;
    this.#hasMissed = true;
    if (!(await throttle.take(this.#answerTimeoutMs))) return;
    this.#hasMissed = false;
    const outcome = await send(session, {
      type: messageTypes.OrderMassStatusRequest,
      fields: massStatusRequest(requestId()),
      kept: { kind: 'nothing' },
    });
    if (outcome !== 'written') this.#hasMissed = true;
  }

  /** An order that cannot be asked about holds up no other. */
  async #quietly(order: FixOrder, ask: (order: FixOrder) => Promise<unknown>): Promise<void> {
    await ask(order).catch((error: unknown) => {
      this.options.log.warn({ err: error, orderId: order.id }, 'an order could not be asked about');
    });
  }
}

/** All orders of a list that is read in pages of `maxAtOnce`. */
async function* pageByPage(
  read: (last: FixOrder | undefined) => Promise<readonly FixOrder[]>,
): AsyncIterable<FixOrder> {
  for (let last: FixOrder | undefined; ; ) {
    const page = await read(last);
    yield* page;
    last = page.at(-1);
    if (page.length < maxAtOnce) return;
  }
}

/** The orders with these numbers of this numbering. Numbers that an operator set back were given twice: the later order counts. */
function ordersInGap(
  orders: readonly FixOrder[],
  { startedAt, from, to }: { readonly startedAt: number; readonly from: number; readonly to: number },
): FixOrder[] {
  const inGap = orders.filter((order) => {
    return order.startedAt === startedAt && order.number >= BigInt(from) && order.number <= BigInt(to);
  });
  return [...new Map(inGap.map((order) => [order.number, order])).values()];
}

/** The key of the finding that an order has not ended, in the session day that began at this time. */
function notEndedKey(dayStartedAt: number): string {
  return `not_ended:${dayStartedAt}`;
}
