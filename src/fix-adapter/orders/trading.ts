import { status } from '@grpc/grpc-js';
import type { SubmitOrderRequest } from '../../gen/marina/broker/v1/orders_pb.ts';
import type { Logger } from '../../kit/log.ts';
import { RpcError } from '../service/rpc.ts';
import type { FixStore } from '../store/store.ts';
import type { Finding, FixOrder, FixReport } from '../store/table.ts';
import { filledIn } from '../template/render.ts';
import { messageTypes } from '../wire/tags.ts';
import { type Answers, applyMessages, type MessagesContext, subjectsOf } from './apply-messages.ts';
import { Cancels } from './cancels.ts';
import type { ExchangeMessage } from './execution.ts';
import { orderFrom } from './order-request.ts';
import { type SendingSession, send } from './own-message.ts';
import { Questions } from './questions.ts';
import { newOrder, type OrderStyle } from './requests.ts';
import type { Throttle } from './throttle.ts';
import { KeyedWaiters } from './waiting.ts';
import type { WeighContext } from './weigh.ts';

export interface TradingOptions {
  readonly store: FixStore;
  readonly session: SendingSession;
  readonly style: OrderStyle;
  readonly throttle: Throttle;
  readonly weighing: WeighContext & Pick<MessagesContext, 'show'>;
  /** When a message was sent, by its own fields. */
  readonly timeOf: (message: ExchangeMessage) => number;
  /** Real time, in milliseconds. */
  readonly now: () => number;
  /** When the present session day began, in milliseconds. */
  readonly dayStartedAt: () => number;
  /** Makes ids of status requests. */
  readonly requestId: () => string;
  /** Whether the exchange answers OrderMassStatusRequest. */
  readonly asksMassStatus: boolean;
  /** The time after which the counterparty certifies that it knows of an order that it has read; 0: it does not. */
  readonly absenceProofMs: number;
  /** How long the exchange may take to answer a request to cancel before another one is sent, in milliseconds. */
  readonly cancelTimeoutMs: number;
  readonly messagesPerSecond: number;
  readonly log: Logger;
  readonly onReports: () => void;
  readonly onFinding: (what: string) => void;
  /** A placeholder of the template had no value. */
  readonly onMissingValue?: () => void;
}

/** Orders over the session: each is sent once, and asked about until what became of it is known. */
export class Trading {
  readonly questions: Questions;
  readonly #cancels: Cancels;
  /** Orders that are being taken: a second call with the same id finds them before the database does. */
  readonly #beingTaken = new Set<string>();
  readonly #firstReports = new KeyedWaiters<FixReport | 'absent'>();

  constructor(private readonly options: TradingOptions) {
    this.questions = new Questions({
      ...options,
      onFinding: (finding) => this.#show(finding),
      onAbsent: (orderId) => this.#firstReports.resolve(orderId, 'absent'),
    });
    this.#cancels = new Cancels({ ...options, settle: (orderId) => this.settle(orderId) });
  }

