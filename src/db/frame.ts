import type { ServerKind } from './server-kind.ts';
import { type Statement, statement } from './statement.ts';
import { mayWriteGuard, onePrimaryGuard } from './writer-table.ts';

/** How transactions begin and end on a server. Each list goes in one round trip with the statements that come before it. */
export interface Frame {
  readonly begin: readonly Statement[];
  /** The same without the check that gateways write through this server. */
  readonly beginUnchecked: readonly Statement[];
  /** Ends with COMMIT: so an error of its round trip is one of the transaction, and never of something after it. */
  readonly commit: readonly Statement[];
  readonly rollBack: readonly Statement[];
  /** After COMMIT, in a round trip that the caller does not wait for. */
  readonly restore: readonly Statement[];
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
 * the transaction which began. A savepoint is gone when its transaction is.
 */
const savepoint = 'marina';

export function frameOf({ isMariaDb, galeraNode: node, isOfGroup, place }: ServerKind): Frame {
  const onGalera = (sql: string) => (node === undefined ? [] : [statement(sql)]);
  const onMySql = (one: Statement) => (isMariaDb ? [] : [one]);
  const beginUnchecked = [
    ...onMySql(becomeImpatient),
    ...onGalera('SET autocommit = 0'),
    statement('START TRANSACTION'),
    ...onGalera(`SAVEPOINT ${savepoint}`),
  ];
  const checks = [...(node === undefined ? [] : [mayWriteGuard(node)]), ...(isOfGroup ? [onePrimaryGuard] : [])];
  return {
    begin: [...beginUnchecked, ...checks],
    beginUnchecked,
    commit: [...onMySql(becomePatient), ...onGalera(`RELEASE SAVEPOINT ${savepoint}`), statement('COMMIT')],
    rollBack: [statement('ROLLBACK'), ...onMySql(becomePatient), ...onGalera('SET autocommit = 1')],
    restore: onGalera('SET autocommit = 1'),
    node,
    place,
  };
}
