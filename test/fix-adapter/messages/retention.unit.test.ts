import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { removeBatch } from '../../../src/fix-adapter/messages/retention.ts';
import type { Database } from '../../../src/gateway/store/database.ts';

const keptMs = 1_000;
const keptCharacters = 50n;
/** When the rows came, and how many characters were kept by then. */
const rows = [
  { id: 1n, at: 10_000, position: 10n },
  { id: 2n, at: 10_100, position: 20n },
  { id: 3n, at: 10_200, position: 30n },
  { id: 4n, at: 10_300, position: 40n },
];

describe('the messages that are kept no longer', () => {
  /** The last id that is removed; 0 if none is. */
  async function removed(now: number, serverNow: number, lastPosition = 40n): Promise<number> {
    let last = 0;
    const stored = rows.map(({ id, at, position }) => ({ id: `${id}`, at: new Date(at), position: `${position}` }));
    const database: Partial<Database> = {
      readAll: async () => [
        stored,
        [{ ...stored.at(-1), position: `${lastPosition}` }],
        [{ now: new Date(serverNow) }],
      ],
      write: async ({ values }) => {
        last = Number(values[0]);
        return last;
      },
    };
    await removeBatch({ database: database as Database, now: () => now, keptMs, keptCharacters });
    return last;
  }

  it('messages are removed once they are older than they are kept by both clocks, to the millisecond, oldest first', async () => {
    for (const [now, serverNow, last] of [
      [11_000, 11_000, 0],
      [11_001, 11_001, 1],
      [11_001, 11_000, 0],
      [11_000, 11_001, 0],
      [11_100, 90_000, 1],
      [90_000, 11_101, 2],
      [90_000, 90_000, 4],
    ] as const) {
      assert.equal(await removed(now, serverNow), last, `${now} and ${serverNow}`);
    }
  });

  it('messages are removed as far as more characters are kept than may be, to the character', async () => {
    for (const [lastPosition, last] of [
      [59n, 0],
      [60n, 1],
      [69n, 1],
      [70n, 2],
      [90n, 4],
    ] as const) {
      assert.equal(await removed(10_400, 10_400, lastPosition), last, `${lastPosition}`);
    }
  });
});
