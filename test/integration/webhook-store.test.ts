import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, beforeEach, describe, it } from 'node:test';
import { type Connection, createConnection, type RowDataPacket } from 'mysql2/promise';
import { type Database, openDatabase } from '../../src/db/database.ts';
import { migrate } from '../../src/db/migrate.ts';
import { insertRows, statement, toBigInt } from '../../src/db/statement.ts';
import { EventStream } from '../../src/events/stream.ts';
import { SystemClock } from '../../src/lib/clock.ts';
import { createLogger } from '../../src/lib/log.ts';
import { Nats } from '../../src/lib/nats.ts';
import {
  bringForward,
  findProgress,
  findReady,
  findRetries,
  findWaiting,
  lockForRedelivery,
  redeliver,
  toDelivery,
  toProgress,
  toWaiting,
} from '../../src/webhooks/delivery-store.ts';
import {
  claimEndpoints,
  endDraining,
  findEndpoint,
  findWork,
  type HolderLease,
  insertEndpoint,
  lockFree,
  lockHeld,
  markDue,
  releaseUntil,
  type StoredEndpoint,
  saveHealth,
  saveHold,
  saveMove,
  toEndpoint,
} from '../../src/webhooks/endpoint-store.ts';
import { type Result, recordResults } from '../../src/webhooks/results.ts';
import { freshHealth, nextDue, sentForMs } from '../../src/webhooks/rules.ts';
import { WebhookTaker } from '../../src/webhooks/taker.ts';
import { markUnmarkedWork } from '../../src/webhooks/unmarked-work.ts';
import { createTestDatabase, type TestDatabase, testServers } from '../support/servers.ts';

const minute = 60_000;
const now = Math.floor(Date.now() / 1_000) * 1_000;

