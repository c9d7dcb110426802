import type { Database } from '../../../store/database.ts';
import { joined, type Statement, sql, statement } from '../../../store/statement.ts';
import type { ShownBy } from '../../../store/table.ts';
import { longestRetryWaitMs, sentForMs } from '../rules.ts';
import { deliveries } from '../table.ts';

/** The columns of a delivery that its attempt needs. */
const attempted = deliveries.only(
  ...([
    'version',
    'eventId',
    'type',
    'occurredAt',
    'committedAt',
    'takenAt',
    'queue',
    'dueAt',
    'tries',
    'round',
  ] as const),
);

/** A delivery with the content that is sent. */
export interface LoadedDelivery extends ShownBy<typeof attempted> {
  /** The event's bytes; null if the event is gone. */
  readonly body: Buffer | null;
  /** The request that created the event's object, and its trace parent; null if they were not kept. */
  readonly requestId: string | null;
  readonly traceParent: string | null;
  /** The event's object; null if the feed no longer holds the event. */
  readonly objectId: string | null;
}

/**
 * One part of a partner's queue, and how many rows are read at most. `new`: events to send at once, after a version, oldest
 * first. `retries`: due retries, longest due first. `probe`: the oldest waiting event after a version, or of all if none is
 * after it.
 */
export interface QueueRead {
  readonly part: 'new' | 'retries' | 'probe';
  readonly after: bigint;
  readonly most: number;
}

/** Reads parts of queues in one round trip, without some versions of new events and retries. Returns each part's rows. */
export async function readQueues(
  database: Database,
  reads: readonly (QueueRead & { readonly partnerId: string; readonly without: ReadonlySet<bigint> })[],
  now: number,
): Promise<LoadedDelivery[][]> {
  if (reads.length === 0) return [];
  const sets = await database.readAll(
    reads.map(({ partnerId, without, ...read }) => findQueued(partnerId, read, [...without], now)),
  );
  return sets.map((rows) =>
    rows.map((row) =>
      // A spread takes many times as long, and this runs for each attempt.
      Object.assign(attempted.read(row), {
        body: row.body as Buffer | null,
        requestId: row.request_id as string | null,
        traceParent: row.trace_parent as string | null,
        objectId: row.object_id as string | null,
      }),
    ),
  );
}

/** Whether the retry of a delivery `d` is due. */
export function isRetryDue(now: number): Statement {
  return sql`(d.due_at <= ${new Date(now)} OR d.due_at > ${new Date(now + longestRetryWaitMs)})`;
}

// The index is named, because a server that guesses from the age of events would sort the whole queue at each read.
const waiting = statement('webhook_deliveries d FORCE INDEX (webhook_deliveries_due)');
/** The event of a delivery `d`. */
export const bodies = statement('LEFT JOIN feed_events f ON f.partner_id = d.partner_id AND f.version = d.version');
const loaded = statement(
  `${attempted.list.replace(/\w+/g, 'd.$&')}, f.body, f.request_id, f.trace_parent, f.object_id`,
);
const isNew = statement('d.queue = 1 AND d.due_at IS NULL');
const isRetried = statement('d.queue = 2');

function findQueued(
  partnerId: string,
  { part, after, most }: QueueRead,
  without: readonly bigint[],
  now: number,
): Statement {
  const isWaiting = sql`d.partner_id = ${partnerId} AND d.occurred_at > ${new Date(now - sentForMs)}`;
  if (part === 'new') {
    return sql`SELECT ${loaded} FROM ${waiting} ${bodies} WHERE ${isWaiting} AND ${isNew} AND d.version > ${after}
      ${except(without.filter((version) => version > after))} ORDER BY d.version LIMIT ${most}`;
  }
  if (part === 'retries') {
    return sql`SELECT ${loaded} FROM ${waiting} ${bodies} WHERE ${isWaiting} AND ${isRetried} AND ${isRetryDue(now)}
      ${except(without)} ORDER BY d.due_at LIMIT ${most}`;
  }
  const oldest = [after, 0n].flatMap((least) =>
    [isNew, isRetried].map(
      (queue) => sql`(SELECT d.* FROM ${waiting} WHERE ${isWaiting} AND ${queue} AND d.version > ${least}
        ORDER BY d.version LIMIT 1)`,
    ),
  );
  return sql`SELECT ${loaded} FROM (${joined(oldest, ' UNION ')}) d ${bodies}
    ORDER BY d.version > ${after} DESC, d.version LIMIT ${most}`;
}

function except(versions: readonly bigint[]): Statement {
  return versions.length === 0 ? statement('') : sql`AND d.version NOT IN (${versions})`;
}

/** Moves retries to the front of the queue, at most so many. */
export function bringForward(partnerId: string, fence: bigint, most: number): Statement {
  return sql`UPDATE webhook_deliveries SET queue = 1, due_at = NULL WHERE partner_id = ${partnerId} AND queue = 2
    AND EXISTS (SELECT 1 FROM webhook_endpoints e WHERE e.partner_id = ${partnerId} AND e.fence = ${fence})
    LIMIT ${most}`;
}