  /**
   * Takes an order, and returns the report that accepts or rejects it. `referenceKobo` is a price of the symbol from now, against
   * which the prices of its trades are held to be plausible.
   */
  async submit(
    request: SubmitOrderRequest,
    deadlineMs: number,
    referenceKobo: bigint | null = null,
  ): Promise<FixReport> {
    const { session, style, throttle, now } = this.options;
    const order = orderFrom(request, now(), referenceKobo, style.nameLength);
    if (this.#beingTaken.has(order.id)) throw seenBefore();
    this.#beingTaken.add(order.id);
    try {
      if (!session.isUp) return await this.#refuse(order, 'there is no session with the exchange');
      const fields = filledIn(() => newOrder(order, style, now()), order.id, this.options);
      if (fields === undefined) return await this.#refuse(order, 'a field that the broker asks for has no value');
      if (!(await throttle.take(order.notAfter - now()))) {
        return await this.#refuse(order, 'it could not be sent before its time had run out');
      }
      const report = this.#firstReports.wait(order.id, deadlineMs - now());
      const sent = {
        type: messageTypes.NewOrderSingle,
        fields,
        notAfterMs: order.notAfter,
        kept: { kind: 'order', row: order },
      } as const;
      const outcome = await send(session, sent, () => {
        this.questions.written(order.id);
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
    if (order === undefined) return this.#settleUnknown(id, isBeingTaken);
    if (order.state === 'unsent') return 'absent';
    // Nothing can follow.
    if (order.state === 'final' && order.filled >= order.quantity) return 'found';
    if (!session.isUp) throw new RpcError(status.UNAVAILABLE, 'there is no session with the exchange');
    const answer = await this.questions.ask(order);
    if (answer === undefined) throw new RpcError(status.UNAVAILABLE, 'the exchange did not answer');
    if (answer === 'unclear') throw new RpcError(status.UNAVAILABLE, "the exchange's answer proves nothing");
    if (answer === 'trades missing') {
      throw new RpcError(status.UNAVAILABLE, 'the exchange counts trades that it has not reported');
    }
    const after = await store.order(id);
    if (after === undefined || after.state === 'unsent') return 'absent';
    if (after.state === 'sending') throw new RpcError(status.UNAVAILABLE, 'the exchange does not have it yet');
    return 'found';
  }

  /** The record does not have an order. A record that came back from a backup may have lost it. */
  async #settleUnknown(id: string, isBeingTaken: boolean): Promise<'absent'> {
    if (isBeingTaken) throw new RpcError(status.UNAVAILABLE, 'the order is being taken');
    const { store } = this.options;
    if (await store.isStored(id)) throw new RpcError(status.UNAVAILABLE, 'the database has not caught up');
    const { restored } = await store.numbers();
    if (restored) throw new RpcError(status.UNAVAILABLE, 'the record was restored from a backup and may have lost it');
    return 'absent';
  }

  /** Cancels what has not traded. Returns the report, or undefined if it was too late. */
  cancel(id: string, deadlineMs: number): Promise<FixReport | undefined> {
    return this.#cancels.cancel(id, deadlineMs);
  }

  /** Processes messages of the exchange: stores what they change, and resolves the calls that wait for it. */
  async received(messages: readonly ExchangeMessage[], nextIn: number, passedOver: boolean): Promise<void> {
    const { store, weighing, timeOf, now, dayStartedAt, onReports } = this.options;
    const { reports, findings, result } = await store.received<Answers>(
      nextIn,
      passedOver,
      subjectsOf(messages),
      (known) =>
        applyMessages(messages, known, {
          ...{ ...weighing, timeOf, now: now(), dayStartedAt: dayStartedAt() },
          askedAbout: (requestId) => this.questions.askedAbout(requestId),
          leavesNone: (orderId, requestId) => this.questions.leavesNone(orderId, requestId),
        }),
    );
    for (const finding of findings) this.#show(finding);
    for (const report of reports) {
      const { orderId, kind } = report;
      this.questions.reported(orderId);
      if (kind === 'accepted' || kind === 'rejected') this.#firstReports.resolve(orderId, report);
      this.#cancels.reported(report);
    }
    for (const cancel of result.refusedCancels) this.#cancels.refused(cancel);
    this.questions.answered(result);
    if (reports.length > 0) onReports();
  }

  disconnected(): void {
    this.questions.disconnected();
    this.#cancels.disconnected();
  }

  /** A finding is counted and logged once it is stored. */
  #show({ what, orderId, detail }: Finding): void {
    const { onFinding, log } = this.options;
    onFinding(what);
    log.error({ what, orderId, detail }, 'the exchange says what needs a person');
  }
}

/** Proves to the gateway that the exchange does not have the order and never will. */
function neverSent(why: string): RpcError {
  return new RpcError(status.FAILED_PRECONDITION, `the order was not sent and never will be: ${why}`);
}

function seenBefore(): RpcError {
  return new RpcError(status.ALREADY_EXISTS, 'an order with this id was taken before');
}
