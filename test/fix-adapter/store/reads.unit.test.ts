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
});
