import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { status } from '@grpc/grpc-js';
import type { Database } from '../../db/database.ts';
import { milliseconds, type SqlRow, type Statement, toBigInt } from '../../db/statement.ts';
import {
  type GetTimelineRequest,
  type GetTimelineResponse,
  GetTimelineResponseSchema,
  TimelineEntrySchema,
  TimelineSource,
} from '../../gen/marina/admin/v1/diagnostics_pb.ts';
import { orderHistory } from '../../orders/table.ts';
import { lookUps, objectHistory } from '../../submission/steps.ts';
import { findAttempts } from '../../webhooks/delivery-store.ts';
import { attempts } from '../../webhooks/table.ts';
import { AdminError } from '../call.ts';
import {
  findAuditOf,
  findDeliveriesOf,
  findEvent,
  findEventsAt,
  findKeyChanges,
  findKeyOf,
  findLedgerOf,
  findPartnerOf,
  findStepped,
  type SteppedPrefix,
} from './timeline-store.ts';

type Entry = MessageInitShape<typeof TimelineEntrySchema> & { readonly atMs: number; readonly rank: number };

const usualSteps = 100;
const mostEvents = 1_000;
const mostAttempts = 2_000;
const mostOperatorEntries = 100;

/** An event that is about the object whose story is told. */
interface ToldEvent {
  readonly version: bigint;
  readonly id: string;
  readonly type: string;
  readonly state: string;
  readonly atMs: number;
  readonly where: string;
}

/** The operators' call that tells an object's story. */
export function timelineHandlers(database: Database) {
  async function getTimeline(request: GetTimelineRequest): Promise<GetTimelineResponse> {
    const { afterStep } = request;
    const limit = request.limit === 0 ? usualSteps : request.limit;
    const id = request.id.startsWith('msg_') ? await objectOf(request.id) : request.id;
    const prefix = id.slice(0, 3);
    if (prefix === 'key') return keyStory(id);
    if (prefix === 'par') return partnerStory(id);
    return objectStory(prefix as SteppedPrefix, id, afterStep, limit);
  }

  async function objectStory(
    prefix: SteppedPrefix,
    id: string,
    after: number,
    limit: number,
  ): Promise<GetTimelineResponse> {
    const [object] = await database.read(findStepped(prefix, id));
    if (object === undefined) throw notFound();
    const partnerId = String(object.partner_id);
    const { page: list } = prefix === 'ord' ? orderHistory : objectHistory;
    const rows = await read(list(partnerId, id, after, limit + 1));
    const steps = rows.slice(0, limit);
    const hasMore = rows.length > limit;
    const instants = new Set(steps.map((step) => (step.at as Date).getTime()));
    // Where clocks differ, a change is told with the instant of the one before it.
    if (!hasMore) instants.add((object.updated_at as Date).getTime());
    const events = await eventsOf(partnerId, id, [...instants]);
    // What concerns the object as a whole is told once, with the first steps.
    const beside = after === 0 ? await besideSteps(prefix, partnerId, id) : [];
    const entries = [
      ...steps.map(stepEntry),
      ...events.map(eventEntry),
      ...(await attemptsOf(partnerId, events)),
      ...beside,
    ];
    return create(GetTimelineResponseSchema, {
      id,
      partnerId,
      state: String(object.state),
      entries: inOrder(entries),
      lastStep: Number(steps.at(-1)?.sequence ?? after),
      hasMore,
    });
  }

  async function besideSteps(prefix: SteppedPrefix, partnerId: string, id: string): Promise<Entry[]> {
    const ledger = prefix === 'alc' ? findLedgerOf(partnerId, id) : undefined;
    const [asked = [], operators = [], entries = []] = await database.readAll([
      lookUps.find({ partnerId, objectId: id }),
      findAuditOf(id, mostOperatorEntries),
      ...(ledger === undefined ? [] : [ledger]),
    ]);
    return [...asked.map(lookUpEntry), ...operators.map(operatorEntry), ...entries.map(ledgerEntry)];
  }

  /** The events of an object among those of its instants, each once, though the feed may have it already. */
  async function eventsOf(partnerId: string, id: string, instants: readonly number[]): Promise<ToldEvent[]> {
    if (instants.length === 0) return [];
    const [fed = [], waiting = []] = await database.readAll(findEventsAt(partnerId, instants, mostEvents));
    const found = new Map<bigint, ToldEvent>();
    for (const row of [...waiting, ...fed]) {
      const { type, data } = readBody(row);
      if (data?.id !== id) continue;
      const version = toBigInt(row.version);
      found.set(version, {
        version,
        id: String(row.id),
        type,
        state: data.state,
        atMs: (row.occurred_at as Date).getTime(),
        where: row.signed === undefined ? 'in the feed' : 'on its way to the feed',
      });
    }
    const versions = [...found.keys()];
    if (versions.length === 0) return [];
    const deliveries = new Map(
      (await read(findDeliveriesOf(partnerId, versions))).map((row) => [toBigInt(row.version), row]),
    );
    return [...found.values()].map((event) => {
      const delivery = deliveries.get(event.version);
      return delivery === undefined ? event : { ...event, where: `${event.where}; ${describeDelivery(delivery)}` };
    });
  }

  async function attemptsOf(partnerId: string, events: readonly ToldEvent[]): Promise<Entry[]> {
    if (events.length === 0) return [];
    const byVersion = new Map(events.map((event) => [event.version, event]));
    const rows = await read(findAttempts(partnerId, [...byVersion.keys()], mostAttempts));
    return rows.map((row) => attemptEntry(row, byVersion));
  }

  async function keyStory(id: string): Promise<GetTimelineResponse> {
    const [key] = await database.read(findKeyOf(id));
    if (key === undefined) throw notFound();
    const partnerId = String(key.partner_id);
    const [changes = [], operators = []] = await database.readAll([
      findKeyChanges(partnerId, id),
      findAuditOf(id, mostOperatorEntries),
    ]);
    const entries = [...changes.map(keyChangeEntry), ...operators.map(operatorEntry)];
    const state = key.revoked_at === null ? 'active' : 'revoked';
    return create(GetTimelineResponseSchema, { id, partnerId, state, entries: inOrder(entries) });
  }

  async function partnerStory(id: string): Promise<GetTimelineResponse> {
    const [partner] = await database.read(findPartnerOf(id));
    if (partner === undefined) throw notFound();
    const operators = await read(findAuditOf(id, mostOperatorEntries));
    const entries = inOrder(operators.map(operatorEntry));
    return create(GetTimelineResponseSchema, { id, partnerId: id, state: String(partner.state), entries });
  }

  /** The object an event is about. */
  async function objectOf(eventId: string): Promise<string> {
    const [row] = (await database.readAll(findEvent(eventId))).flat();
    if (row === undefined) throw notFound();
    const { data } = readBody(row);
    if (data === undefined) throw notFound();
    return data.id;
  }

  async function read(query: Statement): Promise<SqlRow[]> {
    const [rows = []] = await database.readAll([query]);
    return rows;
  }

  return { getTimeline };
}

