/** How operators list, approve and decline proposals, over proposals that the test holds. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Cursors } from '../../../../../src/gateway/edge/paging.ts';
import { AdminError } from '../../../../../src/gateway/operators/calls/errors.ts';
import {
  type Approval,
  proposalService,
  readOpenProposals,
} from '../../../../../src/gateway/operators/calls/proposals/service.ts';
import { proposals, type StoredProposal } from '../../../../../src/gateway/operators/calls/proposals/table.ts';
import type { SqlRow, Statement } from '../../../../../src/gateway/store/statement.ts';
import { ProposalState } from '../../../../../src/gen/marina/admin/v1/proposals_pb.ts';
import { storedRow } from '../../../../support/stored-row.ts';

const now = 1_000_000;
const cursors = new Cursors({ all: [{ id: 'k', key: Buffer.alloc(32, 1) }] } as never);
const stored: StoredProposal = {
  ...{ partnerId: 'par_a', id: 'prp_a', action: 'Settlements.ProposeSettlement', objectId: 'ord_a', state: 'open' },
  ...{ request: '{"state":"open"}', seen: '{"state":"uncertain"}', evidence: 'a fax', reference: 'ref' },
  ...{ proposedBy: 'Bola', proposedAt: now - 10, expiresAt: now + 1 },
  ...{ decidedBy: null, decidedAt: null, decisionReason: null, about: null },
};

interface Proposed {
  readonly proposal: StoredProposal & { readonly state: string };
  readonly changed: boolean;
  readonly objectState?: string;
}

/** The calls over a proposal; `underLock` is its row when the partner's lock is held, if that differs. */
function open(
  row: Partial<StoredProposal> | undefined,
  { underLock = {} as Partial<StoredProposal>, mayApproveOwn = false } = {},
) {
  let current = row && { ...stored, ...row };
  const state = {
    roles: [] as string[],
    refuses: false,
    written: [] as Statement[],
    applied: 0,
    listed: [] as SqlRow[],
    limit: 0,
  };
  const answer = ({ sql }: Statement): SqlRow[] => {
    if (sql.includes('id DESC')) {
      state.limit = Number(/LIMIT (\d+)$/.exec(sql)?.[1]);
      return state.listed;
    }
    if (sql.includes('FROM orders')) return [{ partner_id: 'par_a' }];
    return current === undefined ? [] : [storedRow(proposals, current)];
  };
  const decided = (writes: readonly Statement[]) => {
    state.written.push(...writes);
    const update = writes.find(({ sql }) => sql.startsWith('UPDATE proposals'));
    if (update !== undefined && current !== undefined)
      current = { ...current, state: String(update.values[0]) as 'applied' };
  };
  const database = {
    read: async (query: Statement) => answer(query),
    transaction: async (reads: readonly Statement[], decide: (rows: SqlRow[][]) => { result: unknown }) =>
      decide(reads.map(answer)).result,
    inPartnerTransaction: async (
      _: string,
      { decide }: { decide: (row: unknown) => { writes: Statement[]; result: unknown } },
    ) => {
      const { writes, result } = decide(current && { ...current, ...underLock });
      decided(writes);
      return result;
    },
  };
  const action = {
    name: stored.action,
    async apply({ proposal, mayApply, record }: Approval) {
      const locked = { ...proposal, ...underLock };
      if (!mayApply(locked)) return { changed: false, objectState: 'as it was' };
      state.applied += 1;
      decided(record(locked, { state: 'uncertain' }, { state: 'open' }));
      return { changed: true, objectState: 'open' };
    },
  };
  const parts = { database, clock: { now: () => now }, ids: {} };
  const kinds = { ofId: (id: string) => (id.startsWith('ord_') ? { table: { name: 'orders' } } : undefined) };
  const { calls } = proposalService(parts as never, cursors, kinds as never, [action], mayApproveOwn);
  const by = (operator: string) => ({
    ...{ operator, action: 'Proposals.ApproveProposal', requestId: 'r' },
    requireRoleFor(action: string) {
      state.roles.push(action);
      if (state.refuses) throw new AdminError(7, 'the role is missing');
    },
  });
  const make = (name: string, request: object, operator = 'ada') =>
    (calls[name] as (request: object, call: object) => Promise<never>)(
      { id: 'prp_a', reason: 'right', ...request },
      by(operator),
    );
  return {
    state,
    make,
    approve: (operator?: string) => make('approveProposal', {}, operator) as Promise<Proposed>,
    decline: () => make('declineProposal', {}) as Promise<Proposed>,
  };
}

