import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Database } from '../../../../src/gateway/store/database.ts';
import { statement } from '../../../../src/gateway/store/statement.ts';
import { wallet, wallets } from '../../../../src/gateway/trading/wallet/store.ts';
import { createPartner } from '../../../../src/sandbox/provision.ts';
import { withDatabase } from '../../../support/database.ts';
import { creditWallet, walletSeals } from '../../../support/ledger.ts';

describe('a wallet that a replica remembers', () => {
  let database: Database;
  withDatabase((opened) => {
    database = opened;
  });

  it('a wallet is read again once `keys seal` has sealed it, and is not for another seal of the same end', async () => {
    const partnerId = await createPartner(database, { name: 'A Partner', limits: {}, features: [] });
    await creditWallet(database, { partnerId, amountKobo: 100n, bankReference: 'B1' });
    const shared = wallet(partnerId, walletSeals());
    const read = async () => shared.value(await database.read(shared.read));
    const holds = async (value: Awaited<ReturnType<typeof read>>) => {
      const { sql, values } = shared.guard(value);
      const [row] = await database.read(statement(`SELECT ${sql} AS holds`, ...values));
      return Number(row?.holds) === 1;
    };
    const sealed = await read();
    await database.write(wallets.set({ partnerId }, { seal: null }));
    assert.equal(await holds(sealed), true, 'its end is proven');
    const unsealed = await read();
    assert.deepEqual([unsealed.isSealed, await holds(unsealed)], [false, true]);
    await database.write(wallets.set({ partnerId }, { seal: sealed.seal }));
    assert.equal(await holds(unsealed), false);
  });
});
