import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, beforeEach, describe, it } from 'node:test';
import { type Connection, createConnection, type RowDataPacket } from 'mysql2/promise';
import type { Database } from '../../src/db/database.ts';
import { type Statement, statement, toBigInt } from '../../src/db/statement.ts';
import { type EventKey, readOutbox } from '../../src/events/outbox.ts';
import { SystemClock } from '../../src/lib/clock.ts';
import { createLogger } from '../../src/lib/log.ts';
import type { MadeAttempt } from '../../src/webhooks/attempts.ts';
import { webhookConsumer } from '../../src/webhooks/consumer.ts';
import {
  bringForward,
  findAttempts,
  findPosition,
  findProgress,
  type LoadedDelivery,
  lockWindow,
  type QueueRead,
  readQueues,
  redeliver,
  type WindowPosition,
} from '../../src/webhooks/delivery-store.ts';
import {
  claimEndpoints,
  endDraining,
  findWork,
  type HolderLease,
  markDue,
  moved,
  newEndpoint,
  releaseEndpoints,
  resumed,
  saveEndpoint,
  startDraining,
} from '../../src/webhooks/endpoint-store.ts';
import { recordAttempts } from '../../src/webhooks/recorder.ts';
import { freshHealth, sentForMs } from '../../src/webhooks/rules.ts';
import { deliveries, type Endpoint, endpoints, progress } from '../../src/webhooks/table.ts';
import { withDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { insertRows } from '../support/insert-rows.ts';

const minute = 60_000;
const log = createLogger({ name: 'test', level: 'silent' });
const now = Math.floor(Date.now() / 1_000) * 1_000;

describe('what is stored of webhooks', () => {
  let database: Database;
  /** A connection of its own, to hold locks and to count what is read. */
  let other: Connection;
  let partnerId: string;
  withDatabase(async (opened, url) => {
    database = opened;
    other = await createConnection({ uri: url, timezone: 'Z' });
    await other.query('SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED');
  });
  after(() => other.end());
  beforeEach(async () => {
    partnerId = await addEndpoint();
  });

  async function addEndpoint(): Promise<string> {
    const id = `par_${randomBytes(10).toString('hex')}`;
    const url = 'https://example.com/';
    const made = { partnerId: id, url, secret: Buffer.alloc(8), afterVersion: 0n, registeredAt: now - minute };
    await database.write(endpoints.insert(newEndpoint(made)));
    return id;
  }

  /** Puts events into the queue, as the consumer does. */
  async function queue(versions: readonly bigint[], dueAt: number | null = null): Promise<void> {
    await database.write(insertQueued(versions, dueAt));
  }

  function insertQueued(versions: readonly bigint[], dueAt: number | null): Statement {
    const at = new Date(now);
    const columns = 'partner_id version event_id type occurred_at committed_at taken_at state queue due_at'.split(' ');
    const rows = versions.map((version) => {
      const due = dueAt === null ? null : new Date(dueAt);
      return [partnerId, version, `msg_${version}`, 'order.pending', at, at, at, 'waiting', due === null ? 1 : 2, due];
    });
    return insertRows('webhook_deliveries', columns, rows);
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
    return (await claimEndpoints(database, [partnerId], lease, now)).length > 0;
  }

  async function endpoint(): Promise<Endpoint> {
    const [row] = await database.read(endpoints.find({ partnerId }));
    assert.ok(row !== undefined, 'the endpoint is there');
    return endpoints.all.read(row);
  }

  /** Changes the endpoint's row. */
  async function change(changed: Partial<Endpoint>): Promise<void> {
    const before = await endpoint();
    for (const write of saveEndpoint(before, { ...before, ...changed }).writes) await database.write(write);
  }

  /** What a part of the queue has at an instant. */
  async function queued(part: QueueRead['part'], at = now): Promise<LoadedDelivery[]> {
    const [found = []] = await readQueues(database, [{ part, after: 0n, most: 10, partnerId, without: new Set() }], at);
    return found;
  }

  const versionsOf = (deliveries: readonly { version: bigint }[]) => deliveries.map(({ version }) => version);

  async function dueAt(): Promise<number | null> {
    return (await endpoint()).dueAt;
  }

  async function work(lease: HolderLease, at: number, isFullScan = false): Promise<string[]> {
    const [rows = []] = await database.readAll([findWork(lease, at, 5_000, isFullScan)]);
    return rows.map((row) => String(row.partner_id)).filter((id) => id === partnerId);
  }

  async function attempt(version: bigint, more: Partial<MadeAttempt> = {}): Promise<MadeAttempt> {
    const { fence, generation } = await endpoint();
    const common = { partnerId, version, number: 1, round: 0, isProbe: false, at: now - 3, durationMs: 3 };
    return { ...common, fence, generation, outcome: 'delivered', status: 200, errorClass: null, ...more };
  }

  async function stored(version: bigint) {
    const [[row] = []] = await database.readAll([findProgress(new Map([[partnerId, [version]]]))]);
    assert.ok(row !== undefined, 'the delivery is there');
    return progress.read(row);
  }

  async function attempts(): Promise<bigint[]> {
    const rows = await database.read(
      statement('SELECT version FROM webhook_attempts WHERE partner_id = ? ORDER BY version, number', partnerId),
    );
    return rows.map((row) => toBigInt(row.version));
  }

  /** Puts events into the outbox. */
  async function append(versions: readonly bigint[]): Promise<EventKey[]> {
    const at = new Date(now);
    const columns = 'partner_id version id type body occurred_at publish_at signed'.split(' ');
    const rows = versions.map((version) => [partnerId, version, `msg_${version}`, 'order.pending', '{}', at, at, 1]);
    await database.write(insertRows('outbox', columns, rows));
    return versions.map((version) => ({ partnerId, version }));
  }

  async function inOutbox(): Promise<bigint[]> {
    const rows = await database.read(
      statement('SELECT version FROM outbox WHERE partner_id = ? ORDER BY version', partnerId),
    );
    return rows.map((row) => toBigInt(row.version));
  }

  it('events that were queued before are acknowledged, and the others are queued', async () => {
    await queue([1n, 2n]);
    const consumer = webhookConsumer(database, new SystemClock(), log, () => {});
    await consumer.consume(await append([1n, 2n, 3n]));
    assert.deepEqual(versionsOf(await queued('new')), [1n, 2n, 3n]);
    assert.deepEqual([await inOutbox(), consumer.stuck], [[], []]);
  });

  it('an event whose place another has holds up its own partner alone, and only until it is mended', async () => {
    const logged: string[] = [];
    const destination = { write: (line: string) => void logged.push(line) };
    const consumer = webhookConsumer(
      database,
      new SystemClock(),
      createLogger({ name: 'test', level: 'warn', destination }),
      () => {},
    );
    const damaged = partnerId;
    const own = await append([1n, 2n]);
    await database.write(statement("UPDATE outbox SET id = 'msg_other' WHERE partner_id = ? AND version = 2", damaged));
    await queue([2n]);
    partnerId = await addEndpoint();
    const others = await append([1n, 2n]);
    for (const _ of [1, 2]) await consumer.consume([...own, ...others]);
    assert.deepEqual([versionsOf(await queued('new')), await inOutbox()], [[1n, 2n], []]);
    assert.deepEqual([consumer.stuck, consumer.resting], [[damaged], [damaged]]);
    assert.deepEqual(
      logged.map((line) => JSON.parse(line).partnerId),
      [damaged],
      'it is logged once',
    );
    const published = (await readOutbox(database, [], 500, consumer.resting)).map((event) => event.partnerId);
    assert.ok(!published.includes(damaged), 'its events do not fill the batch');
    partnerId = damaged;
    assert.deepEqual([versionsOf(await queued('new')), await inOutbox()], [[2n], [1n, 2n]]);
    await database.write(statement("UPDATE outbox SET id = 'msg_2' WHERE partner_id = ? AND version = 2", damaged));
    await eventually(async () => {
      await consumer.consume(own);
      assert.deepEqual([versionsOf(await queued('new')), await inOutbox(), consumer.stuck], [[1n, 2n], [], []]);
    }, 15_000);
  });

  it('an event that is acknowledged is in the queue by then', async () => {
    const events = await append([1n, 2n]);
    const woken: string[] = [];
    const consumer = webhookConsumer(database, new SystemClock(), log, (ids) => woken.push(...ids));
    const [found] = await Promise.all([consumer.consume(events).then(() => queued('new')), consumer.consume(events)]);
    assert.deepEqual(versionsOf(found), [1n, 2n]);
    assert.deepEqual(woken, [partnerId], 'each is consumed once');
    assert.deepEqual(await work(await newLease(), Date.now()), [partnerId]);
  });

  it("what is sent to an endpoint is its partner's, whatever others' events have the same number", async () => {
    const others = await addEndpoint();
    const feed = [partnerId, others].flatMap((id) =>
      [1n, 2n].map((version) => [id, version, `msg_${id}${version}`.slice(0, 28), `{"of":"${id}"}`, new Date(now)]),
    );
    await database.write(insertRows('feed_events', ['partner_id', 'version', 'id', 'body', 'occurred_at'], feed));
    await queue([1n]);
    await queue([2n], now);
    assert.deepEqual(
      [...(await queued('new')), ...(await queued('retries'))].map(({ version, body }) => [version, body?.toString()]),
      [1n, 2n].map((version) => [version, `{"of":"${partnerId}"}`]),
    );
  });

  it('a poll for work reads nothing of endpoints that have none, however many there are', async () => {
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
      await releaseEndpoints(database, [partnerId], lease, now);
      assert.equal(await dueAt(), expected);
      if (expected !== null) {
        assert.deepEqual(await work(lease, expected - 1), []);
        assert.deepEqual(await work(lease, expected), [partnerId]);
      }
    }
  });

  describe('a full scan finds what is not marked as due', () => {
    const markFor = (until: number | null) =>
      database.write(
        statement(
          'UPDATE webhook_endpoints SET due_at = ? WHERE partner_id = ?',
          until === null ? null : new Date(until),
          partnerId,
        ),
      );

    for (const until of [null, now + 60 * minute]) {
      const name = until === null ? 'not marked' : 'marked for later';
      it(`an event to be sent at once, of an endpoint that is ${name}; the claim marks it`, async () => {
        const [lease, other] = [await newLease(), await newLease()];
        await queue([1n]);
        await markFor(until);
        assert.deepEqual(await work(lease, now), [], 'a poll does not find it');
        assert.deepEqual(await work(lease, now, true), [partnerId]);
        await claim(lease);
        assert.deepEqual([await work(lease, now), await work(other, now, true)], [[partnerId], []]);
      });

      it(`an event to be sent again, of an endpoint that is ${name}, when it is due`, async () => {
        const lease = await newLease();
        await queue([1n], now + minute);
        await markFor(until);
        assert.deepEqual(await work(lease, now + minute - 1, true), [], 'it is not due yet');
        assert.deepEqual(await work(lease, now + minute, true), [partnerId]);
      });
    }

    it('what must be moved to the front, because a pause ended', async () => {
      await queue([1n], now + 60 * minute);
      await change({ draining: true });
      assert.deepEqual(await work(await newLease(), now, true), [partnerId]);
    });

    it('a paused endpoint that is to be tried again, and not before', async () => {
      const lease = await newLease();
      await queue([1n], now + 60 * minute);
      await change({ pausedAt: now, probeAt: now + minute });
      assert.deepEqual(await work(lease, now, true), []);
      assert.deepEqual(await work(lease, now + minute, true), [partnerId]);
    });

    it('a paused endpoint whose next try a clock put off that was a day ahead', async () => {
      await queue([1n], now + 60 * minute);
      const probeAt = now + 1_440 * minute;
      await change({ pausedAt: probeAt - minute, probeAt, dueAt: probeAt });
      assert.deepEqual(await work(await newLease(), now, true), [partnerId]);
    });

    it('an event that is sent again, which a clock put off that was days ahead', async () => {
      const ahead = now + 2 * 1_440 * minute;
      await queue([1n], ahead);
      await markFor(ahead);
      assert.deepEqual(await work(await newLease(), now, true), [partnerId]);
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
    await database.write(markDue([partnerId], now - minute));
    await claim(lease);
    // Both wait for the endpoint: first who gives it back and cannot see the event yet, then who queues the event.
    await other.beginTransaction();
    await other.query('SELECT 1 FROM webhook_endpoints WHERE partner_id = ? FOR UPDATE', [partnerId]);
    const waiting = (count: number) =>
      eventually(async () => {
        const sql = `SELECT COUNT(*) AS count FROM information_schema.processlist
          WHERE db = DATABASE() AND id <> CONNECTION_ID() AND info LIKE '%webhook_endpoints%'`;
        const [rows] = await other.query<RowDataPacket[]>(sql);
        assert.equal(Number(rows[0]?.count), count);
      });
    const releasing = releaseEndpoints(database, [partnerId], lease, now);
    await waiting(1);
    const queueing = database.transaction<void>([], () => ({
      writes: [insertQueued([1n], null), markDue([partnerId], now)],
      result: undefined,
    }));
    await waiting(2);
    await other.rollback();
    await Promise.all([releasing, queueing]);
    assert.equal(await dueAt(), now);
    assert.deepEqual(await work(await newLease(), now), [partnerId]);
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
    const late = await attempt(1n, { outcome: 'endpoint-failed', status: 500, errorClass: 'status' });
    await claim(await newLease());
    await recordAttempts(database, [late], now);
    assert.deepEqual(await attempts(), []);
    assert.deepEqual([(await stored(1n)).tries, (await endpoint()).streak], [0, 0]);
    await recordAttempts(database, [await attempt(1n)], now);
    assert.equal((await stored(1n)).state, 'delivered');
  });

  it('attempts that are recorded twice, because a COMMIT had no answer, count once', async () => {
    await queue([1n, 2n]);
    const failed = { outcome: 'endpoint-failed', status: 503, errorClass: 'status' } as const;
    const batch = [await attempt(1n), await attempt(2n, failed)];
    await recordAttempts(database, batch, now);
    await recordAttempts(database, batch, now);
    assert.deepEqual(await attempts(), [1n, 2n]);
    const { state, attempts: counted, dueAt: due } = await stored(2n);
    assert.deepEqual([state, counted, due], ['waiting', 1, now + minute]);
    assert.equal((await endpoint()).streak, 1);
  });

  it('events delivered at once are recorded once, and not for a process that lost the endpoint', async () => {
    await queue([1n, 2n, 3n]);
    const batch = [await attempt(1n), await attempt(2n)];
    await recordAttempts(database, batch, now);
    await recordAttempts(database, [...batch, await attempt(3n)], now);
    assert.deepEqual(await attempts(), [1n, 2n, 3n]);
    assert.deepEqual([(await stored(1n)).tries, (await stored(3n)).state], [1, 'delivered']);
    await queue([4n]);
    const late = await attempt(4n);
    await claim(await newLease());
    await recordAttempts(database, [late], now);
    assert.deepEqual([await attempts(), (await stored(4n)).tries], [[1n, 2n, 3n], 0]);
  });

  it('a failed attempt among delivered ones does not make these be read before they are recorded', async (t) => {
    const versions = [1n, 2n, 3n, 4n];
    await queue(versions);
    const failed = { outcome: 'endpoint-failed', status: 503, errorClass: 'status' } as const;
    const batch = [
      await attempt(1n),
      await attempt(2n, { ...failed, number: 1 }),
      await attempt(3n),
      await attempt(4n),
    ];
    const transactions = t.mock.method(database, 'transaction');
    const recorded = await recordAttempts(database, batch, now);
    const read = transactions.mock.calls.map(({ arguments: [statements] }) => statements.at(-1)?.values.flat(9));
    assert.deepEqual(read.at(-1), [partnerId, 2n, 3n, 4n], 'what was delivered before the failure is not read');
    assert.deepEqual(await attempts(), versions);
    const states = await Promise.all(versions.map(async (version) => (await stored(version)).state));
    assert.deepEqual(states, ['delivered', 'waiting', 'delivered', 'delivered']);
    assert.deepEqual([(await endpoint()).streak, recorded.get(partnerId)?.streak], [0, 0]);
  });

  it('attempts are not tried to be recorded twice at once while the database does not answer', async (t) => {
    await queue([1n]);
    const batch = [await attempt(1n)];
    const gone = new Error('the connection is lost');
    const transactions = t.mock.method(database, 'transaction', () => Promise.reject(gone));
    await assert.rejects(recordAttempts(database, batch, now), gone);
    assert.equal(transactions.mock.callCount(), 1);
  });

  it('what the URL from before a move did says nothing of the endpoint', async () => {
    await queue([1n, 2n, 3n]);
    const failed = { outcome: 'endpoint-failed', status: null, errorClass: 'timeout' } as const;
    const batch = [await attempt(1n, failed), await attempt(2n, failed), await attempt(3n, failed)];
    await change(moved(await endpoint(), 'https://example.org/'));
    await recordAttempts(database, batch, now);
    assert.deepEqual([(await endpoint()).streak, (await endpoint()).pausedAt], [0, null]);
    assert.equal((await stored(1n)).attempts, 1);
  });

  it('an endpoint delivers nothing from its first failure until the first delivery, of whatever event', async () => {
    await queue([1n, 2n, 3n]);
    const refused = { outcome: 'event-failed', status: 404, errorClass: 'status' } as const;
    await recordAttempts(database, [await attempt(1n, { ...refused, at: now - 60_000 })], now);
    await recordAttempts(database, [await attempt(2n, refused)], now);
    assert.equal((await endpoint()).failingSince, now - 60_000 + 3);
    await change(resumed(await endpoint()));
    assert.equal((await endpoint()).failingSince, now - 60_000 + 3, 'an operator does not change that');
    await recordAttempts(database, [await attempt(3n)], now);
    assert.equal((await endpoint()).failingSince, null);
  });

  it('what fails before a delivery of the same batch is forgotten, and what fails after it is not', async () => {
    await queue([1n, 2n]);
    const refused = { outcome: 'event-failed', status: 404, errorClass: 'status' } as const;
    await recordAttempts(database, [await attempt(1n, refused), await attempt(2n)], now);
    assert.equal((await endpoint()).failingSince, null);
    await queue([3n, 4n]);
    await recordAttempts(database, [await attempt(3n), await attempt(4n, refused)], now);
    assert.equal((await endpoint()).failingSince, now);
  });

  it('when a pause ends, all that waits goes at once, whatever was due when', async () => {
    await queue([1n]);
    await queue([2n], now + 60 * minute);
    await change({ streak: 3, pausedAt: now, probeAt: now + minute });
    await database.write(markDue([partnerId], now));
    const lease = await newLease();
    assert.deepEqual(await work(lease, now), [], 'until its probe nothing is to be done');
    assert.deepEqual(await work(lease, now + minute), [partnerId]);
    await recordAttempts(database, [await attempt(1n, { isProbe: true })], now);
    const { draining, fence, streak, pausedAt, probeAt, probedVersion, failingSince } = await endpoint();
    assert.deepEqual([draining, { streak, pausedAt, probeAt, probedVersion, failingSince }], [true, freshHealth]);
    assert.deepEqual(await work(lease, now), [partnerId], 'what waits is to be moved to the front');
    assert.equal(await database.write(bringForward(partnerId, fence, 10)), 1);
    const before = await endpoint();
    await change({ pausedAt: now });
    await change(startDraining({ ...(await endpoint()), ...freshHealth }));
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
      const window = { from: now - minute, to: now + minute };
      const [asked = []] = await database.readAll([lockWindow(partnerId, window, at, 10)]);
      const waiting = [...(await queued('new', at)), ...(await queued('retries', at))];
      assert.deepEqual([asked.map((row) => toBigInt(row.version)), versionsOf(waiting)], [versions, versions]);
    }
  });

  it('an event whose change has a later time than those after it is in its window once, page by page', async () => {
    await queue([1n, 2n, 3n, 4n]);
    for (const [version, minutes] of [
      [2n, 3],
      [3n, 2],
    ] as const) {
      await database.write(deliveries.set({ partnerId, version }, { occurredAt: now + minutes * minute }));
    }
    const window = { from: now, to: now + 4 * minute };
    const found: bigint[] = [];
    for (let after: WindowPosition | undefined; ; ) {
      const [page = []] = await database.readAll([lockWindow(partnerId, { ...window, after }, now, 1)]);
      const version = page[0] && toBigInt(page[0].version);
      if (version === undefined) break;
      found.push(version);
      const [position] = await database.read(findPosition(partnerId, version));
      after = position && deliveries.all.read(position);
    }
    assert.deepEqual(found, [1n, 4n, 3n, 2n]);
  });

  it('many attempts of one delivery do not hide those of another', async () => {
    const columns = ['partner_id', 'version', 'number', 'at', 'is_probe', 'outcome', 'status', 'duration_ms'];
    const made = (version: number, count: number) =>
      Array.from({ length: count }, (_, at) => [partnerId, version, at + 1, new Date(now), 0, 'failed', 500, 5]);
    await database.write(insertRows('webhook_attempts', columns, [...made(2, 30), ...made(1, 3)]));
    const rows = await database.read(findAttempts(partnerId, [2n, 1n], 10, 20));
    const shown = rows.map(({ version, number }) => `${version}/${number}`);
    assert.deepEqual(shown, [...Array.from({ length: 10 }, (_, at) => `2/${at + 1}`), '1/1', '1/2', '1/3']);
  });

  it('an event an operator asked for again is sent again, whatever an attempt from before it says', async () => {
    await queue([1n]);
    const before = await attempt(1n);
    await database.write(redeliver(partnerId, [1n]));
    await recordAttempts(database, [before], now);
    const { state, tries } = await stored(1n);
    assert.deepEqual([state, tries], ['waiting', 1]);
    assert.deepEqual(await work(await newLease(), now), [], 'nothing is due that was not said to be');
    await database.write(markDue([partnerId], now));
    assert.deepEqual(await work(await newLease(), now), [partnerId]);
  });
});
