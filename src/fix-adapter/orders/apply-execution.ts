import { createHash } from 'node:crypto';
import { isPrintableAscii } from '../../kit/printable.ts';
import { withNote, withoutNotes } from '../store/notes.ts';
import type { Executed } from '../store/store.ts';
import type { FindingKind, FixEnd, FixOrder, FixReport, FixReportKind, FixTradeChange } from '../store/table.ts';
import { tags } from '../wire/tags.ts';
import { endStatuses, evidence, lateTypes } from './evidence.ts';
import { type ExchangeMessage, type ExecutionReport, readExecution } from './execution.ts';
import { describe } from './facts.ts';
import { saidIn, saidNothing } from './reject-reasons.ts';
import {
  contradictsUnknown,
  countOf,
  endWithTrade,
  hasOtherAverage,
  hasOtherTerms,
  hasOtherUnits,
  isOfAnother,
  showsOrder,
  type WeighContext,
  wasCount,
  wrongCounts,
  wrongEnd,
  wrongPrice,
} from './weigh.ts';

/** A report before it has its number. */
export type NewReport = Omit<FixReport, 'number'>;

/** A finding that a person must look at. */
export interface NewFinding {
  readonly what: FindingKind;
  readonly detail: string;
}

/** The changes that a message makes to an order. */
export interface Effect {
  readonly order: FixOrder;
  readonly reports: readonly NewReport[];
  readonly findings: readonly NewFinding[];
  readonly change?: FixTradeChange;
  /** The exchange answered that it does not have the order. */
  readonly isUnknown?: boolean;
  /** An answer that proves nothing. */
  readonly isUnclear?: boolean;
}

export interface ApplyContext extends WeighContext {
  /** When it happened, by the message, in milliseconds. */
  readonly at: number;
  /** The reports that were applied to the order, by their ExecID. */
  readonly executed: ReadonlyMap<string, Executed>;
  /** When the present numbering began, in milliseconds. */
  readonly startedAt: number;
  /** When the present session day began, in milliseconds; absent: with the numbering. */
  readonly dayStartedAt?: number;
  /** Whether the message, if it answers a question about the order, leaves no other one open; absent: it does. */
  readonly isLastAnswer?: boolean;
  /** Whether a request to cancel the order has no answer. */
  readonly isCancelling?: boolean;
  /** Whether another of the message's names is that of another order of ours, or it answers a question about another one. */
  readonly namesAnother?: boolean;
}

/** Statements that name the order as one that the exchange has seen. The others may be made of the question. */
const namesNone = new Set(['unknown_status', 'rejected_status', 'rejected_when_asked']);

/** Findings of an answer after which nothing is known of the order. */
const unclear: ReadonlySet<FindingKind> = new Set(['status_rejected', 'identity_differs', 'not_understood']);

/** Statements with which an exchange may give an order another id of its own, as it does with what lasts over days. */
const adopting = new Set(['new', 'restated', 'live_status']);

/** OrdStatus (39) that says by itself that an order has ended. */
const overStatuses = ['4', 'C', '8', '3'];

/** Statements that an order has ended. */
const ending: ReadonlySet<string> = new Set(['cancelled', 'expired', 'rejected', 'rejected_when_asked']);

/**
 * Applies an ExecutionReport to its order, by the rule of evidence. Nothing is left out: what does not convince is a
 * finding.
 */
export function applyExecution(order: FixOrder, message: ExchangeMessage, context: ApplyContext): Effect {
  const { toKobo } = context;
  const asked = order.asked || context.isCancelling === true;
  const execution = readExecution(message, { toKobo, timeInForce: order.timeInForce, asked });
  // A mass status may have been made before the question was read.
  const isAnswered = execution.isStatus && message.get(tags.MassStatusReqID) === undefined;
  const isClosed = isAnswered && context.isLastAnswer !== false;
  const applying = new Applying(isClosed ? { ...order, asked: false } : order, message, execution, context);
  applying.run();
  const { effect } = applying;
  const after = settled(effect.order, isAnswered && effect.isUnclear !== true);
  return { ...effect, order: after };
}

