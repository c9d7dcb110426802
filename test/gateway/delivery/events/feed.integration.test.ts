import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { statement } from '../../../../src/gateway/store/statement.ts';
import { adminClient } from '../../../support/admin.ts';
import { eventually } from '../../../support/eventually.ts';
import { callTimeout, startGateway, type TestGateway, type TestPartner } from '../../../support/gateway.ts';
import { startTestNats } from '../../../support/servers.ts';

interface Event {
  readonly object: string;
  readonly id: string;
  readonly type: string;
  readonly timestamp: string;
  readonly version: number;
  readonly data: { readonly id: string; readonly state: string };
}

async function listEvents(gateway: TestGateway, partner: TestPartner, query = '') {
  return gateway.rest('GET', `/v1/events${query}`, { key: partner.key });
}

async function placeResting(gateway: TestGateway, partner: TestPartner, count: number): Promise<void> {
  for (let number = 0; number < count; number += 1) {
    const { status, text } = await gateway.place(partner, {
      symbol: 'SIM-REST',
      time_in_force: 'gtc',
      quantity: 1 + number,
    });
    assert.equal(status, 201, text);
  }
}

async function waitForEvents(gateway: TestGateway, partner: TestPartner, count: number): Promise<Event[]> {
  return eventually(async () => {
    const { body } = await listEvents(gateway, partner, '?limit=100');
    assert.equal(body.data.length, count);
    return body.data as Event[];
  });
}

describe('the event feed', { concurrency: 4 }, () => {
  let gateway: TestGateway;
  before(async () => {
    gateway = await startGateway({ MARINA_SUBMIT_TIMEOUT_MS: '10000' });
  });
  after(() => gateway.stop());

  it("has each change once, in order, with the object byte for byte as its GET's body of that moment", async () => {
    const partner = await gateway.newPartner();
    const placed = await gateway.place(partner, { symbol: 'SIM-REST', client_reference: 'é'.normalize('NFD')[0] });
    const now = await gateway.rest('GET', `/v1/orders/${placed.body.id}`, { key: partner.key });
    const [event] = await waitForEvents(gateway, partner, 1);
    const { text } = await listEvents(gateway, partner);
    assert.ok(text.includes(`"data":${now.text}}`), text);
    assert.match(event?.id ?? '', /^msg_[0-9a-f]{24}$/);
    assert.equal(event?.object, 'event');
    assert.equal(event.type, 'order.pending');
    assert.equal(event.timestamp, now.body.updated_at);
    assert.equal(event.version, 1);
    assert.equal(placed.text, now.text, 'the answer to the POST is the same object');
  });

  it('pages forward, returns the same cursor while nothing is new, and goes on where it was', async () => {
    const partner = await gateway.newPartner();
    const empty = await listEvents(gateway, partner);
    assert.deepEqual([empty.body.has_more, empty.body.data], [false, []]);
    assert.equal(typeof empty.body.next_cursor, 'string');
    await placeResting(gateway, partner, 5);
    await waitForEvents(gateway, partner, 5);
    const versions: number[] = [];
    let cursor = empty.body.next_cursor;
    for (;;) {
      const { body } = await listEvents(gateway, partner, `?limit=2&cursor=${cursor}`);
      versions.push(...body.data.map(({ version }: Event) => version));
      cursor = body.next_cursor;
      if (!body.has_more) break;
    }
    assert.deepEqual(versions, [1, 2, 3, 4, 5]);
    const idle = await listEvents(gateway, partner, `?cursor=${cursor}`);
    assert.deepEqual([idle.body.data, idle.body.next_cursor], [[], cursor]);
    await placeResting(gateway, partner, 1);
    await eventually(async () => {
      const { body } = await listEvents(gateway, partner, `?cursor=${cursor}`);
      assert.deepEqual(
        body.data.map(({ version }: Event) => version),
        [6],
      );
    });
  });

  it("is never another partner's, and neither is its cursor", async () => {
    const [one, two] = [await gateway.newPartner(), await gateway.newPartner()];
    await placeResting(gateway, one, 3);
    await waitForEvents(gateway, one, 3);
    const { body } = await listEvents(gateway, one, '?limit=1');
    const stolen = await listEvents(gateway, two, `?cursor=${body.next_cursor}`);
    assert.deepEqual([stolen.status, stolen.body.error.param], [400, 'cursor']);
    await placeResting(gateway, two, 1);
    const [first] = await waitForEvents(gateway, two, 1);
    assert.equal(first?.version, 1, "other partners' events do not move the version");
  });

  it('stops at a gap and shows what is behind it once it is filled', async () => {
    const partner = await gateway.newPartner();
    await placeResting(gateway, partner, 3);
    await waitForEvents(gateway, partner, 3);
    const where = [partner.id] as const;
    const [row] = await gateway.database.read(
      statement('SELECT * FROM feed_events WHERE partner_id = ? AND version = 2', ...where),
    );
    await gateway.database.write(statement('DELETE FROM feed_events WHERE partner_id = ? AND version = 2', ...where));
    const gapped = await listEvents(gateway, partner);
    assert.deepEqual([gapped.body.data.length, gapped.body.has_more], [1, false]);
    await gateway.database.write(
      statement(
        `INSERT INTO feed_events (partner_id, version, id, type, body, occurred_at) VALUES (?, 2, ?, 'order.pending', ?, ?)`,
        partner.id,
        String(row?.id),
        row?.body as Buffer,
        row?.occurred_at as Date,
      ),
    );
    await waitForEvents(gateway, partner, 3);
  });

  it('a thousand changes at once all arrive, in order', async () => {
    const partner = await gateway.newPartner({ limits: { ordersKoboPerDay: 10n ** 15n } });
    const total = 250;
    const queue = Array.from({ length: total }, (_, index) => index);
    await Promise.all(
      Array.from({ length: 20 }, async () => {
        for (let next = queue.pop(); next !== undefined; next = queue.pop()) {
          const { status, text } = await gateway.place(partner, { symbol: 'SIM-PARTS', quantity: 10 + next });
          assert.equal(status, 201, text);
        }
      }),
    );
    const versions = await eventually(async () => {
      const seen: number[] = [];
      for (let cursor = ''; ; ) {
        const { body } = await listEvents(gateway, partner, `?limit=100${cursor}`);
        seen.push(...body.data.map(({ version }: Event) => version));
        if (!body.has_more) break;
        cursor = `&cursor=${body.next_cursor}`;
      }
      assert.equal(seen.length, total * 4);
      return seen;
    }, 30_000);
    assert.deepEqual(
      versions,
      Array.from({ length: total * 4 }, (_, index) => index + 1),
    );
  });
});

