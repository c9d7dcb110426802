import { format, type PoolConnection } from 'mysql2';
import { ApiError } from '../lib/errors.ts';
import { statementTimeoutMs } from './data-source.ts';
import { CommitUnknownError, isConnectionSpent, isOutcomeUnknown } from './errors.ts';
import type { Frame } from './frame.ts';
import type { Decision, SqlRow, SqlValue, Statement } from './statement.ts';

/** After an error that is no clean answer of the server, a connection may be in any state and is not used again. */
export function giveBack(connection: PoolConnection, error: unknown): void {
  if (isUsable(error)) connection.release();
  else connection.destroy();
}

/** Whether a connection can be used after an error: the server's own answer, or a refusal of ours. */
export function isUsable(error: unknown): boolean {
  if (error instanceof ApiError) return true;
  return (error as { sqlState?: string }).sqlState !== undefined && !isConnectionSpent(error);
}

/** The outcome of a transaction. A refusal is an error that `decide` threw, as opposed to one of the database. */
export type Decided<T> = { readonly result: T } | { readonly refusal: unknown };

/** Reads in one round trip, decides, writes and commits in another. */
export async function runTransaction<T>(
  connection: PoolConnection,
  frame: Frame,
  reads: readonly Statement[],
  decide: (rows: SqlRow[][]) => Decision<T>,
): Promise<Decided<T>> {
  const { begin } = frame;
  const rows = await rollingBack(connection, frame, () => runBatch(connection, [...begin, ...reads]));
  let decision: Decision<T>;
  try {
    decision = decide(rows.slice(begin.length));
  } catch (refusal) {
    await undo(connection, frame);
    return { refusal };
  }
  const { writes, result } = decision;
  await rollingBack(connection, frame, () => commit(connection, frame, writes));
  return { result };
}

/** A whole transaction in one round trip. It is rolled back if a statement fails. */
export async function runAtOnce(
  connection: PoolConnection,
  frame: Frame,
  statements: readonly Statement[],
): Promise<void> {
  await rollingBack(connection, frame, () => commit(connection, frame, [...frame.begin, ...statements]));
}

/** One statement that commits by itself, or as a transaction where that must be. Answers what the server says of it. */
export async function runAlone(connection: PoolConnection, frame: Frame, change: Statement): Promise<unknown> {
  if (frame.node === undefined) return (await runBatch(connection, [change]))[0];
  const { begin } = frame;
  return rollingBack(
    connection,
    frame,
    async () => (await commit(connection, frame, [...begin, change]))[begin.length],
  );
}

/** Writes and commits in one round trip. What restores the connection goes before the next thing that it is asked. */
async function commit(connection: PoolConnection, frame: Frame, writes: readonly Statement[]): Promise<SqlRow[][]> {
  let results: SqlRow[][];
  try {
    results = await runBatch(connection, [...writes, ...frame.commit]);
  } catch (error) {
    if (!isOutcomeUnknown(error) || writes.length === 0) throw error;
    throw new CommitUnknownError('the connection was lost during COMMIT', { cause: error });
  }
  if (frame.restore.length > 0) runBatch(connection, frame.restore).catch(() => connection.destroy());
  return results;
}

async function rollingBack<T>(connection: PoolConnection, frame: Frame, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (isUsable(error)) await undo(connection, frame);
    throw error;
  }
}

/** Rolls back. If the server answers anything but that it did, the connection is destroyed, and the server rolls back. */
async function undo(connection: PoolConnection, { rollBack }: Frame): Promise<void> {
  await runBatch(connection, rollBack).catch(() => connection.destroy());
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

/** A round trip that took too long. The server may still be working on it. */
class GivenUpError extends Error {
  override readonly name = 'GivenUpError';
}

/** Whether the server may still be working on what failed: it answers no client that has left until it is done. */
export function mayGoOn(error: unknown): boolean {
  return error instanceof GivenUpError || (error instanceof CommitUnknownError && error.cause instanceof GivenUpError);
}

/** Waits for a round trip, and no longer than its time: the driver's own limit leaves out preparing and queueing. */
export function inTime<T>(ask: (done: (error: unknown, value: T) => void) => void): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new GivenUpError('the database did not answer in time')), statementTimeoutMs);
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
