import type { Clock } from '../../../kit/clock.ts';
import { groupBy } from '../../../kit/group.ts';
import { countWaiting } from '../../delivery/events/outbox.ts';
import { keptEvents } from '../../delivery/events/retention.ts';
import { keptWebhooks } from '../../delivery/webhooks/record/delivery-store.ts';
import type { Database } from '../../store/database.ts';
import { hasNotRunOut, type SqlRow, type Statement, statement } from '../../store/statement.ts';
import { keptKeys } from '../../trading/submission/key-retention.ts';
import { keptUnclaimed } from '../../trading/submission/unclaimed-retention.ts';
import { overdueProposals } from '../calls/proposals/table.ts';

export type BacklogFigures = Awaited<ReturnType<typeof readBacklog>>;

/** The most rows of a kind that are counted. An exact number beyond it is not worth its cost. */
export const maxCounted = 10_000;
const maxLeases = 1_000;

const tables = { order: 'orders', application: 'applications', allocation: 'allocations' } as const;
const kinds = Object.keys(tables) as (keyof typeof tables)[];
const removed = [
  keptEvents,
  ...keptWebhooks,
  keptUnclaimed,
  overdueProposals,
  ...kinds.map((kind) => keptKeys(kind, tables[kind])),
];
const states = ['sending', 'uncertain', 'other'] as const;

/**
 * Reads the backlog in one round trip: objects with an unknown outcome, events that the webhooks have not consumed, leases, and rows that are
 * older than they should be.
 *
 * `oldestMs` is the age of the oldest, 0 if there is none: of objects in business time, of events in real time. The state
 * `other` stands for missed reports and for states of other versions, and its `oldestMs` is the real time since a poll
 * was due. `overdueMs` says for each worker that removes old rows since when the oldest should be gone.
 */
export async function readBacklog(database: Database, clock: Clock) {
  const rows = await database.readAll([
    ...kinds.map((kind) => countUnsettled(tables[kind])),
    countWaiting(maxCounted),
    statement(`SELECT name, holder FROM leases WHERE ${hasNotRunOut('expires_at')} ORDER BY name LIMIT ${maxLeases}`),
    ...removed.map(({ oldest }) => oldest),
  ]);
  const afterLeases = kinds.length + 2;
  const [now, realNow] = [clock.now(), clock.realNow()];
  return {
    unsettled: kinds.flatMap((kind, index) =>
      states.map((state) => ({
        kind,
        state,
        ...figureOf(
          rows[index]?.find((row) => row.shown_state === state),
          state === 'other' ? realNow : now,
        ),
      })),
    ),
    outbox: figureOf(rows[kinds.length]?.[0], realNow),
    leases: (rows[afterLeases - 1] ?? []).map((row) => ({ name: String(row.name), holder: String(row.holder) })),
    removal: [...groupBy([...removed.entries()], ([, { name }]) => name)].map(([worker, own]) => ({
      worker,
      overdueMs: Math.max(
        ...own.map(([at, { keptMs, isReal }]) => {
          return figureOf(rows[afterLeases + at]?.[0], (isReal === true ? realNow : now) - keptMs).oldestMs;
        }),
      ),
    })),
  };
}

/** Counts the objects that the reconciler will query, now or later. */
function countUnsettled(table: string): Statement {
  return statement(
    `SELECT IF(state IN ('sending', 'uncertain'), state, 'other') AS shown_state, COUNT(*) AS count,
      MIN(IF(state IN ('sending', 'uncertain'), created_at, check_at)) AS oldest FROM
      (SELECT state, created_at, check_at FROM ${table} FORCE INDEX (${table}_check_at) WHERE check_at IS NOT NULL
        ORDER BY check_at LIMIT ${maxCounted}) AS due
      GROUP BY shown_state`,
  );
}

function figureOf(row: SqlRow | undefined, now: number): { count: number; oldestMs: number } {
  const oldest = (row?.oldest ?? null) as Date | null;
  return { count: Number(row?.count ?? 0), oldestMs: oldest === null ? 0 : Math.max(0, now - oldest.getTime()) };
}
