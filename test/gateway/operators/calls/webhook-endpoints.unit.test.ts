/** How operators change a partner's endpoint and send events again, over an endpoint and deliveries that the test holds. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { newEndpoint } from '../../../../src/gateway/delivery/webhooks/plan/endpoint-store.ts';
import { rotationMs, sentForMs } from '../../../../src/gateway/delivery/webhooks/rules.ts';
import { deliveries, type Endpoint, endpoints } from '../../../../src/gateway/delivery/webhooks/table.ts';
import { webhookDeliveryCalls } from '../../../../src/gateway/operators/calls/webhook-deliveries.ts';
import { webhookEndpointCalls } from '../../../../src/gateway/operators/calls/webhook-endpoints.ts';
import type { SqlRow, Statement } from '../../../../src/gateway/store/statement.ts';
import { storedRow } from '../../../support/stored-row.ts';

const now = 1_000_000_000_000;
const [former, later] = [Buffer.alloc(64, 1), Buffer.alloc(64, 2)];
const plain: Endpoint = {
  ...newEndpoint({ partnerId: 'par_a', url: 'https://one', secret: former, afterVersion: 4n, registeredAt: 5 }),
  ...{ revision: 7n, changedRevision: 3n, seenRevision: 7n },
};

interface Delivered {
  readonly version: bigint;
  readonly occurredAt: number;
}

function open(endpoint: Endpoint | null = plain, { found = [] as readonly Delivered[], isAdopted = true } = {}) {
  const done: string[] = [];
  let written: readonly Statement[] = [];
  const rows = found.map((one) => storedRow(deliveries, { ...one, partnerId: 'par_a', eventId: 'evt_a' } as never));
  const answer = ({ sql, values }: Statement): SqlRow[] => {
    if (sql.includes('FROM partners')) return [{ id: 'par_a' }];
    if (sql.startsWith('SELECT 1 FROM webhook_endpoints')) {
      done.push('asked');
      return isAdopted ? [{ 1: 1 }] : [];
    }
    if (sql.includes('FROM webhook_endpoints')) return endpoint === null ? [] : [storedRow(endpoints, endpoint)];
    if (sql.includes('version <='))
      return rows.filter(({ version }) => BigInt(String(version)) <= BigInt(String(values[1])));
    const most = Number(values.at(-1));
    return Number.isInteger(most) ? rows.slice(0, most) : rows;
  };
  const decided = (
    decide: (rows: SqlRow[][], more: object) => { writes: Statement[]; result: unknown },
    found: SqlRow[][],
  ) => {
    const { writes, result } = decide(found, { version: 44n });
    written = writes;
    done.push('commit');
    return result;
  };
  const database = {
    read: async (query: Statement) => answer(query),
    readAll: async (queries: readonly Statement[]) => queries.map(answer),
    write: async () => void done.push('audit'),
    transaction: async (reads: readonly Statement[], decide: never) => decided(decide, reads.map(answer)),
    inPartnerTransaction: async (_: string, { decide }: { decide: never }) =>
      decided(decide, [endpoint === null ? [] : [storedRow(endpoints, endpoint)]]),
  };
  const parts = {
    ...{
      database,
      clock: { now: () => now },
      ids: {},
      checkUrl: (url: string) => `${url}/`,
      makeSecret: () => 'whsec',
    },
    seal: {
      seal(partnerId: string, secret: string) {
        assert.deepEqual([partnerId, secret], ['par_a', 'whsec']);
        return later;
      },
    },
    onChange: () => done.push('notify'),
    sendTest: async (_: Endpoint, note: (id: string, at: number) => Promise<unknown>) => {
      await note('evt_test', now);
      done.push('send');
      return { id: 'evt_test', outcome: 'delivered', status: 200, errorClass: null, durationMs: 3 };
    },
  };
  const calls = {
    ...webhookEndpointCalls(parts as never),
    ...webhookDeliveryCalls(parts as never),
  } as unknown as Record<string, (request: object, call: object) => Promise<Record<string, unknown>>>;
  const call = { operator: 'ada', action: 'Webhooks.MoveEndpoint', requestId: 'r' };
  const make = (name: string, request: object = {}) =>
    calls[name]?.({ partnerId: 'par_a', reason: 'why', ...request }, call) as Promise<Record<string, unknown>>;
  return { make, done, written: () => written };
}

/** The written values of the endpoint, by column. */
function changesOf(written: readonly Statement[]): Record<string, unknown> {
  const [update] = written;
  const names = (/ SET (.*) WHERE /.exec(update?.sql ?? '')?.[1] ?? '')
    .split(', ')
    .map((set) => set.split(' ')[0] ?? '');
  return Object.fromEntries(names.map((name, at) => [name, update?.values[at]]));
}

