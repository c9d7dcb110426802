import { create } from '@bufbuild/protobuf';
import { status } from '@grpc/grpc-js';
import type { Database } from '../../db/database.ts';
import { type Statement, statement, toBigInt } from '../../db/statement.ts';
import { FeedReader } from '../../events/feed.ts';
import type { FeedWatch } from '../../events/feed-watch.ts';
import {
  type WatchEventsRequest,
  type WatchEventsResponse,
  WatchEventsResponseSchema,
  type WatchedEvent,
  WatchedEventSchema,
} from '../../gen/marina/admin/v1/diagnostics_pb.ts';
import type { Cursors } from '../../lib/paging.ts';
import { toMilliseconds } from '../../lib/timestamps.ts';
import { Wakeup } from '../../lib/worker.ts';
import { AdminError, invalidField, type Operator } from '../call.ts';

export interface WatchParts {
  readonly database: Database;
  readonly feedWatch: FeedWatch;
  readonly cursors: Cursors;
}

const mostPartners = 500;
const mostAtOnce = 100;
/** How long nothing is said while nothing happens. */
const heartbeatMs = 10_000;
/** How often it is looked for partners that were created meanwhile. */
const lookForPartnersMs = 2_000;

/** How far each partner's events were told: by its id, the version of the last one. */
type Places = Map<string, bigint>;

/** The operators' call that streams events. Each partner's feed is read as its partner reads it, so none is left out. */
export function watchHandlers({ database, feedWatch, cursors }: WatchParts) {
  const reader = new FeedReader(database);

  async function* watchEvents(
    request: WatchEventsRequest,
    _: Operator,
    signal: AbortSignal,
  ): AsyncIterable<WatchEventsResponse> {
    const { cursor, since } = request;
    if (cursor !== '' && since !== undefined) throw invalidField('since', 'must be absent beside `cursor`.');
    const wanted = [...new Set(request.partnerIds)].sort();
    const issuedFor = ['watched events', wanted.join()];
    const places = await firstPlaces(wanted, cursor === '' ? undefined : cursors.read(issuedFor, cursor), since);
    const following = new Following(feedWatch, places);
    try {
      let saidAtMs = Number.NEGATIVE_INFINITY;
      let lookedAtMs = performance.now();
      while (!signal.aborted) {
        if (wanted.length === 0 && performance.now() - lookedAtMs > lookForPartnersMs) {
          for (const [id] of await readPartners([])) if (!places.has(id)) places.set(id, 0n);
          lookedAtMs = performance.now();
        }
        following.all();
        const events = await readNew(places, cursor !== '');
        if (events.length > 0 || performance.now() - saidAtMs >= heartbeatMs) {
          yield create(WatchEventsResponseSchema, { events, nextCursor: cursors.issue(issuedFor, write(places)) });
          saidAtMs = performance.now();
        }
        if (events.length < mostAtOnce) await following.wakeup.wait(lookForPartnersMs, signal);
      }
    } finally {
      following.end();
    }
  }

  /** The next events of those partners who have some, and moves on. Partners who have much take turns with the others. */
  async function readNew(places: Places, isResumed: boolean): Promise<WatchedEvent[]> {
    if (places.size === 0) return [];
    const [rows = []] = await database.readAll([lastVersions([...places.keys()])]);
    const behind = rows
      .map((row) => String(row.partner_id))
      .filter((id, at) => toBigInt(rows[at]?.version) > (places.get(id) ?? 0n));
    const events: WatchedEvent[] = [];
    let share = Math.max(1, Math.ceil(mostAtOnce / Math.max(1, behind.length)));
    for (const partnerId of behind) {
      share = Math.min(share, mostAtOnce - events.length);
      if (share <= 0) break;
      const after = places.get(partnerId) ?? 0n;
      const page = await reader.read(partnerId, after, share);
      if (after < page.purgedVersion) {
        if (isResumed && after > 0n) {
          throw invalidField('cursor', `stands before events of ${partnerId} that are no longer held.`);
        }
        places.set(partnerId, page.purgedVersion);
        continue;
      }
      for (const { version, body } of page.events) {
        const text = body.toString();
        const { id } = JSON.parse(text) as { id: string };
        events.push(create(WatchedEventSchema, { partnerId, version, id, body: text }));
        places.set(partnerId, version);
      }
    }
    return events;
  }

  async function firstPlaces(
    wanted: readonly string[],
    position: string | undefined,
    since: WatchEventsRequest['since'],
  ): Promise<Places> {
    const partners = await readPartners(wanted);
    if (position !== undefined) {
      // Who is not in it was created after it was issued.
      const known = read(position);
      return new Map([...partners.keys()].map((id) => [id, known.get(id) ?? 0n]));
    }
    if (since === undefined) return partners;
    return placesAt([...partners.keys()], toMilliseconds(since));
  }

  /** Partners with the version of their last event. Throws where one does not exist, or there are too many. */
  async function readPartners(wanted: readonly string[]): Promise<Places> {
    const some = wanted.length === 0 ? 'id > ?' : `id IN (${wanted.map(() => '?').join(', ')})`;
    const find = statement(
      `SELECT id, version FROM partners WHERE ${some} ORDER BY id LIMIT ${mostPartners + 1}`,
      ...(wanted.length === 0 ? [''] : wanted),
    );
    const [rows = []] = await database.readAll([find]);
    if (rows.length > mostPartners) {
      throw new AdminError(status.FAILED_PRECONDITION, `there are more than ${mostPartners} partners: name some`);
    }
    if (rows.length < wanted.length) throw new AdminError(status.NOT_FOUND, 'there is no such partner');
    return new Map(rows.map((row) => [String(row.id), toBigInt(row.version)]));
  }

  /** Right before the first event each partner has from an instant on, or after the last one held. */
  async function placesAt(partnerIds: readonly string[], since: number): Promise<Places> {
    if (partnerIds.length === 0) return new Map();
    const [first = [], last = [], purged = []] = await database.readAll([
      firstVersionsSince(since),
      lastVersions(partnerIds),
      statement('SELECT partner_id, purged_version AS version FROM feed_purges'),
    ]);
    const versions = (rows: typeof first) =>
      new Map(rows.map((row) => [String(row.partner_id), toBigInt(row.version)]));
    const [firsts, lasts, purges] = [versions(first), versions(last), versions(purged)];
    return new Map(
      partnerIds.map((id) => {
        const from = firsts.get(id);
        return [id, from === undefined ? (lasts.get(id) ?? purges.get(id) ?? 0n) : from - 1n];
      }),
    );
  }

  return { watchEvents };
}

