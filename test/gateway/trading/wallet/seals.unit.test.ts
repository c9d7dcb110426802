import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { LedgerHead } from '../../../../src/gateway/trading/wallet/rules.ts';
import { wallet } from '../../../../src/gateway/trading/wallet/store.ts';
import { walletSeals } from '../../../support/ledger.ts';

const seals = walletSeals();
const head: LedgerHead = {
  ...{ partnerId: 'par_a', lastSequence: 7n, lastHash: Buffer.alloc(32, 7) },
  ...{ availableKobo: 900n, reservedKobo: 0n, postedKobo: 100n },
};
const sealOf = (changed: Partial<LedgerHead> = {}) => seals.make({ ...head, ...changed });

/** The proof that each seal is of the end of the ledger. */
const proofs = [
  ['its own seal', sealOf(), 'sealed'],
  ['no seal', null, 'unsealed'],
  ['the seal of one kobo more', sealOf({ availableKobo: 901n }), 'forged'],
  ['the seal of the same sums in other places', sealOf({ availableKobo: 899n, reservedKobo: 1n }), 'forged'],
  ['the seal of another last entry', sealOf({ lastHash: Buffer.alloc(32, 8) }), 'forged'],
  ["the seal of another partner's", sealOf({ partnerId: 'par_b' }), 'forged'],
  ['the seal of an entry before the last', sealOf({ lastSequence: 6n }), 'behind'],
  ['the seal of the first entry', sealOf({ lastSequence: 1n }), 'behind'],
  ['the seal of an entry that it does not have', sealOf({ lastSequence: 8n }), 'forged'],
  ['a seal of another length', sealOf().subarray(1), 'forged'],
  ['a seal of nothing', Buffer.alloc(sealOf().length, 255), 'forged'],
] as const;

describe('a wallet', () => {
  for (const [name, seal, proof] of proofs) {
    it(`a wallet with ${name} is ${proof}, and a new entry seals it only if it was proven`, () => {
      assert.equal(seals.prove(head, seal), proof);
      assert.equal(seals.accepts(proof), proof !== 'forged', 'where unsealed ones are accepted');
      assert.equal(walletSeals(false).accepts(proof), proof === 'sealed', 'where they are not');
      const { save } = wallet(head.partnerId, seals);
      const stored = { entries: [], withdrawnKobo: 0n, seal, isSealed: proof === 'sealed', isAccepted: true, head };
      const next = { ...head, lastSequence: 8n, availableKobo: 950n };
      const [, put] = save(stored, { ...stored, head: next });
      const written = put?.values.flat(2).filter((value) => Buffer.isBuffer(value) && value.equals(seals.make(next)));
      assert.equal(written?.length, proof === 'sealed' ? 1 : 0, 'it gets the seal of its end');
      const isSealChanged = /seal = /.test(put?.sql ?? '');
      assert.equal(isSealChanged, proof === 'sealed', put?.sql);
    });
  }
});
