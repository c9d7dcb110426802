/** The operators' calls of the FIX adapter, over a database that the test scripts. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { status } from '@grpc/grpc-js';
import { fixMessages, type StoredMessage } from '../../../src/fix-adapter/messages/table.ts';
import { listFindings } from '../../../src/fix-adapter/operations/findings.ts';
import { readOverview } from '../../../src/fix-adapter/operations/overview.ts';
import { type ActiveSession, operationsService } from '../../../src/fix-adapter/operations/service.ts';
import { shownFinding, shownSession } from '../../../src/fix-adapter/operations/shown.ts';
import { fixAudit, fixSession, type SessionRow } from '../../../src/fix-adapter/operations/table.ts';
import { RpcError } from '../../../src/fix-adapter/service/rpc.ts';
import {
  type FixNumbers,
  fixFindingSettlements,
  fixFindings,
  fixNumbers,
  fixOrders,
} from '../../../src/fix-adapter/store/table.ts';
import type { Database } from '../../../src/gateway/store/database.ts';
import type { SqlRow, Statement } from '../../../src/gateway/store/statement.ts';
import {
  ListMessagesRequestSchema,
  MessageDirection,
  MessageSession,
  OrderAnswer,
  SessionState,
} from '../../../src/gen/marina/fix/v1/operations_pb.ts';
import { fixOrder } from '../../support/fix-order.ts';
import { storedRow } from '../../support/stored-row.ts';

const numbers: FixNumbers = {
  ...{ id: 1n, fence: 3n, version: 8n, startedAt: 7, nextOut: 12n, nextIn: 34n, lastReport: 0n, lastSubmission: 0n },
  ...{ backOfficeSubmission: 0n, restored: false },
};
const call = { operator: 'ada', action: 'Fix.Call' } as never;

const message = (id: number): StoredMessage => ({
  ...{ id: BigInt(id), session: 'order', at: id, startedAt: 0, direction: 'in', number: BigInt(id), type: '8' },
  ...{ orderId: '', clOrdId: '', outcome: 'applied', position: BigInt(id), text: '' },
});

/** A database whose reads a test answers by their tables, and what is read and written. */
function begin() {
  const session: SessionRow = {
    ...{ id: 1n, wish: 'on', request: 4n, fence: 3n, obeyed: 4n, state: 'up', since: 9, reason: 'before' },
  };
  const tables: Record<string, () => readonly SqlRow[]> = {
    fix_session: () => [storedRow(fixSession, session)],
    leases: () => [{ holder: 'node-1', fence: '3', is_held: 1 }],
    fix_numbers: () => [storedRow(fixNumbers, numbers)],
  };
  const read: Statement[] = [];
  const written: Statement[] = [];
  const rowsOf = (one: Statement): SqlRow[] => {
    read.push(one);
    const rows = [...(tables[/ FROM (\w+)/.exec(one.sql)?.[1] ?? '']?.() ?? [])];
    return rows.slice(0, Number(/ LIMIT (\d+)$/.exec(one.sql)?.[1] ?? rows.length));
  };
  const database: Partial<Database> = {
    read: async (one) => rowsOf(one),
    readAll: async (all) => all.map(rowsOf),
    transaction: async (reads, decide) => {
      const { writes, result } = decide(reads.map(rowsOf));
      written.push(...writes);
      return result;
    },
  };
  const steps: string[] = [];
  const state: { active: ActiveSession | undefined; onPause: () => void } = { active: undefined, onPause: () => {} };
  const { calls } = operationsService({
    database: database as Database,
    active: () => state.active,
    now: () => 5_000,
    pause: async () => {
      steps.push('pause');
      state.onPause();
    },
  });
  const ask = (name: string, request: object) =>
    (calls[name] as (request: object, call: never) => Promise<Record<string, unknown>>)(request, call);
  return { database: database as Database, session, tables, read, written, steps, state, ask };
}

