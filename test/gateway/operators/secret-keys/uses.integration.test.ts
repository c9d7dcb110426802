import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { noteUse, readUses } from '../../../../src/gateway/operators/secret-keys/table.ts';
import type { Database } from '../../../../src/gateway/store/database.ts';
import { withDatabase } from '../../../support/database.ts';

describe('when a secret was current', () => {
  let database: Database;
  withDatabase((opened) => {
    database = opened;
  });

  it('a secret was current from the first to the last note of any process, whichever comes later and whatever its clock', async () => {
    const at = Date.UTC(2026, 2, 2, 9, 30);
    for (const ms of [0, 60_000, -60_000, 30_000]) await database.write(noteUse('0123456789abcdef', at + ms));
    const [use] = (await readUses(database)).filter(({ id }) => id === '0123456789abcdef');
    assert.deepEqual([use?.firstUsedAt, use?.lastUsedAt], [at, at + 60_000]);
  });
});