/** The order without the marks that it needs no more: it has been asked about, or has ended. */
function settled(order: FixOrder, isAnswered: boolean): FixOrder {
  const isOver = order.state === 'final';
  const mustAsk = order.mustAsk && !isAnswered && !isOver;
  const asked = order.asked && !isOver;
  return mustAsk === order.mustAsk && asked === order.asked ? order : { ...order, mustAsk, asked };
}

/** One message, while it is applied. */
class Applying {
  #order: FixOrder;
  readonly #reports: NewReport[] = [];
  readonly #findings: NewFinding[] = [];
  #change: FixTradeChange | undefined;
  #isUnknown = false;
  #isUnclear = false;
  /** The ExecID under which the record keeps what this message reports. */
  readonly #execId: string | null;

  constructor(
    private readonly before: FixOrder,
    private readonly message: ExchangeMessage,
    private readonly execution: ExecutionReport,
    private readonly context: ApplyContext,
  ) {
    this.#order = before;
    this.#execId = this.#isReused ? digestOf(execution) : execution.execId;
  }

  get effect(): Effect {
    const effect = { order: this.#order, reports: this.#reports, findings: this.#findings };
    return {
      ...effect,
      ...(this.#change === undefined ? {} : { change: this.#change }),
      ...(this.#isUnknown ? { isUnknown: true } : {}),
      ...(this.#isUnclear ? { isUnclear: true } : {}),
    };
  }

  run(): void {
    const { before, message, execution, context } = this;
    if (this.#isRepetition) {
      this.#checkRepetition();
      return;
    }
    const wrong = this.#wrongIdentity();
    const isSeen = !namesNone.has(execution.says) || wrong !== undefined || showsOrder(before, message, execution);
    if (isSeen) this.#order = { ...this.#order, acknowledged: true };
    if (wrong !== undefined) {
      const named = [tags.Side, tags.Symbol, tags.Account, tags.OrdStatusReqID].map((tag) => message.get(tag) ?? '');
      this.#findAnswer(wrong, named.slice(0, context.namesAnother === true ? 4 : 3).join('/'));
      return;
    }
    if (this.#isReused) {
      this.#find('exec_id_reused');
      if (!this.#countsProve()) return;
    }
    const proof = evidence[execution.says][before.state];
    if (typeof proof === 'object') {
      this.#findAnswer(proof.finding);
      return;
    }
    switch (proof) {
      case 'nothing':
      case 'acknowledged':
        this.#checkEnded();
        this.#checkCount();
        return;
      case 'alive':
        this.#checkAlive();
        return;
      case 'unknown':
        this.#unknown();
        return;
      case 'accepted':
        this.#accept();
        this.#checkAccepted();
        return;
      case 'trade':
        this.#trade();
        return;
      case 'change':
        this.#changeTrade();
        return;
      default:
        this.#end(proof);
    }
  }

  /** Why a message is not about the order that it names. Undefined: it is. */
  #wrongIdentity(): FindingKind | undefined {
    const { before, message, execution, context } = this;
    if (context.namesAnother === true) return 'identity_differs';
    if (execution.says !== 'unknown_status') {
      return isOfAnother(before, message, context) ? 'identity_differs' : undefined;
    }
    return before.state === 'final' ? undefined : contradictsUnknown(before, message, execution, context);
  }

  /** The same execution once more. */
  get #isRepetition(): boolean {
    const { execId } = this.execution;
    if (execId === null) return false;
    const { executed } = this.context;
    const known = executed.get(execId);
    return (known !== undefined && this.#isSame(known)) || executed.has(digestOf(this.execution));
  }

  /** Another execution has had this ExecID. */
  get #isReused(): boolean {
    const { execId } = this.execution;
    const known = execId === null ? undefined : this.context.executed.get(execId);
    return known !== undefined && !this.#isSame(known);
  }

  #isSame({ kind, quantity, priceKobo, counted, execRefId }: Executed): boolean {
    const { says, lastQty, lastPriceKobo, cumQty } = this.execution;
    if ((says === 'new' ? 'accepted' : says) !== kind) return false;
    // The version before stored no counts: a count that has risen is that of another trade.
    const isCounted = counted === null ? (cumQty ?? 0n) <= countOf(this.before) : counted === (cumQty ?? counted);
    const isAbout = !isChange(kind) || execRefId === this.execution.execRefId;
    const isBust = kind === 'trade_cancelled';
    const hasContent = kind === 'trade' || isChange(kind);
    const isContent =
      !hasContent || isBust || (quantity === (lastQty ?? null) && priceKobo === (lastPriceKobo ?? null));
    return isCounted && isAbout && isContent;
  }

  /** A repetition is no news. Of a trade without a count nobody can tell whether it is one. */
  #checkRepetition(): void {
    const { says, cumQty } = this.execution;
    if (says === 'trade' && cumQty === undefined) this.#findOnce('exec_id_reused', this.#execId ?? '');
  }

  /** Whether the exchange's own count says that an execution with a known ExecID is another one. */
  #countsProve(): boolean {
    const { says, cumQty, lastQty = 0n } = this.execution;
    return cumQty === countOf(this.before) + (says === 'trade' ? lastQty : 0n);
  }