/** Lets the feed wake a stream for any of its partners. */
class Following {
  readonly wakeup = new Wakeup();
  readonly #leaving = new Map<string, () => void>();

  constructor(
    private readonly feedWatch: FeedWatch,
    private readonly places: Places,
  ) {}

  /** Follows those who are not followed yet. */
  all(): void {
    const { feedWatch, places, wakeup } = this;
    for (const partnerId of places.keys()) {
      if (this.#leaving.has(partnerId)) continue;
      const watcher = {
        partnerId,
        wakeup,
        get seen() {
          return places.get(partnerId) ?? 0n;
        },
      };
      this.#leaving.set(partnerId, feedWatch.watch(watcher));
    }
  }

  end(): void {
    for (const leave of this.#leaving.values()) leave();
  }
}

function lastVersions(partnerIds: readonly string[]): Statement {
  return statement(
    `SELECT partner_id, MAX(version) AS version FROM feed_events
      WHERE partner_id IN (${partnerIds.map(() => '?').join(', ')}) GROUP BY partner_id`,
    ...partnerIds,
  );
}

function firstVersionsSince(since: number): Statement {
  return statement(
    'SELECT partner_id, MIN(version) AS version FROM feed_events WHERE occurred_at >= ? GROUP BY partner_id',
    new Date(since),
  );
}

/** Places as a cursor holds them. */
function write(places: Places): string {
  return [...places].map(([id, version]) => `${id.slice('par_'.length)}=${version}`).join();
}

function read(position: string): Places {
  const entries = position === '' ? [] : position.split(',');
  return new Map(
    entries.map((entry) => {
      const [id = '', version = '0'] = entry.split('=');
      return [`par_${id}`, BigInt(version)];
    }),
  );
}
