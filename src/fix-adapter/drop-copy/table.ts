import { defineTable, exactText, flag, instant, optional, type RowOf, text, whole } from '../../gateway/store/table.ts';

/**
 * The numbers of the drop copy's session, in one row. `fence` is that of the lease's holder, and `bookedTo` the number of the last
 * report of the order session that was held against the drop copy. `changedTo` is the same of its trades that were taken back or
 * corrected. `passedOverTo` is the number of the last report when messages of the drop copy were passed over: their copies may
 * have been among these.
 */
export const dropCopyNumbers = defineTable({
  name: 'fix_drop_copy_numbers',
  columns: {
    id: whole(),
    fence: whole(),
    nextOut: whole(),
    nextIn: whole(),
    startedAt: instant(),
    bookedTo: whole(),
    changedTo: whole(),
    passedOverTo: whole(),
  },
  primary: ['id'],
});

export type DropCopyNumbers = RowOf<typeof dropCopyNumbers>;

/**
 * The trades of the drop copy, and what takes them back (`cancelled`) or corrects them: `execRefId` is then the trade's ExecID.
 * `reportId` is the TradeReportID of a TradeCaptureReport, otherwise empty. `named` is the order that its ClOrdID names, empty if it
 * has none; `symbol` and `side` are the exchange's, empty if they were not stated; `quantity` and `priceKobo` are 0 if they could not be
 * read. `at` is when it came, and `tradedAt` when the trade happened, null if that was not stated. Those of orders that are not ours are
 * removed when they are compared.
 */
export const dropCopyTrades = defineTable({
  name: 'fix_drop_copy',
  columns: {
    id: whole(),
    named: exactText(64),
    exchangeOrderId: text(64),
    kind: text<'trade' | 'cancelled' | 'corrected'>(12),
    execId: exactText(64),
    execRefId: exactText(64),
    reportId: exactText(64),
    quantity: whole(),
    priceKobo: whole(),
    at: instant(),
    compared: flag(),
    symbol: text(64),
    side: text(8),
    tradedAt: optional(instant()),
  },
  primary: ['id'],
  generated: 'id',
  indexes: {
    fix_drop_copy_due: ['compared', 'at'],
    fix_drop_copy_exec: ['execId'],
    fix_drop_copy_ref: ['execRefId'],
    fix_drop_copy_report: ['reportId'],
  },
});

export type DropCopyTrade = RowOf<typeof dropCopyTrades>;
