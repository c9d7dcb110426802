import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { Database } from '../../../../src/gateway/store/database.ts';
import { statement } from '../../../../src/gateway/store/statement.ts';
import { withDatabase } from '../../../support/database.ts';

let database: Database;
withDatabase(async (opened) => {
  database = opened;
});

const isRandom = 'ids are random, so two clusters do not make the same one';

/** Unique keys of tables with partners' rows that do not contain the partner, and what that means for several clusters. */
const acrossPartners: Readonly<Record<string, string>> = {
  'accounts.accounts_account':
    'an account at the broker is of one partner among all: a map of accounts would have to say so',
  'allocations.allocations_id': isRandom,
  'api_keys.api_keys_id': isRandom,
  'applications.applications_id': isRandom,
  'audit_entries.PRIMARY': 'a number that each cluster counts by itself',
  'bulk_cancels.PRIMARY': isRandom,
  'contradictions.PRIMARY': 'a number that each cluster counts by itself',
  'orders.orders_id': isRandom,
  'proposals.proposals_id': isRandom,
  'reconciliation_breaks.reconciliation_breaks_id':
    'made of what differs and where, so each cluster has those of its own partners and broker',
  'stops.PRIMARY': isRandom,
  'wallet_transfers.wallet_transfers_bank_reference':
    'a payment is recorded once: two clusters could each record it, for a partner of theirs',
  'withdrawals.withdrawals_id': isRandom,
};

it('a unique key of a table with rows of partners contains the partner, or is known not to', async () => {
  const rows = await database.read(
    statement(
      `SELECT s.table_name AS table_name, s.index_name AS index_name, GROUP_CONCAT(s.column_name) AS columns
       FROM information_schema.statistics s
       WHERE s.table_schema = DATABASE() AND s.non_unique = 0 AND EXISTS (
         SELECT 1 FROM information_schema.columns c
         WHERE c.table_schema = DATABASE() AND c.table_name = s.table_name AND c.column_name = 'partner_id')
       GROUP BY s.table_name, s.index_name ORDER BY s.table_name, s.index_name`,
    ),
  );
  const found = rows
    .filter(({ columns }) => !String(columns).split(',').includes('partner_id'))
    .map((row) => `${row.table_name}.${row.index_name}`);
  assert.deepEqual(found, Object.keys(acrossPartners));
});
