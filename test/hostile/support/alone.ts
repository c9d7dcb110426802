import { createConnection } from 'mysql2/promise';
import { testServers } from '../../support/servers.ts';

const waitSeconds = 600;

/**
 * Does something while no other file of these tests does: they share the cores, and what one measures must not be what
 * another's attack costs. The test run's database server holds the lock, and gives it back when this process ends.
 */
export async function alone<T>(measure: () => Promise<T>): Promise<T> {
  const { databaseUrl } = await testServers();
  const connection = await createConnection(databaseUrl);
  try {
    const [rows] = await connection.query("SELECT GET_LOCK('hostile', ?) AS got", [waitSeconds]);
    if ((rows as { got: number }[])[0]?.got !== 1) throw new Error('the other hostile tests do not end');
    return await measure();
  } finally {
    await connection.end();
  }
}