const tables = (written: readonly Statement[]) => written.map(({ sql }) => /(?:INTO|UPDATE) (\w+)/.exec(sql)?.[1]);

describe("a change of a partner's endpoint", () => {
  it("a change of a partner's endpoint is answered when the process that sends to it has confirmed it, or can use the old row no more", async (t) => {
    const { make, done, written } = open();
    assert.equal((await make('pauseEndpoint')).changed, true);
    assert.deepEqual(done, ['commit', 'notify', 'asked']);
    assert.deepEqual(tables(written()), ['webhook_endpoints', 'audit_entries']);
    assert.deepEqual(changesOf(written()), { held_at: new Date(now), revision: 8n, changed_revision: 8n });
    let at = 0;
    t.mock.method(performance, 'now', () => at);
    const silent = open(plain, { isAdopted: false });
    const asked = silent.done;
    const pausing = silent.make('pauseEndpoint');
    while (asked.length < 3) await new Promise(setImmediate);
    at = 3_099;
    while (asked.length < 4) await new Promise(setImmediate);
    at = 3_100;
    assert.equal((await pausing).changed, true);
  });

  it("a change of a partner's endpoint is none if the endpoint is as it is wanted", async () => {
    for (const [name, before] of [
      ['pauseEndpoint', { heldAt: 3 }],
      ['resumeEndpoint', {}],
    ] as const) {
      const { make, written } = open({ ...plain, ...before });
      assert.equal((await make(name)).changed, false);
      assert.deepEqual(written(), []);
    }
  });

  it('ends, if it resumes the endpoint, a pause of an operator and one after failures', async () => {
    for (const before of [{ heldAt: 3 }, { pausedAt: 3, streak: 9, probeAt: 4 }, { heldAt: 3, pausedAt: 3 }]) {
      const { make, written } = open({ ...plain, ...before });
      assert.equal((await make('resumeEndpoint')).changed, true);
      const { held_at: heldAt = null, paused_at: pausedAt = null, draining } = changesOf(written());
      assert.deepEqual([heldAt, pausedAt, draining], [null, null, true]);
    }
  });

  it("a change of a partner's endpoint keeps the secret of an endpoint that is moved, and the former one for its time if the secret is rotated", async () => {
    const move = open();
    const moved = (await move.make('moveEndpoint', { url: 'https://two' })) as { endpoint: { url: string } };
    assert.equal(moved.endpoint.url, 'https://two/');
    assert.deepEqual(Object.keys(changesOf(move.written())).toSorted(), [
      'changed_revision',
      'generation',
      'revision',
      'url',
    ]);
    const rotate = open();
    assert.deepEqual(await rotate.make('rotateSecret'), { secret: 'whsec', oldSecretUntil: now + rotationMs });
    const { secret, old_secret: old, old_secret_until: until } = changesOf(rotate.written());
    assert.deepEqual([secret, old, until], [later, former, new Date(now + rotationMs)]);
  });

  it("a change of a partner's endpoint rotates no secret until the last rotation is over", async () => {
    const rotate = (oldSecretUntil: number) =>
      open({ ...plain, oldSecret: later, oldSecretUntil }).make('rotateSecret');
    await assert.rejects(rotate(now + 1), /the last rotation runs until/);
    assert.equal((await rotate(now)).oldSecretUntil, now + rotationMs);
  });

  it("a change of a partner's endpoint makes a new endpoint only if the partner has none, and it begins after the last event", async () => {
    await assert.rejects(open().make('registerEndpoint', { url: 'https://two' }), /the partner has an endpoint/);
    const { make, written } = open(null);
    const { endpoint, secret } = await make('registerEndpoint', { url: 'https://two' });
    const { url, afterVersion, registeredAt, oldSecretUntil } = endpoint as Endpoint;
    assert.deepEqual([url, afterVersion, registeredAt, oldSecretUntil], ['https://two/', 44n, now, undefined]);
    assert.equal(secret, 'whsec');
    assert.deepEqual(tables(written()), ['webhook_endpoints', 'audit_entries']);
    assert.ok([written()[0]?.values].flat(3).includes(later), 'its secret is stored sealed');
  });

  it("a change of a partner's endpoint needs an endpoint", async () => {
    for (const name of ['moveEndpoint', 'rotateSecret', 'pauseEndpoint', 'resumeEndpoint', 'getEndpoint', 'sendTest']) {
      const { make, done } = open(null);
      await assert.rejects(make(name, { url: 'https://two' }), /the partner has no endpoint/, name);
      assert.deepEqual(done, []);
    }
    const { make, done } = open();
    assert.ok(await make('sendTest'));
    assert.deepEqual(done, ['audit', 'send'], 'a test is in the audit before it is sent');
  });
});

