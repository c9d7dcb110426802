import { create } from '@bufbuild/protobuf';
import { type Event, EventSchema } from '../../../gen/marina/gateway/v1/events_pb.ts';
import { toSecond } from '../../../kit/clock.ts';
import { groupBy } from '../../../kit/group.ts';
import type { Logger } from '../../../kit/log.ts';
import { Refusal } from '../../../kit/refusal.ts';
import { Rests } from '../../../kit/rests.ts';
import type { IdMaker } from '../../edge/ids.ts';
import { compileEncoder } from '../../edge/json/encoder.ts';
import type { Origin } from '../../edge/origin.ts';
import type { Database } from '../../store/database.ts';
import type { PartnerTransaction } from '../../store/partner-transaction.ts';
import { joined, type SqlRow, type Statement, sql, statement } from '../../store/statement.ts';
import type { ShownBy } from '../../store/table.ts';
import { outbox } from './table.ts';

/** An event to append. */
export interface NewEvent {
  /** The object's kind, a full stop and its new state. */
  readonly type: string;
  /** The object's `updated_at`, in milliseconds. */
  readonly occurredAt: number;
  /** The origin of the object's creation. It is kept in the event's row, not in its body. */
  readonly origin: Origin;
  /** The object as its GET returns it now. */
  readonly data: Exclude<Event['data'], { case: undefined }>;
}

/** An event's partner and its version among that partner's events. */
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

/** A row's `signed` says to replicas of 0.2.0 that the feed has the event: they would copy it again. */
const isInFeed = 1;

const locked = outbox.only('partnerId', 'version', 'id');

export type ConsumedEvent = ShownBy<typeof locked>;

const encode = compileEncoder(EventSchema);

/**
 * Appends events to the feed and the outbox, with the partner's next versions, without gaps because the partner is locked.
 * The body is encoded only here, so that a later release cannot change it.
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
    const row = { partnerId: partner.id, version, id, type, body, requestId, traceParent, ...times, ...about };
    return { ...row, signed: isInFeed };
  });
  return [outbox.insert(...rows), copyToFeed(areThese(rows))];
}

const copied = statement('id, type, body, request_id, trace_parent, object_kind, object_id');

/**
 * Copies events of the outbox into the table that partners read. The body stays in the database. An event from a very slow
 * clock is stored as a day old, because retention removes events 30 days after `occurred_at`.
 */
export function copyToFeed(which: Statement): Statement {
  return sql`INSERT INTO feed_events (partner_id, version, occurred_at, ${copied})
    SELECT partner_id, version, GREATEST(occurred_at, NOW(3) - INTERVAL 1 DAY), ${copied}
    FROM ${outboxByKey} WHERE ${which}`;
}

/**
 * The events committed first, at most so many, each partner's in the order of versions, without the bodies of given ids and
 * without the events of given partners.
 */
export async function readOutbox(
  database: Database,
  idsWithoutBody: string[],
  most: number,
  withoutPartners: readonly string[] = [],
): Promise<OutboxEvent[]> {
  // Every row is due at once, also one from a fast clock: waiting for its time would delay the partner's later events.
  const others = withoutPartners.length === 0 ? statement('') : sql`WHERE partner_id NOT IN (${withoutPartners})`;
  const [rows = []] = await database.readAll([
    sql`SELECT ${statement(published.list)}, IF(id IN (${['', ...idsWithoutBody]}), '', body) AS body
      FROM outbox FORCE INDEX (outbox_publish_at) ${others} ORDER BY publish_at, partner_id, version LIMIT ${most}`,
  ]);
  const events = rows.map((row) => ({ body: row.body as Buffer, ...published.read(row) }));
  return events.sort((one, other) => Number(one.version - other.version));
}

/** How long the events of a partner that cannot be consumed wait before they are tried again. */
const stuckMs = 10_000;

/**
 * The consumer of the outbox. One transaction locks the rows, writes what is made of them and removes them, so each event is
 * consumed once. Events of one partner that cannot be consumed do not hold up those of others.
 */
export class OutboxConsumer {
  /** Partners whose events cannot be consumed. */
  readonly #stuck = new Rests(stuckMs);

  constructor(
    readonly name: string,
    private readonly database: Database,
    private readonly log: Logger,
    private readonly work: {
      /** Further reads, after the rows are locked. */
      reads?(events: readonly EventKey[]): readonly Statement[];
      /** The writes of the same transaction, and a callback after its commit. */
      decide(consumed: readonly ConsumedEvent[], rows: SqlRow[][]): { writes: Statement[]; afterwards: () => void };
      /** Finds what this consumer has already written of some events: `partner_id`, `version` and the event's `id`. */
      written(events: readonly EventKey[]): Statement;
    },
  ) {}