/** The stored values of a decision, and of its audit entry. */
function decisionOf(written: readonly Statement[]) {
  const [update, entry] = written;
  const names = (/ SET (.*) WHERE /.exec(update?.sql ?? '')?.[1] ?? '')
    .split(', ')
    .map((set) => set.split(' ')[0] ?? '');
  const columns = (/\((.*?)\)/.exec(entry?.sql ?? '')?.[1] ?? '').split(', ');
  const values = [entry?.values].flat(3);
  const texts = ['detail', 'was', 'became'].map((name) => JSON.parse(String(values[columns.indexOf(name)] ?? 'null')));
  return { set: Object.fromEntries(names.map((name, at) => [name, update?.values[at]])), texts, count: written.length };
}

describe('the approval of a proposal', () => {
  it('the approval of a proposal stores who approved it together with what it changed', async () => {
    const { approve, state } = open({});
    const { proposal, changed, objectState } = await approve();
    assert.deepEqual([proposal.state, changed, objectState, state.applied], ['applied', true, 'open', 1]);
    assert.deepEqual(decisionOf(state.written), {
      set: { state: 'applied', decided_by: 'ada', decided_at: new Date(now), decision_reason: 'right' },
      texts: [
        {
          ...{
            proposal: 'prp_a',
            action: stored.action,
            request: { state: 'open' },
            evidence: 'a fax',
            reference: 'ref',
          },
          ...{ proposed_by: 'Bola', reason: 'right', approved_by: 'ada' },
        },
        { state: 'uncertain' },
        { state: 'open' },
      ],
      count: 2,
    });
    assert.deepEqual(state.roles, [stored.action], 'the role is that of the call that proposed it');
  });

  it('the approval of a proposal is by another operator than its proposer, and by the row that it has under the lock', async () => {
    await assert.rejects(open({}).approve('bola'), /another operator than its proposer must approve it/);
    assert.equal((await open({}, { mayApproveOwn: true }).approve('bola')).changed, true);
    for (const [underLock, error] of [
      [{ state: 'declined' }, /the proposal is declined/],
      [{ expiresAt: now }, /the proposal is expired/],
      [{ state: 'expired' }, /the proposal is expired/],
    ] as const) {
      const { approve, state } = open({}, { underLock, mayApproveOwn: true });
      await assert.rejects(approve(), error);
      assert.deepEqual([state.applied, state.written], [0, []]);
    }
  });

  it('the approval of a proposal changes nothing if it was applied before, also by its proposer and after its time', async () => {
    for (const operator of ['ada', 'bola']) {
      const { approve, state } = open({ state: 'applied', expiresAt: now - 1 });
      assert.equal((await approve(operator)).changed, false);
      assert.deepEqual(state.written, []);
    }
    const meanwhile = open({}, { underLock: { state: 'applied' } });
    assert.equal((await meanwhile.approve()).changed, false, 'another call applied it meanwhile');
    assert.deepEqual(meanwhile.state.written, []);
  });

  it('the approval of a proposal needs a role for the call, a proposal, and a version that knows the call', async () => {
    const refused = open({});
    refused.state.refuses = true;
    await assert.rejects(refused.approve(), /the role is missing/);
    await assert.rejects(refused.decline(), /the role is missing/);
    assert.deepEqual([refused.state.applied, refused.state.written], [0, []]);
    await assert.rejects(open(undefined).approve(), /no such proposal/);
    await assert.rejects(open({ action: 'Later.Call' }).approve(), /another version proposed it/);
  });
});

