import type { Sent } from '../broker/port.ts';
import { type Report, ReportKind } from '../gen/marina/broker/v1/orders_pb.ts';
import { statedInstant } from '../lib/timestamps.ts';
import type { Change } from '../submission/kind.ts';
import { isBehind } from '../submission/row-store.ts';
import { earliestAfter } from '../submission/step-store.ts';
import { applyReport, isFinal, isUnsettled, moveTo } from './rules.ts';
import { insertSteps, type StoredOrder, type StoredStep } from './store.ts';

/** Builds up what becomes of an order: each step moves it on, and a step the partner must hear of is told. */
export class OrderChange implements Change<StoredOrder> {
  after: StoredOrder;
  readonly told: StoredOrder[] = [];
  readonly steps: StoredStep[] = [];
  readonly contradictions: string[] = [];

  constructor(
    readonly before: StoredOrder,
    private readonly now: number,
  ) {
    this.after = before;
  }

  get writes() {
    return this.steps.length === 0 ? [] : [insertSteps(this.after, this.before.steps, this.steps)];
  }

  get reportedAfterMs(): number | undefined {
    return earliestAfter(this.before.createdAt, this.steps);
  }

  /** Changes what partners do not see. */
  note(fields: Partial<StoredOrder>): this {
    this.after = { ...this.after, ...fields };
    return this;
  }

  step(kind: StoredStep['kind'], detail: string, report?: Report): this {
    const trade = report?.kind === ReportKind.TRADE ? { quantity: report.quantity, priceKobo: report.priceKobo } : {};
    const said = report === undefined ? {} : { reportNumber: report.number, upstreamAt: statedInstant(report.at) };
    this.steps.push({ kind, at: this.now, state: this.after.state, detail, ...said, ...trade });
    return this.note({ steps: this.after.steps + 1 });
  }

  /** Moves the order to a state and tells the partner. */
  move(state: StoredOrder['state'], reason: string | null): this {
    this.after = settle(moveTo(this.after, state, reason, this.now));
    this.told.push(this.after);
    return this;
  }

  /** Applies reports of the exchange in the order of their numbers, each once. */
  reports(reports: readonly Report[]): this {
    for (const report of reports) {
      const applied = applyReport(this.after, report, this.now);
      if (applied === undefined) continue;
      this.after = settle(applied.order);
      this.step(applied.contradiction ? 'contradiction' : 'report', applied.detail, report);
      if (applied.contradiction) this.contradictions.push(applied.detail);
      if (applied.changed) this.told.push(this.after);
    }
    return this;
  }
}

/** Once nothing is unclear about an order, the reconciler need not look at it; nor is a cancel, once it is final. */
function settle(order: StoredOrder): StoredOrder {
  if (isUnsettled(order.state)) return order;
  const checkAt = isBehind(order) ? order.checkAt : null;
  return { ...order, checkAt, cancelUntil: isFinal(order.state) ? null : order.cancelUntil };
}

/** What the send came to. The order may have moved on since: a report, or the reconciler, may have come first. */
export function applySent(order: StoredOrder, sent: Sent<Report>, now: number, realNow: number): OrderChange {
  const change = new OrderChange(order, now);
  if (sent.outcome === 'answered') {
    const rejected = sent.answer.kind === ReportKind.REJECTED;
    return change
      .note({ firstAnswer: rejected ? 'rejected' : 'object' })
      .step('sent', rejected ? 'sent, and the exchange refused it' : 'sent, and the exchange accepted it')
      .reports([sent.answer]);
  }
  if (sent.outcome === 'never-left') {
    const waiting = isUnsettled(order.state);
    if (waiting) change.move('refused', sent.reason ?? 'It never left the gateway.');
    return change.note({ firstAnswer: firstAnswerOf(change.after) }).step('sent', `not sent: ${sent.evidence}`);
  }
  if (order.state === 'sending') {
    change.move('uncertain', 'It is not known whether the exchange received it; the gateway is finding out.');
    change.note({ checkAt: realNow });
  }
  return change
    .note({ firstAnswer: firstAnswerOf(change.after) })
    .step('sent', `sent, and the outcome is unclear: ${sent.evidence}`);
}

/** Where the send itself told nothing, the order as it is by now is the answer. */
function firstAnswerOf(order: StoredOrder): 'object' | 'rejected' | 'not_sent' {
  if (order.state === 'rejected') return 'rejected';
  return order.state === 'refused' ? 'not_sent' : 'object';
}
