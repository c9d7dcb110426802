import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { areThese, copyToFeed } from '../../../../src/gateway/delivery/events/outbox.ts';
import { feedRetention } from '../../../../src/gateway/delivery/events/retention.ts';
import type { Database } from '../../../../src/gateway/store/database.ts';
import { statement } from '../../../../src/gateway/store/statement.ts';
import { whileRunning, withDatabase } from '../../../support/database.ts';
import { eventually } from '../../../support/eventually.ts';
import { insertRows } from '../../../support/insert-rows.ts';

const dayMs = 86_400_000;
const now = Date.UTC(2026, 2, 2, 9, 30);

describe('the removal of events after 30 days', () => {
  let database: Database;
  withDatabase((opened) => {
    database = opened;
  });

  /** Puts a partner's events, so many days old, into the feed. */
  async function hold(partnerId: string, daysOld: readonly number[]): Promise<void> {
    const rows = daysOld.map((days, index) => {
      return [partnerId, index + 1, `msg_${partnerId}${index}`, '{}', new Date(now - days * dayMs)];
    });
    await database.write(insertRows('feed_events', ['partner_id', 'version', 'id', 'body', 'occurred_at'], rows));
  }

  /** Lets the worker go some rounds, or until something is so. */
  async function run(rounds: number, at = now, isDone = async () => {}): Promise<void> {
    let begun = 0;
    const timeOf = async () => {
      begun += 1;
      return at;
    };
    const worker = feedRetention(database, timeOf, 'test');
    const look = async () => {
      assert.ok(begun > rounds, 'too few rounds');
      await isDone();
    };
    await whileRunning(worker, () => eventually(look, 60_000));
  }

  async function versions(partnerId: string): Promise<number[]> {
    const rows = await database.read(
      statement('SELECT version FROM feed_events WHERE partner_id = ? ORDER BY version', partnerId),
    );
    return rows.map(({ version }) => Number(version));
  }

  it('leaves what came before an event of a replica whose clock was far behind', async () => {
    await hold('par_usual', [40, 31, 29, 1]);
    await hold('par_behind', [31, 2, 40, 1]);
    await run(2);
    assert.deepEqual(await versions('par_usual'), [3, 4]);
    assert.deepEqual(await versions('par_behind'), [2, 3, 4], 'events of less than 30 days are gone');
  });

  it('is not held back by an event of a replica whose clock was far ahead', async () => {
    await hold('par_ahead', [40, -400, 35, 31, 1]);
    await run(2);
    assert.deepEqual(await versions('par_ahead'), [5], 'events of more than 30 days are still there');
  });

  it('is not held up by a partner with more old events than a batch behind one that must stay', async () => {
    const columns = ['partner_id', 'version', 'id', 'body', 'occurred_at'];
    const [young, old] = [new Date(now - 29 * dayMs), new Date(now - 31 * dayMs)];
    const rows = Array.from({ length: 5_000 }, (_, at) => [
      ...['par_held', at + 1, `msg_held${at}`, '{}'],
      at === 0 ? young : old,
    ]);
    await database.write(insertRows('feed_events', columns, rows));
    await hold('par_other', [30.5, 1]);
    await run(3, now, async () => assert.deepEqual(await versions('par_other'), [2]));
    assert.equal((await versions('par_held')).length, rows.length, 'an event of 29 days would not be read any more');
    await database.write(statement("DELETE FROM feed_events WHERE partner_id = 'par_held' AND version = 1"));
    await run(1, now, async () => assert.deepEqual(await versions('par_held'), []));
  });

  it('is not held back by many events of a replica whose clock was far ahead', async () => {
    await hold('par_far_ahead', [...Array(700).fill(-400), 35, 31, 1]);
    await run(3, now, async () => assert.deepEqual(await versions('par_far_ahead'), [703]));
  });

  it('removes the events before one of a replica whose clock was behind a few at a time', async () => {
    const days = Array.from({ length: 4_000 }, (_, at) => (at === 3_998 ? 90 : at === 3_999 ? 1 : 31 + 5 - at / 800));
    await hold('par_slow', days);
    const kept = async () => (await versions('par_slow')).length;
    const seen: number[] = [];
    await run(2, now, async () => {
      seen.push(await kept());
      assert.equal(seen.at(-1), 1);
    });
    assert.ok(
      seen.some((count) => count > 1 && count < days.length),
      `it went at once: ${seen.join()}`,
    );
  });

  it('leaves an event that a replica made whose clock was years behind', async () => {
    const [partnerId, at] = ['par_years_behind', new Date('2000-01-01T00:00:00Z')];
    const columns = ['partner_id', 'version', 'id', 'type', 'body', 'occurred_at', 'publish_at'];
    const row = [partnerId, 1, 'msg_years_behind', 'order.pending', '{}', at, at];
    await database.write(insertRows('outbox', columns, [row]));
    await database.write(copyToFeed(areThese([{ partnerId, version: 1n }])));
    await run(2, Date.now());
    assert.deepEqual(await versions(partnerId), [1], 'it is gone before anybody could read it');
  });

  /** Each of the two writes of a removal, and the row by which a trigger refuses it. */
  const writes = [
    ['its note', 'INSERT ON feed_purges', 'NEW'],
    ['the removal itself', 'DELETE ON feed_events', 'OLD'],
  ] as const;
  for (const [what, write, row] of writes) {
    it(`the removal has noted exactly what is gone, also if the database refuses ${what}`, async () => {
      for (const table of ['feed_events', 'feed_purges']) await database.write(statement(`DELETE FROM ${table}`));
      await hold('par_refused', [40, 31, 29, 1]);
      await database.write(
        statement(
          `CREATE TRIGGER refused BEFORE ${write} FOR EACH ROW IF ${row}.partner_id = 'par_refused'
            THEN SIGNAL SQLSTATE '45000'; END IF`,
        ),
      );
      await assert.rejects(feedRetention(database, async () => now, 'test').run(AbortSignal.timeout(60_000)));
      const noted = async () => {
        const [purge] = await database.read(
          statement("SELECT purged_version AS version FROM feed_purges WHERE partner_id = 'par_refused'"),
        );
        return Number(purge?.version ?? 0);
      };
      const found = await versions('par_refused');
      await database.write(statement('DROP TRIGGER refused'));
      assert.deepEqual([found, await noted()], [[1, 2, 3, 4], 0], 'one of two writes is there');
      await run(1, now, async () => assert.deepEqual(await versions('par_refused'), [3, 4]));
      assert.equal(await noted(), 2);
    });
  }
});
