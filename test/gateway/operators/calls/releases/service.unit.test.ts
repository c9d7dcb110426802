/** The decisions of operators about a withdrawal that waits for its release, over a row and a broker that the test holds. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { status } from '@grpc/grpc-js';
import { releases } from '../../../../../src/gateway/operators/calls/releases/service.ts';
import type { SqlRow, Statement } from '../../../../../src/gateway/store/statement.ts';
import type { Change } from '../../../../../src/gateway/trading/submission/change.ts';
import { type StoredWithdrawal, withdrawals } from '../../../../../src/gateway/trading/withdrawals/table.ts';
import { withdrawalKind } from '../../../../support/kinds.ts';
import { storedRow } from '../../../../support/stored-row.ts';

const now = 1_000_000_000_000;
const [submitTimeoutMs, clockSkewMs] = [5_000, 2_000];
const held = {
  ...{ id: 'wdr_a', partnerId: 'par_a', requestId: null, traceParent: null, keyId: null, idempotencyKey: null },
  ...{ state: 'sending', account: 'A1', amountKobo: 5n, destination: 'wallet', clientReference: null },
  ...{ brokerReference: null, reason: 'it waits', rejectReason: null, createdAt: now - 9, updatedAt: now - 9 },
  ...{ countedDay: '2001-09-09', requestDigest: Buffer.alloc(32, 7), firstAnswer: 'object', steps: 1 },
  ...{ lastReport: 0n, missedReport: 0n, notAfter: now - 9, checkAt: null, checks: 0, missingSince: null },
  ...{ heldUntil: now + 1, releasedAt: null, evidence: null, settlement: null },
} as unknown as StoredWithdrawal;
const nothingStopped = { paused: false, stops: [] };

/** The facts of a release besides the withdrawal. */
const facts = { proposal: { id: 'prp_a' }, inForce: nothingStopped, isLinked: true, mayWithdraw: true };

function open(row: Partial<StoredWithdrawal>, { more = {} as object, isAtBroker = false, isKnown = true } = {}) {
  let current = { ...held, ...row } as StoredWithdrawal;
  const state = { written: [] as Statement[], sent: 0, asked: 0 };
  const kind = Object.assign(Object.create(withdrawalKind) as typeof withdrawalKind, {
    lookUp: async () => {
      state.asked += 1;
      return isAtBroker ? { found: true, answer: [] } : { found: false };
    },
  });
  const parts = {
    ...{ kind, submitTimeoutMs, clockSkewMs, environment: {}, log: {} },
    clock: { now: () => now, realNow: () => now + 500 },
    database: {
      transaction: async (_: unknown, decide: (rows: SqlRow[][]) => { result: unknown }) => decide([answer()]).result,
    },
    recorder: {
      async change(
        _kind: unknown,
        _partner: string,
        _id: string,
        decide: (row: StoredWithdrawal, facts: object) => Change<StoredWithdrawal, never> | undefined,
      ) {
        const change = isKnown ? decide(current, { ...facts, ...more }) : undefined;
        if (change === undefined) return current;
        state.written.push(...change.writes);
        current = change.after;
        return current;
      },
    },
    submitter: {
      async sendReleased(_kind: unknown, released: StoredWithdrawal) {
        assert.equal(released.heldUntil, null, 'its release is stored before it is sent');
        state.sent += 1;
        return { ...released, state: 'completed' };
      },
    },
  };
  function answer(): SqlRow[] {
    return [storedRow(withdrawals, current)];
  }
  const { service, actions } = releases(parts as never);
  const call = { operator: 'ada', action: 'Releases.RefuseWithdrawal', requestId: 'r' };
  const refuse = () =>
    (service.calls.refuseWithdrawal as (request: object, by: object) => Promise<{ changed: boolean }>)(
      { withdrawalId: held.id, reason: 'no' },
      call,
    );
  const release = (mayApply = true) =>
    actions[0]?.apply({
      proposal: { partnerId: held.partnerId, id: 'prp_a', objectId: held.id },
      mayApply: () => mayApply,
      record: () => [],
    } as never);
  return { state, refuse, release, row: () => current };
}

