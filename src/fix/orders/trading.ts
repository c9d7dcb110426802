import { type Timestamp, timestampDate } from '@bufbuild/protobuf/wkt';
import { status } from '@grpc/grpc-js';
import { OrderType, Side, type SubmitOrderRequest, TimeInForce } from '../../gen/marina/broker/v1/orders_pb.ts';
import { atMost } from '../../lib/at-most.ts';
import { crash } from '../../lib/crash.ts';
import type { Logger } from '../../lib/log.ts';
import { RpcError } from '../service/rpc.ts';
import type { Outgoing } from '../session/types.ts';
import type { FixStore, Kept } from '../store/store.ts';
import type { Finding, FixCancel, FixOrder, FixReport } from '../store/table.ts';
import type { Field, FixMessage } from '../wire/message.ts';
import { messageTypes } from '../wire/tags.ts';
import {
  type Answers,
  applyMessages,
  cancelIdOf,
  isCancelId,
  type StatusAnswer,
  subjectsOf,
} from './apply-messages.ts';
import type { Message } from './executions.ts';
import { cancelRequest, massStatusRequest, newOrder, type OrderStyle, statusRequest } from './requests.ts';
import type { Throttle } from './throttle.ts';

/** What a message came to. */
export type Outcome = Parameters<Outgoing['settled']>[0];

/** A message for the session to send, with what the record keeps of it. */
export interface OwnMessage {
  readonly type: string;
  readonly fields: readonly Field[];
  readonly notAfterMs?: number;
  readonly kept: Kept;
  settled(outcome: Outcome): void;
}

export interface TradingOptions {
  readonly store: FixStore;
  readonly session: { readonly isUp: boolean; send(message: OwnMessage): void };
  readonly style: OrderStyle;
  readonly throttle: Throttle;
  readonly toKobo: (text: string) => bigint | undefined;
  /** When a message was sent, by its own fields. */
  readonly timeOf: (message: Message) => number;
  /** Real time, in milliseconds. */
  readonly now: () => number;
  /** Makes ids of status requests. */
  readonly requestId: () => string;
  /** Whether the exchange answers OrderMassStatusRequest. */
  readonly asksMassStatus: boolean;
  readonly log: Logger;
  readonly onReports: () => void;
  readonly onFinding: (what: string) => void;
}

const mostInDoubt = 1_000;
/** How long the exchange may take to know of an order that it has read. */
const slowestMs = 10_000;
/** How long an answer to a question may take. */
const answerTimeoutMs = 5_000;
const longestWaitMs = 60_000;

/** Orders over the session: each is sent once, and asked about until what became of it is known. */
export class Trading {
  /** Orders that are being taken: a second call with the same id finds them before the database does. */
  readonly #beingTaken = new Set<string>();
  readonly #firstReports = new Waiting<FixReport | 'absent'>();
  readonly #cancelled = new Waiting<FixReport | 'refused'>();
  /** Requests to cancel that are being sent, by order. */
  readonly #requesting = new Map<string, Promise<'requested' | 'ended'>>();
  readonly #statuses = new Waiting<StatusAnswer>();
  readonly #asking = new Map<string, Promise<StatusAnswer | undefined>>();
  /** When orders were written on the present connection: what they are may still be on its way. */
  readonly #writtenAt = new Map<string, number>();
  /** When the present connection came up: all other orders were written before. */
  #upAt = 0;
  /** Orders that the exchange had not read when the connection ended that they were written to. */
  readonly #neverRead = new Set<string>();

  /** Messages of the exchange were passed over, and nobody has asked about all orders since. */
  #hasMissed = false;
  /** On this connection. It is logged once. */
  #isQuestionRefused = false;
  /** Orders of ended days about which the exchange did not answer on the present connection. */
  readonly #unanswered = new Set<string>();

  constructor(private readonly options: TradingOptions) {}