describe('the events of an endpoint', () => {
  const window = { from: timestampFromMs(now - 10_000), to: timestampFromMs(now) };
  const nothing = { eventId: '', from: undefined, to: undefined, afterVersion: 0n };
  const made = (count: number, occurredAt = now - 5_000) =>
    Array.from({ length: count }, (_, at) => ({ version: BigInt(at + 1), occurredAt }));
  const redeliver = async (request: object, found: readonly Delivered[]) => {
    const { make, written, done } = open(plain, { found });
    const answer = await make('redeliver', { ...nothing, ...request });
    return { answer, tables: tables(written()), versions: written()[0]?.values, done };
  };

  it('the events of an endpoint are sent again a thousand at a time, and the answer says whether there are more', async () => {
    for (const [count, events, complete] of [
      [0, 0, true],
      [1, 1, true],
      [1_000, 1_000, true],
      [1_001, 1_000, false],
    ] as const) {
      const { answer, tables, done } = await redeliver(window, made(count));
      assert.deepEqual(answer, { events, lastVersion: BigInt(events), complete }, `${count}`);
      assert.deepEqual(tables, count === 0 ? [] : ['webhook_deliveries', 'webhook_endpoints', 'audit_entries']);
      assert.deepEqual(done, ['commit', 'notify']);
    }
  });

  it('the events of an endpoint are passed over if they have become too old, and a single one is then refused', async () => {
    const old = now - sentForMs;
    const mixed = [
      { version: 1n, occurredAt: old },
      { version: 2n, occurredAt: old + 1 },
      { version: 3n, occurredAt: old },
    ];
    const { answer } = await redeliver(window, mixed);
    assert.deepEqual(answer, { events: 1, lastVersion: 3n, complete: true }, 'the next call goes on after all of them');
    assert.equal((await redeliver({ eventId: 'evt_a' }, made(1, old + 1))).answer.events, 1);
    await assert.rejects(redeliver({ eventId: 'evt_a' }, made(1, old)), /the event is older than/);
    await assert.rejects(redeliver({ eventId: 'evt_a' }, []), /no such event for this endpoint/);
  });

  it('the events of an endpoint are named by an event or by both ends of a window', async () => {
    for (const [request, error] of [
      [{}, /or a window, `from` and `to`, must be named/],
      [{ eventId: 'evt_a', ...window }, /or a window/],
      [{ eventId: 'evt_a', to: window.to }, /or a window/],
      [{ from: window.from }, /`to` is required/],
      [{ to: window.to }, /`from` is required/],
      [{ from: window.to, to: window.to }, /must be after `from`/],
    ] as const) {
      await assert.rejects(redeliver(request, made(1)), error);
    }
  });
});
