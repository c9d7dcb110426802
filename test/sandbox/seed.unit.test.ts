import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { linkedOf } from '../../src/sandbox/seed.ts';
import { RowsDatabase } from '../support/rows-database.ts';

describe('the accounts of a partner of the sandbox at a further start', () => {
  it('the accounts of a partner are those of the start before that are still its own, and no others', async () => {
    const database = new RowsDatabase({
      accounts: [
        { partner_id: 'par_a', account: 'C1' },
        { partner_id: 'par_a', account: 'C9' },
        { partner_id: 'par_b', account: 'C2' },
      ],
    });
    const accountsOf = (id: string, ...accounts: readonly string[]) =>
      linkedOf(database, { id, accounts: [...accounts] });
    assert.deepEqual(await accountsOf('par_a', 'C1', 'C2', 'C3'), ['C1'], 'one was linked to the other, one unlinked');
    assert.deepEqual(await accountsOf('par_b', 'C2'), ['C2']);
    assert.deepEqual(await accountsOf('par_b'), []);
  });
});
