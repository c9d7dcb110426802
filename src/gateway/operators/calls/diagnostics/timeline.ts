import { status } from '@grpc/grpc-js';
import {
  type GetTimelineRequest,
  type TimelineEntry,
  TimelineSource,
} from '../../../../gen/marina/admin/v1/diagnostics_pb.ts';
import type { Clock } from '../../../../kit/clock.ts';
import { findAttempts } from '../../../delivery/webhooks/record/delivery-store.ts';
import { type Attempt, attempts as attemptTable } from '../../../delivery/webhooks/table.ts';
import { auditEntries } from '../../../edge/auth/audit-store.ts';
import { keyChanges } from '../../../edge/auth/key-store.ts';
import type { Database } from '../../../store/database.ts';
import { milliseconds, type SqlRow, type Statement, sql, statement, toBigInt } from '../../../store/statement.ts';
import { storedKindOf } from '../../../trading/kinds.ts';
import type { Kinds } from '../../../trading/submission/kind.ts';
import { type History, lookUps } from '../../../trading/submission/table.ts';
import { toEntry } from '../../../trading/wallet/store.ts';
import type { AnswerOf } from '../answer.ts';
import { AdminError } from '../errors.ts';
import { readOpenProposals } from '../proposals/service.ts';
import { findTransfers } from './objects.ts';

type Entry = AnswerOf<TimelineEntry> & { readonly at: number };

/** A table with entries about a subject as a whole. */
interface Source {
  find(partnerId: string, id: string): Statement;
  toEntry(row: SqlRow): Entry;
}

const usualSteps = 100;
const maxEvents = 1_000;
const maxAttempts = 2_000;
const maxOperatorEntries = 100;
const endOfTime = Date.UTC(9999, 0);
/** The largest difference between the instants of a change and of its event's id, because replicas' clocks differ. */
const nearMs = 5_000;

/** The newest of the operators' audit entries. */
const operators: Source = {
  find: (_, subject) =>
    auditEntries.find(
      { subject },
      auditEntries.all,
      statement(`AND operator <> '' ORDER BY id DESC LIMIT ${maxOperatorEntries}`),
    ),
  toEntry: (row) => {
    const { at, operator, action, detail, became } = auditEntries.all.read(row);
    return {
      ...{ at, source: TimelineSource.OPERATOR, kind: action, by: operator },
      detail: became === null ? detail : `${detail} became ${became}`,
    };
  },
};

const ofKey: Source = {
  find: (partnerId, keyId) => keyChanges.find({ partnerId, keyId }),
  toEntry: (row) => {
    const { at, action, byKeyId } = keyChanges.all.read(row);
    return { at, source: TimelineSource.PARTNER, kind: action, by: byKeyId };
  },
};

/** The sources of an object's timeline besides steps, events and webhook attempts. */
const ofObject: readonly Source[] = [
  {
    find: (partnerId, objectId) => lookUps.find({ partnerId, objectId }),
    toEntry: (row) => {
      const { asked, firstAt, lastAt, outcome, errorClass } = lookUps.all.read(row);
      return {
        ...{ at: lastAt, source: TimelineSource.LOOK_UP, kind: outcome, errorClass },
        detail: `the record was asked ${asked} times, first at ${new Date(firstAt).toISOString()}`,
      };
    },
  },
  operators,
  {
    find: findTransfers,
    toEntry: (row) => {
      const { id, type, amountKobo, createdAt } = toEntry(row);
      return { at: createdAt, source: TimelineSource.LEDGER, kind: type, detail: id, amountKobo };
    },
  },
];

/** Other subjects with a timeline, by the prefix of their ids. */
const others: Readonly<Record<string, { readonly find: string; readonly sources: readonly Source[] }>> = {
  key: {
    find: `SELECT partner_id, IF(revoked_at IS NULL, 'active', 'revoked') AS state FROM api_keys WHERE id = ?`,
    sources: [ofKey, operators],
  },
  par: { find: 'SELECT id AS partner_id, state FROM partners WHERE id = ?', sources: [operators] },
};

