/** The removal of old events, over feeds in memory whose clocks were wrong now and then. */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { feedRetention } from '../../../../src/gateway/delivery/events/retention.ts';
import type { SqlRow, Statement } from '../../../../src/gateway/store/statement.ts';
import { fc } from '../../../support/properties.ts';

const dayMs = 86_400_000;
const now = 1_000 * dayMs;
/** Events from before this are old; those from the future beyond the second one are from a wrong clock. */
const [oldBefore, aheadAfter] = [now - 30 * dayMs, now + dayMs];

interface Kept {
  readonly partnerId: string;
  readonly version: bigint;
  readonly at: number;
}

/** A database with these events, which answers the statements of the removal. */
function over(events: Kept[]) {
  const state = { events, purged: new Map<string, bigint>() };
  const timeOf = (value: unknown) => (value as Date).getTime();
  const byVersion = (one: Kept, other: Kept) => Number(one.version - other.version);
  const rowOf = ({ partnerId, version, at }: Kept): SqlRow => ({
    ...{ partner_id: partnerId, version, occurred_at: new Date(at) },
  });
  const answer = ({ sql, values }: Statement): SqlRow[] => {
    const given = [...values];
    if (!sql.includes('LIMIT 1)')) {
      const before = timeOf(given.shift());
      const old = state.events.filter(({ at }) => at < before);
      old.sort(
        (one, other) => one.at - other.at || (one.partnerId < other.partnerId ? -1 : 1) || byVersion(one, other),
      );
      return old.map(rowOf);
    }
    return sql.split(' UNION ALL ').flatMap((part) => {
      const partnerId = given.shift();
      let own = state.events.filter((event) => event.partnerId === partnerId).sort(byVersion);
      if (part.includes('version <= ?')) {
        const last = BigInt(String(given.shift()));
        own = own.filter(({ version }) => version <= last);
      }
      if (part.includes('BETWEEN')) {
        const [from, to] = [timeOf(given.shift()), timeOf(given.shift())];
        own = own.filter(({ at }) => at >= from && at <= to);
      }
      return own.slice(0, 1).map(rowOf);
    });
  };
  const write = ({ sql, values }: Statement) => {
    if (sql.startsWith('INSERT INTO feed_purges')) {
      for (const [partnerId, version] of (values as readonly unknown[]).flat() as readonly [string, bigint][]) {
        state.purged.set(partnerId, version);
      }
    } else if (sql.startsWith('DELETE')) {
      for (let at = 0; at < values.length; at += 2) {
        const [partnerId, version] = [values[at], BigInt(String(values[at + 1]))];
        state.events = state.events.filter((event) => event.partnerId !== partnerId || event.version > version);
      }
    }
  };
  const database = {
    readAll: async (queries: readonly Statement[]) => queries.map(answer),
    write: async () => 1,
    transaction: async (
      reads: readonly Statement[],
      decide: (rows: SqlRow[][]) => { writes: readonly Statement[]; result: unknown },
    ) => {
      const isLease = reads.some(({ sql }) => sql.includes('leases'));
      const { writes, result } = decide(isLease ? [[], [{ fence: 0, free: 1 }]] : reads.map(answer));
      for (const one of writes) write(one);
      return result;
    },
  };
  return { state, database };
}

/** Removes one batch. */
async function removeOnce(database: object): Promise<void> {
  const stop = new AbortController();
  const timeOf = async () => {
    stop.abort();
    return now;
  };
  await feedRetention(database as never, timeOf, 'a').run(stop.signal);
}

it('old events are removed from the first on, up to one that must stay, and the last one removed is noted', async () => {
  const instants = [oldBefore - dayMs, oldBefore - 1, oldBefore, now, aheadAfter, aheadAfter + 1];
  const feeds = fc.array(fc.array(fc.constantFrom(...instants), { maxLength: 7 }), { minLength: 1, maxLength: 3 });
  await fc.assert(
    fc.asyncProperty(feeds, async (partners) => {
      const all = partners.flatMap((own, partner) =>
        own.map((at, place): Kept => ({ partnerId: `par_${partner}`, version: BigInt(place + 3), at })),
      );
      const { state, database } = over(all);
      for (let left = -1; left !== state.events.length; ) {
        left = state.events.length;
        await removeOnce(database);
      }
      for (const [partner, own] of partners.entries()) {
        const partnerId = `par_${partner}`;
        const isOld = (at: number) => at < oldBefore;
        const mustStay = (at: number) => at >= oldBefore && at <= aheadAfter;
        const firstToStay = own.findIndex(mustStay);
        const before = firstToStay === -1 ? own : own.slice(0, firstToStay);
        // Those of a fast clock go with an old event behind them, or if an old event is behind them and none must stay between.
        const removed = before.findLastIndex(isOld) + 1;
        const kept = state.events.filter((event) => event.partnerId === partnerId).map(({ at }) => at);
        const expected = own.slice(kept.length === own.length ? 0 : own.length - kept.length);
        assert.deepEqual(kept, expected, 'what is left has no gap');
        assert.ok(own.length - kept.length >= removed, `${own} became ${kept}: an old one was left`);
        assert.ok(
          own.slice(0, own.length - kept.length).every((at) => !mustStay(at)),
          `${own} became ${kept}`,
        );
        const isNoted = state.purged.get(partnerId);
        assert.equal(isNoted, own.length === kept.length ? undefined : BigInt(own.length - kept.length + 2));
        if (!own.some(isOld)) assert.equal(kept.length, own.length, 'nothing is removed where nothing is old');
      }
    }),
    { numRuns: 200 },
  );
});
