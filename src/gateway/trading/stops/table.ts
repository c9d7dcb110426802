import { type Statement, statement } from '../../store/statement.ts';
import { defineTable, instant, optional, type RowOf, text } from '../../store/table.ts';
import type { StopTarget } from './rules.ts';

/**
 * Operators' stops. A stop begins and ends under the lock of the environment's row, and each time its
 * `stops_version` grows: so a transaction that finds the version unchanged knows all stops that are open.
 */
export const stops = defineTable({
  name: 'stops',
  columns: {
    id: text(24),
    /** The partner that it concerns; null: it may concern several. */
    partnerId: optional(text(24)),
    target: text<StopTarget>(16),
    /** The partner's id, the account or the symbol; empty for everything. */
    value: text(64),
    /** Names separated by commas. */
    actions: text(64),
    reason: text(200),
    startedBy: text(64),
    startedAt: instant(),
    /** Business time; null: it holds until somebody ends it. */
    endsAt: optional(instant()),
    /** Null while it is open. One whose time is over is ended when the next stop begins. */
    endedAt: optional(instant()),
    /** Null if its time was over. */
    endedBy: optional(text(64)),
    endReason: optional(text(200)),
  },
  primary: ['id'],
  indexes: { stops_ended_at: ['endedAt', 'id'] },
});

export type StoredStop = RowOf<typeof stops>;

/** The fields that decide whether a stop forbids something. */
export const openStop = stops.only('id', 'target', 'value', 'actions', 'endsAt');

const isOpen = 'FROM stops FORCE INDEX (stops_ended_at) WHERE ended_at IS NULL';

/** Reads the open stops in a transaction that holds the environment's row: none begins or ends before it commits. */
export const readOpenStops: Statement = statement(`SELECT ${openStop.list} ${isOpen} LOCK IN SHARE MODE`);

/** Ends the open stops whose time is over, so that the open ones are few. `now` is business time. */
export function endOverdueStops(now: number): Statement {
  return statement(`UPDATE stops SET ended_at = ends_at WHERE ended_at IS NULL AND ends_at <= ?`, new Date(now));
}

/** A page of the open stops or of the ended ones, the newest first. */
export function listStops(ended: boolean, beforeId: string, most: number): Statement {
  const [index, state] = ended ? ['PRIMARY', 'NOT NULL'] : ['stops_ended_at', 'NULL'];
  const from = `SELECT ${stops.all.list} FROM stops FORCE INDEX (${index}) WHERE ended_at IS ${state}`;
  return statement(`${from} AND (? = '' OR id < ?) ORDER BY id DESC LIMIT ${most}`, beforeId, beforeId);
}
