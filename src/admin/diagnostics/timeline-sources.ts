import type { MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { milliseconds, type SqlRow, type Statement, statement, toBigInt } from '../../db/statement.ts';
import { type TimelineEntrySchema, TimelineSource } from '../../gen/marina/admin/v1/diagnostics_pb.ts';
import { lookUps as lookUpTable } from '../../submission/table.ts';
import type { Attempt } from '../../webhooks/table.ts';

export type Entry = MessageInitShape<typeof TimelineEntrySchema> & { readonly atMs: number };

/** A table with entries about a subject as a whole: which of its rows, and what each says. */
export interface Source {
  find(partnerId: string, id: string): Statement;
  toEntry(row: SqlRow): Entry;
}

const mostOperatorEntries = 100;
const mostEvents = 1_000;

export const lookUps: Source = {
  find: (partnerId, objectId) => lookUpTable.find({ partnerId, objectId }),
  toEntry: (row) => {
    const { asked, firstAt, lastAt, outcome, errorClass } = lookUpTable.all.read(row);
    return {
      atMs: lastAt,
      source: TimelineSource.LOOK_UP,
      kind: outcome,
      detail: `the record was asked ${asked} times, first at ${new Date(firstAt).toISOString()}`,
      errorClass: errorClass ?? '',
    };
  },
};

/** What operators did, the newest of it. */
export const operators: Source = {
  find: (_, id) =>
    statement(
      `SELECT at, operator, action, detail, became FROM audit_entries WHERE subject = ?
        ORDER BY id DESC LIMIT ${mostOperatorEntries}`,
      id,
    ),
  toEntry: ({ at, operator, action, detail, became }) => ({
    atMs: (at as Date).getTime(),
    source: TimelineSource.OPERATOR,
    kind: String(action),
    detail: became === null ? String(detail) : `${detail} became ${became}`,
    by: String(operator),
  }),
};

/** The entries of an allocation in its partner's ledger. */
export const ledger: Source = {
  find: (partnerId, id) =>
    statement(
      `SELECT id, type, amount_kobo, created_at FROM wallet_transfers WHERE partner_id = ? AND allocation_id = ?
        ORDER BY sequence`,
      partnerId,
      id,
    ),
  toEntry: (row) => ({
    atMs: (row.created_at as Date).getTime(),
    source: TimelineSource.LEDGER,
    kind: String(row.type),
    detail: String(row.id),
    amountKobo: toBigInt(row.amount_kobo),
  }),
};

/** What the partner did with a key. */
export const keyChanges: Source = {
  find: (partnerId, id) =>
    statement('SELECT action, at, by_key_id FROM key_changes WHERE partner_id = ? AND key_id = ?', partnerId, id),
  toEntry: ({ action, at, by_key_id: by }) => ({
    atMs: (at as Date).getTime(),
    source: TimelineSource.PARTNER,
    kind: String(action),
    by: String(by),
  }),
};

export function stepEntry(row: SqlRow): Entry {
  // Only orders' steps have a quantity and a price.
  const optional = (value: unknown) => (value === null || value === undefined ? undefined : toBigInt(value));
  const upstreamAt = milliseconds(row.upstream_at);
  return {
    atMs: (row.at as Date).getTime(),
    source: TimelineSource.STEP,
    kind: String(row.kind),
    state: String(row.state),
    detail: String(row.detail),
    step: Number(row.sequence),
    reportNumber: optional(row.report_number),
    quantity: optional(row.quantity),
    priceKobo: optional(row.price_kobo),
    upstreamAt: upstreamAt === null ? undefined : timestampFromMs(upstreamAt),
  };
}

/** Which of an object's events: those of changes after an instant, up to another one. */
export interface EventWindow {
  readonly after: number;
  readonly until: number;
  /** The instants of the object's changes in that time. */
  readonly instants: readonly number[];
}

const inBody = (path: string) => `JSON_UNQUOTE(JSON_EXTRACT(CONVERT(e.body USING utf8mb4), '$.${path}'))`;

/**
 * A partner's events about an object: on their way to the feed, and in it. A version of the gateway from before the feed had
 * the object's id wrote events without it. Such an event is one of the instant of a change whose body names the object.
 */
export function findEvents(partnerId: string, objectId: string, { after, until, instants }: EventWindow): Statement[] {
  const select = (table: string, place: string, condition: string) =>
    `SELECT e.version, e.id, e.occurred_at, COALESCE(e.type, ${inBody('type')}) AS type, '${place}' AS place,
      d.state AS delivery, d.due_at
      FROM ${table} LEFT JOIN webhook_deliveries d ON d.partner_id = e.partner_id AND d.version = e.version
      WHERE e.partner_id = ? AND ${condition} ORDER BY e.version LIMIT ${mostEvents}`;
  const isInWindow = 'e.occurred_at > ? AND e.occurred_at <= ?';
  const window = [new Date(after), new Date(until)];
  return [
    statement(
      select('outbox e', 'on its way to the feed', `COALESCE(e.object_id, ${inBody('data.id')}) = ? AND ${isInWindow}`),
      ...[partnerId, objectId, ...window],
    ),
    statement(
      select('feed_events e FORCE INDEX (feed_events_object)', 'in the feed', `e.object_id = ? AND ${isInWindow}`),
      ...[partnerId, objectId, ...window],
    ),
    statement(
      select(
        'feed_events e FORCE INDEX (feed_events_occurred_at)',
        'in the feed',
        `e.object_id IS NULL AND e.occurred_at IN (?) AND ${inBody('data.id')} = ?`,
      ),
      ...[partnerId, instants.map((instant) => new Date(instant)), objectId],
    ),
  ];
}

/** By how much the instant of a change and that of its event's id may differ: clocks of replicas may. */
const nearMs = 5_000;

/** Finds the object of an event by the event's id, which begins with when it was made. */
export function findObjectOf(eventId: string): Statement[] {
  const madeAt = Number.parseInt(eventId.slice('msg_'.length, 'msg_'.length + 12), 16);
  const select = `SELECT COALESCE(e.object_id, ${inBody('data.id')}) AS object_id FROM`;
  return [
    statement(
      `${select} feed_events e WHERE e.occurred_at BETWEEN ? AND ? AND e.id = ?`,
      new Date(madeAt - nearMs),
      new Date(madeAt + nearMs),
      eventId,
    ),
    statement(`${select} outbox e WHERE e.id = ?`, eventId),
  ];
}

export function eventEntry(row: SqlRow): Entry & { readonly version: bigint; readonly eventId: string } {
  const type = String(row.type);
  const dueAt = row.due_at === null ? '' : `, due at ${(row.due_at as Date).toISOString()}`;
  return {
    atMs: (row.occurred_at as Date).getTime(),
    source: TimelineSource.EVENT,
    kind: type,
    // A type is the object's kind, a full stop and its new state.
    state: type.slice(type.indexOf('.') + 1),
    detail: row.delivery === null ? String(row.place) : `${row.place}; webhook ${row.delivery}${dueAt}`,
    eventId: String(row.id),
    version: toBigInt(row.version),
  };
}

export function attemptEntry(attempt: Attempt, event: Entry | undefined): Entry {
  const probe = attempt.isProbe ? ', a try of a paused endpoint' : '';
  return {
    atMs: attempt.at,
    source: TimelineSource.WEBHOOK,
    kind: attempt.outcome,
    detail: `${event?.kind}, attempt ${attempt.number}${probe}`,
    eventId: event?.eventId ?? '',
    version: attempt.version,
    attempt: attempt.number,
    status: attempt.status ?? undefined,
    errorClass: attempt.errorClass ?? '',
    durationMs: BigInt(attempt.durationMs),
  };
}