/** Our own words, written when the event was made. An event of another version may be about what this one does not know. */
function readBody(row: SqlRow): { type: string; data: { id: string; state: string } | undefined } {
  const { type, data } = JSON.parse((row.body as Buffer).toString());
  const { id, state } = data ?? {};
  return { type: String(type), data: id === undefined ? undefined : { id: String(id), state: String(state ?? '') } };
}

function inOrder(entries: readonly Entry[]) {
  return [...entries]
    .sort((one, other) => one.atMs - other.atMs || one.rank - other.rank)
    .map(({ atMs, rank: _, ...entry }) => create(TimelineEntrySchema, { ...entry, at: timestampFromMs(atMs) }));
}

function stepEntry(row: SqlRow): Entry {
  const upstreamAt = milliseconds(row.upstream_at);
  return {
    atMs: (row.at as Date).getTime(),
    rank: 0,
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

function eventEntry({ atMs, id, type, state, version, where }: ToldEvent): Entry {
  return { atMs, rank: 1, source: TimelineSource.EVENT, kind: type, state, detail: where, eventId: id, version };
}

function attemptEntry(row: SqlRow, events: ReadonlyMap<bigint, ToldEvent>): Entry {
  const attempt = attempts.all.read(row);
  const { id, type } = events.get(attempt.version) ?? { id: '', type: '' };
  return {
    atMs: attempt.at,
    rank: 2,
    source: TimelineSource.WEBHOOK,
    kind: attempt.outcome,
    detail: `${type}, attempt ${attempt.number}${attempt.isProbe ? ', a try of a paused endpoint' : ''}`,
    eventId: id,
    version: attempt.version,
    attempt: attempt.number,
    status: attempt.status ?? undefined,
    errorClass: attempt.errorClass ?? '',
    durationMs: BigInt(attempt.durationMs),
  };
}

function lookUpEntry(row: SqlRow): Entry {
  const { asked, firstAt, lastAt, outcome, errorClass } = lookUps.all.read(row);
  return {
    atMs: lastAt,
    rank: 0,
    source: TimelineSource.LOOK_UP,
    kind: outcome,
    detail: `the record was asked ${asked} times, first at ${new Date(firstAt).toISOString()}`,
    errorClass: errorClass ?? '',
  };
}

function ledgerEntry(row: SqlRow): Entry {
  return {
    atMs: (row.created_at as Date).getTime(),
    rank: 0,
    source: TimelineSource.LEDGER,
    kind: String(row.type),
    detail: String(row.id),
    amountKobo: toBigInt(row.amount_kobo),
  };
}

function operatorEntry(row: SqlRow): Entry {
  const became = row.became === null ? '' : ` became ${row.became}`;
  return {
    atMs: (row.at as Date).getTime(),
    rank: 0,
    source: TimelineSource.OPERATOR,
    kind: String(row.action),
    detail: `${row.detail}${became}`,
    by: String(row.operator),
  };
}

function keyChangeEntry(row: SqlRow): Entry {
  return {
    atMs: (row.at as Date).getTime(),
    rank: 0,
    source: TimelineSource.PARTNER,
    kind: String(row.action),
    by: String(row.by_key_id),
  };
}

function describeDelivery({ state, due_at: dueAt }: SqlRow): string {
  return dueAt === null ? `webhook ${state}` : `webhook ${state}, due at ${(dueAt as Date).toISOString()}`;
}

function optional(value: unknown): bigint | undefined {
  return value === null || value === undefined ? undefined : toBigInt(value);
}

function notFound(): AdminError {
  return new AdminError(status.NOT_FOUND, 'there is no such object, or the event is no longer held');
}
