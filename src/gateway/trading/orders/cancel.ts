import type { Report } from '../../../gen/marina/broker/v1/orders_pb.ts';
import type { Clock } from '../../../kit/clock.ts';
import { type Caller, whilePermitted } from '../../edge/auth/caller.ts';
import type { Call } from '../../edge/call.ts';
import { ApiError } from '../../edge/errors.ts';
import type { Origin } from '../../edge/origin.ts';
import type { Fact } from '../../store/facts.ts';
import type { Statement } from '../../store/statement.ts';
import type { BrokerOrders } from '../broker/broker.ts';
import type { ClockAgreement } from '../broker/clock.ts';
import type { Change } from '../submission/change.ts';
import type { SendTimes } from '../submission/kind.ts';
import type { Recorder } from '../submission/record.ts';
import { isUnsettled } from '../submission/rules.ts';
import type { OrderKind } from './kind.ts';
import { mayCancelBeUnderWay, orderStates } from './rules.ts';
import type { StoredOrder } from './table.ts';

const { isFinal } = orderStates;
type OrderChange = Change<StoredOrder, Report>;

/** The outcome of a cancel, with the reports about the order until then. */
export type Ended =
  | { readonly outcome: 'cancelled' | 'too-late'; readonly reports: readonly Report[] }
  | { readonly outcome: 'unclear'; readonly evidence: string };

/** The call that cancels. The history names its key, or the job for which it cancels. */
type CancelCall = Pick<Call, 'log' | 'origin' | 'permission'> & {
  readonly caller?: Pick<Caller, 'keyId'>;
  readonly job?: CancelJob;
};

/** A job that keeps account of its cancels. Its rows are read and written under the lock of the order's partner. */
export interface CancelJob<Rows = unknown> {
  readonly id: string;
  readonly rows: Fact<Rows>;
  /** The statements that are written when the cancel is stored. Throws if the job may not cancel the order. */
  begun(rows: Rows): readonly Statement[];
  /** The statements that are written with the outcome of the cancel. `order` is as it is then. */
  ended(rows: Rows, outcome: Ended, order: StoredOrder): readonly Statement[];
}

/** The history's sentences for the exchange's answers. */
const answers = {
  cancelled: 'the exchange confirmed the cancel',
  'too-late': 'the exchange said it was too late to cancel',
};

export interface CancellerParts extends SendTimes {
  readonly kind: OrderKind;
  readonly broker: BrokerOrders;
  readonly recorder: Recorder;
  readonly clock: Clock;
  /** Whether the broker's clock and ours agree. */
  readonly clocks: { agreement(): Promise<ClockAgreement> };
}

/**
 * Cancels orders the way they are placed: the attempt is stored, the cancel is sent once, the outcome is recorded. While
 * one cancel of an order is under way, no second one is sent.
 */
export class Canceller {
  readonly #underWay = new Map<string, Promise<StoredOrder>>();

  constructor(private readonly parts: CancellerParts) {}

  /** Throws `order_not_cancelable` or `cancel_unconfirmed`, or an error if the caller lost its permission. */
  cancel(order: StoredOrder, call: CancelCall): Promise<StoredOrder> {
    return whilePermitted(call.permission, (check) => {
      const underWay = this.#underWay.get(order.id);
      if (underWay !== undefined) return underWay;
      const cancelling = this.#cancel(order, call, check).finally(() => this.#underWay.delete(order.id));
      this.#underWay.set(order.id, cancelling);
      return cancelling;
    });
  }

