import type { Connection } from 'mysql2/promise';

/** Statistics that a server can have of its tables. It guesses by them how many rows a plan reads. */
export interface Statistics {
  readonly name: string;
  set(connection: Connection, database: string): Promise<void>;
}

export const statistics: readonly Statistics[] = [
  {
    name: 'as the server makes them',
    async set(connection, database) {
      for (const table of await tablesOf(connection, database)) await connection.query(`ANALYZE TABLE ${table}`);
    },
  },
  // Counted when there were a thousand times fewer rows, and never since.
  lying(
    'of a thousandth of the rows',
    'n_rows = GREATEST(1, n_rows DIV 1000), clustered_index_size = 1, sum_of_other_index_sizes = 1',
    'GREATEST(1, stat_value DIV 1000)',
  ),
  // Each value of a column for a value of its own: any index finds one row.
  lying(
    'in which every value is rare',
    'n_rows = n_rows',
    '(SELECT n_rows FROM mysql.innodb_table_stats t WHERE t.database_name = i.database_name AND t.table_name = i.table_name)',
  ),
  // All rows alike: any index but the whole key finds them all.
  lying('in which every value is common', 'n_rows = n_rows', '1'),
];

/** Statistics that are written into the server's tables, with so many different values of each part of an index. */
function lying(name: string, table: string, different: string): Statistics {
  return {
    name,
    async set(connection, database) {
      const tables = await tablesOf(connection, database);
      // From true ones, or the second lie would be made of the first.
      for (const one of tables) await connection.query(`ANALYZE TABLE ${one}`);
      await connection.query(`UPDATE mysql.innodb_table_stats SET ${table} WHERE database_name = ?`, [database]);
      await connection.query(
        `UPDATE mysql.innodb_index_stats i SET stat_value = ${different} WHERE database_name = ? AND stat_name LIKE 'n_diff%'`,
        [database],
      );
      for (const one of tables) await reopen(connection, one);
    },
  };
}

/** The server reads the statistics of a table that has another name; FLUSH TABLES leaves them as they are. */
async function reopen(connection: Connection, table: string): Promise<void> {
  await connection.query(`RENAME TABLE ${table} TO scale_renamed`);
  await connection.query(`RENAME TABLE scale_renamed TO ${table}`);
  // Afterwards, the server's reads of its own tables belong to no statement that is measured.
  await connection.query(`SELECT 1 FROM ${table} LIMIT 1`);
}

/** The server must not count again meanwhile: what is run changes rows, and is undone. */
export async function keepStatistics(connection: Connection, database: string): Promise<void> {
  for (const table of await tablesOf(connection, database)) {
    await connection.query(`ALTER TABLE ${table} STATS_PERSISTENT = 1, STATS_AUTO_RECALC = 0`);
  }
}

async function tablesOf(connection: Connection, database: string): Promise<string[]> {
  const [rows] = await connection.query(
    "SELECT table_name AS name FROM information_schema.tables WHERE table_schema = ? AND table_name <> 'migrations'",
    [database],
  );
  return (rows as { name: string }[]).map(({ name }) => name);
}
