import type { ReconciliationState } from '../../../gen/marina/admin/v1/reconciliation_pb.ts';
import type { EnumName } from '../../../kit/enums.ts';
import {
  count,
  day,
  defineTable,
  flag,
  instant,
  optional,
  type RowOf,
  shortened,
  text,
  whole,
} from '../../store/table.ts';
import type { BreakKindName, HoldingRecord } from './rules.ts';

/** The day that is compared with a statement. Runs, records and breaks are kept by it. */
export interface ComparedDay {
  readonly day: string;
}

/** Only the columns of a row by which it is kept. */
export function comparedDay({ day }: ComparedDay): ComparedDay {
  return { day };
}

export type RunState = EnumName<typeof ReconciliationState>;

/** What a run does next. */
export type RunStep =
  | 'clear'
  | 'fetch'
  | 'statement'
  | 'objects'
  | 'holdings'
  /** An earlier version does not know it, and ends the run here. */
  | 'accounts'
  /** The broker has no statement of the day before, from which positions and money follow. */
  | 'without_before'
  | 'objects_without_before'
  | 'accounts_without_before'
  | 'gone_without_before'
  | 'gone'
  | 'end_without_before'
  | 'end';

/** Every comparison of a day with the broker's statement. Times are business time. */
export const reconciliationRuns = defineTable({
  name: 'reconciliation_runs',
  columns: {
    day: day(),
    /** Its number among the runs of the day, from 1. */
    number: count(),
    state: text<RunState>(16),
    /** The operator who started it; null: the worker did. */
    startedBy: optional(text(64)),
    startedAt: instant(),
    endedAt: optional(instant()),
    /** When the worker goes on with it; null: it needs nothing more. */
    nextAt: optional(instant()),
    tries: count(),
    /** Why the last try did not complete, or what it did not compare. */
    problem: shortened(300),
    step: text<RunStep>(24),
    /** How far the step is, as the step writes it. */
    position: text(500),
    periodFrom: optional(instant()),
    periodTo: optional(instant()),
    /** The statement's records that were read. */
    records: whole(),
    /** The gateway's orders, allocations and withdrawals that were compared. */
    objects: whole(),
    breaks: whole(),
    /** How long the worker worked on it, in real time. */
    tookMs: whole(),
  },
  primary: ['day', 'number'],
  indexes: {
    reconciliation_runs_next_at: ['nextAt', 'day', 'number'],
    reconciliation_runs_state: ['state', 'day', 'number'],
  },
});

export type StoredRun = RowOf<typeof reconciliationRuns>;

/** The records of statements, while their days are compared. */
export const reconciliationItems = defineTable({
  name: 'reconciliation_items',
  columns: {
    day: day(),
    /** The id the gateway gave the order, allocation or withdrawal, as the broker has it; empty if it has none. */
    objectId: text(64),
    section: text<HoldingRecord['section']>(16),
    /**
     * What else tells it apart: a trade's account and id, a position's account and symbol, a balance's account. Of a withdrawal
     * its destination, of a note (`notes`) its name.
     */
    itemId: text(130),
    account: text(64),
    /** Empty if it has none, as an allocation, a withdrawal and a balance. */
    symbol: text(20),
    side: text<'' | 'buy' | 'sell'>(4),
    state: text(16),
    /** Of an order its shares, of a trade and a position theirs; otherwise 0. */
    quantity: whole(),
    /** Of a trade its change of the money, of an allocation or withdrawal its amount, of a balance the balance; null: not stated. */
    amountKobo: optional(whole()),
    /** Of an order its filled quantity, of a trade its price, of a balance the other changes; null: not stated. */
    otherKobo: optional(whole()),
    /** The exchange's or the broker's own id. */
    reference: text(64),
    at: optional(instant()),
  },
  primary: ['day', 'objectId', 'section', 'itemId'],
  indexes: { reconciliation_items_account: ['day', 'account', 'symbol', 'objectId', 'section', 'itemId'] },
});

export type StoredItem = RowOf<typeof reconciliationItems>;

/**
 * The notes of a run about itself, among the records of its day. An earlier version writes none and passes over them. So a run
 * that it began has none, and compares no more than that version does.
 */
export type RunNote =
  /** The statement's withdrawals are read. */
  | 'withdrawals_read'
  /** They are not, and the gateway has some that may belong to the day. */
  | 'withdrawals_left_out'
  /** The transactions of all accounts that moved are compared. */
  | 'transactions_read'
  /** They are not: the broker does not offer them. */
  | 'transactions_not_offered';

/** A record of a day without any value. */
export function newItem(of: ComparedDay): Omit<StoredItem, 'section'> {
  return {
    ...{ ...comparedDay(of), objectId: '', itemId: '', account: '', symbol: '', side: '', state: '', reference: '' },
    ...{ quantity: 0n, amountKobo: null, otherKobo: null, at: null },
  };
}

/** The differences found. Times are business time. */
export const reconciliationBreaks = defineTable({
  name: 'reconciliation_breaks',
  columns: {
    /** Empty when it is not known. */
    partnerId: text(24),
    /** Made from the day, the kind and what it is about, so that each run finds the same break. */
    id: text(24),
    day: day(),
    kind: text<BreakKindName>(24),
    objectId: text(64),
    account: text(64),
    symbol: text(20),
    ours: shortened(300),
    brokers: shortened(300),
    /** The gateway does not know the outcome of the object. */
    isUnsettled: flag(),
    /** It is still found, and nobody has acknowledged it. */
    isOpen: flag(),
    /** The number of the last run of the day that found it. */
    run: count(),
    firstSeenAt: instant(),
    lastSeenAt: instant(),
    goneAt: optional(instant()),
    acknowledgedBy: optional(text(64)),
    acknowledgedAt: optional(instant()),
    acknowledgedReason: optional(text(200)),
  },
  primary: ['partnerId', 'day', 'id'],
  indexes: {
    reconciliation_breaks_day: ['day', 'id'],
    reconciliation_breaks_open: ['isOpen', 'day', 'id'],
    reconciliation_breaks_partner_open: ['partnerId', 'isOpen', 'day', 'id'],
  },
  unique: { reconciliation_breaks_id: ['id'] },
});

export type StoredBreak = RowOf<typeof reconciliationBreaks>;