  #find(what: FindingKind): void {
    this.#findings.push({ what, detail: describe(this.message) });
  }

  /** A status may be repeated as often as it is asked for; what it shows is found once. */
  #findOnce(what: FindingKind, key: string): void {
    if (this.execution.isStatus && unclear.has(what)) this.#isUnclear = true;
    const noted = withNote(this.#order.noted, `${what}:${key}`);
    if (noted === undefined) return;
    this.#find(what);
    this.#order = { ...this.#order, noted };
  }

  /** A statement that may be an answer comes again with the next question; anything else comes once. */
  #findAnswer(what: FindingKind, key = ''): void {
    const { isStatus, says, ordStatus, cumQty } = this.execution;
    const answer = `${ordStatus}:${cumQty ?? ''}:${key}:${this.context.startedAt}`;
    if (isStatus || says === 'rejected_when_asked') this.#findOnce(what, answer);
    else this.#find(what);
  }

  #report(kind: FixReportKind, more: Partial<NewReport> = {}): void {
    this.#reports.push({
      orderId: this.before.id,
      exchangeOrderId: this.#order.exchangeOrderId,
      kind,
      // A status says how things are, and not since when.
      at: this.execution.isStatus ? null : this.context.at,
      quantity: null,
      priceKobo: null,
      rejectReason: null,
      execId: null,
      counted: this.execution.cumQty ?? null,
      ...(kind === 'accepted' || kind === 'trade' ? saidNothing : saidIn(this.message)),
      ...more,
    });
  }

  /** The exchange has the order. */
  #accept(): void {
    const { state, exchangeOrderId } = this.#order;
    const isFirst = state === 'sending' || state === 'unsent';
    // A trade or an end under another id may be one of another order.
    const isOther = this.#hasOtherId && !adopting.has(this.execution.says);
    const id = isOther ? exchangeOrderId : this.#exchangeId;
    if (isOther) this.#findOnce('order_id_differs', this.#exchangeId);
    this.#order = { ...this.#order, exchangeOrderId: id, state: state === 'final' ? 'final' : 'open' };
    if (!isFirst) return;
    const isAcceptance = this.execution.says === 'new' || this.execution.says === 'restated';
    this.#report('accepted', isAcceptance ? { execId: this.#execId } : {});
    if (state === 'unsent') this.#find('revived');
  }

  /** The exchange says that an order lives, or that all of it traded, which had ended with shares left. */
  #checkAlive(): void {
    const { before, execution } = this;
    this.#checkCount();
    if (countOf(before) < before.quantity) {
      this.#findOnce('end_contradicted', `${execution.execType}${execution.ordStatus}:${execution.cumQty ?? ''}`);
    }
  }

  /** An end of an order that had ended with shares left, with the OrdStatus of one that lives. */
  #checkEnded(): void {
    const { before } = this;
    const { says, execType, ordStatus, cumQty } = this.execution;
    const hadEnded = before.state === 'final' && countOf(before) < before.quantity;
    if (!hadEnded || !ending.has(says) || ordStatus === '' || endStatuses.has(ordStatus)) return;
    this.#findOnce('end_contradicted', `${execType}${ordStatus}:${cumQty ?? ''}`);
  }

  #checkAccepted(): void {
    const { says, cumQty, ordStatus, leavesQty, isStatus } = this.execution;
    const { quantity, endedAs } = this.#order;
    const isEnded = says === 'restated' && overStatuses.includes(ordStatus);
    // At the end of a day LeavesQty may be 0, although the order goes on.
    const isPause = ['3', 'B'].includes(this.execution.execType) && this.before.timeInForce === 'gtc';
    const isOver = (leavesQty === 0n && !isPause) || (says === 'new' && ['4', 'C', '8'].includes(ordStatus));
    if (!isStatus && isOver && countOf(this.#order) < quantity) this.#findOnce('end_unproven', `${ordStatus}:accepted`);
    if (says === 'restated' && (isEnded || hasOtherTerms(this.before, this.message, this.context))) {
      this.#find('restated');
    } else this.#checkTerms();
    if (says === 'live_status' && endedAs !== null) {
      this.#findOnce('end_contradicted', String(cumQty));
      this.#order = { ...this.#order, endedAs: null, endedCount: null };
    }
    if (this.execution.isStatus && cumQty === undefined) {
      this.#findOnce('not_understood', ordStatus);
      return;
    }
    if (says === 'filled_status' && cumQty !== undefined && cumQty < quantity) {
      this.#findOnce('counts_disagree', String(cumQty));
    }
    this.#checkCount();
  }

  #checkTerms(): void {
    if (!hasOtherTerms(this.before, this.message, this.context)) return;
    this.#findOnce('terms_differ', `${this.message.get(tags.OrderQty) ?? ''}/${this.message.get(tags.Price) ?? ''}`);
  }

  /** The trades that the exchange counts, and those that it reported. */
  #checkCount(): void {
    const { cumQty, isStatus, ordStatus, execType } = this.execution;
    if (cumQty === undefined) return;
    const difference = cumQty - countOf(this.#order);
    const isLate = !isStatus && lateTypes.has(execType) && !overStatuses.includes(ordStatus);
    const isPassed = isLate && wasCount(cumQty, this.context.executed);
    if (difference === 0n) this.#forgetDifferences();
    if (difference > 0n) this.#findOnce('trades_missing', String(difference));
    if (difference < 0n && !isPassed) this.#findOnce('counted_twice', String(difference));
    if (difference === 0n && this.#hasOtherAverage) {
      this.#findOnce('average_differs', this.message.get(tags.AvgPx) ?? '');
    }
  }

  /** The exchange's count and ours agree. A difference of the same size that comes later is another one. */
  #forgetDifferences(): void {
    const noted = withoutNotes(this.#order.noted, ['trades_missing', 'counted_twice']);
    if (noted !== this.#order.noted) this.#order = { ...this.#order, noted };
  }

  #trade(): void {
    const { lastQty: quantity, lastPriceKobo: priceKobo } = this.execution;
    const wrong = this.#wrongTrade();
    if (wrong !== undefined || quantity === undefined || priceKobo === undefined) {
      this.#find(wrong ?? 'not_understood');
      return;
    }
    // An order that has ended with counts that agreed trades no more.
    const isOver = this.before.state === 'final' && countOf(this.before) < this.before.quantity;
    this.#accept();
    this.#checkTerms();
    const { filled, filledValueKobo } = this.#order;
    const order = {
      ...this.#order,
      filled: filled + quantity,
      filledValueKobo: filledValueKobo + quantity * priceKobo,
    };
    this.#order = countOf(order) >= order.quantity ? { ...order, state: 'final' } : order;
    this.#report('trade', { quantity, priceKobo, execId: this.#execId });
    const end = endWithTrade(order, this.execution);
    const counts = end === undefined ? wrongCounts(order, this.execution) : undefined;
    const difference = (this.execution.cumQty ?? countOf(order)) - countOf(order);
    if (this.execution.cumQty !== undefined && difference === 0n) this.#forgetDifferences();
    // After one trade that is missing all further counts differ by the same.
    if (counts === 'trades_missing') this.#findOnce(counts, String(difference));
    else if (counts !== undefined) this.#find(counts);
    else if (isOver) this.#find('end_contradicted');
    else if (end === undefined && ['4', 'C', '8'].includes(this.execution.ordStatus)) this.#find('end_unproven');
    if (this.#hasOtherAverage && difference === 0n) this.#find('average_differs');
    if (this.message.get(tags.ExecID) === undefined) this.#find('not_understood');
    if (end !== undefined && this.#order.state !== 'final') {
      this.#order = { ...this.#order, state: 'final', endedAs: null, endedCount: null };
      this.#report(end);
    }
    this.#endAtLast();
  }

  /** Why a trade does not convince. Undefined: it does. */
  #wrongTrade(): FindingKind | undefined {
    const { lastQty, lastPriceKobo, cumQty } = this.execution;
    if (lastQty === undefined || lastQty < 1n || lastPriceKobo === undefined) return 'not_understood';
    if (hasOtherUnits(this.message)) return 'not_understood';
    // No order trades twice what was ordered; a number like that is none.
    if (this.before.filled + lastQty > 2n * this.before.quantity) return 'overfilled';
    const isCounted = cumQty === countOf(this.before) + lastQty;
    if (!isCounted && hasOtherTerms(this.before, this.message, this.context)) return 'terms_differ';
    return wrongPrice(this.before, lastPriceKobo);
  }

  /** The order ended before, with a count that has been reached now. */
  #endAtLast(): void {
    const { endedAs, endedCount, state } = this.#order;
    if (endedAs === null || endedCount !== countOf(this.#order)) return;
    this.#order = { ...this.#order, state: 'final', endedAs: null, endedCount: null };
    if (state !== 'final') this.#report(endedAs, { at: null, ...this.#rejection(endedAs) });
  }

  #end(end: FixEnd): void {
    const isOther = hasOtherTerms(this.before, this.message, this.context);
    const wrong =
      (isOther ? 'terms_differ' : undefined) ??
      (this.#hasOtherId ? 'order_id_differs' : undefined) ??
      wrongEnd(this.before, end, this.execution) ??
      (this.#hasOtherAverage ? 'average_differs' : undefined);
    // A rejected order was never accepted.
    if (end !== 'rejected') this.#accept();
    if (wrong !== undefined) {
      this.#withhold(end, wrong);
      return;
    }
    this.#order = { ...this.#order, exchangeOrderId: this.#exchangeId, state: 'final' };
    this.#report(end, { execId: this.#execId, ...this.#rejection(end) });
  }

  /** The exchange says that the order has ended, and its counts do not agree. */
  #withhold(end: FixEnd, what: FindingKind): void {
    this.#findOnce(what, what === 'order_id_differs' ? this.#exchangeId : `${end}:${this.execution.cumQty ?? ''}`);
    // The trades may come, and so may the report that takes one back.
    if (what === 'trades_missing' || what === 'counted_twice') {
      this.#order = { ...this.#order, endedAs: end, endedCount: this.execution.cumQty ?? null };
    }
  }

  get #exchangeId(): string {
    return exchangeIdOf(this.message) ?? this.#order.exchangeOrderId;
  }

  /** Whether the exchange has named the order by another id of its own before. */
  get #hasOtherId(): boolean {
    const { exchangeOrderId } = this.before;
    return exchangeOrderId !== '' && this.#exchangeId !== exchangeOrderId;
  }

  #rejection(end: FixEnd): Partial<NewReport> {
    if (end !== 'rejected') return {};
    return { rejectReason: this.context.reasonOf(this.message) };
  }

  /** Whether the exchange states another average than that of the trades, of which none was taken back or corrected. */
  get #hasOtherAverage(): boolean {
    const hasChanges = [...this.context.executed.values()].some(({ kind }) => isChange(kind));
    return !hasChanges && hasOtherAverage(this.#order, this.message, this.context);
  }

  /** A trade was taken back or corrected: later counts of the exchange have less or other shares. */
  #changeTrade(): void {
    const { says, execRefId, lastQty, lastPriceKobo, cumQty, ordStatus } = this.execution;
    this.#accept();
    const isBust = says === 'trade_cancelled';
    const former = sharesNow(execRefId, this.context.executed);
    const quantity = isBust ? 0n : (lastQty ?? null);
    if (former !== undefined && quantity !== null) {
      const order = { ...this.#order, adjusted: this.#order.adjusted + quantity - former };
      const isLive = (ordStatus === '0' || ordStatus === '1') && countOf(order) < order.quantity;
      this.#order = isLive ? { ...order, state: 'open' } : order;
    }
    this.#change = {
      orderId: this.before.id,
      execId: this.#execId,
      execRefId: execRefId ?? '',
      kind: isBust ? 'cancelled' : 'corrected',
      quantity,
      priceKobo: isBust ? null : (lastPriceKobo ?? null),
      counted: cumQty ?? null,
      at: this.context.at,
    };
    this.#find(isBust ? 'trade_cancelled' : 'trade_corrected');
    this.#endAtLast();
  }

  /** An order of an earlier day is asked about until its end is known, and found by itself. */
  #unknown(): void {
    this.#isUnknown = true;
    const { state, timeInForce, receivedAt } = this.before;
    const { startedAt, dayStartedAt = startedAt } = this.context;
    if (state !== 'open' || (timeInForce === 'day' && receivedAt < dayStartedAt)) return;
    this.#findOnce('order_forgotten', String(dayStartedAt));
  }
}