  /** Takes an order, and returns the report that accepts or rejects it. */
  async submit(request: SubmitOrderRequest, deadlineMs: number): Promise<FixReport> {
    const { session, style, throttle, now } = this.options;
    const order = orderFrom(request, now());
    if (this.#beingTaken.has(order.id)) throw seenBefore();
    this.#beingTaken.add(order.id);
    try {
      if (!session.isUp) return await this.#refuse(order, 'there is no session with the exchange');
      if (!(await throttle.take(order.notAfter - now()))) {
        return await this.#refuse(order, 'it could not be sent before its time had run out');
      }
      const report = this.#firstReports.wait(order.id, deadlineMs - now());
      const sent = {
        type: messageTypes.NewOrderSingle,
        fields: newOrder(order, style, now()),
        notAfterMs: order.notAfter,
        kept: { kind: 'order', row: order },
      } as const;
      crash('fix-order.before-store');
      const outcome = await this.#send(sent, () => {
        this.#writtenAt.set(order.id, performance.now());
        crash('fix-order.sent');
      });
      if (outcome === 'refused') throw seenBefore();
      if (outcome === 'unwritten') throw neverSent('it was not written to the exchange');
      if (outcome === 'unrecorded') return await this.#refuse(order, 'the session with the exchange ended');
      if (outcome === 'unknown') throw new RpcError(status.UNAVAILABLE, 'whether it was stored is not known');
      const first = await report;
      if (first === undefined) throw new RpcError(status.DEADLINE_EXCEEDED, 'the exchange has not answered yet');
      if (first === 'absent') throw neverSent('the exchange does not have it');
      return first;
    } finally {
      this.#beingTaken.delete(order.id);
      this.#firstReports.forget(order.id);
    }
  }

  /** Refuses an order for ever: a copy of it that comes later is not taken. */
  async #refuse(order: FixOrder, why: string): Promise<never> {
    const isNew = await this.options.store.refuse(order).catch((error: unknown) => {
      this.options.log.warn({ err: error, orderId: order.id }, 'the refusal of an order was not stored');
      throw new RpcError(status.UNAVAILABLE, `the order was not sent, and that could not be stored: ${why}`);
    });
    throw isNew ? neverSent(why) : seenBefore();
  }

  /** Whether the exchange has an order, after all its reports on it were received. */
  async settle(id: string): Promise<'found' | 'absent'> {
    const { store, session } = this.options;
    // Before the record is read, which has it by the time when this is over.
    const isBeingTaken = this.#beingTaken.has(id);
    const order = await store.order(id);
    if (order === undefined && isBeingTaken) throw new RpcError(status.UNAVAILABLE, 'the order is being taken');
    if (order === undefined || order.state === 'unsent') return 'absent';
    // Nothing can follow.
    if (order.state === 'final' && order.filled >= order.quantity) return 'found';
    if (!session.isUp) throw new RpcError(status.UNAVAILABLE, 'there is no session with the exchange');
    const answer = await this.#ask(order);
    if (answer === undefined) throw new RpcError(status.UNAVAILABLE, 'the exchange did not answer');
    if (answer === 'trades missing') {
      throw new RpcError(status.UNAVAILABLE, 'the exchange counts trades that it has not reported');
    }
    const after = await store.order(id);
    if (after === undefined || after.state === 'unsent') return 'absent';
    if (after.state === 'sending') throw new RpcError(status.UNAVAILABLE, 'the exchange does not have it yet');
    return 'found';
  }

  /** Cancels what has not traded. Returns the report, or undefined if it was too late. */
  async cancel(id: string, deadlineMs: number): Promise<FixReport | undefined> {
    const { store, session, now } = this.options;
    const order = await store.order(id);
    if (order === undefined || order.state === 'unsent') throw notFound();
    if (order.state === 'final') return this.#cancellation(id);
    if (!session.isUp) throw new RpcError(status.UNAVAILABLE, 'there is no session with the exchange');
    const done = this.#cancelled.wait(id, deadlineMs - now());
    try {
      // Once for all that come together.
      const requesting =
        this.#requesting.get(id) ?? this.#request(id, deadlineMs).finally(() => this.#requesting.delete(id));
      this.#requesting.set(id, requesting);
      if ((await requesting) === 'ended') return await this.#cancellation(id);
      const answer = await done;
      if (answer === undefined) throw tooSlow();
      if (answer !== 'refused') return answer;
      // Too late only if the order has ended.
      const after = await this.settle(id).then(() => store.order(id));
      if (after?.state !== 'final') throw new RpcError(status.UNAVAILABLE, 'the exchange refused to cancel it');
      return await this.#cancellation(id);
    } finally {
      this.#cancelled.forget(id);
    }
  }

  /** Sends a request to cancel, unless one is under way that can have an effect, or the order has ended meanwhile. */
  async #request(id: string, deadlineMs: number): Promise<'requested' | 'ended'> {
    const { store, style, throttle, now } = this.options;
    const [order, cancels] = await Promise.all([store.order(id), store.cancelsOf(id)]);
    if (order === undefined || order.state === 'final') return 'ended';
    const underWay = cancels.find((cancel) => cancel.state === 'sending');
    if (underWay !== undefined && !(await this.#isDead(underWay, order))) return 'requested';
    if (!(await throttle.take(deadlineMs - now()))) throw tooSlow();
    const cancel: FixCancel = {
      id: cancelIdOf(order.id, cancels.length + 1),
      orderId: order.id,
      requestedAt: now(),
      startedAt: 0,
      number: 0n,
      state: 'sending',
    };
    const outcome = await this.#send(
      {
        type: messageTypes.OrderCancelRequest,
        fields: cancelRequest(cancel, order, style, now()),
        notAfterMs: deadlineMs,
        kept: { kind: 'cancel', row: cancel },
      },
      () => {
        this.#writtenAt.set(cancel.id, performance.now());
        crash('fix-cancel.sent');
      },
    );
    if (outcome !== 'written') throw new RpcError(status.UNAVAILABLE, 'the request was not written to the exchange');
    return 'requested';
  }

  /** Processes messages of the exchange: stores what they change, and resolves the calls that wait for it. */
  async received(all: readonly FixMessage[], nextIn: number, _passedOver: boolean): Promise<void> {
    const { store, toKobo, timeOf, now, onReports } = this.options;
    // Fields that could not be read may change what the others mean.
    const messages = all.filter(({ isWhole }) => isWhole);
    if (messages.length > 0) crash('fix-report.before-apply');
    let findings: readonly Finding[] = [];
    const { reports, result } = await store.received<Answers>(nextIn, subjectsOf(messages), (known) => {
      const applied = applyMessages(messages, known, { toKobo, timeOf, now: now() });
      findings = applied.changes.findings;
      return applied;
    });
    if (reports.length > 0) crash('fix-report.applied');
    for (const finding of findings) this.#show(finding);
    for (const report of reports) {
      const { orderId, kind } = report;
      this.#writtenAt.delete(orderId);
      this.#neverRead.delete(orderId);
      if (kind === 'accepted' || kind === 'rejected') this.#firstReports.resolve(orderId, report);
      if (kind === 'cancelled') this.#cancelled.resolve(orderId, report);
      // An order that has ended otherwise will not be cancelled.
      if (kind === 'expired' || kind === 'rejected') this.#cancelled.resolve(orderId, 'refused');
    }
    for (const cancel of result.refusedCancels) {
      this.#writtenAt.delete(cancel.id);
      this.#cancelled.resolve(cancel.orderId, 'refused');
    }
    if (result.isQuestionRefused && !this.#isQuestionRefused) {
      this.#isQuestionRefused = true;
      this.options.log.warn('the exchange refuses questions about orders');
    }
    for (const { requestId, answer } of result.statuses) this.#statuses.resolve(requestId, answer);
    if (reports.length > 0) onReports();
  }

  /** Asks about all that was sent before this connection, because no report may come of it. */
  async connected(): Promise<void> {
    const { store, asksMassStatus } = this.options;
    this.#writtenAt.clear();
    this.#unanswered.clear();
    this.#isQuestionRefused = false;
    this.#upAt = performance.now();
    for (const order of await store.inDoubt(mostInDoubt)) void this.#askQuietly(order);
    if (asksMassStatus) await this.#askAboutAll();
  }

  async #askAboutAll(): Promise<void> {
    const { requestId } = this.options;
    this.#hasMissed = false;
    const outcome = await this.#send({
      type: messageTypes.OrderMassStatusRequest,
      fields: massStatusRequest(requestId()),
      kept: { kind: 'nothing' },
    });
    if (outcome !== 'written') this.#hasMissed = true;
  }

  disconnected(): void {
    this.#writtenAt.clear();
    // What was written before is as good as written now: nobody knows when the exchange reads it.
    this.#upAt = performance.now();
  }

  /** Messages of the exchange were passed over. If one was a trade, the answer to the next question about all orders counts it. */
  missed(): void {
    this.#hasMissed = true;
  }

  /**
   * The exchange sent a ResendRequest for these numbers, and a gap fill answered it. Over a connection that was not up, they
   * are of earlier connections, so it has not read them. Later it may have asked before it read what was written meanwhile.
   */
  async gapFilled(from: number, to: number, wasUp: boolean): Promise<void> {
    const { store } = this.options;
    const [{ startedAt }, doubts] = await Promise.all([store.numbers(), store.inDoubt(mostInDoubt)]);
    const inGap = doubts.filter(({ startedAt: began, number }) => {
      return began === startedAt && number >= BigInt(from) && number <= BigInt(to);
    });
    // Numbers that an operator set back were given twice: the exchange means the later order.
    for (const order of new Map(inGap.map((order) => [order.number, order])).values()) {
      if (wasUp) void this.#askQuietly(order);
      else this.#neverRead.add(order.id);
    }
  }

  /** Asks again about orders without a report for some time, and about all if a message was passed over. */
  async askAboutDoubts(): Promise<void> {
    const { store, session, asksMassStatus, now } = this.options;
    if (!session.isUp) return;
    if (this.#hasMissed && asksMassStatus) await this.#askAboutAll();
    const late = (await store.inDoubt(mostInDoubt)).filter(({ receivedAt }) => now() - receivedAt > answerTimeoutMs);
    for (const order of late) await this.#askQuietly(order);
  }

  /**
   * Asks about orders that were good for a day that is over, once in each session day: an exchange may forget them without a
   * report. Only a report of the exchange ends one.
   */
  async askAboutEnded(): Promise<void> {
    const { store, session, now } = this.options;
    if (!session.isUp) return;
    for (const order of await store.notEnded(mostInDoubt)) {
      if (this.#unanswered.has(order.id)) continue;
      const answer = await this.#ask(order);
      if (answer === undefined) {
        // The others are asked about next time, and this one on the next connection.
        this.#unanswered.add(order.id);
        return;
      }
      const after = await store.order(order.id);
      if (after?.state !== 'open') continue;
      const state = answer === 'unknown' ? 'the exchange does not know it' : 'the exchange says that it is not over';
      const { id: orderId, exchangeOrderId, filled, quantity } = after;
      const day = new Date(after.startedAt).toISOString();
      const detail = `${state}; OrderID=${exchangeOrderId} session=${day} filled=${filled}/${quantity}`;
      const finding = { what: 'not_ended', at: now(), orderId, execId: '', detail } as const;
      await store.note(finding);
      this.#show(finding);
    }
  }

  /** A finding is counted and logged once it is stored. */
  #show({ what, orderId, detail }: Finding): void {
    const { onFinding, log } = this.options;
    onFinding(what);
    log.error({ what, orderId, detail }, 'the exchange says what needs a person');
  }

  async #askQuietly(order: FixOrder): Promise<void> {
    await this.#ask(order).catch((error: unknown) => {
      this.options.log.warn({ err: error, orderId: order.id }, 'an order could not be asked about');
    });
  }

  /** Asks the exchange about an order, once for all who want to know. Undefined: no answer in time. */
  #ask(order: FixOrder): Promise<StatusAnswer | undefined> {
    const asking = this.#asking.get(order.id) ?? this.#askNow(order).finally(() => this.#asking.delete(order.id));
    this.#asking.set(order.id, asking);
    return asking;
  }

  async #askNow(order: FixOrder): Promise<StatusAnswer | undefined> {
    const { store, style, requestId, throttle } = this.options;
    if (!(await throttle.take(answerTimeoutMs))) return undefined;
    // What was written a moment ago may be on its way through the exchange, and so may what was written before a disconnection.
    const upAt = this.#upAt;
    const writtenForMs = performance.now() - (this.#writtenAt.get(order.id) ?? upAt);
    const id = requestId();
    const answer = this.#statuses.wait(id, answerTimeoutMs);
    const outcome = await this.#send({
      type: messageTypes.OrderStatusRequest,
      fields: statusRequest(id, order, style),
      kept: { kind: 'nothing' },
    });
    if (outcome !== 'written') {
      this.#statuses.forget(id);
      return undefined;
    }
    const found = await answer;
    const isOneConnection = this.#upAt === upAt;
    const isProof = (isOneConnection && writtenForMs >= slowestMs) || this.#neverRead.has(order.id);
    if (found === 'unknown' && order.state === 'sending' && isProof) {
      await store.unsent([order.id], []);
      this.#neverRead.delete(order.id);
      this.#firstReports.resolve(order.id, 'absent');
    }
    return found;
  }

  /** Whether a request to cancel can have no effect any more: it was written on an earlier connection, and the order lives. */
  async #isDead(cancel: FixCancel, order: FixOrder): Promise<boolean> {
    if (this.#writtenAt.has(cancel.id)) return false;
    const answer = await this.#ask(order);
    if (answer !== 'known') throw new RpcError(status.UNAVAILABLE, 'what became of an earlier request is not known');
    const after = await this.options.store.order(order.id);
    if (after?.state !== 'open') return false;
    await this.options.store.unsent([], [cancel.id]);
    return true;
  }

  async #cancellation(id: string): Promise<FixReport | undefined> {
    const { reports } = await this.options.store.reportsOf(id, 0n);
    return reports.find(({ kind }) => kind === 'cancelled');
  }

  #send(message: Omit<OwnMessage, 'settled'>, onWritten = () => {}): Promise<Outcome> {
    return new Promise((resolve) => {
      this.options.session.send({
        ...message,
        settled: (outcome) => {
          if (outcome === 'written') onWritten();
          resolve(outcome);
        },
      });
    });
  }
}

