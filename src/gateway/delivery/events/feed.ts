import { pause, Wakeup, type Worker } from '../../../kit/worker.ts';
import { PageReader } from '../../store/batcher.ts';
import type { Database } from '../../store/database.ts';
import { noFact } from '../../store/facts.ts';
import { type Statement, sql, statement, toBigInt } from '../../store/statement.ts';
import { feedPurges, feedSkips, type VersionGap } from './table.ts';

interface HeldEvent {
  readonly version: bigint;
  readonly body: Buffer;
}

export interface FeedPage {
  /** In the order of versions, without a gap. */
  readonly events: readonly HeldEvent[];
  readonly hasMore: boolean;
  /** Events up to this version were removed. */
  readonly purgedVersion: bigint;
}

/** Reads pages of the feed. */
export class FeedReader {
  readonly #pages: PageReader;

  constructor(private readonly database: Database) {
    this.#pages = new PageReader(database, 'feed_events', 'version, body', 'version');
  }

  /** A partner's events after a version, or from the oldest. It stops at a gap, so that no reader sees n+1 before n. */
  async read(partnerId: string, afterVersion: bigint | undefined, most: number): Promise<FeedPage> {
    const from = afterVersion ?? 0n;
    const rows = await this.#pages.read(partnerId, from.toString(), most + 1);
    const held = rows.map((row) => ({ version: toBigInt(row.version), body: row.body as Buffer }));
    // Removed events and version gaps only matter if an event is missing.
    const isWhole = held.length > 0 && inSequence(held, from, []).length === held.length;
    const missing = isWhole ? undefined : await this.#readGaps(partnerId);
    // Nothing was removed between a version and the next one.
    const purgedVersion = held[0]?.version === from + 1n ? 0n : (missing?.purgedVersion ?? 0n);
    const after = afterVersion ?? purgedVersion;
    const events = after < purgedVersion ? [] : inSequence(held, after, missing?.gaps ?? []);
    return { events: events.slice(0, most), hasMore: events.length > most, purgedVersion };
  }

  async #readGaps(partnerId: string): Promise<{ purgedVersion: bigint; gaps: VersionGap[] }> {
    const [[purge] = [], gaps = []] = await this.database.readAll([
      feedPurges.find({ partnerId }),
      feedSkips.find({ partnerId }, feedSkips.all, statement('ORDER BY from_version')),
    ]);
    return { purgedVersion: toBigInt(purge?.purged_version ?? 0), gaps: gaps.map(feedSkips.all.read) };
  }
}

/** The events of one object from a version on. They are in the feed as soon as they are committed. */
export function objectEvents(partnerId: string, objectId: string, from: bigint, most: number): Statement {
  return sql`SELECT version, body FROM feed_events FORCE INDEX (feed_events_object)
    WHERE partner_id = ${partnerId} AND object_id = ${objectId} AND version >= ${from.toString()}
    ORDER BY version LIMIT ${most}`;
}

/**
 * The last events of a partner before a version, or the very last, newest first. Right after a restore or an upgrade some before
 * them may be missing.
 */
export function latestEvents(partnerId: string, before: bigint | undefined, most: number): Statement {
  const isBefore = before === undefined ? statement('') : sql`AND version < ${before.toString()}`;
  return sql`SELECT version, body FROM feed_events FORCE INDEX (PRIMARY) WHERE partner_id = ${partnerId} ${isBefore}
    ORDER BY version DESC LIMIT ${most}`;
}

/** The events that follow a version, up to the first that is missing. */
function inSequence(held: readonly HeldEvent[], after: bigint, gaps: readonly VersionGap[]): HeldEvent[] {
  let last = after;
  const missing = held.findIndex(({ version }) => {
    if (version !== versionAfter(last, gaps)) return true;
    last = version;
    return false;
  });
  return held.slice(0, missing < 0 ? held.length : missing);
}

/**
 * The version of the event that follows a version. A gap can begin where another one ends, because two restores had no event
 * between them or one was killed half way. `gaps` are sorted by their beginning, so one pass follows any chain of them.
 */