describe('the event feed over time', () => {
  it('holds 30 days: older events go, a cursor before them is refused, a caught-up one never expires', async () => {
    const gateway = await startGateway();
    const admin = adminClient(gateway.app.adminPort);
    try {
      const partner = await gateway.newPartner();
      const start = (await listEvents(gateway, partner)).body.next_cursor;
      await placeResting(gateway, partner, 3);
      await waitForEvents(gateway, partner, 3);
      const first = (await listEvents(gateway, partner, '?limit=1')).body.next_cursor;
      const second = (await listEvents(gateway, partner, '?limit=2')).body.next_cursor;
      const last = (await listEvents(gateway, partner, '?limit=3')).body.next_cursor;
      const days = (count: number) => ({ by: { seconds: BigInt(count * 86_400) } });
      await admin.clock.advanceClock(days(29), admin.options);
      await placeResting(gateway, partner, 1);
      await waitForEvents(gateway, partner, 4);
      await admin.clock.advanceClock(days(2), admin.options);
      await eventually(async () => {
        const { body } = await listEvents(gateway, partner);
        assert.deepEqual(
          body.data.map(({ version }: Event) => version),
          [4],
        );
      });
      // The last of them is one behind: of what it has not seen, only event 3 was removed.
      for (const [seen, cursor] of [start, first, second].entries()) {
        const { status, text, body } = await listEvents(gateway, partner, `?cursor=${cursor}`);
        const refusal = [status, body.error?.code, body.error?.param];
        const asked = `events 1 to 3 were removed; the cursor after event ${seen} was answered ${status} ${text}`;
        assert.deepEqual(refusal, [400, 'invalid_request', 'cursor'], asked);
        assert.match(body.error.message, /oldest version held is 4/);
      }
      const caughtUp = await listEvents(gateway, partner, `?cursor=${last}`);
      assert.deepEqual(
        caughtUp.body.data?.map(({ version }: Event) => version),
        [4],
        `the cursor after event 3 was answered ${caughtUp.status} ${caughtUp.text}`,
      );
      await admin.clock.advanceClock(days(31), admin.options);
      await eventually(async () => assert.deepEqual((await listEvents(gateway, partner)).body.data, []));
      const end = caughtUp.body.next_cursor;
      assert.equal((await listEvents(gateway, partner, `?cursor=${end}`)).status, 200);
      await placeResting(gateway, partner, 1);
      await eventually(async () => {
        const { body } = await listEvents(gateway, partner, `?cursor=${end}`);
        assert.deepEqual(
          body.data.map(({ version }: Event) => version),
          [5],
        );
      });
      const { body: held } = await listEvents(gateway, partner);
      assert.deepEqual(
        held.data.map(({ version }: Event) => version),
        [5],
        `after a second removal the feed without a cursor is ${JSON.stringify(held)}`,
      );
      const old = await listEvents(gateway, partner, `?cursor=${last}`);
      assert.equal(old.status, 400, `a cursor before the second removal is answered ${old.status}: ${old.text}`);
      assert.match(old.body.error.message, /oldest version held is 5/);
    } finally {
      admin.close();
      await gateway.stop();
    }
  });

  it('the list of one object ends where events were removed: a cursor before them is refused, and the list begins at the oldest held', async () => {
    const gateway = await startGateway();
    const admin = adminClient(gateway.app.adminPort);
    try {
      const partner = await gateway.newPartner();
      const { body: order } = await gateway.place(partner, { symbol: 'SIM-REST', time_in_force: 'gtc', quantity: 3 });
      const ask = (path: string, method: 'GET' | 'POST' = 'GET', body?: object) =>
        gateway.rest(method, path, { key: partner.key, ...(body && { body }) });
      const ofOrder = (query = '') => ask(`/v1/orders/${order.id}/events${query}`);
      const versions = async (query = '') => (await ofOrder(query)).body.data?.map(({ version }: Event) => version);
      const fill = () => ask(`/v1/sandbox/orders/${order.id}/fill`, 'POST', { quantity: 1 });
      const days = (count: number) => ({ by: { seconds: BigInt(count * 86_400) } });
      await fill();
      await eventually(async () => assert.deepEqual(await versions(), [1, 2]));
      const early = (await ofOrder('?limit=1')).body.next_cursor;
      await admin.clock.advanceClock(days(29), admin.options);
      await fill();
      await eventually(async () => assert.deepEqual(await versions(), [1, 2, 3]));
      const late = (await ofOrder('?limit=2')).body.next_cursor;
      assert.deepEqual(await versions(`?cursor=${early}`), [2, 3], 'nothing is removed yet');
      await admin.clock.advanceClock(days(2), admin.options);
      await eventually(async () => assert.deepEqual(await versions(), [3]));
      const { status, body } = await ofOrder(`?cursor=${early}`);
      assert.deepEqual([status, body.error?.code, body.error?.param], [400, 'invalid_request', 'cursor']);
      assert.match(body.error.message, /oldest version held is 3/);
      assert.deepEqual(await versions(`?cursor=${late}`), [3], 'nothing that follows this cursor was removed');
      await admin.clock.advanceClock(days(31), admin.options);
      await eventually(async () => assert.deepEqual(await versions(), []));
      const gone = await ofOrder(`?cursor=${late}`);
      assert.deepEqual([gone.status, gone.body.error?.param], [400, 'cursor']);
      assert.match(gone.body.error.message, /None is held any more/);
    } finally {
      admin.close();
      await gateway.stop();
    }
  });

  it('goes on without NATS within five seconds of each change, and takes NATS back when it is there again', async () => {
    const nats = await startTestNats();
    const gateway = await startGateway({ MARINA_NATS_URL: nats.url });
    try {
      const partner = await gateway.newPartner();
      await placeResting(gateway, partner, 1);
      await waitForEvents(gateway, partner, 1);
      await nats.stop();
      for (const count of [2, 3, 4]) {
        await placeResting(gateway, partner, 1);
        await eventually(async () => {
          const { body } = await listEvents(gateway, partner);
          assert.equal(body.data.length, count);
        }, 5_000);
      }
      const ready = await fetch(`http://127.0.0.1:${gateway.app.opsPort}/readyz`);
      assert.equal(ready.status, 200);
      assert.match(await ready.text(), /NATS cannot be reached/);
    } finally {
      await gateway.stop();
      await nats.stop();
    }
  });

  it('a gateway that starts without NATS trades and tells', async () => {
    const gateway = await startGateway({ MARINA_NATS_URL: 'nats://127.0.0.1:1' });
    try {
      const partner = await gateway.newPartner();
      await placeResting(gateway, partner, 1);
      await waitForEvents(gateway, partner, 1);
    } finally {
      await gateway.stop();
    }
  });

  it('idempotency keys are kept 30 days and as long as their object is not final, then are free', async () => {
    const gateway = await startGateway();
    const admin = adminClient(gateway.app.adminPort);
    try {
      const partner = await gateway.newPartner();
      const rested = await gateway.place(partner, { symbol: 'SIM-REST', time_in_force: 'gtc' }, 'resting');
      const done = await gateway.place(partner, { symbol: 'SIM-FILL' }, 'filled');
      await eventually(async () => {
        const { body } = await gateway.rest('GET', `/v1/orders/${done.body.id}`, { key: partner.key });
        assert.equal(body.state, 'filled');
      });
      assert.equal((await gateway.place(partner, { symbol: 'SIM-FILL' }, 'filled')).body.id, done.body.id);
      await gateway.fund(partner, 2_000_000n);
      const allocate = async () => (await gateway.allocate(partner, { amount_kobo: 1_000 }, 'booked')).body.id;
      const booked = await allocate();
      assert.equal(await allocate(), booked);
      const hanging = gateway.allocate(partner, { amount_kobo: 999_005 }, 'hanging');
      await eventually(async () => {
        const { body } = await gateway.rest('GET', '/v1/allocations?state=sending', { key: partner.key });
        assert.equal(body.data.length, 1);
      });
      await admin.clock.advanceClock({ by: { seconds: BigInt(31 * 86_400) } }, admin.options);
      await eventually(async () => {
        const again = await gateway.place(partner, { symbol: 'SIM-FILL' }, 'filled');
        assert.notEqual(again.body.id, done.body.id);
        assert.notEqual(await allocate(), booked);
      }, 15_000);
      const replay = await gateway.place(partner, { symbol: 'SIM-REST', time_in_force: 'gtc' }, 'resting');
      assert.equal(replay.body.id, rested.body.id, 'the order still lives, and so does its key');
      await gateway.rest('DELETE', `/v1/orders/${rested.body.id}`, { key: partner.key });
      const free = await gateway.place(partner, { symbol: 'SIM-REST', time_in_force: 'gtc' }, 'resting');
      assert.equal(free.status, 201);
      assert.notEqual(free.body.id, rested.body.id);
      const unanswered = (await hanging).body.id;
      await eventually(async () => {
        const again = await gateway.allocate(partner, { amount_kobo: 999_005 }, 'hanging');
        assert.notEqual(again.body.id, unanswered, again.text);
      }, 15_000);
    } finally {
      admin.close();
      await gateway.stop();
    }
  });
});

