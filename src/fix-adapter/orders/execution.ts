import { createHash } from 'node:crypto';
import { isPrintableAscii } from '../../kit/printable.ts';
import type { Field } from '../wire/message.ts';
import { tags } from '../wire/tags.ts';

/** An application message of the exchange. */
export interface ExchangeMessage {
  readonly type: string;
  get(tag: number): string | undefined;
  readonly fields?: readonly Field[];
  /** False: some of it could not be read. */
  readonly isWhole?: boolean;
  /** The beginning of a message that could not be read. */
  readonly bytes?: Buffer;
}

/**
 * The meaning of an ExecutionReport for its order. `…_status`: it answers a question, which rejects and ends nothing by
 * itself. `rejected_when_asked`: a rejection that may be such an answer.
 */
export type ExecutionMeaning =
  | 'pending'
  | 'new'
  | 'trade'
  | 'cancelled'
  | 'expired'
  | 'rejected'
  | 'rejected_when_asked'
  | 'duplicate'
  | 'restated'
  | 'replaced'
  | 'trade_cancelled'
  | 'trade_corrected'
  | 'other'
  | 'pending_status'
  | 'live_status'
  | 'filled_status'
  | 'cancelled_status'
  | 'expired_status'
  | 'unknown_status'
  | 'rejected_status'
  | 'other_status';

/** An ExecutionReport as far as it could be read. */
export interface ExecutionReport {
  readonly says: ExecutionMeaning;
  /** Whether it answers a question about the order. */
  readonly isStatus: boolean;
  readonly execType: string;
  readonly ordStatus: string;
  readonly execId: string | null;
  readonly execRefId: string | null;
  readonly lastQty: bigint | undefined;
  readonly lastPriceKobo: bigint | undefined;
  readonly cumQty: bigint | undefined;
  readonly leavesQty: bigint | undefined;
}

export interface ReadContext {
  /** A price in kobo; undefined if it is none. */
  readonly toKobo: (text: string) => bigint | undefined;
  readonly timeInForce: string;
  /** Whether a question about the order, or a request to cancel it, has no answer yet. */
  readonly asked: boolean;
}

/** ExecType (150) of a report. 1 and 2 are the trades of FIX 4.2, which some still send. Stopped, suspended and calculated orders live. */
const statements: Readonly<Record<string, ExecutionMeaning | undefined>> = {
  '0': 'new',
  '7': 'new',
  '9': 'new',
  B: 'new',
  '1': 'trade',
  '2': 'trade',
  F: 'trade',
  '4': 'cancelled',
  C: 'expired',
  '8': 'rejected',
  A: 'pending',
  '6': 'pending',
  E: 'pending',
  D: 'restated',
  '5': 'replaced',
  G: 'trade_corrected',
  H: 'trade_cancelled',
};

/** OrdStatus (39) of an answer. Pending cancels and replaces, stopped, suspended and calculated orders live. */
const statuses: Readonly<Record<string, ExecutionMeaning | undefined>> = {
  '0': 'live_status',
  '1': 'live_status',
  '5': 'live_status',
  '6': 'live_status',
  '7': 'live_status',
  '9': 'live_status',
  B: 'live_status',
  D: 'live_status',
  E: 'live_status',
  '2': 'filled_status',
  '4': 'cancelled_status',
  C: 'expired_status',
  A: 'pending_status',
};

const orderStatus = 'I';
const rejected = '8';
const doneForDay = '3';

/** OrdRejReason (103). */
const unknownOrder = '5';
const duplicateOrder = '6';

/** Fields that must not stand twice: nobody could tell which one is meant. */
const decisive = [
  ...[tags.ClOrdID, tags.OrigClOrdID, tags.ExecType, tags.OrdStatus, tags.ExecID, tags.ExecRefID, tags.LastQty],
  ...[tags.LastPx, tags.CumQty, tags.LeavesQty, tags.AvgPx, tags.Side, tags.Symbol, tags.Account, tags.OrderQty],
  ...[tags.Price, tags.OrdRejReason, tags.OrdStatusReqID],
];

