import { Refusal, UnavailableError } from '../../kit/refusal.ts';
import { writerCheck } from './writer-table.ts';

interface DatabaseError extends Error {
  errno?: number;
  code?: string;
  sqlState?: string;
}

/** Thrown when a connection was lost while COMMIT was under way: the transaction may or may not have happened. */
export class CommitUnknownError extends Error {
  override readonly name = 'CommitUnknownError';
}

/** Thrown when a transaction did not begin, because no connection became free. */
export class NotBegunError extends Error {
  override readonly name = 'NotBegunError';
}

const deadlock = 1213;
const lockWaitTimeout = 1205;
/** A Galera node rolled the transaction back before its end (`gateway/store/transaction`). The same number is for procedures. */
const noSavepoint = 1305;
const clusterNotReady = 1047;
const errorDuringCommit = 1180;
/**
 * A member of a group undid a transaction during COMMIT. If it is leaving its group, the others may have stored it all the
 * same.
 */
const undoneByGroup = new Set([3100, 3101]);
/** The state of a group lets no transaction begin, or its new primary has not applied those of the former one in time. */
const groupNotReady = [3781, 3782, 3783, 3796, 3797, 3798, 3799];
/** A server that has left its group, or is under repair, ends all connections. MySQL 9 has other numbers if it says why. */
const serverOffline = 3032;
const saysOffline = 'in offline mode';
const noSuchTable = 1146;
const duplicateEntry = 1062;
/** For all, or for this account. */
const tooManyConnections: ReadonlySet<number> = new Set([1040, 1203]);
/** Values that are too long, too large, or none of their column's type. */
const misfits = new Set([1264, 1265, 1292, 1366, 1406, 1690]);
/** A check of a table fails: on MariaDB, on MySQL. */
const checkFailed = new Set([4025, 3819]);
/** A row is locked, with NOWAIT on MySQL. MariaDB reports a lock wait timeout instead. */
const lockedByAnother = 3572;
/** The account has no right to write a table, or the table is not there yet. */
const noRight = 1142;
/** No room for a file, a table or a temporary table; on a full disk InnoDB says that the table is full. */
const diskFull = new Set([3, 20, 1021, 1026, 1114, 1878]);
const readOnly = new Set([1290, 1792, 1836]);
/** Somebody ended the statement. */
const interrupted = 1317;
/** The server ended a statement that took too long: MariaDB, MySQL. What it did is undone, and the transaction is open. */
const tookTooLong = [1969, 3024];
/** MySQL ended the connection because it was silent: what came after that was not done. */
const wasSilent = 4031;
/**
 * The server says of its own side that reading or writing the connection failed, or that it gives it up. MySQL says so to
 * clients that it ends when it leaves its group.
 */
const connectionBroken = [1152, 1158, 1159, 1160, 1161];
/** The server ends the connection: it was silent for too long, the server stops, or somebody ended it. */
const ended: ReadonlySet<number> = new Set([wasSilent, 1053, 1927, serverOffline, ...connectionBroken]);
/** Too many connections, shutdown in progress, killed, and the reasons why the server cannot write. */
const unavailable = new Set([
  ...[...tooManyConnections, 1053, interrupted, 1927, clusterNotReady, wasSilent, serverOffline, ...connectionBroken],
  ...[...undoneByGroup, ...groupNotReady, ...tookTooLong, ...diskFull, ...readOnly],
]);

/** Why a server cannot write. */
export type WriteObstacle = 'disk-full' | 'read-only' | 'not-writer';

/** Why the server cannot write, if the error has such a reason. */
export function writeObstacle(error: unknown): WriteObstacle | undefined {
  const { errno = 0 } = error as DatabaseError;
  if (isNotWriter(error)) return 'not-writer';
  if (diskFull.has(errno)) return 'disk-full';
  return readOnly.has(errno) ? 'read-only' : undefined;
}