function isChange(kind: Executed['kind']): boolean {
  return kind === 'trade_cancelled' || kind === 'trade_corrected';
}

/** The shares of a trade after all that was changed of it. Undefined: no such trade is known. */
function sharesNow(execId: string | null, executed: ReadonlyMap<string, Executed>): bigint | undefined {
  const root = execId === null ? undefined : rootOf(execId, executed);
  const trade = root === undefined ? undefined : executed.get(root);
  if (trade?.kind !== 'trade') return undefined;
  const changes = [...executed].filter(([id, { kind }]) => isChange(kind) && rootOf(id, executed) === root);
  return changes.at(-1)?.[1].quantity ?? trade.quantity ?? undefined;
}

/** The trade that an execution is, or that it changes over any number of changes. */
function rootOf(execId: string, executed: ReadonlyMap<string, Executed>): string {
  let id = execId;
  for (let steps = 0; steps < executed.size; steps += 1) {
    const one = executed.get(id);
    if (one === undefined || !isChange(one.kind) || one.execRefId === null) return id;
    id = one.execRefId;
  }
  return id;
}

/** Names an execution whose ExecID another one has had. */
function digestOf({ execId, says, lastQty, lastPriceKobo, cumQty }: ExecutionReport): string {
  return createHash('sha256').update([execId, says, lastQty, lastPriceKobo, cumQty].join('\u0001')).digest('hex');
}

/** The exchange's id of the order. `NONE` stands where it has none. One that nobody could write is none. */
function exchangeIdOf(message: ExchangeMessage): string | undefined {
  const id = message.get(tags.OrderID);
  return id === undefined || id === 'NONE' || !isPrintableAscii(id, 64) ? undefined : id;
}