/** Reads an ExecutionReport. It interprets each field alone, and judges none. */
export function readExecution(message: ExchangeMessage, context: ReadContext): ExecutionReport {
  const execType = message.get(tags.ExecType) ?? '';
  const ordStatus = message.get(tags.OrdStatus) ?? '';
  const isStatus = answersQuestion(message);
  const cumQty = wholeOf(message.get(tags.CumQty));
  const says = isStatus ? statusOf(message, ordStatus, cumQty, context) : reportOf(message, execType, context);
  return {
    says: hasTwice(message, decisive) ? (isStatus ? 'other_status' : 'other') : says,
    isStatus,
    execType,
    ordStatus,
    execId: isStatus ? null : (execIdOf(message) ?? (says === 'trade' ? namelessId(message) : null)),
    execRefId: shortId(message.get(tags.ExecRefID)) ?? null,
    lastQty: wholeOf(message.get(tags.LastQty)),
    lastPriceKobo: context.toKobo(message.get(tags.LastPx) ?? ''),
    cumQty,
    leavesQty: wholeOf(message.get(tags.LeavesQty)),
  };
}

/** Whether a message answers a question of ours, whatever its ExecType. */
export function answersQuestion(message: ExchangeMessage): boolean {
  return (
    message.get(tags.ExecType) === orderStatus ||
    message.get(tags.OrdStatusReqID) !== undefined ||
    message.get(tags.MassStatusReqID) !== undefined
  );
}

function reportOf(message: ExchangeMessage, execType: string, { timeInForce, asked }: ReadContext): ExecutionMeaning {
  if (execType === rejected) {
    // The exchange has the first of two orders of one id, and the second is not ours to give up for.
    if (message.get(tags.OrdRejReason) === duplicateOrder) return 'duplicate';
    // "Unknown order" answers something: a question, or a cancel.
    const isAnswer = asked || message.get(tags.OrdRejReason) === unknownOrder;
    return isAnswer ? 'rejected_when_asked' : 'rejected';
  }
  // A good-till-cancelled order goes on the next day.
  if (execType === doneForDay) return timeInForce === 'gtc' ? 'new' : 'expired';
  return statements[execType] ?? 'other';
}

/** Some exchanges give no reason for an order that they do not have. */
function statusOf(
  message: ExchangeMessage,
  ordStatus: string,
  cumQty: bigint | undefined,
  { timeInForce }: ReadContext,
): ExecutionMeaning {
  if (ordStatus === rejected) {
    const reason = message.get(tags.OrdRejReason);
    // A mass status lists orders, so what it says of an order that it does not list is certified by nobody.
    const isOfMass = message.get(tags.MassStatusReqID) !== undefined;
    const isUnknown = (reason === unknownOrder || reason === undefined) && (cumQty ?? 0n) === 0n && !isOfMass;
    return isUnknown ? 'unknown_status' : 'rejected_status';
  }
  if (ordStatus === doneForDay) return timeInForce === 'gtc' ? 'live_status' : 'expired_status';
  return statuses[ordStatus] ?? 'other_status';
}

/** Whether one of these fields stands twice. */
function hasTwice({ fields = [] }: ExchangeMessage, some: readonly number[]): boolean {
  return some.some((tag) => fields.filter(([each]) => each === tag).length > 1);
}

/** Names a trade without an ExecID by what it says, so that it is booked once. */
export function namelessId(message: ExchangeMessage): string {
  const said = [tags.LastQty, tags.LastPx, tags.CumQty, tags.TransactTime].map((tag) => message.get(tag) ?? '');
  return createHash('sha256').update(said.join('\u0001')).digest('hex');
}

/** The ExecID as the record keeps it: one that is long, or not printable, by its digest. */
export function execIdOf(message: ExchangeMessage): string | undefined {
  return shortId(message.get(tags.ExecID));
}

function shortId(id: string | undefined): string | undefined {
  if (id === undefined || isPrintableAscii(id, 64)) return id;
  return createHash('sha256').update(id).digest('hex');
}

/** A whole number, which an exchange may write with zeros in front, or behind a decimal point. */
export function wholeOf(text: string | undefined): bigint | undefined {
  const [, digits] = /^0*(\d{1,15})(?:\.0*)?$/.exec(text ?? '') ?? [];
  return digits === undefined ? undefined : BigInt(digits);
}
