-- Writes the statements that give the gateway's account (@user at @host) its rights on each table of the database, and that
-- take back rights which it no longer needs. It gets exactly the rights that the gateway uses. A right on the whole database
-- is taken back, because it would hold for every table. A right on all databases (*.*) stays: SHOW GRANTS shows it.
WITH needed AS (
  SELECT table_name AS name, CASE
    -- Rows are only added.
    WHEN table_name IN ('audit_entries', 'audit_seals', 'feed_skips', 'key_changes', 'object_steps', 'order_steps', 'wallet_transfers')
      THEN 'SELECT,INSERT'
    -- No row ever enters it.
    WHEN table_name IN ('guards', 'writer_guards')
      THEN 'SELECT,INSERT'
    -- Rows are added and changed, and kept.
    WHEN table_name IN ('allocations', 'api_keys', 'applications', 'contradictions', 'environment', 'feed_purges', 'key_uses', 'look_ups', 'orders',
      'partners', 'positions', 'proposals', 'reconciliation_breaks', 'reconciliation_runs', 'secret_keys', 'stops', 'usage_days',
      'wallets', 'webhook_endpoints', 'withdrawals')
      THEN 'SELECT,INSERT,UPDATE'
    -- Its row is changed.
    WHEN table_name IN ('writer', 'writer_beats')
      THEN 'SELECT,UPDATE'
    -- Rows are added, and removed when their time is over.
    WHEN table_name IN ('feed_events', 'reconciliation_items', 'unclaimed_reports', 'webhook_attempts', 'write_checks')
      THEN 'SELECT,INSERT,DELETE'
    -- Rows are added, changed and removed.
    WHEN table_name IN ('accounts', 'acknowledgements', 'bulk_cancel_orders', 'bulk_cancels', 'documents', 'leases',
      'open_cancels', 'outbox', 'webhook_deliveries')
      THEN 'SELECT,INSERT,UPDATE,DELETE'
    -- Only `archive write` writes it, with an account of its own.
    WHEN table_name IN ('archive_state')
      THEN 'SELECT'
    -- Only migrating writes `migrations`.
    ELSE 'SELECT'
  END AS rights
  FROM information_schema.tables
  WHERE table_schema = DATABASE()
)
SELECT CONCAT('GRANT ', rights, ' ON `', DATABASE(), '`.`', name, '` TO ''', @user, '''@''', @host, ''';') AS statement
FROM needed
UNION ALL
-- A member of a group of MySQL servers is used only while it takes part in its group, which this table says.
SELECT CONCAT('GRANT SELECT ON performance_schema.replication_group_members TO ''', @user, '''@''', @host, ''';')
FROM information_schema.plugins
WHERE plugin_name = 'group_replication'
UNION ALL
SELECT CONCAT('REVOKE ', privilege_type, ' ON `', DATABASE(), '`.`', name, '` FROM ''', @user, '''@''', @host, ''';')
FROM needed
JOIN information_schema.table_privileges ON table_schema = DATABASE() AND table_name = name
WHERE CAST(grantee AS BINARY) = CAST(CONCAT('''', @user, '''@''', @host, '''') AS BINARY)
  AND NOT FIND_IN_SET(privilege_type, rights)
UNION ALL
SELECT DISTINCT CONCAT('REVOKE ALL PRIVILEGES ON `', table_schema, '`.* FROM ''', @user, '''@''', @host, ''';')
FROM information_schema.schema_privileges
WHERE CAST(grantee AS BINARY) = CAST(CONCAT('''', @user, '''@''', @host, '''') AS BINARY)
  AND privilege_type <> 'USAGE'
  -- In the name of a database an underscore stands for any character, unless a backslash comes before it.
  AND table_schema IN (DATABASE(), REPLACE(DATABASE(), '_', CONCAT(CHAR(92), '_')));
