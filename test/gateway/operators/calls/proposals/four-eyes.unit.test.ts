import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { create } from '@bufbuild/protobuf';
import { status } from '@grpc/grpc-js';
import {
  approvedCall,
  askFor,
  type FourEyesParts,
  type GuardedCall,
} from '../../../../../src/gateway/operators/calls/proposals/four-eyes.ts';
import { proposalLifeMs } from '../../../../../src/gateway/operators/calls/proposals/rules.ts';
import type { StoredProposal } from '../../../../../src/gateway/operators/calls/proposals/table.ts';
import { type Statement, statement } from '../../../../../src/gateway/store/statement.ts';
import { SetReleaseAmountRequestSchema } from '../../../../../src/gen/marina/admin/v1/releases_pb.ts';

const now = Date.UTC(2026, 2, 2, 9);
const request = create(SetReleaseAmountRequestSchema, { partnerId: 'par_a', aboveKobo: 500n, reason: 'it grows' });
const ada = { operator: 'ada', action: 'Releases.SetReleaseAmount', requestId: 'req' };
const noFact = { reads: [], value: () => undefined };

/** Calls of operators over what a test says is stored. The guarded call changes an amount. */
function open({ isOn = true, needsSecond = true, stored = 100n, failure = undefined as Error | undefined } = {}) {
  const state = { open: [] as StoredProposal[], own: 0, row: undefined as StoredProposal | undefined };
  const ended: unknown[] = [];
  let written: readonly Statement[] = [];
  const guarded: GuardedCall<typeof SetReleaseAmountRequestSchema, bigint, string> = {
    ...{ name: 'Releases.SetReleaseAmount', schema: SetReleaseAmountRequestSchema },
    asked: ({ partnerId, aboveKobo = 0n }, objectId = partnerId) => ({
      ...{ partnerId, objectId, about: 'amount', touches: 'partner', fact: noFact as never },
      decide: (before) => {
        if (before === aboveKobo) return { unchanged: 'nothing' };
        return {
          ...{ needsSecond, seen: { above: String(before) } },
          apply: () => ({
            ...{ writes: [statement('UPDATE partners')], entry: { partnerId, detail: {} } },
            ...{ after: { above: String(aboveKobo) }, result: `from ${before} to ${aboveKobo}` },
          }),
        };
      },
      ended: (result) => void ended.push(result),
    }),
  };
  type Decide = (facts: object, partner: object) => { writes: readonly Statement[]; result: unknown };
  const parts = {
    ...{ clock: { now: () => now, realNow: () => now }, ids: { object: () => 'prp_new' } },
    fourEyesAboveKobo: isOn ? 1n : undefined,
    database: {
      read: async () => [{ id: 'par_a' }],
      inPartnerTransaction: async (_: string, { decide }: { decide: Decide }) => {
        const { writes, result } = decide({ value: stored, ...state }, {});
        if (failure !== undefined) throw failure;
        written = writes;
        return result;
      },
    },
  } as unknown as FourEyesParts;
  const tables = () => written.map(({ sql }) => /^(?:INSERT INTO|UPDATE) (\w+)/.exec(sql)?.[1]);
  const proposed = (fields: Partial<StoredProposal> = {}) =>
    ({
      ...{ id: 'prp_a', partnerId: 'par_a', objectId: 'par_a', state: 'open', action: guarded.name, reference: '' },
      ...{ request: '{"partner_id":"par_a","above_kobo":"500"}', evidence: 'it grows', seen: '{"above":"100"}' },
      ...{ proposedBy: 'ada', proposedAt: now - 1, expiresAt: now + 1, about: 'amount' },
      ...fields,
    }) as StoredProposal;
  return {
    ...{ state, ended, tables, proposed, written: () => written },
    ask: (by = ada) => askFor(parts, guarded, request, by),
    approve: (proposal: StoredProposal, mayApply = true) =>
      approvedCall(parts, guarded).apply({
        ...{ proposal, mayApply: () => mayApply, call: { ...ada, operator: 'ben' } as never },
        record: (_, before, after) => [statement('INSERT INTO decisions', JSON.stringify([before, after]))],
      }),
  };
}

