/** The state of the gateway as operators see it, of parts that the test holds. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { statusCalls } from '../../../../../src/gateway/operators/calls/diagnostics/status.ts';
import { maxCounted } from '../../../../../src/gateway/operators/telemetry/backlog.ts';
import type { SqlRow, Statement } from '../../../../../src/gateway/store/statement.ts';
import { reportsPosition } from '../../../../../src/gateway/trading/submission/report-days.ts';

const [now, realNow] = [2_000_000_000_000, 1_900_000_000_000];

interface Answers {
  readonly cancels?: SqlRow;
  readonly documents?: SqlRow;
  readonly due?: SqlRow;
  readonly proposals?: SqlRow;
  readonly leases?: readonly SqlRow[];
  readonly environment?: SqlRow | undefined;
  readonly unsettled?: readonly SqlRow[];
  /** Statements with this text fail. */
  readonly failing?: string;
}

async function statusOf(answers: Answers = {}, parts: object = {}, brief = false) {
  const positions = [
    { name: reportsPosition('main', 'order'), position: '12' },
    { name: reportsPosition('main', 'application'), position: '34' },
  ];
  const none = { count: 0, oldest: null };
  const dueAsked: unknown[] = [];
  const answer = ({ sql, values }: Statement): SqlRow[] => {
    if (answers.failing !== undefined && sql.includes(answers.failing)) throw new Error('the table is gone');
    if (sql.includes('FROM environment')) return [answers.environment ?? { trading_paused_at: null }];
    if (sql.includes('FROM migrations')) return [{ name: 'Last1' }];
    if (sql.includes('FROM positions')) return positions;
    if (sql.includes('left_ms')) return [...(answers.leases ?? [])];
    if (sql.includes('AS unsettled') && sql.includes('open_cancels')) return [answers.cancels ?? none];
    if (sql.includes('AS unsettled') && sql.includes('documents')) return [answers.documents ?? none];
    if (sql.includes('COALESCE(due_at, taken_at) <= ?')) {
      dueAsked.push(values[0]);
      return [answers.due ?? none];
    }
    if (sql.includes('FROM proposals') && sql.includes('proposed_at')) return [answers.proposals ?? none];
    if (sql.includes('shown_state')) return sql.includes('FROM orders') ? [...(answers.unsettled ?? [])] : [];
    return [];
  };
  const database = {
    environment: 'live',
    read: async (query: Statement) => answer(query),
    readAll: async (queries: readonly Statement[]) => queries.map(answer),
    readOfServer: async () => [{ now: new Date(realNow + 5), version: '10.6' }],
  };
  const { getStatus } = statusCalls({
    ...{ database, clock: { now: () => now, realNow: () => realNow, offsetMs: now - realNow } },
    ...{
      nats: { connection: { info: { version: '2.10' } } },
      stream: { pending: async () => new Map([['webhooks', 3]]) },
    },
    broker: { id: 'main', clock: { estimateMs: 1.6 }, orders: { connected: true, honoursNotAfter: async () => true } },
    ...{ clocks: { known: 'agree' }, health: { troubles: async () => [{ name: 'disk', sinceMs: 9 }] } },
    ...{ holder: 'me', startedAt: 77, reconciliationTime: 0, singleOperator: true, fourEyesAboveKobo: 5n },
    operatorTokens: { current: [] },
    ...parts,
  } as never);
  return { status: await getStatus({ brief }), dueAsked };
}

const queueOf = (status: Awaited<ReturnType<typeof statusOf>>['status'], name: string) =>
  status.queues.find((queue) => queue.name === name);

