import { format, type PoolConnection } from 'mysql2';
import { Refusal } from '../../kit/refusal.ts';
import { CommitUnknownError, isConnectionSpent, isOutcomeUnknown } from './errors.ts';
import type { ServerKind } from './server-kind.ts';
import { type Decision, type SqlRow, type SqlValue, type Statement, statement } from './statement.ts';
import { mayWriteGuard, noAutocommitGuard, onePrimaryGuard } from './writer-table.ts';

/** How long one round trip may take. */
export const statementTimeoutMs = 10_000;

/** How transactions begin and end on a connection. Each list goes in one round trip with the statements that come before it. */
export interface TransactionFrame {
  /** What comes before the first of several transactions. */
  readonly enter: readonly Statement[];
  /** Whether the connection is where `enter` brings it. */
  isEntered: boolean;
  /** What comes after the last of them, before the connection is used for anything else. */
  readonly leave: readonly Statement[];
  readonly begin: readonly Statement[];
  /** The same without the check that gateways write through this server. */
  readonly beginUnchecked: readonly Statement[];
  /** Ends with COMMIT: so an error of its round trip is one of the transaction, and never of something after it. */
  readonly commit: readonly Statement[];
  /** Ends with `leave`. */
  readonly rollBack: readonly Statement[];
  /** The node of a cluster in which each node takes writes. Undefined: the server is none. */
  readonly node: string | undefined;
  /** Which server it is, whatever address leads to it. */
  readonly place: string;
}

/**
 * How long a connection may be silent, in seconds. A machine that vanishes closes nothing, and its locks would stay for as
 * long as the server believes in it. Longer than a connection is kept unused.
 */
export const silenceSeconds = 90;
/** The same while a transaction is open. */
export const idleTransactionSeconds = 4;

/** MySQL knows only how long a connection may be silent, so each transaction lowers that while it is open. */
const becomeImpatient = statement(`SET SESSION wait_timeout = ${idleTransactionSeconds}`);
const becomePatient = statement(`SET SESSION wait_timeout = ${silenceSeconds}`);

/**
 * A Galera node can roll a transaction back between two statements of a round trip, and goes on with the next one. So that
 * this statement does not commit by itself, `autocommit` is off, and the savepoint proves before COMMIT that it is still
 * the transaction which began. A savepoint is gone when its transaction is. With `autocommit` off it also begins one.
 */
const savepoint = 'marina';

export function frameOf({ isMariaDb, galeraNode: node, isOfGroup, place }: ServerKind): TransactionFrame {
  const onGalera = (sql: string) => (node === undefined ? [] : [statement(sql)]);
  const onMySql = (one: Statement) => (isMariaDb ? [] : [one]);
  const start = [
    ...onMySql(becomeImpatient),
    statement(node === undefined ? 'START TRANSACTION' : `SAVEPOINT ${savepoint}`),
  ];
  const leave = onGalera('SET autocommit = 1');
  const checks = [...(node === undefined ? [] : [mayWriteGuard(node)]), ...(isOfGroup ? [onePrimaryGuard] : [])];
  return {
    enter: onGalera('SET autocommit = 0'),
    isEntered: false,
    leave,
    begin: [...start, ...checks],
    beginUnchecked: [...start, ...(node === undefined ? [] : [noAutocommitGuard])],
    commit: [...onMySql(becomePatient), ...onGalera(`RELEASE SAVEPOINT ${savepoint}`), statement('COMMIT')],
    rollBack: [statement('ROLLBACK'), ...onMySql(becomePatient), ...leave],
    node,
    place,
  };
}

/** After an error that is no clean answer of the server, a connection may be in any state and is not used again. */
export function giveBack(connection: PoolConnection, error: unknown): void {
  if (isUsable(error)) connection.release();
  else connection.destroy();
}

/** Whether a connection can be used after an error: the server's own answer, or a refusal of ours. */
export function isUsable(error: unknown): boolean {
  if (error instanceof Refusal) return true;
  return (error as { sqlState?: string }).sqlState !== undefined && !isConnectionSpent(error);
}

/** The outcome of a transaction. A refusal is an error that `decide` threw, as opposed to one of the database. */
export type Decided<T> = { readonly result: T } | { readonly refusal: unknown };

/** Reads in one round trip, decides, writes and commits in another. */
export async function runTransaction<T>(
  connection: PoolConnection,
  frame: TransactionFrame,
  reads: readonly Statement[],
  decide: (rows: SqlRow[][]) => Decision<T>,
): Promise<Decided<T>> {
  const begin = beginningOf(frame, frame.begin);
  const rows = await rollingBack(connection, frame, () => runBatch(connection, [...begin, ...reads]));
  frame.isEntered = frame.enter.length > 0;
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
  frame: TransactionFrame,
  statements: readonly Statement[],
  begin = frame.begin,
): Promise<void> {
  await rollingBack(connection, frame, () => commit(connection, frame, [...beginningOf(frame, begin), ...statements]));
}

/** One statement that commits by itself, or as a transaction where that must be. Answers what the server says of it. */
export async function runAlone(
  connection: PoolConnection,
  frame: TransactionFrame,
  change: Statement,
): Promise<unknown> {
  if (frame.node === undefined) return (await runBatch(connection, [change]))[0];
  const begin = beginningOf(frame, frame.begin);
  return rollingBack(
    connection,
    frame,
    async () => (await commit(connection, frame, [...begin, change]))[begin.length],
  );
}

/** How a transaction begins on a connection as it is. */
function beginningOf({ enter, isEntered }: TransactionFrame, begin: readonly Statement[]): readonly Statement[] {
  return isEntered ? begin : [...enter, ...begin];
}

/** Makes a connection ready for something else than transactions. If that fails, it is closed. */
export async function leaveTransactions(connection: PoolConnection, frame: TransactionFrame): Promise<void> {
  if (!frame.isEntered) return;
  frame.isEntered = false;
  try {
    await runBatch(connection, frame.leave);
  } catch (error) {
    connection.destroy();
    throw error;
  }
}

/** Writes and commits in one round trip. */
async function commit(
  connection: PoolConnection,
  frame: TransactionFrame,
  writes: readonly Statement[],
): Promise<SqlRow[][]> {
  try {
    const results = await runBatch(connection, [...writes, ...frame.commit]);
    frame.isEntered = frame.enter.length > 0;
    return results;
  } catch (error) {
    if (!isOutcomeUnknown(error) || writes.length === 0) throw error;
    throw new CommitUnknownError('the connection was lost during COMMIT', { cause: error });
  }
}

async function rollingBack<T>(connection: PoolConnection, frame: TransactionFrame, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (isUsable(error)) await undo(connection, frame);
    throw error;
  }
}

/** Rolls back. If the server answers anything but that it did, the connection is destroyed, and the server rolls back. */
async function undo(connection: PoolConnection, frame: TransactionFrame): Promise<void> {
  await runBatch(connection, frame.rollBack).catch(() => connection.destroy());
  frame.isEntered = false;
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
