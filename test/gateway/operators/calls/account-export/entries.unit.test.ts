/** Which entries of the audit an account's export shows. */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { auditEntries } from '../../../../../src/gateway/edge/auth/audit-store.ts';
import { AccountEntries } from '../../../../../src/gateway/operators/calls/account-export/entries.ts';
import type { StoredEntry } from '../../../../../src/gateway/operators/calls/audit-period.ts';
import { proposals } from '../../../../../src/gateway/operators/calls/proposals/table.ts';
import type { SqlRow, Statement } from '../../../../../src/gateway/store/statement.ts';
import { keptBulkCancels } from '../../../../../src/gateway/trading/orders/bulk-cancels/retention.ts';
import { type BulkCancel, bulkCancels } from '../../../../../src/gateway/trading/orders/bulk-cancels/table.ts';
import { storedRow } from '../../../../support/stored-row.ts';

const now = 1_000_000_000_000;
const own = { ord: `ord_${'a'.repeat(20)}`, alc: `alc_${'a'.repeat(20)}`, wdr: `wdr_${'a'.repeat(20)}` };
const other = { ord: `ord_${'b'.repeat(20)}`, wdr: `wdr_${'b'.repeat(20)}` };
const link = { partnerId: 'par_a', from: 100, until: 200, application: null, linkedBy: null, unlinkedBy: null };

const entry: StoredEntry = {
  ...{ id: 1n, at: 150, operator: 'ada', action: 'Partners.SetLimits', subject: null, detail: '{}', partnerId: null },
  ...{ was: null, became: null, requestId: null, clientAddress: null, roles: null, keyId: null },
};

const job: BulkCancel = {
  ...{ id: 'bcl_a', partnerId: null, account: null, symbol: 'SIM', side: null, keyId: null, reason: 'why' },
  ...{ startedBy: 'bola', requestId: 'r', createdAt: 1, giveUpAt: 2, matched: 10, cancelled: 3, notCancelable: 2 },
  ...{ unconfirmed: 1, waitsFor: null, updatedAt: 3, endedAt: 5, endedBy: null, endReason: null },
};

interface Stored {
  readonly job?: BulkCancel;
  /** The detail of the entry of the job's begin. */
  readonly begun?: string;
  /** The pages of a job's orders: how many each has, and how many of them are of the account. */
  readonly pages?: readonly (readonly [count: number, found: number])[];
  readonly request?: string;
}

/** Whether an entry is shown, with what the test says is stored. */
async function isShown(fields: Partial<StoredEntry>, { job: kept, begun, pages = [[0, 0]], request }: Stored = {}) {
  const left = [...pages];
  const answer = ({ sql, values }: Statement): SqlRow[] => {
    if (sql.includes('FROM proposals')) {
      const row = { partnerId: 'par_a', id: String(values[0]), request };
      return request === undefined ? [] : [storedRow(proposals, row as never)];
    }
    if (sql.includes('FROM bulk_cancel_orders')) {
      assert.equal(values.includes('par_a'), true, 'only of a partner that had the account');
      const [count, found] = left.shift() ?? [0, 0];
      return [{ count, last: 'ord_z', found: String(found) }];
    }
    if (sql.includes('FROM bulk_cancels')) return kept === undefined ? [] : [storedRow(bulkCancels, kept)];
    if (sql.includes('FROM audit_entries')) {
      return begun === undefined ? [] : [storedRow(auditEntries, { ...entry, detail: begun })];
    }
    const ids = values.flat() as string[];
    return ids.flatMap((id) => [{ id, account: Object.values(own).includes(id) ? 'A1' : 'A2' }]);
  };
  const database = {
    read: async (query: Statement) => answer(query),
    readAll: async (queries: readonly Statement[]) => queries.map(answer),
  };
  const parts = { database, clock: { now: () => now } };
  const wanted = await new AccountEntries(parts as never, 'A1', [link]).wanted([{ ...entry, ...fields }]);
  return wanted.length === 1;
}