describe('the state of the gateway', () => {
  it('the state has what each part tells', async () => {
    const { status } = await statusOf({ environment: { trading_paused_at: new Date(42) } });
    assert.deepEqual(status.upstream, {
      ...{ connected: true, honoursNotAfter: true, orderReports: 12n, applicationReports: 34n },
      ...{ clockAgreement: 'agree', clockAheadMs: 2 },
    });
    assert.deepEqual([status.replica.name, status.replica.startedAt, status.environment], ['me', 77, 'live']);
    assert.deepEqual(status.troubles, [{ name: 'disk', sinceMs: 9, since: 9 }]);
    assert.deepEqual(
      [status.tradingPausedSince, status.schemaVersion, status.databaseVersion, status.natsVersion],
      [42, 'Last1', '10.6', '2.10'],
    );
    assert.deepEqual(
      [status.now, status.businessAheadMs, status.singleOperator, status.fourEyesAboveKobo],
      [now, now - realNow, true, 5n],
    );
    assert.equal((await statusOf()).status.tradingPausedSince, null);
  });

  it('a broker that is not known yet has no clock', async () => {
    const broker = {
      id: 'main',
      clock: { estimateMs: undefined },
      orders: { connected: false, honoursNotAfter: async () => undefined },
    };
    const { upstream } = (await statusOf({}, { broker, clocks: { known: 'unknown' } })).status;
    assert.deepEqual(
      [upstream.connected, upstream.clockAgreement, upstream.clockAheadMs],
      [false, undefined, undefined],
    );
  });

  it('a queue has its length and the age of its oldest entry in business time, if it has one', async () => {
    const { status, dueAsked } = await statusOf({
      cancels: { count: '2', oldest: new Date(now - 7) },
      documents: { count: '0', oldest: null },
      due: { count: String(maxCounted), oldest: new Date(now + 5) },
      proposals: { count: String(maxCounted - 1), oldest: new Date(now - 1) },
    });
    assert.deepEqual(queueOf(status, 'cancels'), { name: 'cancels', count: 2, atLeast: false, oldestMs: 7 });
    assert.deepEqual(queueOf(status, 'documents'), {
      name: 'documents',
      count: 0,
      atLeast: false,
      oldestMs: undefined,
    });
    assert.deepEqual(queueOf(status, 'webhooks due'), {
      name: 'webhooks due',
      count: maxCounted,
      atLeast: true,
      oldestMs: 0,
    });
    assert.equal(queueOf(status, 'proposals')?.atLeast, false);
    assert.deepEqual(queueOf(status, 'stream webhooks'), {
      name: 'stream webhooks',
      count: 3,
      atLeast: false,
      oldestMs: undefined,
    });
    assert.deepEqual(dueAsked, [new Date(now)]);
  });

  it('a brief state has only queues that are not empty, and leases that nobody holds', async () => {
    const lease = (name: string, left: number, holder = 'other') => ({
      name,
      holder,
      fence: '4',
      left_ms: String(left),
    });
    const answers = {
      cancels: { count: '2', oldest: new Date(now - 7) },
      leases: [lease('a', 1_500, 'me'), lease('b', 0, 'me'), lease('c', -5), lease('d', 1)],
    };
    const { status } = await statusOf(answers);
    assert.deepEqual(
      status.leases.map(({ name, isHeld, isOwn, expiresInMs, fence }) => [name, isHeld, isOwn, expiresInMs, fence]),
      [
        ['a', true, true, 1_500n, 4n],
        ['b', false, false, 0n, 4n],
        ['c', false, false, -5n, 4n],
        ['d', true, false, 1n, 4n],
      ],
    );
    const brief = (await statusOf(answers, {}, true)).status;
    assert.deepEqual(
      brief.leases.map(({ name }) => name),
      ['b', 'c'],
    );
    assert.deepEqual(
      brief.queues.map(({ name }) => name),
      ['stream webhooks', 'cancels'],
    );
  });

  it('a part that fails is left out, and the others are there', async () => {
    const broken = () => Promise.reject(new Error('broken'));
    const { status } = await statusOf(
      { failing: 'FROM migrations', leases: [{ name: 'a', holder: 'me', fence: 1, left_ms: 5 }] },
      { health: { troubles: broken }, stream: { pending: broken }, nats: { connection: undefined } },
    );
    assert.deepEqual(
      [status.troubles, status.schemaVersion, status.upstream.orderReports, status.natsVersion],
      [[], undefined, undefined, undefined],
    );
    assert.equal(queueOf(status, 'stream webhooks'), undefined);
    assert.deepEqual([status.leases.length, queueOf(status, 'cancels')?.count], [1, 0]);
    const withoutQueues = (await statusOf({ failing: 'COALESCE(due_at, taken_at) <= ?' })).status;
    assert.deepEqual([queueOf(withoutQueues, 'cancels'), withoutQueues.schemaVersion], [undefined, 'Last1']);
  });

  it('a part that takes more than three seconds is left out', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const asking = statusOf({}, { stream: { pending: () => new Promise(() => {}) } });
    await new Promise(setImmediate);
    t.mock.timers.tick(3_000);
    const { status } = await asking;
    assert.deepEqual([queueOf(status, 'stream webhooks'), status.schemaVersion], [undefined, 'Last1']);
  });

  it('operators are counted by their tokens, and names that differ in capitals only are one person', async () => {
    const token = (name: string, roles: readonly string[], expiresAt: number | undefined) => ({
      name,
      roles,
      expiresAt,
    });
    const current = [
      token('ada', ['admin'], undefined),
      token('Ada', ['read'], realNow + 1),
      token('bola', ['treasury'], realNow + 1),
      token('chi', ['treasury'], realNow),
    ];
    const { operatorTokens } = (await statusOf({}, { operatorTokens: { current } })).status;
    assert.deepEqual([operatorTokens.operators, operatorTokens.withoutEnd], [3, ['ada']]);
    assert.equal(
      operatorTokens.holders.find(({ role }) => role === 'treasury')?.operators,
      2,
      'an admin may do it too',
    );
  });
});
