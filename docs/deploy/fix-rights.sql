-- Writes the statements that give the account of the FIX adapter (@user at @host) its rights on the adapter's own database. It
-- can remove nothing but old rows of the message log and what a drop copy says of others' orders: orders, reports, findings and the audit stay.
SELECT CONCAT('GRANT ', CASE
    WHEN table_name = 'migrations' THEN 'SELECT'
    WHEN table_name IN ('fix_audit', 'fix_finding_settlements', 'fix_findings', 'fix_reports', 'fix_submissions',
      'fix_trade_changes', 'guards', 'writer_guards')
      THEN 'SELECT, INSERT'
    WHEN table_name = 'fix_messages' THEN 'SELECT, INSERT, DELETE'
    WHEN table_name = 'fix_drop_copy' THEN 'SELECT, INSERT, UPDATE, DELETE'
    ELSE 'SELECT, INSERT, UPDATE'
  END, ' ON `', DATABASE(), '`.`', table_name, '` TO ''', @user, '''@''', @host, ''';') AS statement
FROM information_schema.tables
WHERE table_schema = DATABASE() AND table_name IN ('fix_audit', 'fix_cancels', 'fix_drop_copy', 'fix_drop_copy_numbers', 'fix_finding_settlements',
  'fix_findings',
  'fix_messages', 'fix_numbers', 'fix_orders', 'fix_password_changes', 'fix_reports', 'fix_session', 'fix_submissions', 'fix_trade_changes', 'fix_unsupported', 'guards',
  'leases', 'migrations', 'writer', 'writer_beats', 'writer_guards')
UNION ALL
-- A member of a group of MySQL servers is used only while it takes part in its group, which this table says.
SELECT CONCAT('GRANT SELECT ON performance_schema.replication_group_members TO ''', @user, '''@''', @host, ''';')
FROM information_schema.plugins
WHERE plugin_name = 'group_replication';
