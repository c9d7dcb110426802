import type { Database } from '../db/database.ts';
import { PageReader } from '../db/page-reader.ts';
import { type Statement, statement, toBigInt } from '../db/statement.ts';
import { crash } from '../lib/crash.ts';
import type { Worker } from '../lib/worker.ts';
import type { Carrier } from './carrier.ts';
import { type EventKey, onOutbox, type TakenEvent, takeFromOutbox } from './sign.ts';

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
    // Nothing was removed between a version and the one right after it; only a gap needs the look at what was.
    const follows = rows[0] !== undefined && toBigInt(rows[0].version) === (afterVersion ?? 0n) + 1n;
    const purgedVersion = follows ? 0n : await this.#readPurgedVersion(partnerId);
    const after = afterVersion ?? purgedVersion;
    if (after < purgedVersion) return { events: [], hasMore: false, purgedVersion };
    const events: { version: bigint; body: Buffer }[] = [];
    for (const row of rows) {
      const version = toBigInt(row.version);
      if (version !== after + BigInt(events.length + 1)) break;
      events.push({ version, body: row.body as Buffer });
    }
    return { events: events.slice(0, most), hasMore: events.length > most, purgedVersion };
  }

  async #readPurgedVersion(partnerId: string): Promise<bigint> {
    const [purge] = await this.database.read(
      statement('SELECT purged_version FROM feed_purges WHERE partner_id = ?', partnerId),
    );
    return purge === undefined ? 0n : toBigInt(purge.purged_version);
  }
}

function copyRows(events: readonly EventKey[]): Statement {
  const columns = 'partner_id, version, id, body, occurred_at, request_id, trace_parent';
  return onOutbox(`INSERT INTO feed_events (${columns}) SELECT ${columns} FROM outbox WHERE`, events);
}