describe('a proposal that is declined', () => {
  it('a proposal that is declined is so once, also by its proposer, and with its audit entry', async () => {
    const { decline, state } = open({});
    const { proposal, changed } = await decline();
    assert.deepEqual([proposal.state, changed], ['declined', true]);
    const { set, texts } = decisionOf(state.written);
    assert.deepEqual(
      [set.state, set.decided_by, texts[0].declined_by, texts[0].approved_by],
      ['declined', 'ada', 'ada', undefined],
    );
    const again = open({ state: 'declined', expiresAt: now - 1 });
    assert.deepEqual([(await again.decline()).changed, again.state.written], [false, []]);
  });

  it('a proposal that is declined was open until then, by the row under the lock', async () => {
    for (const [underLock, error] of [
      [{ state: 'applied' }, /the proposal is applied/],
      [{ expiresAt: now }, /the proposal is expired/],
    ] as const) {
      await assert.rejects(open({}, { underLock }).decline(), error);
    }
  });
});

describe('a list of proposals', () => {
  const list = (calls: ReturnType<typeof open>, request: object) =>
    calls.make('listProposals', { state: 0, objectId: '', id: '', limit: 0, cursor: '', ...request }) as Promise<{
      proposals: StoredProposal[];
      nextCursor: string | undefined;
    }>;

  it('a list of proposals has the proposal of an id if its state and its object are the wanted ones', async () => {
    for (const [row, request, isThere] of [
      [{}, {}, true],
      [{}, { state: ProposalState.OPEN }, true],
      [{ expiresAt: now }, { state: ProposalState.OPEN }, false],
      [{ expiresAt: now }, { state: ProposalState.EXPIRED }, true],
      [{}, { objectId: 'ord_a' }, true],
      [{}, { objectId: 'ord_b' }, false],
    ] as const) {
      const { proposals } = await list(open(row), { id: 'prp_a', ...request });
      assert.equal(proposals.length, isThere ? 1 : 0, JSON.stringify([row, request]));
    }
  });

  it('a list of proposals goes on after its last one with a cursor of the same list, and there is none of an object that does not exist', async () => {
    const calls = open({});
    calls.state.listed = ['prp_c', 'prp_b', 'prp_a'].map((id) => storedRow(proposals, { ...stored, id }));
    const { proposals: found, nextCursor } = await list(calls, { limit: 2 });
    assert.deepEqual([found.map(({ id }) => id), calls.state.limit], [['prp_c', 'prp_b'], 3]);
    assert.equal((await list(calls, { limit: 3, cursor: nextCursor })).nextCursor, undefined);
    await assert.rejects(list(calls, { cursor: nextCursor, objectId: 'ord_a' }), /was not issued for this list/);
    assert.deepEqual(await list(calls, { objectId: 'xyz_a' }), { proposals: [], nextCursor: undefined });
    assert.equal((await list(calls, { objectId: 'ord_a', limit: 3 })).proposals.length, 3);
    assert.equal((await list(calls, { objectId: 'par_a', limit: 3 })).proposals.length, 3);
  });
});

it('the open proposals about objects are read partner by partner, each object once', async () => {
  const asked: unknown[] = [];
  const database = {
    readAll: async (queries: readonly Statement[]) =>
      queries.map(({ values }) => {
        asked.push(values.slice(0, -2));
        return values.includes('par_b') ? [storedRow(proposals, { ...stored, objectId: 'ord_c' })] : [];
      }),
  };
  const objects = [
    ...[
      { partnerId: 'par_a', id: 'ord_a' },
      { partnerId: 'par_b', id: 'ord_c' },
    ],
    ...[
      { partnerId: 'par_a', id: 'ord_b' },
      { partnerId: 'par_a', id: 'ord_a' },
    ],
  ];
  const found = await readOpenProposals(database as never, objects, now);
  assert.deepEqual(asked, [
    ['par_a', 'ord_a', 'ord_b'],
    ['par_b', 'ord_c'],
  ]);
  assert.deepEqual(
    [...found].map(([id, one]) => [id, one.id]),
    [['ord_c', 'prp_a']],
  );
});
