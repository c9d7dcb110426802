import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { describeRing } from '../../../../src/gateway/operators/secret-keys/status.ts';
import { noteUse, readUses } from '../../../../src/gateway/operators/secret-keys/table.ts';
import type { Database } from '../../../../src/gateway/store/database.ts';
import { statement } from '../../../../src/gateway/store/statement.ts';
import { parseKeyRing } from '../../../../src/kit/key-ring.ts';
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

  it('a secret that was never noted may have been current until the first note of any, and is needed for 30 days after that', async () => {
    const ring = parseKeyRing(`${'1f'.repeat(32)} ${'2e'.repeat(32)}`);
    await database.write(statement('DELETE FROM secret_keys'));
    const firstNotedAt = Date.UTC(2026, 2, 2, 9, 30);
    await database.write(noteUse(ring[0].id, firstNotedAt));
    await database.write(noteUse(ring[0].id, firstNotedAt + 10 * 86_400_000));
    // The note can be two minutes late.
    const neededUntil = firstNotedAt + 120_000 + 30 * 86_400_000;
    const linesAt = async (now: number) => {
      const lines = await describeRing(database, ring, now);
      return lines.slice(1, 3);
    };
    assert.deepEqual(await linesAt(neededUntil - 1), [
      `key ${ring[1]?.id}: not current, never noted as current`,
      '  needed for cursors and Idempotency-Keys, until 2026-04-01T09:32:00Z',
    ]);
    assert.equal((await linesAt(neededUntil))[1], '  can be removed');
  });
});
