import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { compareHoldings } from '../../../../src/gateway/operators/reconciliation/compare.ts';
import type { RunProgress } from '../../../../src/gateway/operators/reconciliation/progress.ts';
import type { Difference } from '../../../../src/gateway/operators/reconciliation/rules.ts';
import { reconciliationItems } from '../../../../src/gateway/operators/reconciliation/table.ts';
import type { Database } from '../../../../src/gateway/store/database.ts';
import { withDatabase } from '../../../support/database.ts';

const day = '2026-03-02';

describe('the positions and the money that a broker states', () => {
  let database: Database;
  withDatabase(async (opened) => {
    database = opened;
    // A page has 500: one ends within an account, one where an account ends, and one where an account begins.
    for (const [account, positions] of Object.entries({ A: 300, B: 300, C: 399, D: 1, E: 499, F: 3 })) {
      const rows = Array.from({ length: positions }, (_, number) => ({
        ...{ day, objectId: '', section: 'position' as const, account, side: '' as const, state: '', reference: '' },
        ...{ symbol: `S${number}`, itemId: `${account} S${number}`, quantity: 1n },
        ...{ amountKobo: null, otherKobo: null, at: null },
      }));
      await database.write(reconciliationItems.insert(...rows));
    }
  });

  /** Compares from a position until so many pages are saved. Returns what was found and where the next run goes on. */
  async function compare(position: string, pages: number) {
    const found: Difference[] = [];
    let left = pages;
    let next = position;
    const progress = {
      run: { day, position },
      get isInterrupted() {
        return left === 0;
      },
      saveFound: async (changes: { position?: string }, differences: readonly Difference[]) => {
        left -= 1;
        next = changes.position ?? next;
        found.push(...differences);
      },
    };
    const isWhole = await compareHoldings(progress as unknown as RunProgress, { database } as never);
    return { found, next, isWhole };
  }

  it('each position that differs is found, also by a run that goes on after one that died at any page', async () => {
    const names = (found: readonly Difference[]) =>
      [...new Set(found.map((each) => JSON.stringify(each, asText)))].sort();
    const { found, isWhole } = await compare('', Number.POSITIVE_INFINITY);
    assert.deepEqual([names(found).length, isWhole], [1_502, true]);
    for (const pages of [1, 2, 3]) {
      const first = await compare('', pages);
      const rest = await compare(first.next, Number.POSITIVE_INFINITY);
      assert.deepEqual([first.isWhole, rest.isWhole], [false, true]);
      assert.deepEqual(names([...first.found, ...rest.found]), names(found), `after ${pages} pages`);
    }
  });
});

const asText = (_: string, value: unknown) => (typeof value === 'bigint' ? value.toString() : value);
