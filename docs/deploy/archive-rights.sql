-- Writes the statements that give the account of `archive write` (@user at @host) its rights: it reads what it archives, and
-- removes only the rows that leave the database.
SELECT CONCAT('GRANT ', CASE
    WHEN table_name IN ('look_ups', 'object_steps') THEN 'SELECT, DELETE'
    WHEN table_name = 'archive_state' THEN 'SELECT, INSERT, DELETE'
    -- Each transaction on a Galera node checks that gateways write through it. No row enters the table.
    WHEN table_name = 'writer_guards' THEN 'SELECT, INSERT'
    ELSE 'SELECT'
  END, ' ON `', DATABASE(), '`.`', table_name, '` TO ''', @user, '''@''', @host, ''';') AS statement
FROM information_schema.tables
WHERE table_schema = DATABASE() AND table_name IN ('allocations', 'applications', 'archive_state', 'environment', 'look_ups', 'object_steps',
  'order_steps', 'orders', 'partners', 'wallet_transfers', 'webhook_attempts', 'webhook_deliveries', 'withdrawals', 'writer',
  'writer_guards')
UNION ALL
-- A member of a group of MySQL servers is used only while it takes part in its group, which this table says.
SELECT CONCAT('GRANT SELECT ON performance_schema.replication_group_members TO ''', @user, '''@''', @host, ''';')
FROM information_schema.plugins
WHERE plugin_name = 'group_replication';
