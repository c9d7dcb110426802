import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  type AuditBatch,
  batchFault,
  nextBatch,
  noBatch,
  type SealedEntry,
} from '../../../../src/gateway/operators/audit/rules.ts';

function entry(id: number, change: Partial<SealedEntry> = {}): SealedEntry {
  const call = { operator: 'ada', action: 'Keys.CreateKey', subject: 'key_1', detail: 'made', partnerId: 'par_1' };
  const values = { was: null, became: '{"scopes":[]}', requestId: 'req_1', clientAddress: '10.0.0.1' };
  return { id: BigInt(id), at: 1_000, ...call, ...values, roles: 'keys', keyId: 'cert_1', ...change };
}

describe('the chain of batches of the audit', () => {
  const entries = [entry(1), entry(2), entry(3)];
  const first = nextBatch(noBatch, entries);

  it('a batch has the numbers of its entries, and one without entries only goes on with the chain', () => {
    assert.deepEqual([first.number, first.firstId, first.lastId, first.entries], [1n, 1n, 3n, 3]);
    const renewed = nextBatch(first, []);
    assert.deepEqual([renewed.number, renewed.firstId, renewed.lastId, renewed.entries], [2n, 3n, 3n, 0]);
    assert.equal(batchFault(renewed, first, []), undefined);
    const third = nextBatch(renewed, [entry(4)]);
    assert.deepEqual([third.number, third.firstId, third.lastId], [3n, 4n, 4n]);
    assert.equal(batchFault(third, renewed, [entry(4)]), undefined);
  });

  it('a change of any value of an entry is a fault, and so is its order', () => {
    const changes: Required<{ [Field in keyof SealedEntry]: SealedEntry[Field] }> = {
      ...{ id: 9n, at: 1_001, operator: 'bob', action: 'Keys.RevokeKey', subject: null, detail: '' },
      ...{ partnerId: null, was: '', became: null, requestId: '', clientAddress: null, roles: '', keyId: null },
    };
    assert.deepEqual(Object.keys(changes).sort(), Object.keys(entry(1)).sort());
    for (const [field, value] of Object.entries(changes)) {
      const [one, two, three] = [entry(1), entry(2, { [field]: value }), entry(3)];
      assert.equal(batchFault(first, noBatch, [one, two, three]), 'changed', field);
    }
    assert.equal(batchFault(first, noBatch, [...entries].reverse()), 'changed', 'the order');
    assert.equal(
      batchFault(first, noBatch, [entry(1), entry(2, { subject: 'key_1made', detail: '' }), entry(3)]),
      'changed',
    );
    assert.equal(batchFault(first, noBatch, entries), undefined);
  });

  it('each other fault has its name, and a later batch stands for all entries before it', () => {
    assert.equal(batchFault(first, noBatch, entries.slice(1)), 'removed');
    assert.equal(batchFault(first, noBatch, [...entries, entry(3)]), 'inserted');
    const second = nextBatch(first, [entry(4)]);
    assert.equal(batchFault(second, noBatch, [entry(4)]), 'missing');
    assert.equal(batchFault(first, first, entries), 'missing', 'twice');
    const forged: AuditBatch = nextBatch(noBatch, [entry(1, { operator: 'eve' }), entry(2), entry(3)]);
    assert.equal(batchFault(second, forged, [entry(4)]), 'changed');
  });
});