function versionAfter(version: bigint, gaps: readonly VersionGap[]): bigint {
  let last = version;
  for (const { fromVersion, toVersion } of gaps) if (fromVersion <= last && last < toVersion) last = toVersion;
  return last + 1n;
}

/** The length of a gap: far more than any partner's events between a backup and the loss of the database. */
const gapLength = 100_000_000;
const maxPartnersAtOnce = 500;

/**
 * Leaves a gap in all partners' versions after a restore, because partners may have seen events that were lost. It is safe to
 * repeat after it was killed: a partner that has its gap gets another one behind it, and readers pass over both as one.
 */
export async function leaveVersionGaps(database: Database): Promise<void> {
  for (let after = ''; ; ) {
    const [partners = []] = await database.readAll([
      sql`SELECT id FROM partners FORCE INDEX (PRIMARY) WHERE id > ${after} ORDER BY id LIMIT ${maxPartnersAtOnce}`,
    ]);
    for (const { id } of partners) {
      await database.inPartnerTransaction(String(id), {
        touches: ['versions'],
        fact: noFact,
        decide: (_, partner) => {
          const fromVersion = partner.takeVersions(gapLength) - 1n;
          const gap = { partnerId: partner.id, fromVersion, toVersion: partner.version };
          return { writes: [feedSkips.insert(gap)], result: undefined };
        },
      });
    }
    const last = partners.at(-1);
    if (last === undefined || partners.length < maxPartnersAtOnce) return;
    after = String(last.id);
  }
}

export interface FeedWatcher {
  readonly partnerId: string;
  readonly seen: bigint;
  readonly wakeup: Wakeup;
}

/** How often the feed is polled without a notification. */
const pollMs = 500;
/** How long it waits after a notification for others. */
const batchingWindowMs = 10;

/**
 * Wakes readers when the feed has more for them. All readers of a process share one small query. It runs on a notification,
 * and twice a second in case one was lost. An idle feed costs two queries a second, and none if no reader waits.
 */
export class FeedWatch {
  readonly worker: Worker = { name: 'feed watch', run: (signal) => this.#run(signal) };
  readonly #watchers = new Set<FeedWatcher>();
  readonly #wakeup = new Wakeup();

  constructor(private readonly database: Database) {}

  /** Watches for a reader, until the function returned is called. */
  watch(watcher: FeedWatcher): () => void {
    this.#watchers.add(watcher);
    this.#wakeup.wake();
    return () => this.#watchers.delete(watcher);
  }

  /** Notifies that the feed grew. */
  wake(): void {
    if (this.#watchers.size > 0) this.#wakeup.wake();
  }

  async #run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#wakeup.wait(pollMs, signal);
      await pause(batchingWindowMs, signal);
      if (this.#watchers.size > 0 && !signal.aborted) await this.#wakeReaders();
    }
  }

  /** A reader is woken while the feed has a later version, even if an earlier one is still on its way. */
  async #wakeReaders(): Promise<void> {
    const partnerIds = [...new Set([...this.#watchers].map(({ partnerId }) => partnerId))];
    const [rows = []] = await this.database.readAll([findLastVersions(partnerIds)]);
    const last = toVersions(rows);
    for (const { partnerId, seen, wakeup } of this.#watchers) {
      if ((last.get(partnerId) ?? 0n) > seen) wakeup.wake();
    }
  }
}

/** The last version in the feed for each of some partners. */
export function findLastVersions(partnerIds: readonly string[]): Statement {
  return sql`SELECT partner_id, version FROM (SELECT p.id AS partner_id,
      (SELECT e.version FROM feed_events e FORCE INDEX (PRIMARY) WHERE e.partner_id = p.id
        ORDER BY e.partner_id DESC, e.version DESC LIMIT 1) AS version
    FROM partners p FORCE INDEX (PRIMARY) WHERE p.id IN (${partnerIds})) AS last WHERE version IS NOT NULL`;
}

/** Versions by partner, of rows that have both. */
export function toVersions(rows: readonly Readonly<Record<string, unknown>>[]): Map<string, bigint> {
  return new Map(rows.map((row) => [String(row.partner_id), toBigInt(row.version)]));
}
