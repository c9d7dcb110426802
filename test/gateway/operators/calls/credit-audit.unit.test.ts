/** Whether each payment of a ledger has its entry of the audit, over entries that the test holds. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { paymentActions, paymentEntry, paymentFaults } from '../../../../src/gateway/operators/calls/credit-audit.ts';
import type { SqlRow } from '../../../../src/gateway/store/statement.ts';
import type { LedgerEntry } from '../../../../src/gateway/trading/wallet/rules.ts';
import { RowsDatabase } from '../../../support/rows-database.ts';

interface Paid {
  readonly type: string;
  readonly id: string;
  readonly createdAt: number;
  readonly amountKobo: bigint;
  readonly bankReference: string;
  readonly reverses: string | null;
}

const paid = (type: keyof typeof paymentActions, at: number, more: Partial<Paid> = {}): Paid => ({
  ...{ type, id: `wtr_${at}`, createdAt: at, amountKobo: 100n, bankReference: `ref ${at}`, reverses: null },
  ...more,
});

/** The audit's row of a payment, as it is written with it. */
function auditOf({ type, createdAt, ...payment }: Paid, more: SqlRow = {}): SqlRow {
  const entry = paymentEntry({ ...payment, partnerId: 'par_a' } as never);
  const detail = JSON.stringify({ ...entry.detail, reason: 'why' }, (_, value) =>
    typeof value === 'bigint' ? String(value) : value,
  );
  const action = paymentActions[type as keyof typeof paymentActions];
  return { partner_id: entry.partnerId, action, at: new Date(createdAt), detail, ...more };
}

async function faultsOf(entries: readonly Paid[], rows: readonly SqlRow[]) {
  const ledger = entries.map((entry, at) => ({ ...entry, sequence: BigInt(at + 1) })) as unknown as LedgerEntry[];
  const database = new RowsDatabase({ audit_entries: rows });
  const faults = await paymentFaults(database as never, 'par_a', ledger);
  return faults.map(
    ({ kind, sequence, id, detail }) => `${kind} ${sequence} ${id} ${/payment|correction/.exec(detail)?.[0]}`,
  );
}

const [credit, debit, reversal] = [
  paid('credit', 1),
  paid('debit', 2),
  paid('credit_reversal', 3, { reverses: 'wtr_1' }),
];

describe('payments and their entries of the audit', () => {
  it('a payment or correction with its entry is no fault, and an entry of a ledger that is none needs none', async () => {
    const all = [credit, debit, reversal, paid('credit', 4)];
    assert.deepEqual(
      await faultsOf(
        [...all, { ...credit, id: 'wtr_9', type: 'allocation' }],
        all.map((each) => auditOf(each)),
      ),
      [],
    );
    assert.deepEqual(await faultsOf([], []), []);
  });

  it('a payment or correction without its entry is a fault of its own', async () => {
    assert.deepEqual(await faultsOf([credit, debit, reversal], [auditOf(debit)]), [
      'unaudited 1 wtr_1 payment',
      'unaudited 3 wtr_3 correction',
    ]);
  });

  it('an entry of another payment, action, time or partner proves nothing', async () => {
    for (const [name, row] of [
      ['another entry', auditOf({ ...credit, id: 'wtr_2' })],
      ['another amount', auditOf({ ...credit, amountKobo: 101n })],
      ['another bank reference', auditOf({ ...credit, bankReference: 'other' })],
      ['a correction of something', auditOf({ ...credit, reverses: 'wtr_0' })],
      ['another action', auditOf({ ...credit, type: 'debit' })],
      ['another time', auditOf({ ...credit, createdAt: 2 })],
      ['another partner', auditOf(credit, { partner_id: 'par_b' })],
      ['no JSON', auditOf(credit, { detail: '{' })],
      ['null', auditOf(credit, { detail: 'null' })],
    ] as const) {
      assert.deepEqual(await faultsOf([credit], [row]), ['unaudited 1 wtr_1 payment'], name);
    }
    assert.deepEqual(await faultsOf([reversal], [auditOf({ ...reversal, reverses: 'wtr_2' })]), [
      'unaudited 1 wtr_3 correction',
    ]);
  });

  it('a payment with the entry of a payment of the same instant needs its own', async () => {
    const other = paid('credit', 1, { id: 'wtr_other' });
    assert.deepEqual(await faultsOf([credit, other], [auditOf(credit)]), ['unaudited 2 wtr_other payment']);
    assert.deepEqual(await faultsOf([credit, other], [auditOf(credit), auditOf(other)]), []);
  });
});
