import type { Database } from '../db/database.ts';
import { PageReader } from '../db/gathering.ts';
import { toBigInt } from '../db/statement.ts';
import { crash } from '../lib/crash.ts';
import type { Worker } from '../lib/worker.ts';
import { type ConsumedEvent, consumeFromOutbox, type EventKey, onOutbox } from './outbox.ts';
import type { EventStream } from './stream.ts';
import { feedPurges, feedSkips, type VersionGap } from './table.ts';
import { findVersionGaps, versionAfter } from './version-gaps.ts';

/** Copies events into the table partners read. */
export class FeedConsumer {
  readonly worker: Worker;

  constructor(
    private readonly database: Database,
    stream: EventStream,
    /** Called when events have come into the feed. */
    private readonly onConsumed: (consumed: readonly ConsumedEvent[]) => void = () => {},
  ) {
    this.worker = stream.consumer('feed', (events) => this.consume(events));
  }

  /** Copies events from the outbox into the feed, each once. */
  async consume(events: readonly EventKey[]): Promise<void> {
    if (events.length === 0) return;
    crash('feed.before-acknowledge');
    const consumed = await consumeFromOutbox(this.database, 'feed', events, {
      // The database copies the bodies itself: to bring them along would cost more, and whoever can publish to NATS
      // could put an event into the feed.
      writes: (own) => [onOutbox(copyRows, own)],
    });
    crash('feed.acknowledged');
    this.onConsumed(consumed);
  }
}

const copiedColumns = 'id, type, body, request_id, trace_parent, object_kind, object_id';
/**
 * An event is held for 30 days from `occurred_at` on. A replica whose clock was far behind wrote an instant that would have
 * it removed at once, so in the feed it is a day ago at the earliest.
 */
const copyRows = `INSERT INTO feed_events (partner_id, version, occurred_at, ${copiedColumns})
  SELECT partner_id, version, GREATEST(occurred_at, NOW(3) - INTERVAL 1 DAY), ${copiedColumns} FROM outbox WHERE`;

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
    const rows = await this.#pages.read(partnerId, (afterVersion ?? 0n).toString(), most + 1);
    const held = rows.map((row) => ({ version: toBigInt(row.version), body: row.body as Buffer }));
    const from = afterVersion ?? 0n;
    const pageAfter = (after: bigint, gaps: readonly VersionGap[], purgedVersion: bigint) => {
      const events = inSequence(held, after, gaps);
      return { events: events.slice(0, most), hasMore: events.length > most, purgedVersion };
    };
    // Only where something is missing it matters what was removed, and what never was.
    if (held.length > 0 && inSequence(held, from, []).length === held.length) return pageAfter(from, [], 0n);
    const { purgedVersion, gaps } = await this.#readGaps(partnerId);
    // Nothing was removed between a version and the one right after it.
    if (held[0]?.version === from + 1n) return pageAfter(from, gaps, 0n);
    const after = afterVersion ?? purgedVersion;
    return after < purgedVersion
      ? { events: [], hasMore: false, purgedVersion }
      : pageAfter(after, gaps, purgedVersion);
  }

  /** Up to where versions were removed, and which there never were. */
  async #readGaps(partnerId: string): Promise<{ purgedVersion: bigint; gaps: VersionGap[] }> {
    const [[purge] = [], gaps = []] = await this.database.readAll([
      feedPurges.find({ partnerId }),
      findVersionGaps(partnerId),
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
