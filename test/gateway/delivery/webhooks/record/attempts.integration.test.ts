import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  endDraining,
  markDue,
  moved,
  resumed,
  startDraining,
} from '../../../../../src/gateway/delivery/webhooks/plan/endpoint-store.ts';
import { bringForward } from '../../../../../src/gateway/delivery/webhooks/plan/queue-store.ts';
import {
  findAttempts,
  findPosition,
  lockWindow,
  redeliver,
  type WindowPosition,
} from '../../../../../src/gateway/delivery/webhooks/record/delivery-store.ts';
import { recordAttempts } from '../../../../../src/gateway/delivery/webhooks/record/recorder.ts';
import { freshHealth, sentForMs } from '../../../../../src/gateway/delivery/webhooks/rules.ts';
import { deliveries } from '../../../../../src/gateway/delivery/webhooks/table.ts';
import { toBigInt } from '../../../../../src/gateway/store/statement.ts';
import { insertRows } from '../../../../support/insert-rows.ts';

import { minute, now, useWebhookStore } from '../../../../support/webhook-store.ts';

describe('what is stored of attempts at webhooks', () => {
  const store = useWebhookStore();
  const { queue, newLease, claim, endpoint, change, queued, work, attempt, stored, attempts, versionsOf } = store;

  it('what a process that lost its endpoint still wants to write is refused', async () => {
    await queue([1n]);
    await claim(await newLease(-1_000));
    const late = await attempt(1n, { outcome: 'endpoint-failed', status: 500, errorClass: 'status' });
    await claim(await newLease());
    await recordAttempts(store.database, [late], now);
    assert.deepEqual(await attempts(), []);
    assert.deepEqual([(await stored(1n)).tries, (await endpoint()).streak], [0, 0]);
    await recordAttempts(store.database, [await attempt(1n)], now);
    assert.equal((await stored(1n)).state, 'delivered');
  });

  it('attempts that are recorded twice, because a COMMIT had no answer, count once', async () => {
    await queue([1n, 2n]);
    const failed = { outcome: 'endpoint-failed', status: 503, errorClass: 'status' } as const;
    const batch = [await attempt(1n), await attempt(2n, failed)];
    await recordAttempts(store.database, batch, now);
    await recordAttempts(store.database, batch, now);
    assert.deepEqual(await attempts(), [1n, 2n]);
    const { state, attempts: counted, dueAt: due } = await stored(2n);
    assert.deepEqual([state, counted, due], ['waiting', 1, now + minute]);
    assert.equal((await endpoint()).streak, 1);
  });

  it('events delivered at once are recorded once, and not for a process that lost the endpoint', async () => {
    await queue([1n, 2n, 3n]);
    const batch = [await attempt(1n), await attempt(2n)];
    await recordAttempts(store.database, batch, now);
    await recordAttempts(store.database, [...batch, await attempt(3n)], now);
    assert.deepEqual(await attempts(), [1n, 2n, 3n]);
    assert.deepEqual([(await stored(1n)).tries, (await stored(3n)).state], [1, 'delivered']);
    await queue([4n]);
    const late = await attempt(4n);
    await claim(await newLease());
    await recordAttempts(store.database, [late], now);
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
    const transactions = t.mock.method(store.database, 'transaction');
    const recorded = await recordAttempts(store.database, batch, now);
    const read = transactions.mock.calls.map(({ arguments: [statements] }) => statements.at(-1)?.values.flat(9));
    assert.deepEqual(read.at(-1), [store.partnerId, 2n, 3n, 4n], 'what was delivered before the failure is not read');
    assert.deepEqual(await attempts(), versions);
    const states = await Promise.all(versions.map(async (version) => (await stored(version)).state));
    assert.deepEqual(states, ['delivered', 'waiting', 'delivered', 'delivered']);
    assert.deepEqual([(await endpoint()).streak, recorded.get(store.partnerId)?.streak], [0, 0]);
  });

  it('attempts are not tried to be recorded twice at once while the store.database does not answer', async (t) => {
    await queue([1n]);
    const batch = [await attempt(1n)];
    const gone = new Error('the connection is lost');
    const transactions = t.mock.method(store.database, 'transaction', () => Promise.reject(gone));
    await assert.rejects(recordAttempts(store.database, batch, now), gone);
    assert.equal(transactions.mock.callCount(), 1);
  });

  it('what the URL from before a move did says nothing of the endpoint', async () => {
    await queue([1n, 2n, 3n]);
    const failed = { outcome: 'endpoint-failed', status: null, errorClass: 'timeout' } as const;
    const batch = [await attempt(1n, failed), await attempt(2n, failed), await attempt(3n, failed)];
    await change(moved(await endpoint(), 'https://example.org/'));
    await recordAttempts(store.database, batch, now);
    assert.deepEqual([(await endpoint()).streak, (await endpoint()).pausedAt], [0, null]);
    assert.equal((await stored(1n)).attempts, 1);
  });

  it('an endpoint delivers nothing from its first failure until the first delivery, of whatever event', async () => {
    await queue([1n, 2n, 3n]);
    const refused = { outcome: 'event-failed', status: 404, errorClass: 'status' } as const;
    await recordAttempts(store.database, [await attempt(1n, { ...refused, at: now - 60_000 })], now);
    await recordAttempts(store.database, [await attempt(2n, refused)], now);
    assert.equal((await endpoint()).failingSince, now - 60_000 + 3);
    await change(resumed(await endpoint()));
    assert.equal((await endpoint()).failingSince, now - 60_000 + 3, 'an operator does not change that');
    await recordAttempts(store.database, [await attempt(3n)], now);
    assert.equal((await endpoint()).failingSince, null);
  });

  it('a failure before a delivery of the same batch is forgotten, and one after it is not', async () => {
    await queue([1n, 2n]);
    const refused = { outcome: 'event-failed', status: 404, errorClass: 'status' } as const;
    await recordAttempts(store.database, [await attempt(1n, refused), await attempt(2n)], now);
    assert.equal((await endpoint()).failingSince, null);
    await queue([3n, 4n]);
    await recordAttempts(store.database, [await attempt(3n), await attempt(4n, refused)], now);
    assert.equal((await endpoint()).failingSince, now);
  });

  it('when a pause ends, all that waits goes at once, whatever was due when', async () => {
    await queue([1n]);
    await queue([2n], now + 60 * minute);
    await change({ streak: 3, pausedAt: now, probeAt: now + minute });
    await store.database.write(markDue([store.partnerId], now));
    const lease = await newLease();
    assert.deepEqual(await work(lease, now), [], 'until its probe nothing is to be done');
    assert.deepEqual(await work(lease, now + minute), [store.partnerId]);
    await recordAttempts(store.database, [await attempt(1n, { isProbe: true })], now);
    const { draining, fence, streak, pausedAt, probeAt, probedVersion, failingSince } = await endpoint();
    assert.deepEqual([draining, { streak, pausedAt, probeAt, probedVersion, failingSince }], [true, freshHealth]);
    assert.deepEqual(await work(lease, now), [store.partnerId], 'what waits is to be moved to the front');
    assert.equal(await store.database.write(bringForward(store.partnerId, fence, 10)), 1);
    const before = await endpoint();
    await change({ pausedAt: now });
    await change(startDraining({ ...(await endpoint()), ...freshHealth }));
    assert.equal(await store.database.write(endDraining(before)), 0, 'another pause has ended meanwhile');
    assert.equal(await store.database.write(endDraining(await endpoint())), 1);
    assert.deepEqual(await work(lease, now), [store.partnerId], 'and to be sent');
  });

  it('an event whose time is over is not sent again, by an operator or by itself', async () => {
    await queue([1n]);
    await queue([2n], now);
    for (const [at, versions] of [
      [now + sentForMs - 1, [1n, 2n]],
      [now + sentForMs, []],
    ] as const) {
      const window = { from: now - minute, to: now + minute };
      const [asked = []] = await store.database.readAll([lockWindow(store.partnerId, window, at, 10)]);
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
      await store.database.write(
        deliveries.set({ partnerId: store.partnerId, version }, { occurredAt: now + minutes * minute }),
      );
    }
    const window = { from: now, to: now + 4 * minute };
    const found: bigint[] = [];
    for (let after: WindowPosition | undefined; ; ) {
      const [page = []] = await store.database.readAll([lockWindow(store.partnerId, { ...window, after }, now, 1)]);
      const version = page[0] && toBigInt(page[0].version);
      if (version === undefined) break;
      found.push(version);
      const [position] = await store.database.read(findPosition(store.partnerId, version));
      after = position && deliveries.all.read(position);
    }
    assert.deepEqual(found, [1n, 4n, 3n, 2n]);
  });

  it('many attempts of one delivery do not hide those of another', async () => {
    const columns = ['partner_id', 'version', 'number', 'at', 'is_probe', 'outcome', 'status', 'duration_ms'];
    const made = (version: number, count: number) =>
      Array.from({ length: count }, (_, at) => [store.partnerId, version, at + 1, new Date(now), 0, 'failed', 500, 5]);
    await store.database.write(insertRows('webhook_attempts', columns, [...made(2, 30), ...made(1, 3)]));
    const rows = await store.database.read(findAttempts(store.partnerId, [2n, 1n], 10, 20));
    const shown = rows.map(({ version, number }) => `${version}/${number}`);
    assert.deepEqual(shown, [...Array.from({ length: 10 }, (_, at) => `2/${at + 1}`), '1/1', '1/2', '1/3']);
  });

  it('an event an operator asked for again is sent again, whatever an attempt from before it says', async () => {
    await queue([1n]);
    const before = await attempt(1n);
    await store.database.write(redeliver(store.partnerId, [1n]));
    await recordAttempts(store.database, [before], now);
    const { state, tries } = await stored(1n);
    assert.deepEqual([state, tries], ['waiting', 1]);
    assert.deepEqual(await work(await newLease(), now), [], 'nothing is due that was not said to be');
    await store.database.write(markDue([store.partnerId], now));
    assert.deepEqual(await work(await newLease(), now), [store.partnerId]);
  });
});
