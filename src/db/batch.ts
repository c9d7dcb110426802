import { format, type PoolConnection } from 'mysql2';
import { ApiError } from '../lib/errors.ts';
import { statementTimeoutMs } from './data-source.ts';
import { CommitUnknownError, isOutcomeUnknown } from './errors.ts';
import { type Decision, type SqlRow, type SqlValue, type Statement, statement } from './statement.ts';

/** After an error that is no clean answer of the server, a connection may be in any state and is not used again. */
export function giveBack(connection: PoolConnection, error: unknown): void {
  if (isUsable(error)) connection.release();
  else connection.destroy();
}

/** Whether a connection can be used after an error: the server's own answer, or a refusal of ours. */
export function isUsable(error: unknown): boolean {
  return error instanceof ApiError || (error as { sqlState?: string }).sqlState !== undefined;
}

/** The outcome of a transaction. A refusal is an error that `decide` threw, as opposed to one of the database. */
export type Decided<T> = { readonly result: T } | { readonly refusal: unknown };

/** Reads in one round trip, decides, writes and commits in another. */
export async function runTransaction<T>(
  connection: PoolConnection,
  reads: readonly Statement[],
  decide: (rows: SqlRow[][]) => Decision<T>,
): Promise<Decided<T>> {
  const rows = await rollingBack(connection, () => runBatch(connection, [statement('START TRANSACTION'), ...reads]));
  let decision: Decision<T>;
  try {
    decision = decide(rows.slice(1));
  } catch (refusal) {
    await runBatch(connection, [statement('ROLLBACK')]);
    return { refusal };
  }
  const { writes, result } = decision;
  await rollingBack(connection, () => commit(connection, writes));
  return { result };
}

/** A whole transaction in one round trip. It is rolled back if a statement fails. */
export function runAtOnce(connection: PoolConnection, statements: readonly Statement[]): Promise<void> {
  return rollingBack(connection, () => commit(connection, [statement('START TRANSACTION'), ...statements]));
}

/** Writes and commits in one round trip. */
async function commit(connection: PoolConnection, writes: readonly Statement[]): Promise<void> {
  try {
    await runBatch(connection, [...writes, statement('COMMIT')]);
  } catch (error) {
    if (!isOutcomeUnknown(error) || writes.length === 0) throw error;
    throw new CommitUnknownError('the connection was lost during COMMIT', { cause: error });
  }
}

async function rollingBack<T>(connection: PoolConnection, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    await rollBack(connection, error);
    throw error;
  }
}

/** Rolls back if the connection still answers. Otherwise it is destroyed, and the server rolls back. */
async function rollBack(connection: PoolConnection, error: unknown): Promise<void> {
  if (!isUsable(error)) return;
  await runBatch(connection, [statement('ROLLBACK')]).catch(() => connection.destroy());
}

/** Several statements in one round trip; answers the rows of each. The first that fails ends the batch. */
export function runBatch(connection: PoolConnection, statements: readonly Statement[]): Promise<SqlRow[][]> {
  const sql = statements.map(({ sql, values }) => (values.length === 0 ? sql : write(sql, values))).join(';\n');
  return inTime((done) =>
    connection.query(sql, (error, results) =>
      done(error, (statements.length === 1 ? [results] : results) as SqlRow[][]),
    ),
  );
}

/** Waits for a round trip, and no longer than its time: the driver's own limit leaves out preparing and queueing. */
export function inTime<T>(ask: (done: (error: unknown, value: T) => void) => void): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error('the database did not answer in time')), statementTimeoutMs);
    ask((error, value) => {
      clearTimeout(timer);
      if (error) reject(error);
      else resolve(value);
    });
  });
}

function write(sql: string, values: readonly SqlValue[]): string {
  return format(sql, values as (string | number | Buffer)[], false, 'Z');
}
