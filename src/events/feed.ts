import type { Database } from '../db/database.ts';
import { noFact } from '../db/facts.ts';
import { PageReader } from '../db/gathering.ts';
import { type Statement, sql, statement, toBigInt } from '../db/statement.ts';
import { pause, Wakeup, type Worker } from '../lib/worker.ts';
import { areThese, type ConsumedEvent, OutboxConsumer } from './outbox.ts';
import { feedEvents, feedPurges, feedSkips, type VersionGap } from './table.ts';

const copied = statement('id, type, body, request_id, trace_parent, object_kind, object_id');

/** Copies events into the table partners read. `onConsumed` is called when events have come into it. */
export function feedConsumer(
  database: Database,
  onConsumed: (consumed: readonly ConsumedEvent[]) => void = () => {},
): OutboxConsumer {
  return new OutboxConsumer('feed', database, {
    decide: (consumed) => ({
      // The database copies the bodies itself: to bring them along would cost more, and whoever can publish to NATS
      // could put an event into the feed. An event is held for 30 days from `occurred_at` on. A replica whose clock was
      // far behind wrote an instant that would have it removed at once, so in the feed it is a day ago at the earliest.
      writes: [
        sql`INSERT INTO feed_events (partner_id, version, occurred_at, ${copied})
          SELECT partner_id, version, GREATEST(occurred_at, NOW(3) - INTERVAL 1 DAY), ${copied} FROM outbox
          WHERE ${areThese(consumed)}`,
      ],
      afterwards: () => onConsumed(consumed),
    }),
  });
}

interface HeldEvent {
  readonly version: bigint;
  readonly body: Buffer;
}

/** A page of the feed as stored. */
export interface FeedPage {
  /** Event bodies in version order, without a gap. */
  readonly events: readonly HeldEvent[];
  readonly hasMore: boolean;
  /** Up to which version events were removed. */
  readonly purgedVersion: bigint;
}

/** Reads the feed as it is stored. */
export class FeedReader {
  readonly #pages: PageReader;

  constructor(private readonly database: Database) {
    this.#pages = new PageReader(database, 'feed_events', 'version, body', 'version');
  }

  /**
   * A partner's events after a version, or from the oldest held. It stops at the first gap, because what is missing there
   * is still on its way: nobody ever sees n+1 before n.
   */
  async read(partnerId: string, afterVersion: bigint | undefined, most: number): Promise<FeedPage> {
    const from = afterVersion ?? 0n;
    const rows = await this.#pages.read(partnerId, from.toString(), most + 1);
    const held = rows.map((row) => ({ version: toBigInt(row.version), body: row.body as Buffer }));
    // Only where something is missing it matters what was removed, and what never was.
    const isWhole = held.length > 0 && inSequence(held, from, []).length === held.length;
    const missing = isWhole ? undefined : await this.#readGaps(partnerId);
    // Nothing was removed between a version and the one right after it.
    const purgedVersion = held[0]?.version === from + 1n ? 0n : (missing?.purgedVersion ?? 0n);
    const after = afterVersion ?? purgedVersion;
    const events = after < purgedVersion ? [] : inSequence(held, after, missing?.gaps ?? []);
    return { events: events.slice(0, most), hasMore: events.length > most, purgedVersion };
  }

  /** Up to where versions were removed, and which there never were. */
  async #readGaps(partnerId: string): Promise<{ purgedVersion: bigint; gaps: VersionGap[] }> {
    const [[purge] = [], gaps = []] = await this.database.readAll([
      feedPurges.find({ partnerId }),
      feedSkips.find({ partnerId }, feedSkips.all, statement('ORDER BY from_version')),
    ]);
    return { purgedVersion: toBigInt(purge?.purged_version ?? 0), gaps: gaps.map(feedSkips.all.read) };
  }
}

/** The events that follow on a version, up to the first that is missing. */
function inSequence(held: readonly HeldEvent[], after: bigint, gaps: readonly VersionGap[]): HeldEvent[] {
  let last = after;
  const missing = held.findIndex(({ version }) => {
    if (version !== versionAfter(last, gaps)) return true;
    last = version;
    return false;
  });
  return held.slice(0, missing < 0 ? held.length : missing);
}

/** The version that comes after one. */
function versionAfter(version: bigint, gaps: readonly VersionGap[]): bigint {
  const gap = gaps.find(({ fromVersion, toVersion }) => fromVersion <= version && version <= toVersion);
  return (gap?.toVersion ?? version) + 1n;
}

/** How long a gap is: far more than any partner's events between a backup and the loss of the database. */
const gapLength = 100_000_000;
const mostPartnersAtOnce = 500;

/**
 * Leaves a gap in the versions of every partner after a restore from a backup. Partners may have seen events from after
 * the backup, which the database no longer has, so their versions must never be used again.
 */
export async function leaveVersionGaps(database: Database): Promise<void> {
  for (let after = ''; ; ) {
    const [partners = []] = await database.readAll([
      sql`SELECT id FROM partners WHERE id > ${after} ORDER BY id LIMIT ${mostPartnersAtOnce}`,
    ]);
    for (const { id } of partners) {
      await database.inPartner(String(id), {
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
    if (last === undefined || partners.length < mostPartnersAtOnce) return;
    after = String(last.id);
  }
}

/** A reader that waits for events of its partner. */
export interface FeedWatcher {
  readonly partnerId: string;
  /** The last version it has seen. */
  readonly seen: bigint;
  /** Woken when there is more. */
  readonly wakeup: Wakeup;
}

/** How often the feed is polled while nobody notifies that it grew. */
const pollMs = 500;
/** How long it waits after a notification for others that come close behind. */
const batchingWindowMs = 10;

/**
 * Wakes readers when the feed has more for them. All readers of a process share one small query. It is made when this or
 * another process notifies that the feed grew, and twice a second in case a notification was lost: an idle feed costs two
 * queries a second however many readers wait, and none when nobody waits.
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

  /**
   * A reader is woken as long as the feed has a later version, even one it cannot read yet because an earlier one is
   * still on its way.
   */
  async #wakeReaders(): Promise<void> {
    const partnerIds = [...new Set([...this.#watchers].map(({ partnerId }) => partnerId))];
    const last = toVersions(await this.database.read(findLastVersions(partnerIds)));
    for (const { partnerId, seen, wakeup } of this.#watchers) {
      if ((last.get(partnerId) ?? 0n) > seen) wakeup.wake();
    }
  }
}

/** The last version of each of some partners that the feed has. */
export function findLastVersions(partnerIds: readonly string[]): Statement {
  return sql`SELECT partner_id, MAX(version) AS version FROM feed_events
    WHERE ${feedEvents.where({ partnerId: partnerIds })} GROUP BY partner_id`;
}

/** Versions by their partners, of rows that have both. */
export function toVersions(rows: readonly Readonly<Record<string, unknown>>[]): Map<string, bigint> {
  return new Map(rows.map((row) => [String(row.partner_id), toBigInt(row.version)]));
}
