import {
  defineTable,
  exactText,
  flag,
  instant,
  longText,
  manyBytes,
  optional,
  type RowOf,
  shortened,
  text,
  whole,
} from '../../gateway/store/table.ts';
import type { OrderType, Side, TimeInForce } from '../../gen/marina/broker/v1/orders_pb.ts';
import type { EnumName } from '../../kit/enums.ts';

/**
 * The state of an order. `sending`: it has its number, and may have been written; the exchange has sent no report of it
 * yet. `unsent`: the exchange does not have it and never will. `open`: the exchange has it. `final`: it has ended.
 */
export type FixOrderState = 'sending' | 'unsent' | 'open' | 'final';

/**
 * The state of a request to cancel. `refused`: the exchange did not cancel by it. `lost`: the exchange did not answer
 * in time, and another one was sent.
 */
export type FixCancelState = 'sending' | 'unsent' | 'done' | 'refused' | 'lost';

/** How an order ends without all its shares. */
export type FixEnd = 'cancelled' | 'expired' | 'rejected';

/** The kind of a report, as `ReportKind`. */
export type FixReportKind = 'accepted' | 'rejected' | 'trade' | 'cancelled' | 'expired';

/** Why an operator must look: docs/FIX-EVIDENCE.md has what each means and what to do. */
export const findingKinds = [
  'unknown_order',
  'trade_cancelled',
  'trade_corrected',
  'restated',
  'terms_differ',
  'identity_differs',
  'order_id_differs',
  'worse_than_limit',
  'price_implausible',
  'average_differs',
  'exec_id_reused',
  'overfilled',
  'counted_twice',
  'trades_missing',
  'counts_disagree',
  'end_unproven',
  'end_contradicted',
  'rejection_unproven',
  'status_rejected',
  'order_forgotten',
  'absence_unproven',
  'revived',
  'not_ended',
  'drop_copy_differs',
  'unsupported',
  'unreadable',
  'not_understood',
] as const;

export type FindingKind = (typeof findingKinds)[number];

/**
 * The session's next numbers since its numbering began, and the last numbers of what counts for ever. One row, which every
 * write changes: `version` counts them, and `fence` is that of the lease's holder. `restored`: the database came back from a
 * backup, so that it may lack what was sent since, and proves nothing absent.
 */
export const fixNumbers = defineTable({
  name: 'fix_numbers',
  columns: {
    id: whole(),
    fence: whole(),
    version: whole(),
    nextOut: whole(),
    nextIn: whole(),
    startedAt: instant(),
    lastReport: whole(),
    lastSubmission: whole(),
    backOfficeSubmission: whole(),
    restored: flag(),
  },
  primary: ['id'],
});

export type FixNumbers = RowOf<typeof fixNumbers>;

/** Of what was given a number: in which numbering of the session, and which one. */
const numbered = { startedAt: instant(), number: whole() };

/**
 * Every order that was given a number. What the rule of evidence must know of it:
 * - `acknowledged`: the exchange has named it as its own in some form, so its absence cannot be believed later.
 * - `passedOver`: a message of the exchange was passed over since it was sent.
 * - `mustAsk`: the exchange must be asked about it, because a message about it may have been passed over.
 * - `asked`: a question about it has no answer yet, so that a rejection may be the answer.
 * - `adjusted`: the shares that trades taken back or changed add to `filled` in the exchange's count.
 * - `referenceKobo`: a price from when it was placed, against which trades are held to be plausible.
 * - `endedAs`, `endedCount`: the exchange ended it with a count of trades of which some did not come.
 * - `noted`: the findings that need not be repeated.
 * - `settled`: an operator has settled it elsewhere, so nobody asks about it. A report of the exchange still counts.
 *
 * `partner` is the gateway's id of the partner whose order it is; empty if it was not stated. `clOrdId` is the name (ClOrdID) under
 * which the exchange has the order.
 */
export const fixOrders = defineTable({
  name: 'fix_orders',
  columns: {
    id: exactText(64),
    account: text(64),
    symbol: text(32),
    side: text<EnumName<typeof Side>>(8),
    quantity: whole(),
    type: text<EnumName<typeof OrderType>>(8),
    timeInForce: text<EnumName<typeof TimeInForce>>(8),
    priceKobo: optional(whole()),
    notAfter: instant(),
    receivedAt: instant(),
    note: { ...exactText(2_048), read: (stored: unknown) => stored as Buffer, write: (value: Buffer) => value },
    ...numbered,
    state: text<FixOrderState>(8),
    exchangeOrderId: text(64),
    filled: whole(),
    acknowledged: flag(),
    passedOver: flag(),
    mustAsk: flag(),
    asked: flag(),
    adjusted: whole(),
    filledValueKobo: whole(),
    referenceKobo: optional(whole()),
    endedAs: optional(text<FixEnd>(12)),
    endedCount: optional(whole()),
    noted: text(400),
    settled: flag(),
    partner: text(64),
    clOrdId: exactText(64),
  },
  primary: ['id'],
  indexes: {
    fix_orders_state: ['state', 'receivedAt'],
    fix_orders_number: ['startedAt', 'number'],
    fix_orders_must_ask: ['mustAsk', 'receivedAt'],
    fix_orders_exchange: ['exchangeOrderId'],
  },
});