describe('what an operator sees of the FIX session', () => {
  it("what an operator sees of the FIX session is a process's report only while that process has the session", async () => {
    const cases: [SqlRow[], string, string, number | undefined, string][] = [
      [[], 'none', 'no process has the session', undefined, ''],
      [[{ holder: 'node-1', fence: '3', is_held: 0 }], 'none', 'no process has the session', undefined, ''],
      [
        [{ holder: 'node-2', fence: '4', is_held: 1 }],
        'waiting',
        'a process has just taken the session',
        undefined,
        'node-2',
      ],
      [[{ holder: 'node-1', fence: '3', is_held: 1 }], 'testing', 'before', 9, 'node-1'],
    ];
    for (const [leases, ...expected] of cases) {
      const { database, tables, session } = begin();
      Object.assign(session, { state: 'testing' });
      tables.leases = () => leases;
      const { state, reason, since, process } = await readOverview(database);
      assert.deepEqual([state, reason, since, process], expected);
    }
    const { database } = begin();
    const { state, reason } = await readOverview(database);
    assert.deepEqual([state, reason], ['up', ''], 'a session that is up has no reason why it is not');
  });

  it('what an operator sees of the FIX session counts orders in doubt apart from open ones, with the oldest, and findings', async () => {
    const { database, tables } = begin();
    tables.fix_orders = () => [
      { state: 'open', orders: '7', oldest: new Date(1) },
      { state: 'sending', orders: '2', oldest: new Date(60_000) },
    ];
    const audit = { id: 6n, at: 8, operator: 'ada', action: 'LogOut', reason: 'drill', was: 'on', became: 'out' };
    tables.fix_audit = () => [storedRow(fixAudit, audit)];
    const overview = await readOverview(database);
    assert.deepEqual([overview.open, overview.inDoubt, overview.oldestInDoubtAt], [7, 2, 60_000]);
    const shown = shownSession({ ...overview, findings: 5 });
    assert.deepEqual(
      [shown.ordersOpen, shown.ordersInDoubt, shown.oldestInDoubtAt, shown.findings, shown.loggedOut, shown.state],
      [7n, 2n, timestampFromMs(60_000), 5, false, SessionState.UP],
    );
    assert.deepEqual([shown.numbers?.nextOut, shown.numbers?.nextIn, shown.process], [12n, 34n, 'node-1']);
    assert.deepEqual(shown.lastChange, {
      ...{ at: timestampFromMs(8), operator: 'ada', action: 'LogOut', reason: 'drill' },
    });
  });

  it('what an operator sees of the FIX session has every state that a session can be in', async () => {
    const { database } = begin();
    const overview = await readOverview(database);
    const states = [
      'none',
      'logged_out',
      'outside_hours',
      'stopped',
      'waiting',
      'connecting',
      'logging_on',
      'receiving',
    ];
    const shown = [...states, 'testing', 'up', 'logging_out'].map(
      (state) => shownSession({ ...overview, state }).state,
    );
    assert.deepEqual(new Set(shown).size, 11);
    assert.ok(!shown.includes(SessionState.UNSPECIFIED));
    const ending = { ...overview, state: 'logging_out', session: { ...overview.session, wish: 'out' as const } };
    assert.equal(shownSession(ending).loggedOut, true, 'from the wish on, also before it is obeyed');
  });

  it('what an operator sees of the FIX session has findings each with its own settlement and count, and says whether there are more', async () => {
    const finding = (id: bigint) =>
      storedRow(fixFindings, {
        ...{ id, at: Number(id), what: 'unsupported', orderId: 'ord_a', execId: '', detail: 'd', facts: null },
        ...{ bytes: null },
      });
    for (const [count, limit, expected] of [
      [3, 2, true],
      [2, 2, false],
    ] as const) {
      const { database, tables } = begin();
      tables.fix_findings = () => [9n, 7n, 5n].slice(0, count).map(finding);
      tables.fix_finding_settlements = () => [
        storedRow(fixFindingSettlements, { findingId: 7n, at: 8, operator: 'ada', note: 'seen' }),
      ];
      tables.fix_unsupported = () => [{ finding_id: '9', messages: '40' }];
      const { findings, hasMore } = await listFindings(database, { orderId: 'ord_a' }, limit);
      assert.equal(hasMore, expected);
      const shown = findings.map(shownFinding);
      assert.deepEqual(
        shown.map(({ id, messages, settlement }) => [id, messages, settlement]),
        [
          [9n, 40n, undefined],
          [7n, 1n, { at: timestampFromMs(8), operator: 'ada', note: 'seen' }],
        ],
      );
    }
  });
});

