import assert from 'node:assert/strict';
import { it } from 'node:test';
import { KeySeals, type SealedKey } from '../../../../src/gateway/edge/auth/key-seals.ts';
import type { SqlRow } from '../../../../src/gateway/store/statement.ts';
import { keysFor, parseKeyRing } from '../../../../src/kit/key-ring.ts';
import { fixed } from '../../../../src/kit/watched-files.ts';

const [first, second] = ['aa', 'bb'].map((byte) => byte.repeat(32));
const under = (...secrets: (string | undefined)[]) => keysFor(fixed(parseKeyRing(secrets.join(','))), 'a use');
const key: SealedKey = {
  ...{ partnerId: 'par_a', id: 'key_a', secretHash: Buffer.alloc(32, 7), scopes: 'read', addresses: '[]' },
};
const rowOf = (of: SealedKey, seal: unknown): SqlRow => ({
  ...{ partner_id: of.partnerId, id: of.id, secret_hash: of.secretHash, scopes: of.scopes, addresses: of.addresses },
  seal: seal as Buffer | null,
});

it('an API key is used as it was sealed, under any secret of the ring, and with no other field or environment', () => {
  const seals = new KeySeals(under(first), 'live', false);
  const seal = seals.make(key);
  assert.deepEqual([seals.prove(key, seal), seals.accepts(rowOf(key, seal))], ['sealed', true]);
  const later = new KeySeals(under(second, first), 'live', false);
  assert.equal(later.prove(key, seal), 'sealed');
  assert.equal(later.secretOf(key, seal), seals.secretOf(key, seal), 'the secret by which it was sealed');
  const changes: Partial<SealedKey>[] = [
    ...[{ partnerId: 'par_b' }, { id: 'key_b' }, { secretHash: Buffer.alloc(32, 8) }],
    ...[{ scopes: 'read,trade' }, { addresses: '["192.0.2.1"]' }, { scopes: 'read","[]', addresses: '' }],
  ];
  for (const change of changes) {
    const other = { ...key, ...change };
    assert.deepEqual([seals.prove(other, seal), seals.accepts(rowOf(other, seal))], ['forged', false]);
  }
  assert.equal(new KeySeals(under(first), 'sandbox', true).prove(key, seal), 'forged');
  assert.equal(new KeySeals(under(second), 'live', true).prove(key, seal), 'forged', 'its secret has left the ring');
});

it('an API key without a seal is used only while such keys are accepted, and one with a wrong seal never', () => {
  for (const acceptsUnsealed of [true, false]) {
    const seals = new KeySeals(under(first), 'live', acceptsUnsealed);
    assert.equal(seals.prove(key, null), 'unsealed');
    assert.equal(seals.accepts(rowOf(key, null)), acceptsUnsealed);
    for (const wrong of [Buffer.alloc(0), Buffer.alloc(40), seals.make(key).subarray(1)]) {
      assert.equal(seals.accepts(rowOf(key, wrong)), false);
    }
  }
});
