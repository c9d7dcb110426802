import assert from 'node:assert/strict';
import { it } from 'node:test';
import {
  isConnectionSpent,
  isFull,
  isOptimismWrong,
  isOutcomeUnknown,
  isRetryable,
  isUndoneByServer,
  toRefusal,
  writeObstacle,
} from '../../../src/gateway/store/errors.ts';
import { mayGoOn } from '../../../src/gateway/store/transaction.ts';
import { UnavailableError } from '../../../src/kit/refusal.ts';

/** The judgements of an error of the server, each by its sign. */
const judgements: Readonly<Record<string, (error: unknown) => boolean>> = {
  again: isRetryable,
  undone: isUndoneByServer,
  locked: isOptimismWrong,
  spent: isConnectionSpent,
  unknown: isOutcomeUnknown,
  full: isFull,
  away: (error) => toRefusal(error) instanceof UnavailableError,
  disk: (error) => writeObstacle(error) === 'disk-full',
  'read-only': (error) => writeObstacle(error) === 'read-only',
  'not writer': (error) => writeObstacle(error) === 'not-writer',
};

it('an error of the server is judged by its number, and by its message where one number means several things', () => {
  for (const [errno, message, expected] of [
    [1213, 'Deadlock found', 'again undone locked away'],
    [1205, 'Lock wait timeout exceeded', 'again undone locked away'],
    [1305, 'SAVEPOINT marina does not exist', 'again undone locked away'],
    [1305, 'PROCEDURE savepoint does not exist', ''],
    [1317, 'Query execution was interrupted', 'undone away'],
    [1969, 'max_statement_time exceeded', 'undone away'],
    [3024, 'maximum statement execution time exceeded', 'undone away'],
    [3572, 'lock(s) could not be acquired immediately and NOWAIT is set', 'locked'],
    [4025, 'CONSTRAINT `marina_guard` failed', 'locked'],
    [3819, "Check constraint 'marina_guard' is violated.", 'locked'],
    [4025, 'CONSTRAINT `marina_writer` failed', 'spent away not writer'],
    [3819, "Check constraint 'marina_writer' is violated.", 'spent away not writer'],
    [4025, 'CONSTRAINT `positive` failed', ''],
    [1142, "INSERT command denied for table 'guards'", 'locked'],
    [1142, "SELECT command denied for table 'writer'", 'spent away not writer'],
    [1142, "SELECT command denied for table 'orders'", 'spent'],
    [1040, 'Too many connections', 'full away'],
    [1203, 'User already has more than max_user_connections', 'full away'],
    [1047, 'WSREP has not yet prepared node', 'away'],
    [1180, 'Got error during COMMIT', 'unknown'],
    [3101, 'Plugin instructed the server to rollback', 'unknown away'],
    [1158, 'Got an error reading communication packets', 'spent unknown away'],
    [1053, 'Server shutdown in progress', 'spent away'],
    [4031, 'The client was disconnected by the server because of inactivity', 'spent away'],
    [6_001, 'The server is currently in offline mode', 'spent away'],
    [1021, 'Disk full', 'away disk'],
    [1114, 'The table is full', 'away disk'],
    [1290, 'running with the --read-only option', 'away read-only'],
    [1062, 'Duplicate entry', ''],
    [1064, 'You have an error in your SQL syntax', ''],
  ] as const) {
    const error = Object.assign(new Error(message), { errno, sqlState: 'HY000' });
    const found = Object.keys(judgements).filter((sign) => judgements[sign]?.(error));
    assert.equal(found.join(' '), expected, `${errno} ${message}`);
  }
  const lost = new Error('the connection was lost');
  assert.deepEqual(
    Object.keys(judgements).filter((sign) => judgements[sign]?.(lost)),
    ['unknown', 'away'],
  );
  assert.equal(mayGoOn(lost), false, 'the server noticed it');
});
