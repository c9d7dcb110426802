import { createConnection } from 'mysql2/promise';
import { testServers } from '../servers.ts';

const waitSeconds = 600;

/** Does something while no other file of these tests has claimed the machine. */
export async function alone<T>(measure: () => Promise<T>): Promise<T> {
  const release = await claimMachine();
  try {
    return await measure();
  } finally {
    await release();
  }
}

/**
 * Waits until no other file of these tests has claimed the machine: they share the cores, and what one measures must not
 * be what another does. The test run's database server holds the claim, and drops it when this process ends. Returns what
 * gives it back.
 */
export async function claimMachine(): Promise<() => Promise<void>> {
  const { databaseUrl } = await testServers();
  const connection = await createConnection(databaseUrl);
  const [rows] = await connection.query("SELECT GET_LOCK('hostile', ?) AS got", [waitSeconds]);
  if ((rows as { got: number }[])[0]?.got === 1) return () => connection.end();
  await connection.end();
  throw new Error('the other hostile tests do not end');
}
