import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { PartnerTransaction } from '../../../../src/gateway/store/partner-transaction.ts';
import type { LedgerHead } from '../../../../src/gateway/trading/wallet/rules.ts';
import { transfer, wallet } from '../../../../src/gateway/trading/wallet/store.ts';
import { walletSeals } from '../../../support/ledger.ts';

const seals = walletSeals();
const head: LedgerHead = {
  ...{ partnerId: 'par_a', lastSequence: 7n, lastHash: Buffer.alloc(32, 7) },
  ...{ availableKobo: 900n, reservedKobo: 0n, postedKobo: 100n },
};

describe('entries of several works in one transaction', () => {
  for (const count of [1, 2, 5]) {
    it(`${count} entries are all written, numbered without a gap, and the wallet is sealed at the last`, () => {
      const shared = wallet(head.partnerId, seals);
      const stored = { head, withdrawnKobo: 0n, entries: [], seal: seals.make(head), isSealed: true, isAccepted: true };
      const partner = new PartnerTransaction({
        row: { id: head.partnerId, version: '7' },
        shared: new Map<string, unknown>([[shared.name, stored]]),
      });
      for (let number = 1; number <= count; number += 1) {
        const credit = { type: 'credit', amountKobo: 10n, bankReference: `B${number}` } as const;
        transfer(partner, { ...credit, id: `wtr_${number}`, allocation: null, account: null, createdAt: 0 }, seals);
      }
      const [insert, put] = partner.save();
      const values = insert?.values.flat(3) ?? [];
      for (let number = 1; number <= count; number += 1) {
        assert.ok(values.includes(`wtr_${number}`), `entry ${number}`);
        assert.ok(values.map(String).includes(String(7 + number)), `the number ${7 + number}`);
      }
      const { head: last } = partner.get(shared);
      assert.deepEqual([last.lastSequence, last.availableKobo], [7n + BigInt(count), 900n + 10n * BigInt(count)]);
      assert.ok(put?.values.flat(3).some((value) => Buffer.isBuffer(value) && value.equals(seals.make(last))));
    });
  }
});