export type FixOrder = RowOf<typeof fixOrders>;

/**
 * The exchange's words about a rejection or an end, for operators: its reason's field, such as `OrdRejReason=99`, and
 * its text.
 */
const said = { exchangeReason: optional(shortened(64)), exchangeText: optional(shortened(500)) };

/**
 * Every report, numbered without a gap. One that no ExecutionReport brought has no ExecID. `at` is null if the exchange did not
 * state when it happened; `counted` is the CumQty that it stated.
 */
export const fixReports = defineTable({
  name: 'fix_reports',
  columns: {
    number: whole(),
    orderId: exactText(64),
    exchangeOrderId: text(64),
    kind: text<FixReportKind>(12),
    at: optional(instant()),
    quantity: optional(whole()),
    priceKobo: optional(whole()),
    rejectReason: optional(text(32)),
    execId: optional(exactText(64)),
    counted: optional(whole()),
    ...said,
  },
  primary: ['number'],
  indexes: { fix_reports_order: ['orderId', 'number'] },
  unique: { fix_reports_exec: ['orderId', 'execId'] },
});

export type FixReport = RowOf<typeof fixReports>;

/** A trade that the exchange took back (150=H) or corrected (150=G), with what it has become. */
export const fixTradeChanges = defineTable({
  name: 'fix_trade_changes',
  columns: {
    id: whole(),
    orderId: exactText(64),
    execId: optional(exactText(64)),
    execRefId: exactText(64),
    kind: text<'cancelled' | 'corrected'>(12),
    quantity: optional(whole()),
    priceKobo: optional(whole()),
    counted: optional(whole()),
    at: instant(),
  },
  primary: ['id'],
  generated: 'id',
  unique: { fix_trade_changes_exec: ['orderId', 'execId'] },
});

export type FixTradeChange = Omit<RowOf<typeof fixTradeChanges>, 'id'>;

/** Every request to cancel that was given a number. */
export const fixCancels = defineTable({
  name: 'fix_cancels',
  columns: {
    id: exactText(70),
    orderId: exactText(64),
    requestedAt: instant(),
    ...numbered,
    state: text<FixCancelState>(8),
    ...said,
  },
  primary: ['id'],
  indexes: { fix_cancels_order: ['orderId'], fix_cancels_number: ['startedAt', 'number'] },
});

export type FixCancel = RowOf<typeof fixCancels>;

/** The submissions that were taken, in their order. The notes of orders are with the orders. */
export const fixSubmissions = defineTable({
  name: 'fix_submissions',
  columns: {
    number: whole(),
    clientId: exactText(64),
    note: optional({
      ...exactText(2_048),
      read: (stored: unknown) => stored as Buffer,
      write: (value: Buffer) => value,
    }),
  },
  primary: ['number'],
  unique: { fix_submissions_client: ['clientId'] },
});

/**
 * A finding that an operator must look at: a statement of the exchange that does not prove itself. `facts` has the
 * message's fields by name, as JSON; `bytes` a message that could not be read.
 */
export const fixFindings = defineTable({
  name: 'fix_findings',
  columns: {
    id: whole(),
    at: instant(),
    what: text<FindingKind>(20),
    orderId: exactText(64),
    execId: exactText(64),
    detail: shortened(500),
    facts: optional(longText()),
    bytes: optional(manyBytes()),
  },
  primary: ['id'],
  generated: 'id',
  indexes: { fix_findings_at: ['at'], fix_findings_order: ['orderId', 'id'] },
});

export type Finding = Omit<RowOf<typeof fixFindings>, 'id'>;

/**
 * How many messages of a type that is not supported came in a session day, which begins at `day`. They have one finding.
 */
export const fixUnsupported = defineTable({
  name: 'fix_unsupported',
  columns: { day: instant(), type: exactText(8), findingId: whole(), messages: whole(), lastAt: instant() },
  primary: ['day', 'type'],
  indexes: { fix_unsupported_finding: ['findingId'] },
});

export type UnsupportedType = RowOf<typeof fixUnsupported>;

/** A finding that an operator has settled. */
export const fixFindingSettlements = defineTable({
  name: 'fix_finding_settlements',
  columns: { findingId: whole(), at: instant(), operator: text(64), note: shortened(500) },
  primary: ['findingId'],
});

export type FindingSettlement = RowOf<typeof fixFindingSettlements>;