describe('the clock', () => {
  it('moves gateway and simulator together: a new Lagos day, a fresh limit, and day orders expire', async () => {
    const gateway = await startGateway();
    const admin = adminClient(gateway.app.adminPort);
    try {
      const partner = await gateway.newPartner({ limits: { ordersKoboPerDay: 100_000n } });
      const { body: placed } = await gateway.place(partner, { symbol: 'SIM-REST' });
      const full = await gateway.place(partner, { symbol: 'SIM-REST', quantity: 1 });
      assert.equal(full.body.error.code, 'limit_exceeded');
      const before = Date.now();
      const moved = await admin.clock.advanceClock({ by: { seconds: 86_400n } }, admin.options);
      assert.equal(moved.offsetMs, 86_400_000n);
      assert.ok(Number(moved.now?.seconds) * 1_000 >= before + 86_000_000);
      await eventually(async () => {
        const { body } = await gateway.rest('GET', `/v1/orders/${placed.id}`, { key: partner.key });
        assert.equal(body.state, 'expired');
      });
      const next = await gateway.place(partner, { symbol: 'SIM-REST' });
      assert.equal(next.status, 201, next.text);
      assert.ok(Date.parse(next.body.created_at) > before + 86_000_000);
      await assert.rejects(admin.clock.advanceClock({ by: { seconds: -1n } }, admin.options), /INVALID_ARGUMENT/);
      await assert.rejects(
        admin.clock.advanceClock({ by: { seconds: BigInt(401 * 86_400) } }, admin.options),
        /INVALID_ARGUMENT/,
      );
      const { now } = await gateway.controls.setClock({ offsetMs: 0n }, callTimeout);
      assert.ok(Number(now?.seconds) * 1_000 > before + 86_000_000, 'the simulator moved too, and does not go back');
    } finally {
      admin.close();
      await gateway.stop();
    }
  });
});
