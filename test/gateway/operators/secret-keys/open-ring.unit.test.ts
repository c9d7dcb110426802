import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { noteRestored, openRing } from '../../../../src/gateway/operators/secret-keys/open-ring.ts';
import type { Database } from '../../../../src/gateway/store/database.ts';
import type { SqlRow, Statement } from '../../../../src/gateway/store/statement.ts';
import { type KeyRing, parseKeyRing } from '../../../../src/kit/key-ring.ts';
import type { Logger } from '../../../../src/kit/log.ts';

const minuteMs = 60_000;
const dayMs = 86_400_000;
const now = 100 * dayMs;

const ring = parseKeyRing('aa'.repeat(32));
const other = parseKeyRing('bb'.repeat(32));

/** A database that knows when secrets were current. */
function databaseOf(uses: readonly (readonly [ring: KeyRing, lastUsedAt: number])[]) {
  const noted: string[] = [];
  const database = {
    async read(): Promise<SqlRow[]> {
      return uses.map(([[{ id }], at]) => ({ id, first_used_at: new Date(0), last_used_at: new Date(at) }));
    },
    async write({ values }: Statement) {
      noted.push(String(values[0]).slice(0, 16));
      return 1;
    },
  };
  return { database: database as unknown as Database, noted };
}

describe('a secret that the ring lacks', () => {
  const start = async (lastUsedAt: number) => {
    const { database, noted } = databaseOf([[other, lastUsedAt]]);
    const warned: unknown[] = [];
    const log = { warn: (about: unknown) => void warned.push(about), info: () => {}, debug: () => {} };
    const clock = { now: () => now, realNow: () => now };
    const secret = { first: ring, read: parseKeyRing, file: undefined };
    const opened = await openRing(secret, { database, clock, log: log as unknown as Logger }).catch(
      (error: Error) => error.message,
    );
    return { isRefused: typeof opened === 'string', warned: warned.length, noted: noted.length };
  };

  it('a secret that was current within five minutes stops a start, and one of the last 30 days is logged', async () => {
    const [refused, logged, nothing] = [
      { isRefused: true, warned: 0, noted: 0 },
      { isRefused: false, warned: 1, noted: 1 },
      { isRefused: false, warned: 0, noted: 1 },
    ];
    for (const [ageMs, outcome] of [
      [0, refused],
      [5 * minuteMs - 1, refused],
      [5 * minuteMs, logged],
      [30 * dayMs, logged],
      [30 * dayMs + 1, nothing],
    ] as const) {
      assert.deepEqual(await start(now - ageMs), outcome, `${ageMs} ms`);
    }
  });

  it('a secret of the 30 days before a backup is needed to declare the database restored, by the time of the database', async () => {
    for (const [ageMs, isRefused] of [
      [30 * dayMs, true],
      [30 * dayMs + 1, false],
    ] as const) {
      const lastUsedAt = now - 500 * dayMs;
      const { database, noted } = databaseOf([
        [other, lastUsedAt - ageMs],
        [ring, lastUsedAt],
      ]);
      const done = noteRestored(database, ring, now);
      if (isRefused) await assert.rejects(done, /lacks the key/);
      else await done;
      assert.equal(noted.length, Number(!isRefused));
    }
  });

  it('each secret of a ring, the current one and former ones, is needed from a restore on', async () => {
    const { database, noted } = databaseOf([[ring, now - 500 * dayMs]]);
    const both = parseKeyRing(`${'aa'.repeat(32)},${'bb'.repeat(32)}`);
    await noteRestored(database, both, now);
    assert.deepEqual(
      noted,
      [...both].map(({ id }) => id.slice(0, 16)),
    );
  });
});
