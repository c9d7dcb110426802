-- Writes the statements that give the account of the FIX adapter (@user at @host) its rights on the adapter's own database. It
-- can remove nothing: what was sent to the exchange, and what the exchange said, stays.
SELECT CONCAT('GRANT ', CASE
    WHEN table_name = 'migrations' THEN 'SELECT'
    WHEN table_name IN ('fix_reports', 'fix_submissions', 'fix_findings', 'guards', 'writer_guards') THEN 'SELECT, INSERT'
    ELSE 'SELECT, INSERT, UPDATE'
  END, ' ON `', DATABASE(), '`.`', table_name, '` TO ''', @user, '''@''', @host, ''';') AS statement
FROM information_schema.tables
WHERE table_schema = DATABASE() AND table_name IN ('fix_cancels', 'fix_findings', 'fix_numbers', 'fix_orders', 'fix_reports',
  'fix_submissions', 'guards', 'leases', 'migrations', 'writer', 'writer_beats', 'writer_guards')
UNION ALL
-- A member of a group of MySQL servers is used only while it takes part in its group, which this table says.
SELECT CONCAT('GRANT SELECT ON performance_schema.replication_group_members TO ''', @user, '''@''', @host, ''';')
FROM information_schema.plugins
WHERE plugin_name = 'group_replication';
