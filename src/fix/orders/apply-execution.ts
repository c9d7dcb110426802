import { createHash } from 'node:crypto';
import type { Executed } from '../store/store.ts';
import type { FindingKind, FixEnd, FixOrder, FixReport, FixReportKind, FixTradeChange } from '../store/table.ts';
import { tags } from '../wire/tags.ts';
import { evidence } from './evidence.ts';
import { type Execution, type Message, readExecution } from './execution.ts';
import { describe } from './facts.ts';
import { saidIn, saidNothing } from './reject-reasons.ts';
import {
  countOf,
  endWithTrade,
  hasOtherAverage,
  hasOtherTerms,
  isOfAnother,
  type WeighContext,
  wrongCounts,
  wrongEnd,
  wrongPrice,
} from './weigh.ts';

/** A report before it has its number. */
export type NewReport = Omit<FixReport, 'number'>;

/** What a person must look at. */
export interface NewFinding {
  readonly what: FindingKind;
  readonly detail: string;
}

/** What a message changes of an order. */
export interface Effect {
  readonly order: FixOrder;
  readonly reports: readonly NewReport[];
  readonly findings: readonly NewFinding[];
  readonly change?: FixTradeChange;
  /** The exchange answered that it does not have the order. */
  readonly isUnknown?: boolean;
}

export interface ApplyContext extends WeighContext {
  /** When it happened, by the message, in milliseconds. */
  readonly at: number;
  /** What was applied of the order, by its ExecID. */
  readonly executed: ReadonlyMap<string, Executed>;
  /** When the present numbering began, in milliseconds. */
  readonly startedAt: number;
}

/** Statements that name the order as one that the exchange has seen. The others may be made of the question. */
const namesNone = new Set(['unknown_status', 'rejected_status', 'rejected_when_asked']);

/** How many characters are remembered of what was found in answers, so that the next answer does not repeat it, and of one. */
const longestNoted = 400;
const longestKey = 60;

/**
 * What an ExecutionReport changes of its order, by the rule of evidence. Nothing is left out: what does not convince is a
 * finding.
 */
export function applyExecution(order: FixOrder, message: Message, context: ApplyContext): Effect {
  const { toKobo } = context;
  const execution = readExecution(message, { toKobo, timeInForce: order.timeInForce, asked: order.asked });
  const answered = execution.isStatus ? { ...order, asked: false, mustAsk: false } : order;
  const applying = new Applying(answered, message, execution, context);
  applying.run();
  return applying.effect;
}

/** One message, while it is applied. */
class Applying {
  #order: FixOrder;
  readonly #reports: NewReport[] = [];
  readonly #findings: NewFinding[] = [];
  #change: FixTradeChange | undefined;
  #isUnknown = false;
  /** The ExecID under which the record keeps what this message reports. */
  readonly #execId: string | null;

