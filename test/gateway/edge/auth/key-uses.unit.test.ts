import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { KeyUses } from '../../../../src/gateway/edge/auth/authenticate.ts';
import type { Database } from '../../../../src/gateway/store/database.ts';

/** Saves the uses as the process does at its end. */
async function save(uses: KeyUses): Promise<void> {
  const stop = new AbortController();
  const saved = uses.worker.run(stop.signal);
  stop.abort();
  await saved;
}

describe('the last use of a key', () => {
  it('a use of a key is kept for the next write if the one before is being written', async () => {
    let now = 1_000;
    let duringWrite = () => {};
    let writes = 0;
    const database = {
      write: async () => {
        writes += 1;
        duringWrite();
        return 1;
      },
    } as Partial<Database> as Database;
    const uses = new KeyUses(database, { now: () => now, realNow: () => now });
    uses.note('par_1', 'key_1');
    uses.note('par_1', 'key_2');
    duringWrite = () => {
      now = 2_000;
      uses.note('par_1', 'key_1');
    };
    await save(uses);
    assert.deepEqual([uses.notedAt('key_1'), uses.notedAt('key_2')], [2_000, undefined]);
    duringWrite = () => {};
    await save(uses);
    assert.deepEqual([writes, uses.notedAt('key_1')], [2, undefined]);
  });
});