describe('an operator who asks for messages', () => {
  it('an operator who asks for messages is refused times and numbers that hold nothing or too much, exactly at their bounds', async () => {
    const times = (since: number, until: number) => ({ since: timestampFromMs(since), until: timestampFromMs(until) });
    const cases: [object, string | undefined][] = [
      [times(10, 11), undefined],
      [times(10, 10), 'until'],
      [times(10, 9), 'until'],
      [{ number: 5n, toNumber: 5n }, undefined],
      [{ number: 5n, toNumber: 1_004n }, undefined],
      [{ number: 5n, toNumber: 1_005n }, 'to_number'],
      [{ number: 5n, toNumber: 4n }, 'to_number'],
      [{ number: 0n, toNumber: 5n }, 'to_number'],
      [{ number: 5n, toNumber: 0n }, undefined],
    ];
    for (const [fields, wrong] of cases) {
      const { ask, tables } = begin();
      tables.fix_messages = () => [storedRow(fixMessages, message(1))];
      const asked = ask('listMessages', create(ListMessagesRequestSchema, fields));
      if (wrong === undefined) await asked;
      else await assert.rejects(asked, (error: Error) => JSON.stringify([error, error.message]).includes(wrong));
    }
  });

  it('an operator who asks for messages is shown those of everything that was asked for, 50 by default', async () => {
    const { ask, tables, read } = begin();
    tables.fix_messages = () => Array.from({ length: 60 }, (_, at) => storedRow(fixMessages, message(60 - at)));
    const { messages, hasMore } = await ask('listMessages', create(ListMessagesRequestSchema, {}));
    assert.deepEqual([(messages as unknown[]).length, hasMore], [50, true]);
    read.length = 0;
    await ask(
      'listMessages',
      create(ListMessagesRequestSchema, {
        ...{ type: '8', direction: MessageDirection.IN, session: MessageSession.DROP_COPY, beforeId: 40n, limit: 3 },
        ...{ clOrdId: 'ord_a', number: 6n },
      }),
    );
    const [{ sql = '', values = [] } = {}] = read;
    for (const given of ['8', 'in', 'drop_copy', 40n, 6n]) assert.ok(values.includes(given), `${given}`);
    assert.match(sql, / LIMIT 4$/);
    read.length = 0;
    await ask(
      'listMessages',
      create(ListMessagesRequestSchema, { direction: MessageDirection.OUT, session: MessageSession.ORDER }),
    );
    for (const given of ['out', 'order']) assert.ok(read[0]?.values.includes(given), given);
  });
});

