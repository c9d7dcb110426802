import assert from 'node:assert/strict';
import { it } from 'node:test';
import { newProposal, ownOpen, sameAmong } from '../../../../../src/gateway/operators/calls/proposals/propose.ts';
import { proposalLifeMs } from '../../../../../src/gateway/operators/calls/proposals/rules.ts';
import type { StoredProposal } from '../../../../../src/gateway/operators/calls/proposals/table.ts';

const now = 1_000_000;
const ada = { operator: 'ada', action: 'Settlements.ProposeSettlement' };
const proposing = {
  ...{ partnerId: 'par_a', objectId: 'ord_a', action: 'Settlements.ProposeSettlement' },
  ...{ request: '{"state":"open"}', evidence: 'a fax', reference: 'ref' },
};
const open = {
  ...{ ...proposing, id: 'prp_a', state: 'open', proposedBy: 'ada', proposedAt: now - 1, expiresAt: now + 1 },
} as StoredProposal;

it('a proposal that was made again is the same one if its operator and all of it are the same, while it is open', () => {
  assert.equal(sameAmong([open], proposing, ada, now), open);
  assert.equal(sameAmong([], proposing, ada, now), undefined);
  assert.equal(sameAmong([{ ...open, expiresAt: now }], proposing, ada, now), undefined);
  const others: Partial<StoredProposal>[] = [
    { proposedBy: 'bola' },
    { action: 'Ledger.Credit' },
    { request: '{"state":"refused"}' },
    { evidence: 'a letter' },
    { reference: 'other' },
  ];
  for (const other of others) {
    assert.throws(
      () => sameAmong([{ ...open, ...other }], proposing, ada, now),
      /the proposal prp_a of \w+ about it is open/,
    );
  }
});

it('an operator has at most 50 open proposals', () => {
  const { row, writes } = newProposal(proposing, { state: 'uncertain' }, 'prp_b', ada, now, 49);
  assert.deepEqual(row, {
    ...{ ...proposing, about: null, id: 'prp_b', state: 'open', seen: '{"state":"uncertain"}', proposedBy: 'ada' },
    ...{ proposedAt: now, expiresAt: now + proposalLifeMs, decidedBy: null, decidedAt: null, decisionReason: null },
  });
  assert.deepEqual(
    writes.map(({ sql }) => /INTO (\w+)/.exec(sql)?.[1]),
    ['proposals', 'audit_entries'],
  );
  assert.throws(() => newProposal(proposing, {}, 'prp_b', ada, now, 50), /50 proposals of yours are open/);
  assert.equal(newProposal({ ...proposing, about: 'account A1' }, {}, 'prp_b', ada, now, 0).row.about, 'account A1');
});

it('the open proposals of an operator are those of his name in any case', () => {
  const { reads, value } = ownOpen({ operator: 'Ada' }, now) as unknown as {
    reads: { values: readonly unknown[] }[];
    value: (rows: object[][]) => number;
  };
  assert.ok(reads[0]?.values.includes('ada'));
  assert.deepEqual([value([[{ count: '7' }]]), value([[]])], [7, 0]);
});
