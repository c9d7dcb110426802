import type { Database } from '../../../src/db/database.ts';
import { statement } from '../../../src/db/statement.ts';

/**
 * Columns that migrations before release 0.1.0 added to tables there were, with their defaults: versions from before them write
 * rows without them. Those are left out without which the release that acts as the older version cannot run.
 */
const addedColumns: Readonly<Record<string, Readonly<Record<string, 'NULL' | '0'>>>> = {
  webhook_endpoints: { due_at: 'NULL', revision: '0', changed_revision: '0', seen_revision: '0' },
  orders: { request_id: 'NULL', trace_parent: 'NULL' },
  applications: { request_id: 'NULL', trace_parent: 'NULL' },
  allocations: { request_id: 'NULL', trace_parent: 'NULL' },
  outbox: { request_id: 'NULL', trace_parent: 'NULL' },
  feed_events: { request_id: 'NULL', trace_parent: 'NULL' },
  api_keys: { has_mac: '0' },
};

/**
 * Lets whatever a database account writes be as a version leaves it that does not know these columns: an insert gives them
 * their defaults, an update keeps what is there. Only the columns' defaults and older rows remain for newer versions.
 */
export async function writeAsOlderVersion(database: Database, user: string): Promise<void> {
  for (const [table, columns] of Object.entries(addedColumns)) {
    for (const event of ['INSERT', 'UPDATE']) {
      const assignments = Object.entries(columns)
        .map(([column, fallback]) => `SET NEW.${column} = ${event === 'INSERT' ? fallback : `OLD.${column}`};`)
        .join(' ');
      await database.write(
        statement(
          `CREATE TRIGGER older_${table}_${event} BEFORE ${event} ON ${table} FOR EACH ROW
            IF USER() LIKE '${user}@%' THEN ${assignments} END IF`,
        ),
      );
    }
  }
}

/** Ends it. */
export async function writeAsItself(database: Database): Promise<void> {
  for (const table of Object.keys(addedColumns)) {
    for (const event of ['INSERT', 'UPDATE']) {
      await database.write(statement(`DROP TRIGGER older_${table}_${event}`));
    }
  }
}
