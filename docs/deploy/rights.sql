-- Says the statements that give the gateway's account its rights on every table of the database: @user at @host.
SELECT CONCAT(
  'GRANT ',
  CASE
    -- Only migrating writes it.
    WHEN table_name = 'migrations' THEN 'SELECT'
    -- Nothing ever changes or removes a row of these.
    WHEN table_name IN ('audit_entries', 'key_changes', 'object_steps', 'order_steps', 'wallet_transfers') THEN 'SELECT, INSERT'
    ELSE 'SELECT, INSERT, UPDATE, DELETE'
  END,
  ' ON `', table_schema, '`.`', table_name, '` TO ''', @user, '''@''', @host, ''';'
) AS statement
FROM information_schema.tables
WHERE table_schema = DATABASE();
