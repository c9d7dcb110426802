import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { RowDataPacket } from 'mysql2/promise';
import { readOutbox } from '../../../../../src/gateway/delivery/events/outbox.ts';
import { webhookConsumer } from '../../../../../src/gateway/delivery/webhooks/consumer.ts';
import {
  findAdopted,
  findWork,
  markDue,
  releaseEndpoints,
  saveSeen,
} from '../../../../../src/gateway/delivery/webhooks/plan/endpoint-store.ts';
import { statement } from '../../../../../src/gateway/store/statement.ts';
import { SystemClock } from '../../../../../src/kit/clock.ts';
import { createLogger } from '../../../../../src/kit/log.ts';
import { eventually } from '../../../../support/eventually.ts';
import { insertRows } from '../../../../support/insert-rows.ts';

import { minute, now, useWebhookStore } from '../../../../support/webhook-store.ts';

const log = createLogger({ name: 'test', level: 'silent' });

describe('what is stored of webhooks', () => {
  const store = useWebhookStore();
  const {
    addEndpoint,
    queue,
    insertQueued,
    newLease,
    claim,
    endpoint,
    change,
    queued,
    dueAt,
    work,
    append,
    inOutbox,
    versionsOf,
  } = store;

  it('events that were queued before are acknowledged, and the others are queued', async () => {
    await queue([1n, 2n]);
    const consumer = webhookConsumer(store.database, new SystemClock(), log, () => {});
    await consumer.consume(await append([1n, 2n, 3n]));
    assert.deepEqual(versionsOf(await queued('new')), [1n, 2n, 3n]);
    assert.deepEqual([await inOutbox(), consumer.stuck], [[], []]);
  });

  it('an event whose place another has holds up its own partner alone, and only until it is mended', async () => {
    const logged: string[] = [];
    const destination = { write: (line: string) => void logged.push(line) };
    const consumer = webhookConsumer(
      store.database,
      new SystemClock(),
      createLogger({ name: 'test', level: 'warn', destination }),
      () => {},
    );
    const damaged = store.partnerId;
    const own = await append([1n, 2n]);
    await store.database.write(
      statement("UPDATE outbox SET id = 'msg_other' WHERE partner_id = ? AND version = 2", damaged),
    );
    await queue([2n]);
    store.partnerId = await addEndpoint();
    const others = await append([1n, 2n]);
    for (const _ of [1, 2]) await consumer.consume([...own, ...others]);
    assert.deepEqual([versionsOf(await queued('new')), await inOutbox()], [[1n, 2n], []]);
    assert.deepEqual([consumer.stuck, consumer.resting], [[damaged], [damaged]]);
    assert.deepEqual(
      logged.map((line) => JSON.parse(line).partnerId),
      [damaged],
      'it is logged once',
    );
    const published = (await readOutbox(store.database, [], 500, consumer.resting)).map((event) => event.partnerId);
    assert.ok(!published.includes(damaged), 'its events do not fill the batch');
    store.partnerId = damaged;
    assert.deepEqual([versionsOf(await queued('new')), await inOutbox()], [[2n], [1n, 2n]]);
    await store.database.write(
      statement("UPDATE outbox SET id = 'msg_2' WHERE partner_id = ? AND version = 2", damaged),
    );
    await eventually(async () => {
      await consumer.consume(own);
      assert.deepEqual([versionsOf(await queued('new')), await inOutbox(), consumer.stuck], [[1n, 2n], [], []]);
    }, 15_000);
  });

  it('an event that is acknowledged is in the queue by then', async () => {
    const events = await append([1n, 2n]);
    const woken: string[] = [];
    const consumer = webhookConsumer(store.database, new SystemClock(), log, (ids) => woken.push(...ids));
    const [found] = await Promise.all([consumer.consume(events).then(() => queued('new')), consumer.consume(events)]);
    assert.deepEqual(versionsOf(found), [1n, 2n]);
    assert.deepEqual(woken, [store.partnerId], 'each is consumed once');
    assert.deepEqual(await work(await newLease(), Date.now()), [store.partnerId]);
  });

  it("what is sent to an endpoint is its partner's, whatever others' events have the same number", async () => {
    const others = await addEndpoint();
    const feed = [store.partnerId, others].flatMap((id) =>
      [1n, 2n].map((version) => [id, version, `msg_${id}${version}`.slice(0, 28), `{"of":"${id}"}`, new Date(now)]),
    );
    await store.database.write(insertRows('feed_events', ['partner_id', 'version', 'id', 'body', 'occurred_at'], feed));
    await queue([1n]);
    await queue([2n], now);
    assert.deepEqual(
      [...(await queued('new')), ...(await queued('retries'))].map(({ version, body }) => [version, body?.toString()]),
      [1n, 2n].map((version) => [version, `{"of":"${store.partnerId}"}`]),
    );
  });

  it('a poll for work reads nothing of endpoints that have none, however many there are', async () => {
    const ids = Array.from({ length: 3_000 }, (_, number) => `par_idle${number}`);
    const rows = ids.map((id) => [id, 'https://example.com/', Buffer.alloc(8), 0n, new Date(now)]);
    await store.database.write(
      insertRows('webhook_endpoints', ['partner_id', 'url', 'secret', 'after_version', 'registered_at'], rows),
    );
    await queue([1n]);
    await store.database.write(markDue([store.partnerId], now));
    const { sql, values } = findWork(await newLease(), now, 1_000);
    const reads = async () => {
      const [counts] = await store.other.query<RowDataPacket[]>("SHOW SESSION STATUS LIKE 'Handler_read%'");
      return counts.reduce((sum, row) => sum + Number(row.Value), 0);
    };
    const without = await reads().then(async (first) => (await reads()) - first);
    const before = await reads();
    const [found] = await store.other.query<RowDataPacket[]>(sql, values as unknown[]);
    const read = (await reads()) - before - without;
    assert.deepEqual(
      found.map((row) => row.partner_id),
      [store.partnerId],
    );
    assert.ok(read < 50, `${read} rows were read`);
  });

  it('an endpoint that is given back is found when the next of its events is due, and not before', async () => {
    const lease = await newLease();
    for (const [dueIn, expected] of [
      [undefined, null],
      [5 * minute, now + 5 * minute],
      [null, now],
    ] as const) {
      await store.database.write(markDue([store.partnerId], now));
      if (dueIn !== undefined) await queue([BigInt(dueIn ?? 1)], dueIn === null ? null : now + dueIn);
      assert.ok(await claim(lease), 'it is claimed');
      await releaseEndpoints(store.database, [store.partnerId], lease, now);
      assert.equal(await dueAt(), expected);
      if (expected !== null) {
        assert.deepEqual(await work(lease, expected - 1), []);
        assert.deepEqual(await work(lease, expected), [store.partnerId]);
      }
    }
  });

  describe('a full scan finds what is not marked as due', () => {
    const markFor = (until: number | null) =>
      store.database.write(
        statement(
          'UPDATE webhook_endpoints SET due_at = ? WHERE partner_id = ?',
          until === null ? null : new Date(until),
          store.partnerId,
        ),
      );

    for (const until of [null, now + 60 * minute]) {
      const name = until === null ? 'not marked' : 'marked for later';
      it(`an event to be sent at once, of an endpoint that is ${name}; the claim marks it`, async () => {
        const [lease, other] = [await newLease(), await newLease()];
        await queue([1n]);
        await markFor(until);
        assert.deepEqual(await work(lease, now), [], 'a poll does not find it');
        assert.deepEqual(await work(lease, now, true), [store.partnerId]);
        await claim(lease);
        assert.deepEqual([await work(lease, now), await work(other, now, true)], [[store.partnerId], []]);
      });

      it(`an event to be sent again, of an endpoint that is ${name}, when it is due`, async () => {
        const lease = await newLease();
        await queue([1n], now + minute);
        await markFor(until);
        assert.deepEqual(await work(lease, now + minute - 1, true), [], 'it is not due yet');
        assert.deepEqual(await work(lease, now + minute, true), [store.partnerId]);
      });
    }

    it('what must be moved to the front, because a pause ended', async () => {
      await queue([1n], now + 60 * minute);
      await change({ draining: true });
      assert.deepEqual(await work(await newLease(), now, true), [store.partnerId]);
    });

    it('a paused endpoint that is to be tried again, and not before', async () => {
      const lease = await newLease();
      await queue([1n], now + 60 * minute);
      await change({ pausedAt: now, probeAt: now + minute });
      assert.deepEqual(await work(lease, now, true), []);
      assert.deepEqual(await work(lease, now + minute, true), [store.partnerId]);
    });

    it('a paused endpoint whose next try a clock put off that was a day ahead', async () => {
      await queue([1n], now + 60 * minute);
      const probeAt = now + 1_440 * minute;
      await change({ pausedAt: probeAt - minute, probeAt, dueAt: probeAt });
      assert.deepEqual(await work(await newLease(), now, true), [store.partnerId]);
    });

    it('an event that is sent again, which a clock put off that was days ahead', async () => {
      const ahead = now + 2 * 1_440 * minute;
      await queue([1n], ahead);
      await markFor(ahead);
      assert.deepEqual(await work(await newLease(), now, true), [store.partnerId]);
      assert.deepEqual(versionsOf(await queued('retries')), [1n]);
    });

    it('nothing of an endpoint that an operator holds', async () => {
      await queue([1n]);
      await change({ heldAt: now });
      assert.deepEqual(await work(await newLease(), now, true), []);
    });
  });

  it('an event that is queued while its endpoint is given back is not forgotten', async () => {
    const lease = await newLease();
    await store.database.write(markDue([store.partnerId], now - minute));
    await claim(lease);
    // Both wait for the endpoint: first who gives it back and cannot see the event yet, then who queues the event.
    await store.other.beginTransaction();
    await store.other.query('SELECT 1 FROM webhook_endpoints WHERE partner_id = ? FOR UPDATE', [store.partnerId]);
    const waiting = (count: number) =>
      eventually(async () => {
        const sql = `SELECT COUNT(*) AS count FROM information_schema.processlist
          WHERE db = DATABASE() AND id <> CONNECTION_ID() AND info LIKE '%webhook_endpoints%'`;
        const [rows] = await store.other.query<RowDataPacket[]>(sql);
        assert.equal(Number(rows[0]?.count), count);
      });
    const releasing = releaseEndpoints(store.database, [store.partnerId], lease, now);
    await waiting(1);
    const queueing = store.database.transaction<void>([], () => ({
      writes: [insertQueued([1n], null), markDue([store.partnerId], now)],
      result: undefined,
    }));
    await waiting(2);
    await store.other.rollback();
    await Promise.all([releasing, queueing]);
    assert.equal(await dueAt(), now);
    assert.deepEqual(await work(await newLease(), now), [store.partnerId]);
  });

  it('a change is in use only once its process has read it, also if it read an earlier change a moment before', async () => {
    await claim(await newLease());
    const isInUse = async () => (await store.database.read(findAdopted((await endpoint()).partnerId))).length > 0;
    const changeByOperator = async (url: string) => change({ url, changedRevision: (await endpoint()).revision + 1n });
    await changeByOperator('https://example.org/1');
    const first = await endpoint();
    assert.equal(await isInUse(), false);
    await changeByOperator('https://example.org/2');
    await store.database.write(saveSeen([first]));
    assert.equal(await isInUse(), false, 'the second change is not read yet');
    await store.database.write(saveSeen([await endpoint()]));
    assert.equal(await isInUse(), true);
  });

  it('an endpoint is sent to by one process that lives, and by the next when that is dead', async () => {
    const [one, two, dead] = [await newLease(), await newLease(), await newLease(-1_000)];
    assert.ok(await claim(dead), 'it is free');
    assert.ok(await claim(one), 'the dead give it up');
    assert.equal(await claim(two), false, 'the living do not');
    assert.ok(await claim(one), 'who lost count of it may claim it again');
    assert.equal((await endpoint()).fence, 3n);
  });

  it("an endpoint is free when its process is dead and the database's clock was set back since", async () => {
    const [dead, next] = [await newLease(60 * minute), await newLease()];
    assert.ok(await claim(dead));
    assert.ok(await claim(next), 'it is held for an hour');
  });
});
