import { status } from '@grpc/grpc-js';
import type { WatchEventsRequest } from '../../../../gen/marina/admin/v1/diagnostics_pb.ts';
import { toMilliseconds } from '../../../../kit/clock.ts';
import { Wakeup } from '../../../../kit/worker.ts';
import { FeedReader, type FeedWatch, findLastVersions, toVersions } from '../../../delivery/events/feed.ts';
import type { Cursors } from '../../../edge/paging.ts';
import type { Database } from '../../../store/database.ts';
import { statement } from '../../../store/statement.ts';
import { AdminError, invalidField } from '../errors.ts';

/** The version of the last event sent, by partner. */
type Positions = Map<string, bigint>;

const maxPartners = 500;
const maxPerMessage = 100;
/** The longest time between two messages of a stream. */
const heartbeatMs = 10_000;
/** How often new partners are polled for. */
const pollPartnersMs = 2_000;

/** The operators' call that streams events. It reads each partner's feed as the partner does, so no event is left out. */
export function watchCalls(database: Database, feedWatch: FeedWatch, cursors: Cursors) {
  const reader = new FeedReader(database);

  async function* watchEvents({ cursor, since, partnerIds }: WatchEventsRequest, _: unknown, signal: AbortSignal) {
    if (cursor !== '' && since !== undefined) throw invalidField('since', 'must not be given together with `cursor`.');
    const wanted = [...new Set(partnerIds)].sort();
    const issuedFor = ['watched events', wanted.join()];
    const positions = await firstPositions(wanted, cursor === '' ? undefined : cursors.read(issuedFor, cursor), since);
    const wakeup = new Wakeup();
    const leaving = new Map<string, () => void>();
    try {
      let sentAtMs = Number.NEGATIVE_INFINITY;
      let polledAtMs = performance.now();
      while (!signal.aborted) {
        if (wanted.length === 0 && performance.now() - polledAtMs > pollPartnersMs) {
          for (const [id] of await readPartners([])) if (!positions.has(id)) positions.set(id, 0n);
          polledAtMs = performance.now();
        }
        for (const partnerId of positions.keys()) {
          if (!leaving.has(partnerId)) leaving.set(partnerId, feedWatch.watch(watcherOf(partnerId, positions, wakeup)));
        }
        const events = await readNew(positions, cursor !== '');
        if (events.length > 0 || performance.now() - sentAtMs >= heartbeatMs) {
          yield { events, nextCursor: cursors.issue(issuedFor, write(positions)) };
          sentAtMs = performance.now();
        }
        if (events.length < maxPerMessage) await wakeup.wait(pollPartnersMs, signal);
      }
    } finally {
      for (const leave of leaving.values()) leave();
    }
  }

  /** Reads the next events and advances the positions. Partners with many events take turns. */
  async function readNew(positions: Positions, isResumed: boolean) {
    const events: { partnerId: string; version: bigint; id: string; body: string }[] = [];
    if (positions.size === 0) return events;
    const [rows = []] = await database.readAll([findLastVersions([...positions.keys()])]);
    const behind = [...toVersions(rows)].flatMap(([id, last]) => (last > (positions.get(id) ?? 0n) ? [id] : []));
    const share = Math.ceil(maxPerMessage / Math.max(1, behind.length));
    for (const partnerId of behind) {
      const most = Math.min(share, maxPerMessage - events.length);
      if (most <= 0) break;
      const after = positions.get(partnerId) ?? 0n;
      const page = await reader.read(partnerId, after, most);
      if (after < page.purgedVersion) {
        if (isResumed && after > 0n) {
          throw invalidField('cursor', `stands before events of ${partnerId} that are no longer held.`);
        }
        positions.set(partnerId, page.purgedVersion);
        continue;
      }
      for (const { version, body } of page.events) {
        const text = body.toString();
        const { id } = JSON.parse(text) as { id: string };
        events.push({ partnerId, version, id, body: text });
        positions.set(partnerId, version);
      }
    }
    return events;
  }

  async function firstPositions(
    wanted: readonly string[],
    position: string | undefined,
    since: WatchEventsRequest['since'],
  ): Promise<Positions> {
    const partners = await readPartners(wanted);
    if (position !== undefined) {
      // A partner that is not in the cursor was created after it was issued.
      const known = read(position);
      return new Map([...partners.keys()].map((id) => [id, known.get(id) ?? 0n]));
    }
    return since === undefined ? partners : positionsAt([...partners.keys()], toMilliseconds(since));
  }

  /** Partners with their last versions. Throws if one does not exist, or if there are too many. */
  async function readPartners(wanted: readonly string[]): Promise<Positions> {
    const [rows = []] = await database.readAll([
      statement(
        `SELECT id AS partner_id, version FROM partners WHERE ${wanted.length === 0 ? 'id > ?' : 'id IN (?)'}
          ORDER BY id LIMIT ${maxPartners + 1}`,
        wanted.length === 0 ? '' : wanted,
      ),
    ]);
    if (rows.length > maxPartners) {
      throw new AdminError(status.FAILED_PRECONDITION, `there are more than ${maxPartners} partners: name some`);
    }
    if (rows.length < wanted.length) throw new AdminError(status.NOT_FOUND, 'there is no such partner');
    return toVersions(rows);
  }

  /** The position before each partner's first event from an instant on, or after the last one held. */
  async function positionsAt(partnerIds: readonly string[], since: number): Promise<Positions> {
    if (partnerIds.length === 0) return new Map();
    // In this order, an event that comes in between is among the first ones or after the last one.
    const found = await database.readAll([
      statement('SELECT partner_id, purged_version AS version FROM feed_purges'),
      findLastVersions(partnerIds),
      statement(
        'SELECT partner_id, MIN(version) - 1 AS version FROM feed_events WHERE occurred_at >= ? GROUP BY partner_id',
        new Date(since),
      ),
    ]);
    const versions = toVersions(found.flat());
    return new Map(partnerIds.map((id) => [id, versions.get(id) ?? 0n]));
  }

  return { watchEvents };
}

function watcherOf(partnerId: string, positions: Positions, wakeup: Wakeup) {
  return {
    partnerId,
    wakeup,
    get seen() {
      return positions.get(partnerId) ?? 0n;
    },
  };
}

function write(positions: Positions): string {
  return [...positions].map(([id, version]) => `${id.slice('par_'.length)}=${version}`).join();
}

function read(text: string): Positions {
  const entries = text === '' ? [] : text.split(',');
  return new Map(
    entries.map((entry) => {
      const [id = '', version = '0'] = entry.split('=');
      return [`par_${id}`, BigInt(version)];
    }),
  );
}