  /** Partners whose events could not be consumed when they were last tried. */
  get stuck(): readonly string[] {
    return this.#stuck.failed;
  }

  /** Of these, the ones that are not tried again yet. */
  get resting(): readonly string[] {
    return this.#stuck.resting;
  }

  /** Consumes events, but not those of a partner that cannot be: they stay in the outbox. Throws if the database is away. */
  async consume(events: readonly EventKey[]): Promise<void> {
    const due = this.#stuck.size === 0 ? events : events.filter(({ partnerId }) => !this.#stuck.isResting(partnerId));
    if (due.length === 0) return;
    const partners = groupBy(due, ({ partnerId }) => partnerId);
    try {
      await this.#consume(due);
      for (const id of partners.keys()) this.#stuck.end(id);
    } catch (error) {
      if (error instanceof Refusal) throw error;
      for (const [partnerId, own] of partners) await this.#consumeAlone(partnerId, own);
    }
  }

  /** Consumes one partner's events. What is there already is compared: a torn transaction of an earlier version left it. */
  async #consumeAlone(partnerId: string, events: readonly EventKey[]): Promise<void> {
    try {
      await this.#consume(events, this.work.written(events));
      this.#stuck.end(partnerId);
    } catch (error) {
      if (error instanceof Refusal) throw error;
      if (!this.#stuck.hasFailed(partnerId)) {
        this.log.error({ err: error, partnerId, consumer: this.name }, "a partner's events cannot be consumed");
      }
      this.#stuck.rest(partnerId);
    }
  }

  async #consume(events: readonly EventKey[], findWritten?: Statement): Promise<void> {
    const lock = sql`SELECT ${statement(locked.list)} FROM ${outboxByKey} WHERE ${areThese(events)} FOR UPDATE`;
    const reads = this.work.reads?.(events) ?? [];
    const compared = findWritten === undefined ? [] : [findWritten];
    const finish = await this.database.transaction<() => void>(
      [lock, ...compared, ...reads],
      ([rows = [], ...more]) => {
        const consumed = rows.map(locked.read);
        const written = compared.flatMap(() => more.shift() ?? []);
        const { writes, afterwards } = this.work.decide(unwritten(consumed, written), more);
        return { writes: consumed.length === 0 ? [] : [...writes, remove(consumed)], result: afterwards };
      },
    );
    finish();
  }
}

/** The events that were not written yet. Throws if another event has the place of one. */
function unwritten(events: readonly ConsumedEvent[], written: readonly SqlRow[]): readonly ConsumedEvent[] {
  const idOf = new Map(written.map((row) => [`${row.partner_id} ${row.version}`, String(row.id)]));
  return events.filter(({ partnerId, version, id }) => {
    const other = idOf.get(`${partnerId} ${version}`);
    if (other !== undefined && other !== id) throw new Error(`${other} is there with the version of ${id}`);
    return other === undefined;
  });
}

function remove(events: readonly ConsumedEvent[]): Statement {
  // In this form a DELETE can name its index.
  return sql`DELETE outbox FROM ${outboxByKey} WHERE ${areThese(events)}`;
}

/** Whether the outbox has events that the feed lacks. Only release 0.1.0 left such, and only 0.2.0 delivers them. */
export async function hasEventsOutsideFeed(database: Database): Promise<boolean> {
  const rows = await database.read(sql`SELECT 1 FROM outbox WHERE signed & ${isInFeed} = 0 LIMIT 1`);
  return rows.length > 0;
}

/** Counts the events that are not consumed yet, at most so many, and finds the oldest commit time. */
export function countWaiting(most: number): Statement {
  return sql`SELECT COUNT(*) AS count, MIN(publish_at) AS oldest FROM
    (SELECT publish_at FROM outbox FORCE INDEX (outbox_publish_at) ORDER BY publish_at LIMIT ${most}) AS waiting`;
}

/** The outbox, to be read by its primary key, whatever the server guesses of its size. */
export const outboxByKey = statement('outbox FORCE INDEX (PRIMARY)');

/** A condition that is true for the rows of some events: a range of the primary key for each partner. */
export function areThese(events: readonly EventKey[]): Statement {
  const parts = [...groupBy(events, ({ partnerId }) => partnerId)].map(
    ([id, own]) => sql`(partner_id = ${id} AND version IN (${own.map(({ version }) => version)}))`,
  );
  return sql`(${joined(parts, ' OR ')})`;
}
