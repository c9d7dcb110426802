import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import type { SqlRow } from '../../../../src/gateway/store/statement.ts';
import { firstBroker } from '../../../../src/gateway/trading/broker/broker.ts';
import { rewindReports, tellRewound } from '../../../../src/gateway/trading/submission/report-days.ts';

describe('the positions of reports that are set back by `restored`', () => {
  it('are printed with where they were', () => {
    assert.equal(
      tellRewound({ name: 'order-reports', from: 5_142_162n, to: 4_900_000n }),
      'order-reports: read again from 4900000; the position was 5142162',
    );
  });

  it('are printed with the section of the page that says what to do if all reports are read again', () => {
    const printed = tellRewound({ name: 'order-reports', from: 5_142_162n, to: 0n });
    assert.match(
      printed,
      /^order-reports: all are read again, from 0, see ".*" in backup\.md; the position was 5142162$/,
    );
    const section = /"(.*)"/.exec(printed)?.[1];
    assert.ok(readFileSync('docs/operations/backup.md', 'utf8').includes(`\n### ${section}\n`));
  });

  /** Sets back the position of the orders' reports, and returns where they are read from; undefined: it stays as it is. */
  async function rewind(position: string, days: readonly string[]): Promise<bigint | undefined> {
    const rows: SqlRow[] = [
      { name: 'order-reports', position },
      ...days.map((day, slot) => ({ name: `order-reports day ${slot}`, position: `${day} @${20_783 + slot}` })),
    ];
    const transaction = async (_: unknown, decide: (rows: SqlRow[][]) => { writes: unknown[]; result: unknown }) => {
      const { writes, result } = decide([rows]);
      assert.equal(writes.length, (result as unknown[]).length);
      return result;
    };
    const [rewound, ...more] = await rewindReports({ transaction } as never, firstBroker, ['order']);
    assert.deepEqual([more, rewound?.from ?? BigInt(position)], [[], BigInt(position)]);
    return rewound?.to;
  }

  it('the positions of reports that are set back by `restored` go back to where the oldest of eight days began', async () => {
    assert.equal(await rewind('900', ['500', '600', '700', '800', '100', '200', '300', '400']), 100n);
  });

  it('the positions of reports that are set back by `restored` go back to the beginning if the days before are not known, however few are missing', async () => {
    assert.equal(await rewind('900', ['500', '600', '700', '800', '200', '300', '400']), 0n);
    assert.equal(await rewind('900', ['500']), 0n);
    assert.equal(await rewind('900', []), 0n);
  });

  it('the positions of reports that are set back by `restored` stay at the beginning', async () => {
    assert.equal(await rewind('0', []), undefined);
  });
});
