import { createConnection, type RowDataPacket } from 'mysql2/promise';

/** The statements that would make the tables of a database as they are, without counters of ids. */
export async function shownTables(url: string): Promise<string[]> {
  const connection = await createConnection(url);
  try {
    const [names] = await connection.query<RowDataPacket[]>("SHOW FULL TABLES WHERE Table_type = 'BASE TABLE'");
    const shown: string[] = [];
    for (const row of names) {
      const [made] = await connection.query<RowDataPacket[]>(`SHOW CREATE TABLE ${Object.values(row)[0]}`);
      shown.push(String(made[0]?.['Create Table']).replace(/ AUTO_INCREMENT=\d+/, ''));
    }
    return shown;
  } finally {
    await connection.end();
  }
}
