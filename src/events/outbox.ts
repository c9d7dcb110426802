import { create } from '@bufbuild/protobuf';
import type { Database } from '../db/database.ts';
import type { PartnerTransaction } from '../db/partner-transaction.ts';
import { type SqlRow, type Statement, statement } from '../db/statement.ts';
import type { ShownBy } from '../db/table.ts';
import { type Event, EventSchema } from '../gen/marina/gateway/v1/events_pb.ts';
import { compileEncoder } from '../json/encoder.ts';
import type { IdMaker } from '../lib/ids.ts';
import type { Origin } from '../lib/origin.ts';
import { toSecond } from '../lib/timestamps.ts';
import { outbox } from './table.ts';

/** A change a partner is notified of. */
export interface NewEvent {
  /** The object's kind, a full stop and its new state. */
  readonly type: string;
  /** The object's `updated_at`, in milliseconds. */
  readonly occurredAt: number;
  /** On whose behalf the object was created; kept in the event's row, not in its body, which is the contract's. */
  readonly origin: Origin;
  /** The object as its GET returns it now. */
  readonly data: Exclude<Event['data'], { case: undefined }>;
}

/** Which event: its partner and its number among the partner's events. */
export interface EventKey {
  readonly partnerId: string;
  readonly version: bigint;
}

const published = outbox.only('partnerId', 'version', 'id', 'type', 'objectKind', 'objectId');

/** An event as the relay publishes it. */
export interface OutboxEvent extends ShownBy<typeof published> {
  /** The event in JSON, as partners see it; empty if it was not asked for. */
  readonly body: Buffer;
}

/** An event that a consumer has consumed. */
export interface ConsumedEvent extends EventKey {
  /** When its change was committed, in real time. */
  readonly committedAt: number;
}

/** The consumers of the outbox, each with its bit in a row's `signed`, where it acknowledges the event. */
const consumers = { feed: 1, webhooks: 2 } as const;

export type ConsumerName = keyof typeof consumers;

export const consumerNames = Object.keys(consumers) as readonly ConsumerName[];

const acknowledgedByAll = Object.values(consumers).reduce<number>((sum, bit) => sum | bit, 0);

const locked = outbox.only('partnerId', 'version', 'signed', 'publishAt');

const encode = compileEncoder(EventSchema);

/**
 * Takes the partner's next versions and appends whole events to the outbox. The versions are dense because only the
 * holder of the partner's lock takes them.
 *
 * The body's bytes are made here and never again, so that a later release cannot change what was promised.
 */
export function appendEvents(
  partner: PartnerTransaction,
  events: readonly NewEvent[],
  ids: IdMaker,
  realNow: number,
): Statement[] {
  if (events.length === 0) return [];
  const first = partner.takeVersions(events.length);
  const rows = events.map(({ type, occurredAt, origin, data }, index) => {
    const id = ids.event();
    const version = first + BigInt(index);
    const timestamp = toSecond(occurredAt);
    const body = encode(create(EventSchema, { id, type, timestamp, version, data }));
    const about = { objectKind: data.case, objectId: data.value.id };
    const { requestId, traceParent } = origin;
    const times = { occurredAt, publishAt: realNow };
    return { partnerId: partner.id, version, id, type, body, requestId, traceParent, ...times, ...about, signed: 0 };
  });
  return [outbox.insert(...rows)];
}

/**
 * Reads the events that were committed first, at most so many, those of each partner in the order of their versions. The
 * bodies of the events with the given ids are left out.
 */
export async function readOutbox(database: Database, idsWithoutBody: string[], most: number): Promise<OutboxEvent[]> {
  // Every row is due once it is committed, also one whose replica's clock is ahead and wrote a later time: who waited for
  // that time would hold back all later events of the partner.
  const [rows = []] = await database.readAll([
    statement(
      `SELECT ${published.list}, IF(id IN (?), '', body) AS body FROM outbox
        ORDER BY publish_at, partner_id, version LIMIT ${most}`,
      ['', ...idsWithoutBody],
    ),
  ]);
  const events = rows.map((row) => ({ ...published.read(row), body: row.body as Buffer }));
  return events.sort((one, other) => Number(one.version - other.version));
}

/**
 * Lets a consumer consume events: the rows it has not acknowledged are locked, what it makes of them is written, and they
 * are acknowledged, in one transaction. So an event that comes twice, or whose row is gone, changes nothing: each consumer
 * consumes each event once. A row that all consumers have acknowledged is removed.
 */
export async function consumeFromOutbox(
  database: Database,
  consumer: ConsumerName,
  events: readonly EventKey[],
  work: {
    /** What else is read, after the rows are locked. */
    readonly reads?: readonly Statement[];
    readonly writes: (consumed: readonly EventKey[], rows: SqlRow[][]) => readonly Statement[];
  },
): Promise<readonly ConsumedEvent[]> {
  const bit = consumers[consumer];
  const lock = onOutbox(`SELECT ${locked.list} FROM outbox WHERE`, events, ' FOR UPDATE');
  return database.transaction<readonly ConsumedEvent[]>([lock, ...(work.reads ?? [])], ([rows = [], ...more]) => {
    const found = rows.map(locked.read);
    const consumed = found.filter(({ signed }) => (signed & bit) === 0);
    if (consumed.length === 0) return { writes: [], result: [] };
    // Another version may have more consumers, whose bits say nothing of ours.
    const isLast = ({ signed }: { signed: number }) => ((signed | bit) & acknowledgedByAll) === acknowledgedByAll;
    const last = consumed.filter(isLast);
    const first = consumed.filter((row) => !isLast(row));
    const writes = [...work.writes(consumed, more)];
    if (last.length > 0) writes.push(onOutbox('DELETE FROM outbox WHERE', last));
    if (first.length > 0) writes.push(onOutbox(`UPDATE outbox SET signed = signed | ${bit} WHERE`, first));
    return { writes, result: consumed.map(({ publishAt, ...key }) => ({ ...key, committedAt: publishAt })) };
  });
}

/** Counts the events a consumer has not acknowledged, at most so many of them, and finds when the oldest was committed. */
export function countUnacknowledged(consumer: ConsumerName, most: number): Statement {
  return statement(
    `SELECT COUNT(*) AS count, MIN(publish_at) AS oldest FROM
      (SELECT publish_at FROM outbox WHERE signed & ${consumers[consumer]} = 0 ORDER BY publish_at LIMIT ${most}) AS waiting`,
  );
}

/** A statement on the outbox rows of some events. */
export function onOutbox(sql: string, events: readonly EventKey[], end = ''): Statement {
  return statement(
    `${sql} (partner_id, version) IN (${events.map(() => '(?, ?)').join(', ')})${end}`,
    ...events.flatMap(({ partnerId, version }) => [partnerId, version]),
  );
}