it('an entry is shown if it names the account, or one of its objects, in its subject or its detail', async () => {
  const detail = (value: unknown) => ({ detail: JSON.stringify(value) });
  for (const [fields, shown] of [
    [{ subject: 'A1' }, true],
    [{ subject: 'a1' }, true],
    [{ subject: 'A2' }, false],
    [{}, false],
    [detail({ account: 'a1' }), true],
    [detail({ account: 'A2' }), false],
    [detail({ name: 'A1' }), false],
    [detail({ request: { account: 'A1' } }), true],
    [detail({ account: ['A2', 'A1'] }), true],
    [detail({ reason: 'A1', evidence: 'A1' }), false],
    [{ subject: own.ord }, true],
    [{ subject: own.wdr }, true],
    [{ subject: other.wdr }, false],
    [detail({ orders: [other.ord, own.alc] }), true],
    [detail({ reason: own.ord }), false],
    [detail({ evidence: own.ord, reference: own.ord }), false],
    [detail({ text: `${own.ord} ` }), false],
    [{ detail: 'no JSON' }, false],
    [{ detail: 'null' }, false],
  ] as const) {
    assert.equal(await isShown(fields), shown, JSON.stringify(fields));
  }
});

it('an entry of a pause is shown, and one of a stop if it held for the account while the partner had it', async () => {
  const stop = (target: string, value: string, at = 150) => ({
    ...{ action: 'Trading.AddStop', at, detail: JSON.stringify({ target, value }) },
  });
  for (const [fields, shown] of [
    [{ action: 'Trading.PauseTrading' }, true],
    [{ action: 'Trading.ResumeTrading' }, true],
    [stop('everything', ''), true],
    [stop('partner', 'par_a'), true],
    [stop('partner', 'par_b'), false],
    [stop('partner', 'par_a', 99), false],
    [stop('partner', 'par_a', 100), true],
    [stop('partner', 'par_a', 200), false],
    [stop('account', 'A1', 999), true],
    [stop('account', 'A2'), false],
    [{ ...stop('partner', 'par_a'), action: 'Trading.EndStop' }, true],
    [{ ...stop('partner', 'par_a'), action: 'Trading.Other' }, false],
  ] as const) {
    assert.equal(await isShown(fields), shown, JSON.stringify(fields));
  }
});

it('the entry of a proposal that expired is shown if the proposal was to link the account', async () => {
  const expired = { action: 'gateway.ExpireProposal', detail: '{"proposal":"prp_a"}' };
  assert.equal(await isShown(expired, { request: '{"account":"a1"}' }), true);
  assert.equal(await isShown(expired, { request: '{"account":"A2"}' }), false);
  assert.equal(await isShown(expired), false, 'the proposal is removed');
  assert.equal(await isShown({ ...expired, action: 'gateway.Other' }, { request: '{"account":"A1"}' }), false);
});

it('the entries of a job are shown if it took an order of the account, or may have taken one that is removed', async () => {
  const entries = { action: 'Trading.CancelOpenOrders', subject: 'bcl_a' };
  const recent = { ...job, endedAt: now - keptBulkCancels.keptMs };
  const removed = { ...job, endedAt: now - keptBulkCancels.keptMs - 1 };
  for (const [what, stored, shown] of [
    ['one of its orders', { job: recent, pages: [[5, 1]] }, true],
    ['none of its orders', { job: recent, pages: [[5, 0]] }, false],
    [
      'one on its second page',
      {
        job: recent,
        pages: [
          [2_000, 0],
          [1, 1],
        ],
      },
      true,
    ],
    [
      'none on any page',
      {
        job: recent,
        pages: [
          [2_000, 0],
          [2_000, 0],
          [0, 0],
        ],
      },
      false,
    ],
    ['it runs', { job: { ...job, endedAt: null }, pages: [[5, 0]] }, false],
    ['of the account alone', { job: { ...recent, account: 'A1' } }, true],
    ['of another account alone', { job: { ...removed, account: 'A2' } }, false],
    ['of the partner', { job: { ...recent, partnerId: 'par_a' }, pages: [[5, 1]] }, true],
    ['of another partner', { job: { ...removed, partnerId: 'par_b' }, pages: [[5, 1]] }, false],
    ['its orders may be removed', { job: removed, pages: [[0, 0]] }, true],
    ['it is removed, and was of all', { begun: '{"partnerId":null,"account":null}' }, true],
    ['it is removed, and was of another partner', { begun: '{"partnerId":"par_b","account":null}' }, false],
    ['it is removed, and was of another account', { begun: '{"account":"A2"}' }, false],
    ['it is removed, with its entry', {}, true],
  ] as const) {
    assert.equal(await isShown(entries, stored), shown, what);
    assert.equal(await isShown({ ...entries, action: 'Trading.StopBulkCancel' }, stored), shown, what);
  }
  assert.equal(await isShown({ ...entries, action: 'Trading.GetBulkCancel' }, { job: recent, pages: [[5, 1]] }), false);
});
