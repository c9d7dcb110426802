import { defineTable, exactText, instant, optional, type RowOf, shortened, text, whole } from '../../db/table.ts';

/**
 * What is known of an order. `sending`: it has its number, and may have been written; the exchange has sent no report of
 * it yet. `unsent`: the exchange does not have it and never will. `open`: the exchange has it. `final`: it has ended.
 */
export type FixOrderState = 'sending' | 'unsent' | 'open' | 'final';

/** What is known of a request to cancel. `refused`: the exchange did not cancel by it. */
export type FixCancelState = 'sending' | 'unsent' | 'done' | 'refused';

/** The kind of a report, as `ReportKind`. */
export type FixReportKind = 'accepted' | 'rejected' | 'trade' | 'cancelled' | 'expired';

/** Why an operator must look. */
export type FindingKind =
  | 'unknown_order'
  | 'trade_cancelled'
  | 'trade_corrected'
  | 'restated'
  | 'overfilled'
  | 'counted_twice'
  | 'trades_missing'
  | 'revived'
  | 'not_ended'
  | 'not_understood';

/**
 * The session's next numbers since its numbering began, and the last numbers of what counts for ever. One row, which every
 * write changes: `version` counts them, and `fence` is that of the lease's holder.
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
  },
  primary: ['id'],
});

export type FixNumbers = RowOf<typeof fixNumbers>;

/** Of what was given a number: in which numbering of the session, and which one. */
const numbered = { startedAt: instant(), number: whole() };

/** Every order that was given a number. */
export const fixOrders = defineTable({
  name: 'fix_orders',
  columns: {
    id: exactText(64),
    account: text(64),
    symbol: text(32),
    side: text<'buy' | 'sell'>(8),
    quantity: whole(),
    type: text<'limit' | 'market'>(8),
    timeInForce: text<'day' | 'gtc' | 'ioc' | 'fok'>(8),
    priceKobo: optional(whole()),
    notAfter: instant(),
    receivedAt: instant(),
    note: { ...exactText(2_048), read: (stored: unknown) => stored as Buffer, write: (value: Buffer) => value },
    ...numbered,
    state: text<FixOrderState>(8),
    exchangeOrderId: text(64),
    filled: whole(),
  },
  primary: ['id'],
  indexes: { fix_orders_state: ['state', 'receivedAt'], fix_orders_number: ['startedAt', 'number'] },
});

export type FixOrder = RowOf<typeof fixOrders>;

/** Every report, numbered without a gap. One that no ExecutionReport brought has no ExecID. */
export const fixReports = defineTable({
  name: 'fix_reports',
  columns: {
    number: whole(),
    orderId: exactText(64),
    exchangeOrderId: text(64),
    kind: text<FixReportKind>(12),
    at: instant(),
    quantity: optional(whole()),
    priceKobo: optional(whole()),
    rejectReason: optional(text(32)),
    execId: optional(exactText(64)),
  },
  primary: ['number'],
  indexes: { fix_reports_order: ['orderId', 'number'] },
  unique: { fix_reports_exec: ['orderId', 'execId'] },
});

export type FixReport = RowOf<typeof fixReports>;

/** Every request to cancel that was given a number. */
export const fixCancels = defineTable({
  name: 'fix_cancels',
  columns: {
    id: exactText(70),
    orderId: exactText(64),
    requestedAt: instant(),
    ...numbered,
    state: text<FixCancelState>(8),
  },
  primary: ['id'],
  indexes: { fix_cancels_order: ['orderId'], fix_cancels_number: ['startedAt', 'number'] },
});

export type FixCancel = RowOf<typeof fixCancels>;

/** What was taken, in the order in which it was. The notes of orders are with the orders. */
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

/** What an operator must look at, because the broker's protocol has no report for it. */
export const fixFindings = defineTable({
  name: 'fix_findings',
  columns: {
    id: whole(),
    at: instant(),
    what: text<FindingKind>(20),
    orderId: exactText(64),
    execId: exactText(64),
    detail: shortened(500),
  },
  primary: ['id'],
  generated: 'id',
  indexes: { fix_findings_at: ['at'] },
});

export type Finding = Omit<RowOf<typeof fixFindings>, 'id'>;
