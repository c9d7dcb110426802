import assert from 'node:assert/strict';
import { it } from 'node:test';
import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import type { Compared } from '../../../../src/gateway/operators/reconciliation/ours.ts';
import type { RunProgress } from '../../../../src/gateway/operators/reconciliation/progress.ts';
import { newItem, reconciliationItems } from '../../../../src/gateway/operators/reconciliation/table.ts';
import {
  compareAccounts,
  type TransactionReads,
} from '../../../../src/gateway/operators/reconciliation/transactions.ts';
import type { Statement } from '../../../../src/gateway/store/statement.ts';
import { TransactionSchema } from '../../../../src/gen/marina/broker/v1/accounts_pb.ts';
import { storedRow } from '../../../support/stored-row.ts';

const dayMs = 86_400_000;
const period = { from: Date.UTC(2026, 2, 2, 23), to: Date.UTC(2026, 2, 3, 23) };
const day = '2026-03-03';

it('an account whose transactions were not read to the end, because the run is interrupted, is compared when the run goes on', async () => {
  const accounts = ['T1', 'T2'].map((account) => ({
    ...{ ...newItem({ day }), section: 'trade' as const, account, itemId: `${account} 1`, objectId: 'ord_1' },
  }));
  const rows = accounts.map((item) => storedRow(reconciliationItems, item));
  const database = {
    read: async ({ sql, values }: Statement) => {
      if (sql.includes("section = 'note'")) return [{ item_id: 'transactions_read' }];
      const [, after] = values;
      return rows.filter(({ account }) => String(account) > String(after));
    },
    readAll: async ([{ values }]: readonly [Statement]) => [
      values.map((account) => ({ account, partner_id: 'par_1' })),
    ],
  };
  const state = { isInterrupted: false, pages: [] as string[] };
  const saved: [position: string | undefined, found: number][] = [];
  const progress = {
    run: { day, position: '' },
    get isInterrupted() {
      return state.isInterrupted;
    },
    save: async (changes: { position?: string }) => void Object.assign(progress.run, changes),
    async saveFound(changes: { position?: string }, found: readonly unknown[]) {
      Object.assign(progress.run, changes);
      saved.push([changes.position, found.length]);
    },
  };
  const broker = {
    records: {
      uncheckedTransactions: async ({ account, after }: { account: string; after?: object }) => {
        const isSecond = after !== undefined;
        state.pages.push(`${account} ${isSecond ? 2 : 1}`);
        state.isInterrupted = state.pages.join() === 'T1 1,T1 2,T2 1';
        const id = `TXN${isSecond ? 1 : 2}`;
        const bookedAt = timestampFromMs(period.from + (isSecond ? 1 : 2) * 1_000);
        const transactions = [
          create(TransactionSchema, { id, bookedAt, amountKobo: 5n, balanceKobo: isSecond ? 5n : 10n }),
        ];
        return { transactions, hasMore: !isSecond };
      },
    },
  };
  const reads = { readFor: (_: string, read: (time: object) => Promise<unknown>) => read({}) };
  const parts = { broker, reads, now: () => period.to + 10 * dayMs, hasDayBefore: true };
  const compare = () =>
    compareAccounts(
      progress as unknown as RunProgress,
      { day, period, isShared: false, database } as unknown as Compared,
      parts as unknown as TransactionReads & { hasDayBefore: boolean },
    );
  assert.equal(await compare(), false, 'it goes on later');
  assert.deepEqual([saved, state.pages], [[['T1', 0]], ['T1 1', 'T1 2', 'T2 1']]);
  state.isInterrupted = false;
  assert.equal(await compare(), true);
  assert.deepEqual(saved, [
    ['T1', 0],
    ['T2', 0],
  ]);
  assert.deepEqual(state.pages.slice(3), ['T2 1', 'T2 2'], 'it is read from its newest one again');
});
