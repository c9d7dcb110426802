import type { Database } from '../db/database.ts';
import { PageReader } from '../db/page-reader.ts';
import { type Statement, statement, toBigInt } from '../db/statement.ts';
import { crash } from '../lib/crash.ts';
import type { Worker } from '../lib/worker.ts';
import type { Carrier } from './carrier.ts';
import { type EventKey, onOutbox, type TakenEvent, takeFromOutbox } from './sign.ts';
import { findSkips, type Skip, toSkip, versionAfter } from './skips.ts';

/** A page of the feed as stored. */
export interface FeedPage {
  /** Event bodies in version order, without a gap. */
  readonly events: readonly { readonly version: bigint; readonly body: Buffer }[];
  readonly hasMore: boolean;
  /** Up to which version events were removed. */
  readonly purgedVersion: bigint;
}

/** Takes events into the table partners read. */
export class FeedTaker {
  readonly worker: Worker;

  constructor(
    private readonly database: Database,
    carrier: Carrier,
    /** Called when events have come into the feed. */
    private readonly onTaken: (taken: readonly TakenEvent[]) => void = () => {},
  ) {
    this.worker = {
      name: 'feed',
      run: (signal) => carrier.consume('feed', (events) => this.take(events), signal),
    };
  }

  /** Takes events from the outbox into the feed, each once. */
  async take(events: readonly EventKey[]): Promise<void> {
    if (events.length === 0) return;
    crash('feed.before-sign');
    const taken = await takeFromOutbox(this.database, 'feed', events, { writes: (own) => [copyRows(own)] });
    crash('feed.signed');
    this.onTaken(taken);
  }
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
    // Only a gap needs the look at what was removed, and at what never was.
    const whole = inSequence(held, afterVersion ?? 0n, []);
    if (held.length > 0 && whole.length === held.length) return pageOf(whole, most, 0n);
    const { purgedVersion, skips } = await this.#readGaps(partnerId);
    // Nothing was removed between a version and the one right after it.
    if (whole.length > 0) return pageOf(inSequence(held, afterVersion ?? 0n, skips), most, 0n);
    const after = afterVersion ?? purgedVersion;
    if (after < purgedVersion) return pageOf([], most, purgedVersion);
    return pageOf(inSequence(held, after, skips), most, purgedVersion);
  }

  /** Up to where versions were removed, and which there never were. */
  async #readGaps(partnerId: string): Promise<{ purgedVersion: bigint; skips: Skip[] }> {
    const [purges, skips = []] = await this.database.readAll([
      statement('SELECT purged_version FROM feed_purges WHERE partner_id = ?', partnerId),
      findSkips(partnerId),
    ]);
    const purge = purges?.[0];
    return { purgedVersion: purge === undefined ? 0n : toBigInt(purge.purged_version), skips: skips.map(toSkip) };
  }
}

interface HeldEvent {
  readonly version: bigint;
  readonly body: Buffer;
}

/** The events that follow on a version, up to the first that is missing. */
function inSequence(held: readonly HeldEvent[], after: bigint, skips: readonly Skip[]): HeldEvent[] {
  const events: HeldEvent[] = [];
  let last = after;
  for (const event of held) {
    if (event.version !== versionAfter(last, skips)) break;
    events.push(event);
    last = event.version;
  }
  return events;
}

function pageOf(events: readonly HeldEvent[], most: number, purgedVersion: bigint): FeedPage {
  return { events: events.slice(0, most), hasMore: events.length > most, purgedVersion };
}

/**
 * How long an event is held is told by `occurred_at`. A replica whose clock was far behind wrote one that would have it
 * removed as it comes, so it begins a day ago at the earliest.
 */
const heldSince = 'GREATEST(occurred_at, NOW(3) - INTERVAL 1 DAY)';

function copyRows(events: readonly EventKey[]): Statement {
  const columns = (occurredAt: string) =>
    `partner_id, version, id, type, body, ${occurredAt}, request_id, trace_parent, object_kind, object_id`;
  return onOutbox(
    `INSERT INTO feed_events (${columns('occurred_at')}) SELECT ${columns(heldSince)} FROM outbox WHERE`,
    events,
  );
}