  constructor(
    private readonly before: FixOrder,
    private readonly message: Message,
    private readonly execution: Execution,
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
    };
  }

  run(): void {
    const { before, message, execution, context } = this;
    if (this.#isRepetition) return;
    if (!namesNone.has(execution.says)) this.#order = { ...this.#order, acknowledged: true };
    if (execution.says !== 'unknown_status' && isOfAnother(before, message, context)) {
      this.#findAnswer('identity_differs');
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
        this.#checkCount();
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

  #isSame({ kind, quantity, priceKobo, counted }: Executed): boolean {
    const { says, lastQty, lastPriceKobo, cumQty } = this.execution;
    const kinds: Partial<Record<typeof says, Executed['kind']>> = { new: 'accepted', restated: 'accepted' };
    if ((kinds[says] ?? says) !== kind) return false;
    const isCounted = counted === null || cumQty === undefined || counted === cumQty;
    return says !== 'trade' || (quantity === lastQty && priceKobo === lastPriceKobo && isCounted);
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
    const noted = `${what}:${key}`.replaceAll(' ', '_').slice(0, longestKey);
    const all = this.#order.noted === '' ? [] : this.#order.noted.split(' ');
    if (all.includes(noted)) return;
    this.#find(what);
    while ([...all, noted].join(' ').length > longestNoted) all.shift();
    this.#order = { ...this.#order, noted: [...all, noted].join(' ') };
  }

  /** What may be an answer comes again with the next question; anything else comes once. */
  #findAnswer(what: FindingKind): void {
    const { isStatus, says, ordStatus, cumQty } = this.execution;
    if (isStatus || says === 'rejected_when_asked') this.#findOnce(what, `${ordStatus}:${cumQty ?? ''}`);
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
    const id = exchangeIdOf(this.message) ?? exchangeOrderId;
    this.#order = { ...this.#order, exchangeOrderId: id, state: state === 'final' ? 'final' : 'open' };
    if (!isFirst) return;
    const isAcceptance = this.execution.says === 'new' || this.execution.says === 'restated';
    this.#report('accepted', isAcceptance ? { execId: this.#execId } : {});
    if (state === 'unsent') this.#find('revived');
  }

  #checkAccepted(): void {
    const { says, cumQty, ordStatus } = this.execution;
    const { quantity, endedAs } = this.#order;
    const isEnded = says === 'restated' && ['4', 'C', '8', '3'].includes(ordStatus);
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
    const { cumQty, isStatus } = this.execution;
    if (cumQty === undefined) return;
    if (cumQty > countOf(this.#order)) this.#findOnce('trades_missing', String(cumQty));
    if (cumQty < countOf(this.#order) && isStatus) this.#findOnce('counted_twice', String(cumQty));
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
    if (counts !== undefined) this.#find(counts);
    else if (isOver) this.#find('end_contradicted');
    if (!this.#hasChanges && hasOtherAverage(order, this.message, this.context)) this.#find('average_differs');
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
    const isOtherAverage = !this.#hasChanges && hasOtherAverage(this.before, this.message, this.context);
    const wrong =
      wrongEnd(this.before, end, this.execution) ??
      (isOther ? 'terms_differ' : undefined) ??
      (isOtherAverage ? 'average_differs' : undefined);
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
    this.#findOnce(what, `${end}:${this.execution.cumQty ?? ''}`);
    if (what === 'trades_missing') {
      this.#order = { ...this.#order, endedAs: end, endedCount: this.execution.cumQty ?? null };
    }
  }

  get #exchangeId(): string {
    return exchangeIdOf(this.message) ?? this.#order.exchangeOrderId;
  }

  #rejection(end: FixEnd): Partial<NewReport> {
    if (end !== 'rejected') return {};
    return { rejectReason: this.context.reasonOf(this.message) };
  }

  get #hasChanges(): boolean {
    return [...this.context.executed.values()].some(({ kind }) => isChange(kind));
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
  }

  /** An order of an earlier day is asked about until its end is known, and found by itself. */
  #unknown(): void {
    this.#isUnknown = true;
    const { state, timeInForce, receivedAt } = this.before;
    if (state !== 'open' || (timeInForce === 'day' && receivedAt < this.context.startedAt)) return;
    this.#findOnce('order_forgotten', String(this.context.startedAt));
  }
}

function isChange(kind: Executed['kind']): boolean {
  return kind === 'trade_cancelled' || kind === 'trade_corrected';
}

/** The shares of a trade after all that was changed of it. Undefined: no such trade is known. */
function sharesNow(execId: string | null, executed: ReadonlyMap<string, Executed>): bigint | undefined {
  const named = execId === null ? undefined : executed.get(execId);
  if (named === undefined || execId === null) return undefined;
  const root = isChange(named.kind) ? (named.execRefId ?? '') : execId;
  const trade = executed.get(root);
  if (trade?.kind !== 'trade') return undefined;
  const changes = [...executed].filter(([id, each]) => {
    const about = each.execRefId ?? '';
    return isChange(each.kind) && (about === root || executed.get(about)?.execRefId === root) && id !== root;
  });
  return changes.at(-1)?.[1].quantity ?? trade.quantity ?? undefined;
}

/** Names an execution whose ExecID another one has had. */
function digestOf({ execId, says, lastQty, lastPriceKobo, cumQty }: Execution): string {
  return createHash('sha256').update([execId, says, lastQty, lastPriceKobo, cumQty].join('\u0001')).digest('hex');
}

/** The exchange's id of the order. `NONE` stands where it has none. */
function exchangeIdOf(message: Message): string | undefined {
  const id = message.get(tags.OrderID);
  return id === undefined || id === 'NONE' || id.length > 64 ? undefined : id;
}
