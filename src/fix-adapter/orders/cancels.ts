import { status } from '@grpc/grpc-js';
import type { Logger } from '../../kit/log.ts';
import { RpcError } from '../service/rpc.ts';
import type { FixStore } from '../store/store.ts';
import type { FixCancel, FixReport } from '../store/table.ts';
import { filledIn } from '../template/render.ts';
import { messageTypes } from '../wire/tags.ts';
import { cancelName } from './names.ts';
import { type SendingSession, send } from './own-message.ts';
import { saidNothing } from './reject-reasons.ts';
import { cancelRequest, type OrderStyle } from './requests.ts';
import type { Throttle } from './throttle.ts';
import { KeyedWaiters } from './waiting.ts';

export interface CancelsOptions {
  readonly store: FixStore;
  readonly session: SendingSession;
  readonly style: OrderStyle;
  readonly throttle: Throttle;
  /** Real time, in milliseconds. */
  readonly now: () => number;
  /** How long the exchange may take to answer a request to cancel before another one is sent, in milliseconds. */
  readonly cancelTimeoutMs: number;
  readonly log: Logger;
  /** A placeholder of the template had no value. */
  readonly onMissingValue?: () => void;
  /** Brings the record up to date about an order. Throws if the exchange does not say how it is. */
  readonly settle: (orderId: string) => Promise<unknown>;
}

/** Requests to cancel. Each has a ClOrdID of its own, so a second one does no harm. */
export class Cancels {
  readonly #cancelled = new KeyedWaiters<FixReport | 'refused'>();
  /** Requests that are being sent, by order. */
  readonly #requesting = new Map<string, Promise<'requested' | 'ended'>>();
  /** When requests were written on the present connection. */
  readonly #writtenAt = new Map<string, number>();

  constructor(private readonly options: CancelsOptions) {}

  /** Cancels what has not traded. Returns the report, or undefined if it was too late. */
  async cancel(id: string, deadlineMs: number): Promise<FixReport | undefined> {
    const { store, session, now, settle } = this.options;
    const order = await store.order(id);
    if (order === undefined || order.state === 'unsent') {
      throw new RpcError(status.NOT_FOUND, 'the exchange has no such order');
    }
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
      const after = await settle(id).then(() => store.order(id));
      if (after?.state !== 'final') throw new RpcError(status.UNAVAILABLE, 'the exchange refused to cancel it');
      return await this.#cancellation(id);
    } finally {
      this.#cancelled.forget(id);
    }
  }

  /** A report of the exchange was applied. */
  reported(report: FixReport): void {
    const { orderId, kind } = report;
    if (kind === 'cancelled') this.#cancelled.resolve(orderId, report);
    // An order that has ended otherwise will not be cancelled.
    if (kind === 'expired' || kind === 'rejected') this.#cancelled.resolve(orderId, 'refused');
  }

  /** The exchange refused a request. */
  refused({ id, orderId }: FixCancel): void {
    this.#writtenAt.delete(id);
    this.#cancelled.resolve(orderId, 'refused');
  }

  /** The connection has ended: nobody knows whether its requests were read. */
  disconnected(): void {
    this.#writtenAt.clear();
  }

  /** Sends a request, unless one is under way that may still be answered, or the order has ended meanwhile. */
  async #request(id: string, deadlineMs: number): Promise<'requested' | 'ended'> {
    const { store, session, style, throttle, now, cancelTimeoutMs } = this.options;
    const [order, cancels] = await Promise.all([store.order(id), store.cancelsOf(id)]);
    if (order === undefined || order.state === 'final') return 'ended';
    const underWay = cancels.filter(({ state }) => state === 'sending');
    const writtenForMs = underWay.map((cancel) => performance.now() - (this.#writtenAt.get(cancel.id) ?? -Infinity));
    if (mayBeAnswered(writtenForMs, cancelTimeoutMs)) return 'requested';
    const name = cancelName(order.id, cancels.length + 1, style.nameLength);
    if (name === undefined) throw new RpcError(status.UNAVAILABLE, 'no further request to cancel it can be named');
    const cancel: FixCancel = {
      id: name,
      orderId: order.id,
      requestedAt: now(),
      startedAt: 0,
      number: 0n,
      state: 'sending',
      ...saidNothing,
    };
    const fields = filledIn(() => cancelRequest(cancel, order, style, now()), order.id, this.options);
    if (fields === undefined) throw new RpcError(status.UNAVAILABLE, 'a field that the broker asks for has no value');
    if (!(await throttle.take(deadlineMs - now()))) throw tooSlow();
    try {
      if (underWay.length > 0) await store.lost(underWay.map((one) => one.id));
    } catch (error) {
      throttle.settled(false);
      throw error;
    }
    const outcome = await send(
      session,
      {
        type: messageTypes.OrderCancelRequest,
        fields,
        notAfterMs: deadlineMs,
        kept: { kind: 'cancel', row: cancel },
      },
      () => {
        this.#writtenAt.set(cancel.id, performance.now());
      },
    );
    if (outcome !== 'written') throw new RpcError(status.UNAVAILABLE, 'the request was not written to the exchange');
    return 'requested';
  }

  async #cancellation(id: string): Promise<FixReport | undefined> {
    return this.options.store.cancellationOf(id);
  }
}

/** Whether one of the requests may still be answered. One of an earlier connection was written infinitely long ago. */
function mayBeAnswered(writtenForMs: readonly number[], cancelTimeoutMs: number): boolean {
  return writtenForMs.some((ms) => ms < cancelTimeoutMs);
}

function tooSlow(): RpcError {
  return new RpcError(status.DEADLINE_EXCEEDED, 'the exchange has not answered yet');
}
