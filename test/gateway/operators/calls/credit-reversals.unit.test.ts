import assert from 'node:assert/strict';
import { it } from 'node:test';
import { reversalFaults } from '../../../../src/gateway/operators/calls/credit-reversals.ts';
import type { SqlRow, Statement } from '../../../../src/gateway/store/statement.ts';
import { toEntry, transfers } from '../../../../src/gateway/trading/wallet/store.ts';
import { storedRow } from '../../../support/stored-row.ts';

interface Made {
  readonly sequence: bigint;
  readonly type: string;
  readonly amountKobo: bigint;
  readonly reverses?: bigint | null;
}

/** The sequences of a page's reversals that are at fault, over a ledger of one partner. */
async function faultsOf(ledger: readonly Made[], page: readonly bigint[] = ledger.map(({ sequence }) => sequence)) {
  const rows = ledger.map(({ reverses = null, ...made }) => {
    const nothing = Object.fromEntries(transfers.fields.map((field) => [field, null]));
    const sums = { availableKobo: 0n, reservedKobo: 0n, postedKobo: 0n, createdAt: 1 };
    return storedRow(transfers, {
      ...nothing,
      ...sums,
      id: `wtr_${made.sequence}`,
      partnerId: 'par_a',
      reverses,
      ...made,
    } as never);
  });
  const answer = ({ sql, values: [partnerId, ...rest] }: Statement): SqlRow[] => {
    assert.equal(partnerId, 'par_a');
    const sequences = rest.flat().map(String);
    if (!sql.includes('SUM(amount_kobo)')) return rows.filter(({ sequence }) => sequences.includes(String(sequence)));
    return sequences.flatMap((reverses) => {
      const own = ledger.filter((one) => String(one.reverses) === reverses);
      return own.length === 0
        ? []
        : [{ reverses, kobo: String(own.reduce((sum, { amountKobo }) => sum + amountKobo, 0n)) }];
    });
  };
  const database = { readAll: async (queries: readonly Statement[]) => queries.map(answer) };
  const entries = rows.map(toEntry).filter(({ sequence }) => page.includes(sequence));
  const faults = await reversalFaults(database as never, 'par_a', entries);
  return faults.map(({ sequence, detail }) => `${sequence} ${detail}`);
}

it('a reversal is right if all reversals of its credit together are at most the credit, which stands before it', async () => {
  const credit = { sequence: 1n, type: 'credit', amountKobo: 100n };
  const back = (sequence: bigint, amountKobo: bigint, reverses: bigint) => {
    return { sequence, type: 'credit_reversed', amountKobo, reverses };
  };
  const tooMuch = '101 kobo of a credit of 100 are reversed';
  const noCredit = 'it reverses no credit before it';
  const all: readonly (readonly [string, readonly Made[], readonly string[]])[] = [
    ['no reversal', [credit], []],
    ['all of it', [credit, back(2n, 100n, 1n)], []],
    ['in parts', [credit, back(2n, 40n, 1n), back(3n, 60n, 1n)], []],
    ['more than it was', [credit, back(2n, 101n, 1n)], [`2 ${tooMuch}`]],
    ['more in parts', [credit, back(2n, 41n, 1n), back(3n, 60n, 1n)], [`2 ${tooMuch}`, `3 ${tooMuch}`]],
    ['nothing', [back(2n, 1n, 1n)], [`2 ${noCredit}`]],
    ['itself', [credit, back(2n, 1n, 2n)], [`2 ${noCredit}`]],
    ['a later credit', [back(1n, 1n, 2n), { ...credit, sequence: 2n }], [`1 ${noCredit}`]],
    ['another type', [{ ...credit, type: 'posted' }, back(2n, 1n, 1n)], [`2 ${noCredit}`]],
    ['two credits', [credit, { ...credit, sequence: 2n }, back(3n, 100n, 1n), back(4n, 100n, 2n)], []],
    ['one of two', [credit, { ...credit, sequence: 2n }, back(3n, 101n, 1n), back(4n, 99n, 2n)], [`3 ${tooMuch}`]],
    [
      'the other of two',
      [credit, { ...credit, sequence: 2n }, back(3n, 100n, 1n), back(4n, 101n, 2n)],
      [`4 ${tooMuch}`],
    ],
  ];
  for (const [what, ledger, faults] of all) assert.deepEqual(await faultsOf(ledger), faults, what);
  const later = [credit, back(2n, 41n, 1n), back(3n, 60n, 1n)];
  assert.deepEqual(await faultsOf(later, [1n, 2n]), [`2 ${tooMuch}`], 'a reversal after the page counts too');
});
