import { createConnection, type RowDataPacket } from 'mysql2/promise';
import type { SqlRow, Statement } from '../../src/gateway/store/statement.ts';

/** The rows of a statement, and how many rows of tables and indexes the server read for it. */
export interface Examined {
  readonly rows: SqlRow[];
  readonly read: number;
}

/** Runs statements on a connection of its own, and counts the rows that the server reads for each. */
export async function examine(url: string, statements: readonly Statement[]): Promise<Examined[]> {
  const connection = await createConnection({
    uri: url,
    timezone: 'Z',
    supportBigNumbers: true,
    dateStrings: ['DATE'],
  });
  try {
    // Reading the counters counts too, always the same.
    const own = (await readCounter()) * -1 + (await readCounter());
    const examined: Examined[] = [];
    for (const { sql, values } of statements) {
      const before = await readCounter();
      const [rows] = await connection.query(sql, values as unknown[]);
      examined.push({ rows: rows as SqlRow[], read: (await readCounter()) - before - own });
    }
    return examined;
  } finally {
    await connection.end();
  }

  async function readCounter(): Promise<number> {
    const [rows] = await connection.query<RowDataPacket[]>("SHOW SESSION STATUS LIKE 'Handler_read%'");
    return rows.reduce((sum, { Value }) => sum + Number(Value), 0);
  }
}