/** Whether a node of a cluster refused a transaction because gateways write through another one. */
export function isNotWriter(error: unknown): boolean {
  const { errno = 0, message } = error as DatabaseError;
  // Without the right to ask which node that is, it may be another one.
  if (errno === noRight) return /\bwriter(_guards)?\b/.test(message);
  return checkFailed.has(errno) && message.includes(writerCheck);
}

/** Whether a value cannot be stored in its column. */
export function isMisfit(error: unknown): boolean {
  return misfits.has((error as DatabaseError).errno ?? 0);
}

/** Whether the server undid the transaction so that it can be tried again from its start. */
export function isRetryable(error: unknown): boolean {
  const { errno, message } = error as DatabaseError;
  if (errno === noSavepoint) return message.startsWith('SAVEPOINT ');
  return errno === deadlock || errno === lockWaitTimeout;
}

/** Whether the server answered that it undid the transaction or ended one of its statements, and goes on serving. */
export function isUndoneByServer(error: unknown): boolean {
  const { errno = 0 } = error as DatabaseError;
  return isRetryable(error) || errno === interrupted || tookTooLong.includes(errno);
}

/** The constraint that a guard fails by (`gateway/store/statement.guard`). No other statement can fail by it. */
const guardName = 'marina_guard';

/** Whether a guard was not true. */
export function isGuardFalse(error: unknown): boolean {
  const { errno = 0, message } = error as DatabaseError;
  return checkFailed.has(errno) && message.includes(guardName);
}

/**
 * Whether the server has ended the connection, answers it so because its account was replaced, or is a node that gateways do
 * not write through. Another connection may do better.
 */
export function isConnectionSpent(error: unknown): boolean {
  const { errno = 0, message } = error as DatabaseError;
  if (isNotWriter(error)) return true;
  if (ended.has(errno) || message.includes(saysOffline)) return true;
  return errno === noRight && !isAboutGuards(message);
}

/**
 * Whether an optimistic transaction failed for a reason that the locked one does not have: a guard was not true, another
 * transaction has the lock, the server undid it, or this account may not write guards.
 */
export function isOptimismWrong(error: unknown): boolean {
  const { errno = 0, message } = error as DatabaseError;
  if (isGuardFalse(error)) return true;
  return errno === lockedByAnother || (errno === noRight && isAboutGuards(message)) || isRetryable(error);
}

function isAboutGuards(message: string): boolean {
  return /\bguards\b/.test(message);
}

/** Whether a statement failed because the database does not have its table. */
export function isTableMissing(error: unknown): boolean {
  return (error as DatabaseError).errno === noSuchTable;
}

/** Whether a row was refused because another has the same unique value. */
export function isDuplicate(error: unknown): boolean {
  return (error as DatabaseError).errno === duplicateEntry;
}

/** Whether a failed COMMIT may have happened: the server did not answer, or its answer leaves it open. */
export function isOutcomeUnknown(error: unknown): boolean {
  const { errno = 0, sqlState } = error as DatabaseError;
  return (
    sqlState === undefined ||
    errno === errorDuringCommit ||
    undoneByGroup.has(errno) ||
    connectionBroken.includes(errno)
  );
}

/** Whether the account lacks a right that the statement needs. */
export function lacksRight(error: unknown): boolean {
  return (error as DatabaseError).errno === noRight;
}

/** Whether the server takes no more connections. */
export function isFull(error: unknown): boolean {
  return tooManyConnections.has((error as DatabaseError).errno ?? 0);
}

/**
 * The error for the caller after a database error: an `UnavailableError` when the database cannot be reached or cannot
 * serve now, the error itself when a statement is wrong.
 */
export function toRefusal(error: unknown): unknown {
  if (error instanceof Refusal) return error;
  const { errno, sqlState, message } = error as DatabaseError;
  const reached = sqlState !== undefined && errno !== undefined;
  const canServe = reached && !unavailable.has(errno) && !message.includes(saysOffline);
  if (canServe && !isRetryable(error) && !isNotWriter(error)) return error;
  return new UnavailableError({ cause: error });
}