describe('a call that may need a second operator', () => {
  for (const [isOn, needsSecond, isMade] of [
    [true, true, false],
    [true, false, true],
    [false, true, true],
    [false, false, true],
  ] as const) {
    it(`a change is ${isMade ? 'made' : 'proposed'} that ${needsSecond ? 'needs a' : 'needs no'} second operator, with four eyes ${isOn ? 'on' : 'off'}`, async () => {
      const { ask, ended, tables, written } = open({ isOn, needsSecond });
      const { result, proposal } = await ask();
      assert.deepEqual([result, proposal?.id], isMade ? ['from 100 to 500', undefined] : [undefined, 'prp_new']);
      assert.deepEqual(tables(), isMade ? ['partners', 'audit_entries'] : ['proposals', 'audit_entries']);
      assert.match(JSON.stringify(written().at(-1)?.values), isMade ? /reason.*it grows/ : /evidence.*it grows/);
      assert.deepEqual(ended, [result]);
    });
  }

  it('a change that there is nothing of is neither made nor proposed', async () => {
    const { ask, tables, ended } = open({ stored: 500n });
    assert.deepEqual([await ask(), tables(), ended], [{ result: 'nothing' }, [], ['nothing']]);
  });

  it('a change whose COMMIT has no answer is told to all replicas as one that may have been made', async () => {
    const { ask, ended } = open({ isOn: false, failure: new Error('no answer') });
    await assert.rejects(ask(), /no answer/);
    assert.deepEqual(ended, [undefined]);
  });

  it('a proposal is repeated by its operator alone, until it has expired, and each has fifty of them', async () => {
    const { ask, state, proposed, tables } = open();
    state.own = 50;
    await assert.rejects(ask(), { status: status.RESOURCE_EXHAUSTED });
    state.open = [proposed()];
    assert.deepEqual([(await ask()).proposal?.id, tables()], ['prp_a', []], 'the same one is answered again');
    await assert.rejects(ask({ ...ada, operator: 'ben' }), { status: status.ALREADY_EXISTS });
    for (const other of [{ evidence: 'another' }, { request: '{}' }, { action: 'Other.Call' }, { reference: 'x' }]) {
      state.open = [proposed(other)];
      await assert.rejects(ask(), { status: status.ALREADY_EXISTS }, JSON.stringify(other));
    }
    state.open = [proposed({ expiresAt: now })];
    state.own = 49;
    const { proposal } = await ask();
    assert.deepEqual([proposal?.id, proposal?.expiresAt], ['prp_new', now + proposalLifeMs]);
  });
});

describe('the approval of a proposed call', () => {
  it('an approved change is made with its approval, its two operators and its evidence, once', async () => {
    const { approve, state, proposed, tables, written, ended } = open();
    state.row = proposed();
    assert.deepEqual(await approve(proposed()), { changed: true, objectState: '' });
    assert.deepEqual(tables(), ['decisions', 'partners', 'audit_entries']);
    assert.deepEqual(written()[0]?.values, ['[{"above":"100"},{"above":"500"}]']);
    const audited = JSON.stringify(written().at(-1)?.values);
    for (const word of ['ben', 'ada', 'it grows', 'prp_a']) assert.ok(audited.includes(word), word);
    assert.deepEqual(await approve(proposed(), false), { changed: false, objectState: '' });
    assert.deepEqual([tables(), ended], [[], ['from 100 to 500', undefined]]);
  });

  it('an approved change is refused, and nothing stored, if it is not what was proposed any more', async () => {
    const refused = { status: status.FAILED_PRECONDITION };
    for (const [stored, seen, message] of [
      [101n, '{"above":"100"}', /`above` was 100 and is 101/],
      [100n, '{}', /`above` was none and is 100/],
      [500n, '{"above":"500"}', /nothing left to change/],
    ] as const) {
      const { approve, state, proposed, tables } = open({ stored });
      state.row = proposed({ seen });
      await assert.rejects(approve(state.row), { ...refused, message });
      assert.deepEqual(tables(), []);
    }
    const { approve, state, proposed } = open();
    await assert.rejects(approve(proposed()), /prp_a is not stored/);
    state.row = proposed();
    for (const unknown of ['{"of_another_version":1}', 'no JSON']) {
      await assert.rejects(approve(proposed({ request: unknown })), { ...refused, message: /another version/ });
    }
  });
});
