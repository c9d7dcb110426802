import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { isReserveRight } from '../../../../src/gateway/operators/calls/ledger.ts';
import { isRecheckDue } from '../../../../src/gateway/operators/calls/ledger-check.ts';
import { SealedPart } from '../../../../src/gateway/operators/calls/sealed-part.ts';
import type { LedgerEntry } from '../../../../src/gateway/trading/wallet/rules.ts';
import { type WalletSeals, walletSealLength } from '../../../../src/gateway/trading/wallet/seals.ts';

describe('the walk of a ledger', () => {
  it('a reserve is right from what unsettled allocations need to that and what unknown ones may need', () => {
    for (const [reserved, unknown, isRight] of [
      [499n, 0n, false],
      [500n, 0n, true],
      [501n, 0n, false],
      [499n, 20n, false],
      [500n, 20n, true],
      [520n, 20n, true],
      [521n, 20n, false],
    ] as const) {
      assert.equal(isReserveRight(reserved, 500n, unknown), isRight, `${reserved} of 500 and ${unknown}`);
    }
  });

  it('the walk of a ledger is due again a day after its end, and if its end is ahead of the clock', () => {
    const [now, dayMs] = [Date.UTC(2026, 2, 2), 86_400_000];
    for (const [endedAt, isDue] of [
      [0, true],
      [now - dayMs - 1, true],
      [now - dayMs, true],
      [now - dayMs + 1, false],
      [now, false],
      [now + 1, true],
    ] as const) {
      assert.equal(isRecheckDue(endedAt, now, dayMs), isDue, `${endedAt - now}`);
    }
  });

  it('the walk of a ledger reports each entry after the sealed one, and a seal of an entry that the wallet does not have', () => {
    const hash = Buffer.alloc(32);
    const entry = (sequence: bigint) => ({ sequence, id: `wtr_${sequence}`, hash, partnerId: 'par_a' }) as LedgerEntry;
    const seals = { acceptsUnsealed: false, secretOf: () => 'K1' } as unknown as WalletSeals;
    const seal = Buffer.alloc(walletSealLength);
    seal.writeBigUInt64BE(2n);
    const found = (last: bigint, read: readonly bigint[]) => {
      const part = new SealedPart(seals, seal);
      const faults = read.flatMap((sequence) => part.add(entry(sequence)));
      return [...faults, ...part.end({ lastSequence: last } as never)].map(({ sequence }) => sequence);
    };
    assert.deepEqual(found(2n, [1n, 2n]), []);
    assert.deepEqual(found(3n, [1n, 2n, 3n]), [3n]);
    assert.deepEqual(found(1n, [1n]), [0n]);
  });
});