/** Those who wait for something, by a key; each at most for a time. */
class Waiting<T> {
  readonly #waiting = new Map<string, Set<(value: T) => void>>();

  /** Undefined: it did not come in time. */
  async wait(key: string, timeoutMs: number): Promise<T | undefined> {
    const others = this.#waiting.get(key) ?? new Set();
    let resolve: (value: T) => void = () => {};
    const promise = new Promise<T>((done) => {
      resolve = done;
    });
    this.#waiting.set(key, others.add(resolve));
    const came = await atMost(Math.min(Math.max(timeoutMs, 0), longestWaitMs), promise);
    others.delete(resolve);
    if (others.size === 0) this.#waiting.delete(key);
    return came ? promise : undefined;
  }

  resolve(key: string, value: T): void {
    for (const resolve of this.#waiting.get(key) ?? []) resolve(value);
    this.#waiting.delete(key);
  }

  forget(key: string): void {
    if (this.#waiting.get(key)?.size === 0) this.#waiting.delete(key);
  }
}

function orderFrom(request: SubmitOrderRequest, now: number): FixOrder {
  const { clientOrderId, account, symbol, quantity, priceKobo, note } = request;
  const side = { [Side.BUY]: 'buy', [Side.SELL]: 'sell', [Side.UNSPECIFIED]: undefined } as const;
  const type = {
    [OrderType.LIMIT]: 'limit',
    [OrderType.MARKET]: 'market',
    [OrderType.UNSPECIFIED]: undefined,
  } as const;
  const timeInForce = {
    [TimeInForce.DAY]: 'day',
    [TimeInForce.GTC]: 'gtc',
    [TimeInForce.IOC]: 'ioc',
    [TimeInForce.FOK]: 'fok',
    [TimeInForce.UNSPECIFIED]: undefined,
  } as const;
  const isLimit = request.type === OrderType.LIMIT;
  return {
    id: checked(isPlain(clientOrderId, 64) && !isCancelId(clientOrderId), clientOrderId, 'client_order_id'),
    account: checked(isPlain(account, 64), account, 'account'),
    symbol: checked(isPlain(symbol, 32), symbol, 'symbol'),
    side: given(side[request.side], 'side'),
    quantity: checked(quantity >= 1n, quantity, 'quantity'),
    type: given(type[request.type], 'type'),
    timeInForce: given(timeInForce[request.timeInForce], 'time_in_force'),
    priceKobo: checked(isLimit ? (priceKobo ?? 0n) >= 1n : priceKobo === undefined, priceKobo ?? null, 'price_kobo'),
    notAfter: timestampDate(given<Timestamp>(request.notAfter, 'not_after')).getTime(),
    receivedAt: now,
    note: Buffer.from(checked(note.length <= 2_048, note, 'note')),
    startedAt: 0,
    number: 0n,
    state: 'sending',
    exchangeOrderId: '',
    filled: 0n,
  };
}

/** Printable characters without a space, as every exchange takes them. */
function isPlain(text: string, longest: number): boolean {
  return text.length <= longest && /^[!-~]+$/.test(text);
}

function checked<T>(isRight: boolean, value: T, field: string): T {
  if (!isRight) throw new RpcError(status.INVALID_ARGUMENT, `${field} is wrong`);
  return value;
}

function given<T>(value: T | undefined, field: string): T {
  if (value === undefined) throw new RpcError(status.INVALID_ARGUMENT, `${field} must be set`);
  return value;
}

/** Proves to the gateway that the exchange does not have the order and never will. */
function neverSent(why: string): RpcError {
  return new RpcError(status.FAILED_PRECONDITION, `the order was not sent and never will be: ${why}`);
}

function seenBefore(): RpcError {
  return new RpcError(status.ALREADY_EXISTS, 'an order with this id was taken before');
}

function notFound(): RpcError {
  return new RpcError(status.NOT_FOUND, 'the exchange has no such order');
}

function tooSlow(): RpcError {
  return new RpcError(status.DEADLINE_EXCEEDED, 'the exchange has not answered yet');
}