/** The operators' call that shows what happened to an object. */
export function timelineCalls(database: Database, kinds: Kinds, clock: Clock) {
  async function getTimeline(request: GetTimelineRequest) {
    const id = request.id.startsWith('msg_') ? await findObject(request.id) : request.id;
    const kind = kinds.ofId(id);
    const other = others[id.slice(0, 3)];
    const find = kind?.table.find({ id }) ?? (other && statement(other.find, id));
    const [found] = find === undefined ? [] : await database.read(find);
    if (found === undefined) throw notFound();
    const partnerId = String(found.partner_id);
    const page = kind && (await readPage(kind.history, partnerId, id, request));
    // Entries about the subject as a whole are on the first page.
    const sources = other?.sources ?? ofObject;
    const whole = request.afterStep === 0 ? await readSources(sources, partnerId, id) : [];
    const proposals = await readOpenProposals(database, [{ partnerId, id }], clock.now());
    return {
      id,
      partnerId,
      state: String(found.state),
      object: storedKindOf(id)?.show(found),
      entries: inOrder([...whole, ...(page?.entries ?? [])]),
      lastStep: page?.lastStep,
      hasMore: page?.hasMore,
      openProposal: proposals.get(id),
    };
  }

  /** A page of an object's steps, with its events from after the previous page up to the last of these steps. */
  async function readPage(history: History, partnerId: string, id: string, { afterStep, limit }: GetTimelineRequest) {
    const most = limit === 0 ? usualSteps : limit;
    const rows = await read(history.page(partnerId, id, Math.max(0, afterStep - 1), most + 2));
    const last = rows.find(({ sequence }) => Number(sequence) === afterStep);
    const later = rows.filter((row) => row !== last);
    const steps = later.slice(0, most);
    const hasMore = later.length > most;
    const end = steps.at(-1);
    // By the instants of their changes: after one instant, up to another.
    const after = last === undefined ? 0 : instantOf(last);
    const until = hasMore && end !== undefined ? instantOf(end) : endOfTime;
    const events = await readEvents(partnerId, id, after, until);
    const lastStep = Number(end?.sequence ?? afterStep);
    return { entries: [...steps.map(stepEntry), ...events], lastStep, hasMore };
  }

  async function readSources(sources: readonly Source[], partnerId: string, id: string): Promise<Entry[]> {
    const answers = await database.readAll(sources.map(({ find }) => find(partnerId, id)));
    return sources.flatMap(({ toEntry }, index) => (answers[index] ?? []).map(toEntry));
  }

  /** The events of an object with their webhook attempts. */
  async function readEvents(partnerId: string, id: string, after: number, until: number): Promise<Entry[]> {
    const events = (await read(findEvents(partnerId, id, after, until))).map(eventEntry);
    const eventOf = new Map(events.map((event) => [event.version, event]));
    if (events.length === 0) return [];
    const versions = events.map(({ version }) => version);
    const attempts = (await read(findAttempts(partnerId, versions, maxAttempts))).map(attemptTable.all.read);
    return [...events, ...attempts.map((attempt) => attemptEntry(attempt, eventOf.get(attempt.version)))];
  }

  async function findObject(eventId: string): Promise<string> {
    const [row] = await read(findObjectOf(eventId));
    if (row === undefined || row.object_id === null) throw notFound();
    return String(row.object_id);
  }

  async function read(query: Statement): Promise<SqlRow[]> {
    const [rows = []] = await database.readAll([query]);
    return rows;
  }

  return { getTimeline };
}

function stepEntry(row: SqlRow): Entry {
  // Only orders' steps have a quantity and a price.
  const optional = (value: unknown) => (value === null || value === undefined ? undefined : toBigInt(value));
  const tradeStep = optional(row.trade_sequence);
  return {
    at: instantOf(row),
    source: TimelineSource.STEP,
    kind: String(row.kind),
    state: String(row.state),
    detail: String(row.detail),
    step: Number(row.sequence),
    reportNumber: optional(row.report_number),
    quantity: optional(row.quantity),
    priceKobo: optional(row.price_kobo),
    upstreamAt: milliseconds(row.upstream_at),
    tradeStep: tradeStep === undefined ? undefined : Number(tradeStep),
  };
}

function findEvents(partnerId: string, objectId: string, after: number, until: number): Statement {
  return sql`SELECT e.version, e.id, e.occurred_at, e.type, d.state AS delivery, d.due_at
    FROM feed_events e FORCE INDEX (feed_events_object)
    LEFT JOIN webhook_deliveries d ON d.partner_id = e.partner_id AND d.version = e.version
    WHERE e.partner_id = ${partnerId} AND e.object_id = ${objectId} AND e.occurred_at > ${new Date(after)}
      AND e.occurred_at <= ${new Date(until)} ORDER BY e.version LIMIT ${maxEvents}`;
}

/** Finds the object of an event by the event's id, which begins with its time. */
function findObjectOf(eventId: string): Statement {
  const madeAt = Number.parseInt(eventId.slice('msg_'.length, 'msg_'.length + 12), 16);
  return sql`SELECT object_id FROM feed_events
    WHERE occurred_at BETWEEN ${new Date(madeAt - nearMs)} AND ${new Date(madeAt + nearMs)} AND id = ${eventId}`;
}

function eventEntry(row: SqlRow): Entry & { readonly version: bigint; readonly eventId: string } {
  const type = String(row.type);
  const dueAt = row.due_at === null ? '' : `, due at ${(row.due_at as Date).toISOString()}`;
  return {
    at: (row.occurred_at as Date).getTime(),
    source: TimelineSource.EVENT,
    kind: type,
    // A type is the object's kind, a full stop and its new state.
    state: type.slice(type.indexOf('.') + 1),
    detail: row.delivery === null ? 'in the feed' : `in the feed; webhook ${row.delivery}${dueAt}`,
    eventId: String(row.id),
    version: toBigInt(row.version),
  };
}

function attemptEntry(attempt: Attempt, event: Entry | undefined): Entry {
  const probe = attempt.isProbe ? ', a try of a paused endpoint' : '';
  return {
    at: attempt.at,
    source: TimelineSource.WEBHOOK,
    kind: attempt.outcome,
    detail: `${event?.kind}, attempt ${attempt.number}${probe}`,
    eventId: event?.eventId,
    version: attempt.version,
    attempt: attempt.number,
    status: attempt.status,
    errorClass: attempt.errorClass,
    durationMs: attempt.durationMs,
  };
}

function instantOf(step: SqlRow): number {
  return (step.at as Date).getTime();
}

/** At the same instant, a step precedes its events, and events precede their attempts. */
function inOrder(entries: readonly Entry[]) {
  const rank = ({ source }: Entry) => (source === TimelineSource.WEBHOOK ? 2 : source === TimelineSource.EVENT ? 1 : 0);
  return [...entries].sort((one, other) => one.at - other.at || rank(one) - rank(other));
}

function notFound(): AdminError {
  return new AdminError(status.NOT_FOUND, 'there is no such object, or the event is no longer held');
}
