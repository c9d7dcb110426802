-- Writes the statements that make the views for reports, in a database of their own on the gateway's server (its name and `_reports`),
-- and that give an account (@user at @host) the right to read them and nothing else. They have no field of a customer but the account's code, and no
-- text of a partner, key, digest, hash or seal. Views read with the rights of the account that made them: keep it.
-- Run it again after an upgrade.
WITH shown AS (
  SELECT 'partners' AS name, 'id, name, state, created_at' AS list
  UNION ALL SELECT 'orders', 'partner_id, id, state, account, symbol, side, type, time_in_force, quantity, price_kobo, filled_quantity, filled_value_kobo, counted_price_kobo, counted_day, reject_reason, exchange_order_id, created_at, updated_at, filled_at'
  UNION ALL SELECT 'allocations', 'partner_id, id, state, account, amount_kobo, broker_reference, reject_reason, counted_day, created_at, updated_at'
  UNION ALL SELECT 'withdrawals', 'partner_id, id, state, account, amount_kobo, destination, broker_reference, reject_reason, counted_day, created_at, updated_at'
  UNION ALL SELECT 'wallet_transfers', 'partner_id, sequence, id, type, amount_kobo, available_after_kobo, reserved_after_kobo, posted_after_kobo, allocation_id, account, created_at'
  UNION ALL SELECT 'wallets', 'partner_id, last_sequence, available_kobo, reserved_kobo, posted_kobo, withdrawn_kobo'
)
SELECT statement FROM (
  SELECT 1 AS step, CONCAT('CREATE DATABASE IF NOT EXISTS `', DATABASE(), '_reports` CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;') AS statement
  UNION ALL
  SELECT 2, CONCAT('CREATE OR REPLACE SQL SECURITY DEFINER VIEW `', DATABASE(), '_reports`.`', name, '` AS SELECT ', list, ' FROM `', DATABASE(), '`.`', name, '`;')
  FROM shown
  UNION ALL
  SELECT 3, CONCAT('GRANT SELECT ON `', DATABASE(), '_reports`.`', name, '` TO ''', @user, '''@''', @host, ''';') FROM shown
) AS written
ORDER BY step;