describe('an operator who asks the exchange about an order', () => {
  const found = (steps: string[], outcome: () => 'found' | 'absent'): ActiveSession => ({
    ask: async (id) => {
      steps.push(`ask ${id}`);
      return outcome();
    },
    logged: async () => void steps.push('logged'),
  });

  it('an operator who asks the exchange about an order is refused by a process without the session, and for an order that was given no number, before anything is asked', async () => {
    const { ask, state, steps, tables } = begin();
    await assert.rejects(ask('askOrder', { orderId: 'ord_a' }), /another process has the session/);
    state.active = found(steps, () => 'found');
    await assert.rejects(ask('askOrder', { orderId: 'ord_a' }), /no such order/);
    assert.deepEqual(steps, []);
    tables.fix_orders = () => [storedRow(fixOrders, fixOrder({ id: 'ord_a' }))];
    await ask('askOrder', { orderId: 'ord_a' });
    assert.deepEqual(steps, ['logged', 'ask ord_a', 'logged']);
  });

  it('an operator who asks the exchange about an order is told what the exchange says, what it does not say, and of no fault of ours as if it were an answer', async () => {
    const away = new RpcError(status.UNAVAILABLE, 'no answer came');
    for (const [outcome, answer, detail] of [
      ['found', OrderAnswer.FOUND, ''],
      ['absent', OrderAnswer.ABSENT, ''],
      [away, OrderAnswer.UNKNOWN, 'no answer came'],
      [new Error('a fault'), undefined, ''],
    ] as const) {
      const { ask, state, steps, tables } = begin();
      tables.fix_orders = () => [storedRow(fixOrders, fixOrder({ id: 'ord_a' }))];
      state.active = found(steps, () => {
        if (typeof outcome !== 'string') throw outcome;
        return outcome;
      });
      const asked = ask('askOrder', { orderId: 'ord_a' });
      if (answer === undefined) await assert.rejects(asked, /a fault/);
      else assert.deepEqual((({ answer, detail }) => [answer, detail])(await asked), [answer, detail]);
    }
  });

  it('an operator who asks the exchange about an order sees the order as it is behind the answer, and the messages since the question, oldest first', async () => {
    const { ask, state, steps, tables, read } = begin();
    let isAnswered = false;
    state.active = found(steps, () => {
      isAnswered = true;
      return 'found';
    });
    tables.fix_orders = () => [storedRow(fixOrders, fixOrder({ id: 'ord_a', filled: isAnswered ? 60n : 0n }))];
    tables.fix_messages = () => (isAnswered ? [5, 4] : [3]).map((id) => storedRow(fixMessages, message(id)));
    const { order, messages } = await ask('askOrder', { orderId: 'ord_a' });
    assert.equal((order as { filled: bigint }).filled, 60n);
    assert.deepEqual(
      (messages as { id: bigint }[]).map(({ id }) => id),
      [4n, 5n],
    );
    const page = read.find(({ sql }) => sql.includes('FROM fix_messages FORCE INDEX (fix_messages_order)'));
    assert.ok(page?.values.includes(3n), 'behind the newest message before the question');
    assert.ok(page?.values.includes('order'));
  });
});

describe('an operator who logs the session out and on', () => {
  it('an operator who logs the session out and on is answered when the process has done what this call asked for, and not by an earlier one', async () => {
    for (const [name, wish, done, shows] of [
      ['logOut', 'on', 'logged_out', SessionState.LOGGED_OUT],
      ['logOn', 'out', 'up', SessionState.UP],
    ] as const) {
      const { ask, session, state, steps, written } = begin();
      // As if the request before this one were the same wish.
      Object.assign(session, { wish, state: done });
      const then = [
        () => Object.assign(session, { obeyed: 4n, state: done }),
        () => Object.assign(session, { obeyed: 5n, state: 'logging_on' }),
        () => Object.assign(session, { obeyed: 5n, state: done }),
        () => assert.fail('it is done'),
      ];
      state.onPause = () => void then.shift()?.();
      const { changed, session: after } = await ask(name, { reason: 'drill' });
      assert.deepEqual([changed, steps.length, then.length], [true, 3, 1], name);
      assert.equal((after as { state: SessionState }).state, shows);
      assert.ok(written.some(({ sql }) => sql.startsWith('INSERT INTO fix_audit')));
    }
  });

  it('an operator who logs the session out and on is answered in bounded time with the state that it is in', async (context) => {
    let clock = 0;
    context.mock.method(performance, 'now', () => clock);
    const { ask, session, state, steps } = begin();
    state.onPause = () => {
      clock += 1_000;
    };
    Object.assign(session, { state: 'logging_out' });
    const { session: after } = await ask('logOut', { reason: 'drill' });
    assert.equal((after as { state: SessionState }).state, SessionState.LOGGING_OUT);
    assert.equal(steps.length, 6);
  });
});