describe('what is stored of webhooks', () => {
  let test: TestDatabase;
  let database: Database;
  /** A connection of its own, to hold locks and to count what is read. */
  let other: Connection;
  let partnerId: string;
  before(async () => {
    test = await createTestDatabase();
    await migrate(test.url);
    database = await openDatabase({ url: test.url, environment: 'sandbox', poolSize: 4 });
    other = await createConnection({ uri: test.url, timezone: 'Z' });
    await other.query('SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED');
  });
  after(async () => {
    await other.end();
    await database.close();
    await test.drop();
  });
  beforeEach(async () => {
    partnerId = await newEndpoint();
  });

  async function newEndpoint(): Promise<string> {
    const id = `par_${randomBytes(10).toString('hex')}`;
    const url = 'https://example.com/';
    const made = { partnerId: id, url, secret: Buffer.alloc(8), afterVersion: 0n, registeredAt: now - minute };
    await database.write(insertEndpoint(made));
    return id;
  }

  /** Puts events into the queue, as the taker does. */
  async function queue(versions: readonly bigint[], dueAt: number | null = null): Promise<void> {
    const at = new Date(now);
    const columns = 'partner_id version event_id type occurred_at committed_at taken_at state queue due_at'.split(' ');
    const rows = versions.map((version) => {
      const due = dueAt === null ? null : new Date(dueAt);
      return [partnerId, version, `msg_${version}`, 'order.pending', at, at, at, 'waiting', due === null ? 1 : 2, due];
    });
    await database.write(insertRows('webhook_deliveries', columns, rows));
  }

  /** A process that lives, for a while. A lease that is said to last longer is none. */
  async function newLease(livesMs = 14_000): Promise<HolderLease> {
    const name = `webhooks-${randomBytes(8).toString('hex')}`;
    await database.write(
      statement('INSERT INTO leases VALUES (?, ?, 1, NOW(3) + INTERVAL ? SECOND)', name, 'test', livesMs / 1_000),
    );
    return { name, fence: 1n };
  }

  async function claim(lease: HolderLease): Promise<boolean> {
    return database.transaction<boolean>([lockFree([partnerId], lease)], ([rows = []]) => ({
      writes: rows.length === 0 ? [] : [claimEndpoints([partnerId], lease)],
      result: rows.length > 0,
    }));
  }

  async function endpoint(): Promise<StoredEndpoint> {
    const [row] = await database.read(findEndpoint(partnerId));
    assert.ok(row !== undefined, 'the endpoint is there');
    return toEndpoint(row);
  }

  async function dueAt(): Promise<number | null> {
    const [row] = await database.read(
      statement('SELECT due_at FROM webhook_endpoints WHERE partner_id = ?', partnerId),
    );
    return (row?.due_at as Date | null)?.getTime() ?? null;
  }

  async function work(lease: HolderLease, at: number): Promise<string[]> {
    const [rows = []] = await database.readAll([findWork(lease, at, 1_000)]);
    return rows.map((row) => String(row.partner_id)).filter((id) => id === partnerId);
  }

  /** Gives the endpoint back, as a process does that has nothing more to send to it. */
  async function giveBack(lease: HolderLease): Promise<void> {
    await database.transaction(
      [lockHeld([partnerId], lease), findWaiting([partnerId])],
      ([rows = [], waiting = []]) => ({
        writes: rows.map((row) =>
          releaseUntil(
            partnerId,
            nextDue(toEndpoint(row), toWaiting(waiting[0] ?? { is_ready: 0, retry_at: null }), now),
          ),
        ),
        result: undefined,
      }),
    );
  }

  async function result(version: bigint, more: Partial<Result> = {}): Promise<Result> {
    const { fence, generation } = await endpoint();
    const common = { partnerId, version, number: 1, round: 0, isProbe: false, at: now, endedAt: now, durationMs: 3 };
    return { ...common, fence, generation, outcome: 'delivered', status: 200, errorClass: null, ...more };
  }

  async function progress(version: bigint) {
    const [row] = await database.read(findProgress(new Map([[partnerId, [version]]])));
    return toProgress(row ?? {});
  }

  async function attempts(): Promise<bigint[]> {
    const rows = await database.read(
      statement('SELECT version FROM webhook_attempts WHERE partner_id = ? ORDER BY version, number', partnerId),
    );
    return rows.map((row) => toBigInt(row.version));
  }

  it('an event that is signed is in the queue, by when it is signed', async () => {
    const at = new Date(now);
    const columns = ['partner_id', 'version', 'id', 'type', 'body', 'occurred_at', 'publish_at'];
    const events = [1n, 2n].map((version) => ({ partnerId, version }));
    const rows = events.map(({ version }) => [partnerId, version, `msg_${version}`, 'order.pending', '{}', at, at]);
    await database.write(insertRows('outbox', columns, rows));
    const { natsUrl: url } = await testServers();
    const nats = new Nats({ url, log: createLogger({ name: 'test', level: 'silent' }) });
    const stream = new EventStream(nats, 'T');
    const woken: string[] = [];
    const taker = new WebhookTaker(database, stream, new SystemClock(), (ids) => woken.push(...ids));
    const [signed] = await Promise.all([
      taker.consume(events).then(() => database.readAll([findReady(partnerId, { after: 0n, without: [] }, now, 10)])),
      taker.consume(events),
    ]);
    assert.deepEqual(
      signed[0]?.map((row) => toBigInt(row.version)),
      [1n, 2n],
    );
    assert.deepEqual(woken, [partnerId], 'each is taken once');
    assert.deepEqual(await work(await newLease(), Date.now()), [partnerId]);
  });

  it("what is sent to an endpoint is its partner's, whatever others' events have the same number", async () => {
    const others = await newEndpoint();
    const feed = [partnerId, others].flatMap((id) =>
      [1n, 2n].map((version) => [id, version, `msg_${id}${version}`.slice(0, 28), `{"of":"${id}"}`, new Date(now)]),
    );
    await database.write(insertRows('feed_events', ['partner_id', 'version', 'id', 'body', 'occurred_at'], feed));
    await queue([1n]);
    await queue([2n], now);
    const [ready = [], again = []] = await database.readAll([
      findReady(partnerId, { after: 0n, without: [] }, now, 10),
      findRetries(partnerId, [], now, 10),
    ]);
    assert.deepEqual(
      [...ready, ...again].map(toDelivery).map(({ version, body }) => [version, body?.toString()]),
      [1n, 2n].map((version) => [version, `{"of":"${partnerId}"}`]),
    );
  });

  it('a look for work reads nothing of endpoints that have none, however many there are', async () => {
    const ids = Array.from({ length: 3_000 }, (_, number) => `par_idle${number}`);
    const rows = ids.map((id) => [id, 'https://example.com/', Buffer.alloc(8), 0n, new Date(now)]);
    await database.write(
      insertRows('webhook_endpoints', ['partner_id', 'url', 'secret', 'after_version', 'registered_at'], rows),
    );
    await queue([1n]);
    await database.write(markDue([partnerId], now));
    const { sql, values } = findWork(await newLease(), now, 1_000);
    const reads = async () => {
      const [counts] = await other.query<RowDataPacket[]>("SHOW SESSION STATUS LIKE 'Handler_read%'");
      return counts.reduce((sum, row) => sum + Number(row.Value), 0);
    };
    const without = await reads().then(async (first) => (await reads()) - first);
    const before = await reads();
    const [found] = await other.query<RowDataPacket[]>(sql, values as unknown[]);
    const read = (await reads()) - before - without;
    assert.deepEqual(
      found.map((row) => row.partner_id),
      [partnerId],
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
      await database.write(markDue([partnerId], now));
      if (dueIn !== undefined) await queue([BigInt(dueIn ?? 1)], dueIn === null ? null : now + dueIn);
      assert.ok(await claim(lease), 'it is claimed');
      await giveBack(lease);
      assert.equal(await dueAt(), expected);
      if (expected !== null) {
        assert.deepEqual(await work(lease, expected - 1), []);
        assert.deepEqual(await work(lease, expected), [partnerId]);
      }
    }
  });

  describe('work that a version before due_at queued', () => {
    const unmark = (until: number | null) =>
      database.write(
        statement(
          'UPDATE webhook_endpoints SET due_at = ? WHERE partner_id = ?',
          until === null ? null : new Date(until),
          partnerId,
        ),
      );

    for (const until of [null, now + 60 * minute]) {
      const name = until === null ? 'not at all' : 'for later';
      it(`is found once it is marked: an event to be sent at once, of an endpoint marked ${name}`, async () => {
        await queue([1n]);
        await unmark(until);
        assert.deepEqual(await work(await newLease(), now), [], 'it is not found before');
        await markUnmarkedWork(database, now);
        assert.deepEqual(await work(await newLease(), now), [partnerId]);
      });

      it(`is found once it is due: an event to be sent again, of an endpoint marked ${name}`, async () => {
        await queue([1n], now + minute);
        await unmark(until);
        await markUnmarkedWork(database, now + minute - 1);
        assert.equal(await dueAt(), until, 'it is not due yet');
        await markUnmarkedWork(database, now + minute);
        assert.deepEqual(await work(await newLease(), now + minute), [partnerId]);
      });
    }

    it('is found when a pause ended: what waits must be moved to the front', async () => {
      await queue([1n], now + 60 * minute);
      await database.write(statement('UPDATE webhook_endpoints SET draining = 1 WHERE partner_id = ?', partnerId));
      await markUnmarkedWork(database, now);
      assert.deepEqual(await work(await newLease(), now), [partnerId]);
    });

    it('is found when a paused endpoint is to be tried again, and not before', async () => {
      await queue([1n], now + 60 * minute);
      await database.write(saveHealth(partnerId, { ...freshHealth, pausedAt: now, probeAt: now + minute }, false));
      await markUnmarkedWork(database, now);
      assert.equal(await dueAt(), null);
      await markUnmarkedWork(database, now + minute);
      assert.deepEqual(await work(await newLease(), now + minute), [partnerId]);
    });

    it('is found when a clock that was a day ahead put the next try of a paused endpoint off', async () => {
      await queue([1n], now + 60 * minute);
      const probeAt = now + 1_440 * minute;
      await database.write(saveHealth(partnerId, { ...freshHealth, pausedAt: probeAt - minute, probeAt }, false));
      await database.write(markDue([partnerId], probeAt));
      await markUnmarkedWork(database, now);
      assert.deepEqual(await work(await newLease(), now), [partnerId]);
    });

    it('is found when a clock that was days ahead put off an event that is sent again', async () => {
      const ahead = now + 2 * 1_440 * minute;
      await queue([1n], ahead);
      await unmark(ahead);
      await markUnmarkedWork(database, now);
      assert.deepEqual(await work(await newLease(), now), [partnerId]);
      const [retries = []] = await database.readAll([findRetries(partnerId, [], now, 10)]);
      assert.deepEqual(
        retries.map((row) => toBigInt(row.version)),
        [1n],
      );
    });

    it('stays as it is when an operator holds the endpoint', async () => {
      await queue([1n]);
      await database.write(saveHold(partnerId, now));
      await markUnmarkedWork(database, now);
      assert.equal(await dueAt(), null);
    });

    it('is found in whichever place of many endpoints', async () => {
      const ids = Array.from({ length: 1_100 }, (_, number) => `par_${String(number).padStart(4, '0')}`);
      const rows = ids.map((id) => [id, 'https://example.com/', Buffer.alloc(8), 0n, new Date(now)]);
      await database.write(
        insertRows('webhook_endpoints', ['partner_id', 'url', 'secret', 'after_version', 'registered_at'], rows),
      );
      const waiting = ['par_0000', 'par_0499', 'par_0500', 'par_1099'];
      for (partnerId of waiting) await queue([1n]);
      await markUnmarkedWork(database, now);
      const [found = []] = await database.readAll([findWork(await newLease(), now, 1_000)]);
      const some = found.map((row) => String(row.partner_id)).filter((id) => ids.includes(id));
      assert.deepEqual(some.sort(), waiting);
    });
  });

  it('an event that is queued while its endpoint is given back is not forgotten', async () => {
    const lease = await newLease();
    await database.write(markDue([partnerId], now - minute));
    await claim(lease);
    await other.beginTransaction();
    const { sql, values } = lockHeld([partnerId], lease);
    await other.query(sql, values as unknown[]);
    const taking = database.write(markDue([partnerId], now));
    // It gives the endpoint back as one for which nothing waits: what is being queued cannot be seen yet.
    const release = releaseUntil(partnerId, null);
    await other.query(release.sql, release.values as unknown[]);
    await other.commit();
    await taking;
    assert.equal(await dueAt(), now);
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

  it('what a process that lost its endpoint still wants to write is refused', async () => {
    await queue([1n]);
    await claim(await newLease(-1_000));
    const late = await result(1n, { outcome: 'endpoint-failed', status: 500, errorClass: 'status' });
    await claim(await newLease());
    await recordResults(database, [late], now);
    assert.deepEqual(await attempts(), []);
    assert.deepEqual([(await progress(1n)).tries, (await endpoint()).health.streak], [0, 0]);
    await recordResults(database, [await result(1n)], now);
    assert.equal((await progress(1n)).state, 'delivered');
  });

  it('attempts that are recorded twice, because a COMMIT had no answer, count once', async () => {
    await queue([1n, 2n]);
    const failed = { outcome: 'endpoint-failed', status: 503, errorClass: 'status' } as const;
    const batch = [await result(1n), await result(2n, failed)];
    await recordResults(database, batch, now);
    await recordResults(database, batch, now);
    assert.deepEqual(await attempts(), [1n, 2n]);
    const { state, attempts: counted, dueAt: due } = await progress(2n);
    assert.deepEqual([state, counted, due], ['waiting', 1, now + minute]);
    assert.equal((await endpoint()).health.streak, 1);
  });

  it('what the URL from before a move did says nothing of the endpoint', async () => {
    await queue([1n, 2n, 3n]);
    const failed = { outcome: 'endpoint-failed', status: null, errorClass: 'timeout' } as const;
    const batch = [await result(1n, failed), await result(2n, failed), await result(3n, failed)];
    for (const write of saveMove(partnerId, 'https://example.org/', freshHealth, false)) await database.write(write);
    await recordResults(database, batch, now);
    assert.deepEqual((await endpoint()).health, freshHealth);
    assert.equal((await progress(1n)).attempts, 1);
  });

  it('when a pause ends, all that waits goes at once, whatever was due when', async () => {
    await queue([1n]);
    await queue([2n], now + 60 * minute);
    const paused = { streak: 3, pausedAt: now, probeAt: now + minute, probedVersion: 0n };
    await database.write(saveHealth(partnerId, paused, false));
    await database.write(markDue([partnerId], now));
    const lease = await newLease();
    assert.deepEqual(await work(lease, now), [], 'until its probe nothing is to be done');
    assert.deepEqual(await work(lease, now + minute), [partnerId]);
    await recordResults(database, [await result(1n, { isProbe: true })], now);
    const { draining, health, fence } = await endpoint();
    assert.deepEqual([draining, health], [true, freshHealth]);
    assert.deepEqual(await work(lease, now), [partnerId], 'what waits is to be moved to the front');
    assert.equal(await database.write(bringForward(partnerId, fence, 10)), 1);
    const before = await endpoint();
    await database.write(saveHealth(partnerId, freshHealth, true));
    assert.equal(await database.write(endDraining(before)), 0, 'another pause has ended meanwhile');
    assert.equal(await database.write(endDraining(await endpoint())), 1);
    assert.deepEqual(await work(lease, now), [partnerId], 'and to be sent');
  });

  it('an event whose time is over is not sent again, by an operator or by itself', async () => {
    await queue([1n]);
    await queue([2n], now);
    for (const [at, versions] of [
      [now + sentForMs - 1, [1n, 2n]],
      [now + sentForMs, []],
    ] as const) {
      const [asked = [], ready = [], again = []] = await database.readAll([
        lockForRedelivery(partnerId, { from: now - minute, to: now + minute }, 0n, at, 10),
        findReady(partnerId, { after: 0n, without: [] }, at, 10),
        findRetries(partnerId, [], at, 10),
      ]);
      const numbers = (rows: typeof asked) => rows.map((row) => toBigInt(row.version));
      assert.deepEqual([numbers(asked), numbers([...ready, ...again])], [versions, versions]);
    }
  });

  it('an event an operator asked for again is sent again, whatever an attempt from before it says', async () => {
    await queue([1n]);
    const before = await result(1n);
    await database.write(redeliver(partnerId, [1n]));
    await recordResults(database, [before], now);
    const { state, tries } = await progress(1n);
    assert.deepEqual([state, tries], ['waiting', 1]);
    assert.deepEqual(await work(await newLease(), now), [], 'nothing is due that was not said to be');
    await database.write(markDue([partnerId], now));
    assert.deepEqual(await work(await newLease(), now), [partnerId]);
  });
});
