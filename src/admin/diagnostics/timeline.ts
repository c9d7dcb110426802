import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { status } from '@grpc/grpc-js';
import type { Database } from '../../db/database.ts';
import { type SqlRow, type Statement, statement } from '../../db/statement.ts';
import { type Diagnostics, type GetTimelineRequest, TimelineSource } from '../../gen/marina/admin/v1/diagnostics_pb.ts';
import type { Kinds } from '../../submission/kind.ts';
import type { History } from '../../submission/table.ts';
import { findAttempts } from '../../webhooks/delivery-store.ts';
import { attempts as attemptTable } from '../../webhooks/table.ts';
import { type AdminCalls, AdminError } from '../call.ts';
import {
  attemptEntry,
  type Entry,
  type EventWindow,
  eventEntry,
  findEvents,
  findObjectOf,
  keyChanges,
  ledger,
  lookUps,
  operators,
  type Source,
  stepEntry,
} from './timeline-sources.ts';

/** What has a timeline besides objects, by the prefixes of their ids: how it is found, and what it consists of. */
const others: Readonly<Record<string, { readonly find: string; readonly sources: readonly Source[] }>> = {
  key: {
    find: `SELECT partner_id, IF(revoked_at IS NULL, 'active', 'revoked') AS state FROM api_keys WHERE id = ?`,
    sources: [keyChanges, operators],
  },
  par: { find: 'SELECT id AS partner_id, state FROM partners WHERE id = ?', sources: [operators] },
};

/** What an object's timeline has besides its steps, events and webhook attempts. */
const objectSources = [lookUps, operators, ledger];

const usualSteps = 100;
const mostAttempts = 2_000;
const endOfTime = Date.UTC(9999, 0);

/** The operators' call that shows what happened to an object. */
export function timelineHandlers(
  database: Database,
  kinds: Kinds,
): Pick<AdminCalls<typeof Diagnostics>, 'getTimeline'> {
  async function getTimeline(request: GetTimelineRequest) {
    const id = request.id.startsWith('msg_') ? await findObject(request.id) : request.id;
    const kind = kinds.ofId(id);
    const other = others[id.slice(0, 3)];
    const find = kind?.table.find({ id }) ?? (other && statement(other.find, id));
    const [found] = find === undefined ? [] : await database.read(find);
    if (found === undefined) throw notFound();
    const partnerId = String(found.partner_id);
    const page = kind && (await readPage(kind.history, partnerId, id, found.updated_at, request));
    // What concerns the subject as a whole stands on the first page.
    const sources = other?.sources ?? objectSources;
    const whole = request.afterStep === 0 ? await readSources(sources, partnerId, id) : [];
    return {
      id,
      partnerId,
      state: String(found.state),
      entries: inOrder([...whole, ...(page?.entries ?? [])]),
      lastStep: page?.lastStep,
      hasMore: page?.hasMore,
    };
  }

  /** A page of an object's steps, with its events from after the page before up to the last of these steps. */
  async function readPage(
    history: History,
    partnerId: string,
    id: string,
    updatedAt: unknown,
    { afterStep, limit }: GetTimelineRequest,
  ) {
    const most = limit === 0 ? usualSteps : limit;
    const rows = await read(history.page(partnerId, id, Math.max(0, afterStep - 1), most + 2));
    const last = rows.find(({ sequence }) => Number(sequence) === afterStep);
    const later = rows.filter((row) => row !== last);
    const steps = later.slice(0, most);
    const hasMore = later.length > most;
    const instants = steps.map(instantOf);
    const events = await readEvents(partnerId, id, {
      after: last === undefined ? 0 : instantOf(last),
      until: hasMore ? (instants.at(-1) ?? 0) : endOfTime,
      // Where clocks differ, an event has the instant of the change before.
      instants: hasMore ? instants : [...instants, (updatedAt as Date).getTime()],
    });
    const lastStep = Number(steps.at(-1)?.sequence ?? afterStep);
    return { entries: [...steps.map(stepEntry), ...events], lastStep, hasMore };
  }

  async function readSources(sources: readonly Source[], partnerId: string, id: string): Promise<Entry[]> {
    const answers = await database.readAll(sources.map(({ find }) => find(partnerId, id)));
    return sources.flatMap(({ toEntry }, index) => (answers[index] ?? []).map(toEntry));
  }

  /** The events of an object, each once though both the outbox and the feed may have it, and their webhook attempts. */
  async function readEvents(partnerId: string, id: string, window: EventWindow): Promise<Entry[]> {
    const rows = (await database.readAll(findEvents(partnerId, id, window))).flat();
    const eventOf = new Map(rows.map((row) => [String(row.version), eventEntry(row)]));
    const events = [...eventOf.values()].sort((one, other) => Number(one.version - other.version));
    if (events.length === 0) return [];
    const versions = events.map(({ version }) => version);
    const attempts = (await read(findAttempts(partnerId, versions, mostAttempts))).map(attemptTable.all.read);
    return [...events, ...attempts.map((attempt) => attemptEntry(attempt, eventOf.get(String(attempt.version))))];
  }

  async function findObject(eventId: string): Promise<string> {
    const [row] = (await database.readAll(findObjectOf(eventId))).flat();
    if (row === undefined) throw notFound();
    return String(row.object_id);
  }

  async function read(query: Statement): Promise<SqlRow[]> {
    const [rows = []] = await database.readAll([query]);
    return rows;
  }

  return { getTimeline };
}

function instantOf(step: SqlRow): number {
  return (step.at as Date).getTime();
}

/** Of one instant, a step comes before its events, and they before their attempts. */
function inOrder(entries: readonly Entry[]) {
  const rank = ({ source }: Entry) => (source === TimelineSource.WEBHOOK ? 2 : source === TimelineSource.EVENT ? 1 : 0);
  return [...entries]
    .sort((one, other) => one.atMs - other.atMs || rank(one) - rank(other))
    .map(({ atMs, ...entry }) => ({ ...entry, at: timestampFromMs(atMs) }));
}

function notFound(): AdminError {
  return new AdminError(status.NOT_FOUND, 'there is no such object, or the event is no longer held');
}