  async #cancel(read: StoredOrder, { log, origin, caller, job }: CancelCall, check: () => void): Promise<StoredOrder> {
    const { kind } = this.parts;
    const by = job === undefined ? caller && `with the key ${caller.keyId}` : `by the operators (${job.id})`;
    const stored = await this.#change(read, job, (order, rows) => {
      check();
      const change = this.#begin(order, by);
      return job === undefined ? change : change?.write(...job.begun(rows));
    });
    if (stored.state === 'cancelled') return stored;
    if (!kind.table.isKnown(stored)) throw isFinal(stored.state) ? tooLate(stored) : unknownToThisVersion();
    const outcome = await this.#send(stored, origin);
    let order: StoredOrder;
    try {
      order = await this.#change(stored, job, (current, rows) => {
        const change = this.#end(current, stored, outcome);
        return job === undefined ? change : change.write(...job.ended(rows, outcome, change.after));
      });
    } catch (error) {
      log.error({ err: error, objectId: read.id }, 'the outcome of a cancel could not be recorded');
      throw new ApiError('cancel_unconfirmed', { cause: error });
    }
    if (order.state === 'cancelled') return order;
    // The outcome of the cancel is unknown, but a report may have settled the order meanwhile.
    if (outcome.outcome === 'too-late' || isFinal(order.state)) throw tooLate(order);
    throw new ApiError('cancel_unconfirmed');
  }

  /** Changes an order that was read a moment ago, together with the rows of its job, if it has one. */
  #change(
    read: StoredOrder,
    job: CancelJob | undefined,
    decide: (order: StoredOrder, rows: unknown) => OrderChange | undefined,
  ): Promise<StoredOrder> {
    const { kind, recorder } = this.parts;
    if (job === undefined) return recorder.changeCached(kind, read, (order) => decide(order, undefined));
    return recorder.change(kind, read.partnerId, read.id, decide, { fact: job.rows, touches: [] });
  }

  /**
   * Sends the cancel, and reads the reports about the order until then: trades from before its end may still
   * come by the stream, and reports are applied in the order of their numbers.
   */
  async #send({ id, cancelUntil, lastReport }: StoredOrder, origin: Origin): Promise<Ended> {
    const { broker } = this.parts;
    const answer = await broker.cancelOrder(id, cancelUntil ?? 0, origin);
    if (answer.outcome === 'unclear') return answer;
    try {
      const record = await broker.lookUpOrder(id, lastReport, origin);
      return { outcome: answer.outcome, reports: record.found ? record.answer : [] };
    } catch {
      return { outcome: 'unclear', evidence: "the exchange answered, and the order's record could not be read" };
    }
  }

  /**
   * Settles a cancel with an unknown outcome by the exchange's record of the order: the order is cancelled there, it has ended
   * otherwise, or it goes on, and then the cancel was not taken and may be sent again. Sends nothing. Answers with the
   * order before and after. An order whose cancel may still be under way is left alone, and one that this version does not
   * know. Neither is asked about. Throws when the record gives no answer.
   */
  async reconcileNow(
    partnerId: string,
    id: string,
  ): Promise<{ before: StoredOrder; after: StoredOrder; lookUp: 'found' | 'missing' | undefined }> {
    const { kind, broker, recorder, clock, clocks, clockSkewMs } = this.parts;
    const before = await recorder.change(kind, partnerId, id, () => undefined);
    const isUnclear = ({ cancelUntil }: StoredOrder) =>
      cancelUntil !== null && !mayCancelBeUnderWay(cancelUntil, clock.realNow() - clockSkewMs);
    if (!kind.table.isKnown(before) || !isUnclear(before)) return { before, after: before, lookUp: undefined };
    const record = await broker.lookUpOrder(id, before.lastReport, before);
    // By a wrong clock the time of the cancel may not be over.
    const provesAbsence = (await clocks.agreement()) !== 'apart';
    const after = await recorder.change(kind, partnerId, id, (order) => {
      // Another cancel may have been sent while the record was read.
      if (order.cancelUntil !== before.cancelUntil) return undefined;
      const change = kind.begin(order).reports(record.found ? whole(record.answer, before, order) : []);
      if (!record.found || !provesAbsence || isFinal(change.after.state)) return change;
      return change.note({ cancelUntil: null }).step('reconciliation', "the exchange's record has no cancel of it");
    });
    return { before, after, lookUp: record.found ? 'found' : 'missing' };
  }

  #begin(order: StoredOrder, by: string | undefined): OrderChange | undefined {
    const { kind, clock, submitTimeoutMs } = this.parts;
    if (order.state === 'cancelled') return undefined;
    if (isUnsettled(order.state)) {
      throw new ApiError('order_not_cancelable', {
        message: 'It is not yet known whether the exchange has the order, so it cannot be cancelled now.',
      });
    }
    if (isFinal(order.state)) throw tooLate(order);
    const realNow = clock.realNow();
    if (order.cancelUntil !== null && mayCancelBeUnderWay(order.cancelUntil, realNow)) {
      throw new ApiError('cancel_unconfirmed', {
        message: 'A cancel of this order is under way. Read the order, or send the cancel again later.',
      });
    }
    return kind
      .begin(order)
      .note({ cancelUntil: realNow + submitTimeoutMs })
      .step('cancel', by === undefined ? 'a cancel is sent' : `a cancel is sent, ${by}`);
  }

  /** Records the end of the cancel that was sent as `sent`. A newer one that began meanwhile stays under way. */
  #end(order: StoredOrder, sent: StoredOrder, outcome: Ended): OrderChange {
    const { kind, clock } = this.parts;
    const isLatest = order.cancelUntil === sent.cancelUntil;
    const change = isLatest ? kind.begin(order).note({ cancelUntil: null }) : kind.begin(order);
    if (outcome.outcome !== 'unclear') {
      return change.step('cancel', answers[outcome.outcome]).reports(whole(outcome.reports, sent, order));
    }
    // In the past, so that it may be sent again, and not null, because its outcome is unknown.
    if (isLatest && !isFinal(order.state)) change.note({ cancelUntil: clock.realNow() });
    return change.step('cancel', `the cancel is unconfirmed: ${outcome.evidence}`);
  }
}

/**
 * The reports of a record that was read after the last one that an order had, for the order as it is now. None if a failover
 * that lost commits took reports from it meanwhile: it would take these for proof that it has the earlier ones. The stream of
 * reports brings all of them.
 */
function whole(reports: readonly Report[], asked: StoredOrder, { lastReport }: StoredOrder): readonly Report[] {
  return lastReport < asked.lastReport ? [] : reports;
}

/** Another version stored a value that this one does not know: only that version can decide about a cancel. */
function unknownToThisVersion(): ApiError {
  return new ApiError('order_not_cancelable', {
    message: 'The order cannot be cancelled now, because the gateway is being updated. Send the cancel again later.',
  });
}

function tooLate({ state }: StoredOrder): ApiError {
  const message = isFinal(state)
    ? `The order is ${state} and can no longer be cancelled.`
    : 'The exchange said that it is too late to cancel the order.';
  return new ApiError('order_not_cancelable', { message });
}
