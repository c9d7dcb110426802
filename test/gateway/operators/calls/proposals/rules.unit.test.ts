import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  changesSince,
  forbidsApproval,
  type ProposalFacts,
  stateOf,
} from '../../../../../src/gateway/operators/calls/proposals/rules.ts';
import { listProposals, openProposalsOf } from '../../../../../src/gateway/operators/calls/proposals/table.ts';

const expiresAt = 1_763_650_600_000;
const open: ProposalFacts = { state: 'open', proposedBy: 'Ada', expiresAt };

describe('a proposal of an operator', () => {
  it('is open until the instant at which it expires, and expired from that instant on', () => {
    assert.deepEqual(
      [-1, 0, 1].map((ms) => stateOf(open, expiresAt + ms)),
      ['open', 'expired', 'expired'],
    );
  });

  it('is open by its rule exactly as long as the SQL of the lists finds it open', () => {
    const lists = [
      openProposalsOf('partner', ['ord_a'], expiresAt),
      listProposals({ state: 'open', object: undefined, before: undefined }, expiresAt, 1),
    ];
    // A row whose `expires_at` is the instant itself fails this condition, as the rule says.
    for (const { sql, values } of lists) {
      assert.match(sql, /\bexpires_at > \?/);
      assert.ok(values.some((value) => value instanceof Date && value.getTime() === expiresAt));
    }
    const expired = listProposals({ state: 'expired', object: undefined, before: undefined }, expiresAt, 1);
    assert.match(expired.sql, /\bexpires_at <= \?/);
  });

  it('keeps the state in which it was decided after it has expired', () => {
    for (const state of ['applied', 'declined', 'a later state']) {
      assert.equal(stateOf({ state, expiresAt }, expiresAt + 1), state);
    }
  });

  it('is approved by another operator than its proposer, however the letters of the names are written', () => {
    const at = expiresAt - 1;
    assert.equal(forbidsApproval(open, 'ada', false, at), 'own');
    assert.equal(forbidsApproval({ ...open, proposedBy: 'ada' }, 'ADA', false, at), 'own');
    assert.equal(forbidsApproval(open, 'bola', false, at), undefined);
    assert.equal(forbidsApproval(open, 'ada', true, at), undefined);
  });

  it('is approved by nobody once it has expired or is decided', () => {
    assert.equal(forbidsApproval(open, 'bola', true, expiresAt), 'not-open');
    assert.equal(forbidsApproval({ ...open, state: 'applied' }, 'bola', true, expiresAt - 1), 'not-open');
  });
});

describe('what changed of an object since it was proposed', () => {
  it('is nothing if each field is as it was', () => {
    assert.equal(changesSince({ state: 'open', account: null }, { state: 'open', account: null }), '');
  });

  it('names each field that differs, with both values', () => {
    assert.equal(
      changesSince({ state: 'sending', account: null }, { state: 'pending', account: 'NG-1' }),
      '`state` was sending and is pending, `account` was none and is NG-1',
    );
  });

  it('names a field that only one of the two has, because another version may have written the proposal', () => {
    assert.equal(changesSince({}, { account: 'NG-1' }), '`account` was none and is NG-1');
    assert.equal(changesSince({ account: 'NG-1' }, {}), '`account` was NG-1 and is none');
  });
});
