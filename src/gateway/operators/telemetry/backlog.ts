import type { Clock } from '../../../kit/clock.ts';
import { groupBy } from '../../../kit/group.ts';
import { countWaiting } from '../../delivery/events/outbox.ts';
import { keptEvents } from '../../delivery/events/retention.ts';
import { keptWebhooks } from '../../delivery/webhooks/record/delivery-store.ts';
import type { Database } from '../../store/database.ts';
import { hasNotRunOut, joined, type SqlRow, type Statement, statement } from '../../store/statement.ts';
import { storedKinds } from '../../trading/kinds.ts';
import { keptBulkCancels } from '../../trading/orders/bulk-cancels/retention.ts';
import { keptKeys } from '../../trading/submission/key-retention.ts';
import { keptUnclaimed } from '../../trading/submission/unclaimed-retention.ts';
import { acknowledgedAt } from '../calls/diagnostics/acknowledgements.ts';
import { countOpenContradictions, openContradictions } from '../calls/diagnostics/contradictions.ts';
import { countOpenProposals, overdueProposals } from '../calls/proposals/table.ts';
import { countHeld } from '../calls/releases/table.ts';

export type BacklogFigures = Awaited<ReturnType<typeof readBacklog>>;

/** The most rows of a kind that are counted. An exact number beyond it is not worth its cost. */
export const maxCounted = 10_000;
const maxLeases = 1_000;

const removed = [
  keptEvents,
  ...keptWebhooks,
  keptUnclaimed,
  keptBulkCancels,
  overdueProposals,
  ...storedKinds.map(({ name, table }) => keptKeys(name, table.name)),
];
const states = ['sending', 'uncertain', 'other'] as const;

/**
 * Reads the backlog in one round trip: objects with an unknown outcome, withdrawals that wait for their release, events that the
 * webhooks have not consumed, open proposals and contradictions, leases, and rows that are older than they should be.
 *
 * `oldestMs` is the age of the oldest, 0 if there is none: of events in real time, of the others in business time. The state
 * `other` stands for missed reports and for states of other versions, and its `oldestMs` is the real time since a poll
 * was due. `overdueMs` says for each worker that removes old rows since when the oldest should be gone.
 */
export async function readBacklog(database: Database, clock: Clock) {
  const [waiting = [], proposals = [], leases = [], ...others] = await database.readAll([
    countWaiting(maxCounted),
    countOpenProposals(clock.now(), maxCounted),
    statement(`SELECT name, holder FROM leases WHERE ${hasNotRunOut('expires_at')} ORDER BY name LIMIT ${maxLeases}`),
    ...storedKinds.map(({ table }) => countUnsettled(table.name, clock.realNow())),
    ...removed.map(({ oldest }) => oldest),
    countHeld(maxCounted),
    countOpenContradictions(maxCounted),
  ]);
  const [unsettled, oldest] = [others.slice(0, storedKinds.length), others.slice(storedKinds.length)];
  const [[held] = [], contradictions = []] = oldest.slice(removed.length);
  const [now, realNow] = [clock.now(), clock.realNow()];
  const overdue = removed.map(({ name, keptMs, isReal = false }, at) => {
    return { worker: name, ms: figureOf(oldest[at]?.[0], (isReal ? realNow : now) - keptMs).oldestMs };
  });
  return {
    unsettled: storedKinds.flatMap(({ name: kind }, at) =>
      states.map((state) => {
        const row = unsettled[at]?.find((one) => one.shown_state === state);
        const acknowledged = Number(row?.acknowledged ?? 0);
        return { kind, state, acknowledged, ...figureOf(row, state === 'other' ? realNow : now) };
      }),
    ),
    outbox: figureOf(waiting[0], realNow),
    proposals: figureOf(proposals[0], now),
    held: figureOf(held, now),
    contradictions: openContradictions(contradictions, now),
    leases: leases.map(({ name, holder }) => ({ name: String(name), holder: String(holder) })),
    removal: [...groupBy(overdue, ({ worker }) => worker)].map(([worker, own]) => {
      return { worker, overdueMs: Math.max(...own.map(({ ms }) => ms)) };
    }),
  };
}

/**
 * Counts the objects that the reconciler will query, now or later. The oldest is that of those that no operator has acknowledged.
 * `realNow` is real time.
 */
function countUnsettled(table: string, realNow: number): Statement {
  const due = statement(
    `SELECT IF(state IN ('sending', 'uncertain'), state, 'other') AS shown_state, COUNT(*) AS count,
      COUNT(a.object_id) AS acknowledged,
      MIN(IF(a.object_id IS NOT NULL, NULL, IF(state IN ('sending', 'uncertain'), created_at, check_at))) AS oldest FROM
      (SELECT partner_id, id, state, created_at, check_at FROM ${table} FORCE INDEX (${table}_check_at)
        WHERE check_at IS NOT NULL ORDER BY check_at LIMIT ${maxCounted}) AS due`,
  );
  const acknowledged = acknowledgedAt(realNow, 'due.partner_id', 'due.id');
  return joined([due, acknowledged, statement('GROUP BY shown_state')], ' ');
}

function figureOf(row: SqlRow | undefined, now: number): { count: number; oldestMs: number } {
  const oldest = (row?.oldest ?? null) as Date | null;
  return { count: Number(row?.count ?? 0), oldestMs: oldest === null ? 0 : Math.max(0, now - oldest.getTime()) };
}