describe('an operator refuses a withdrawal', () => {
  for (const [name, row, changed] of [
    ['that waits, once', {}, true],
    ['that was refused before it left, which changes nothing', { state: 'refused', heldUntil: null }, false],
  ] as const) {
    it(`an operator refuses a withdrawal ${name}`, async () => {
      const { state, refuse, row: after } = open(row);
      assert.deepEqual(await refuse(), { changed });
      assert.deepEqual([after().state, after().heldUntil, state.sent], ['refused', null, 0]);
      assert.equal(state.written.filter(({ sql }) => sql.includes('audit_entries')).length, changed ? 1 : 0);
    });
  }

  for (const [name, row, isKnown, message] of [
    ['that is on its way', { heldUntil: null, releasedAt: 1 }, true, /is sending and does not wait/],
    ['that was paid', { state: 'completed', heldUntil: null }, true, /is completed and does not wait/],
    ['that was released, and then refused', { state: 'refused', heldUntil: null, releasedAt: 1 }, true, /is refused/],
    ['of which another version stored the state', {}, false, /another version stored its state/],
  ] as const) {
    it(`an operator cannot refuse a withdrawal ${name}`, async () => {
      const { state, refuse } = open(row, { isKnown });
      await assert.rejects(refuse(), { status: status.FAILED_PRECONDITION, message });
      assert.deepEqual(state.written, []);
    });
  }
});

describe('two operators release a withdrawal', () => {
  it('two operators release a withdrawal that waits: it is stored with a fresh time, and sent once', async () => {
    const { state, release, row } = open({});
    assert.deepEqual(await release(), { changed: true, objectState: 'completed' });
    const notAfter = now + 500 + submitTimeoutMs;
    assert.deepEqual([state.asked, state.sent], [1, 1], 'the broker is asked first');
    assert.deepEqual([row().notAfter, row().checkAt, row().releasedAt], [notAfter, notAfter + clockSkewMs, now]);
  });

  it('a withdrawal that the broker has already is taken over and not sent, whatever the partner has lost since', async () => {
    const { state, release, row } = open({}, { isAtBroker: true, more: { isLinked: false, mayWithdraw: false } });
    assert.equal((await release())?.changed, true);
    assert.deepEqual([state.sent, row().heldUntil], [0, null]);
  });

  it('a proposal that was decided meanwhile releases nothing', async () => {
    const { state, release, row } = open({});
    assert.deepEqual(await release(false), { changed: false, objectState: 'sending' });
    assert.deepEqual([state.sent, row().heldUntil], [0, held.heldUntil]);
  });

  for (const [name, more, message] of [
    ["whose account is no longer the partner's", { isLinked: false }, /account is not the partner's/],
    ['whose partner may not withdraw any more', { mayWithdraw: false }, /suspended or may not withdraw/],
    ['while trading is paused', { inForce: { ...nothingStopped, paused: true } }, /paused/],
  ] as const) {
    it(`a withdrawal ${name} is not released`, async () => {
      const { state, release, row } = open({}, { more });
      await assert.rejects(release() as Promise<unknown>, { status: status.FAILED_PRECONDITION, message });
      assert.deepEqual([state.sent, row().heldUntil], [0, held.heldUntil]);
    });
  }

  for (const [name, row, isKnown, message] of [
    ['that does not wait', { heldUntil: null, state: 'completed' }, true, /does not wait for a release/],
    ['of which another version stored the state', {}, false, /another version stored its state/],
  ] as const) {
    it(`a withdrawal ${name} is not sent again`, async () => {
      const { state, release } = open(row, { isKnown });
      await assert.rejects(release() as Promise<unknown>, { status: status.FAILED_PRECONDITION, message });
      assert.equal(state.sent, 0);
    });
  }
});
