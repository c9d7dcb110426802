import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { saidNothing } from '../../../src/fix-adapter/orders/reject-reasons.ts';
import { FixReads } from '../../../src/fix-adapter/store/reads.ts';
import { type FixReport, fixReports } from '../../../src/fix-adapter/store/table.ts';
import type { Database } from '../../../src/gateway/store/database.ts';
import { storedRow } from '../../support/stored-row.ts';

const reportOf = (number: bigint): FixReport => ({
  ...{ number, orderId: 'ord_a', exchangeOrderId: 'X1', kind: 'trade', at: 0, quantity: 1n, priceKobo: 250n },
  ...{ rejectReason: null, execId: `e${number}`, counted: number, ...saidNothing },
});

describe('the reports after a number', () => {
  it('reports reach at least to the last one that is named with them, though one comes while they are read', async () => {
    let last = 5n;
    const database: Partial<Database> = {
      // Another report is committed after each statement.
      readAll: async (statements) =>
        statements.map(({ sql }) => {
          const rows = sql.includes('last_report FROM fix_numbers')
            ? [{ last_report: String(last) }]
            : Array.from({ length: Number(last) }, (_, at) => storedRow(fixReports, reportOf(BigInt(at + 1))));
          last += 1n;
          return rows;
        }),
    };
    const read = await new FixReads(database as Database).reportsAfter(0n, 1_000);
    assert.ok((read.reports.at(-1)?.number ?? 0n) >= read.last, `${read.reports.length} and ${read.last}`);
  });

  it('the reports of one order come in pages of 1,000, and there are more only if there are', async () => {
    for (const [count, hasMore] of [
      [999, false],
      [1_000, false],
      [1_001, true],
    ] as const) {
      const database: Partial<Database> = {
        read: async ({ sql }) => {
          const limit = Number(/ LIMIT (\d+)$/.exec(sql)?.[1]);
          const all = Array.from({ length: count }, (_, at) => storedRow(fixReports, reportOf(BigInt(at + 1))));
          return all.slice(0, limit);
        },
      };
      const page = await new FixReads(database as Database).reportsOf('ord_a', 0n);
      assert.deepEqual([page.reports.length, page.hasMore], [Math.min(count, 1_000), hasMore]);
    }
  });
});
