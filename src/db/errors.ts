import { ApiError } from '../lib/errors.ts';

interface DatabaseError extends Error {
  errno?: number;
  code?: string;
  sqlState?: string;
}

/** Thrown when a connection was lost while COMMIT was under way: the transaction may or may not have happened. */
export class CommitUnknownError extends Error {
  override readonly name = 'CommitUnknownError';
}

const deadlock = 1213;
const lockWaitTimeout = 1205;
const clusterNotReady = 1047;
const errorDuringCommit = 1180;
const dataTooLong = 1406;
const noSuchTable = 1146;
/** A null where none may be, a number out of range, a key that is there already, a row that another has locked. */
const disproofs = new Set([1048, 1690, 1062, 3572]);
/** Too many connections, shutdown in progress, read-only, disk or table full, killed. */
const unavailable = new Set([1040, 1053, 1203, 1290, 1792, 1836, 1021, 1114, 1317, 1927, 3100, clusterNotReady]);

/** Whether a value is longer than its column. */
export function isTooLong(error: unknown): boolean {
  return (error as DatabaseError).errno === dataTooLong;
}

/** Whether the server undid the transaction so that it can be tried again from its start. */
export function isRetryable(error: unknown): boolean {
  const { errno } = error as DatabaseError;
  return errno === deadlock || errno === lockWaitTimeout;
}

/** Whether a statement that assumed something failed, as it is made to where that is not so. */
export function isDisproved(error: unknown): boolean {
  return disproofs.has((error as DatabaseError).errno ?? 0);
}

/** Whether a statement failed because the database does not have its table. */
export function isTableMissing(error: unknown): boolean {
  return (error as DatabaseError).errno === noSuchTable;
}

/** Whether a failed COMMIT may have happened all the same: the server's word never came, or said so. */
export function isOutcomeUnknown(error: unknown): boolean {
  const { errno, sqlState } = error as DatabaseError;
  return sqlState === undefined || errno === errorDuringCommit;
}

/**
 * What a door should say of a database error: `service_unavailable` when the database cannot be reached or cannot
 * serve now, the error itself when a statement is wrong.
 */
export function toApiError(error: unknown): unknown {
  if (error instanceof ApiError) return error;
  const { errno, sqlState } = error as DatabaseError;
  const reached = sqlState !== undefined && errno !== undefined;
  if (reached && !unavailable.has(errno) && !isRetryable(error)) return error;
  return new ApiError('service_unavailable', { cause: error });
}
