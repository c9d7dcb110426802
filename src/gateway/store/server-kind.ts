import { type SqlRow, statement } from './statement.ts';
import { longestNode } from './writer-table.ts';

/** What a connection's server is. */
export interface ServerKind {
  readonly isMariaDb: boolean;
  /** Its host and port as it knows them, whatever address leads to it. */
  readonly place: string;
  /**
   * Its name if it is a node of a Galera cluster, the same after a restart. MySQL does not have the variable `wsrep_on`;
   * Percona's cluster has.
   */
  readonly galeraNode: string | undefined;
  /** Whether it is set up as a member of a group of MySQL servers. */
  readonly isOfGroup: boolean;
}

const names = [
  ...['version', 'wsrep_on', 'wsrep_node_name', 'hostname', 'port'],
  ...['group_replication_group_name', 'group_replication_single_primary_mode', 'group_replication_consistency'],
];

/** Reads it. A variable that the server does not have has no row. */
export const askServerKind = statement(`SHOW VARIABLES WHERE Variable_name IN ('${names.join("', '")}')`);

export function serverKind(rows: readonly SqlRow[]): ServerKind {
  const values = valuesOf(rows);
  const place = `${values.get('hostname')}:${values.get('port')}`;
  const node = `${values.get('wsrep_node_name')} at ${place}`;
  return {
    place,
    isMariaDb: values.get('version')?.includes('MariaDB') === true,
    galeraNode: values.get('wsrep_on') === 'ON' ? node.slice(0, longestNode) : undefined,
    isOfGroup: Boolean(values.get('group_replication_group_name')),
  };
}

/**
 * What a member of a group says of it. For MariaDB, which has no such groups, that is a comment. It needs a right that only
 * members' accounts are given, so it is a query of its own.
 */
export const askGroup = statement(
  `SELECT 0 AS is_own, '' AS state, '' AS role FROM DUAL WHERE 1 = 0
   /*!80013 UNION ALL SELECT member_id = @@server_uuid, member_state, member_role
   FROM performance_schema.replication_group_members */`,
);

/** Levels at which a new primary takes no transaction before it has applied those of the former one. */
const safeLevels = new Set(['BEFORE_ON_PRIMARY_FAILOVER', 'BEFORE', 'BEFORE_AND_AFTER']);

/**
 * Why a member of a group must not be used, whatever it answers. Undefined: it may be used. `members` is what `askGroup`
 * found, or undefined if it failed.
 */
export function whyUnsafe(rows: readonly SqlRow[], members: readonly SqlRow[] | undefined): string | undefined {
  if (!serverKind(rows).isOfGroup) return undefined;
  const values = valuesOf(rows);
  if (values.get('group_replication_single_primary_mode') !== 'ON') {
    return 'its group has several primaries, which gateways do not write through: switch it to single-primary mode';
  }
  if (!safeLevels.has(values.get('group_replication_consistency') ?? '')) {
    return 'group_replication_consistency must be BEFORE_ON_PRIMARY_FAILOVER: a new primary would show old values';
  }
  if (members === undefined) {
    return 'the account may not read performance_schema.replication_group_members: give it its rights again';
  }
  const state = ownState(members);
  return state === 'ONLINE' ? undefined : `it is ${state} in its group, and what it stores could be lost`;
}

/** Whether a member of a group is the one that takes writes, and most of the others can be reached from it. */
export function isPrimary(members: readonly SqlRow[]): boolean {
  const reached = members.filter(({ state }) => state !== 'UNREACHABLE').length;
  return (
    members.some(({ is_own: own, role }) => Number(own) === 1 && role === 'PRIMARY') && 2 * reached > members.length
  );
}

function ownState(members: readonly SqlRow[]): string {
  return String(members.find(({ is_own: own }) => Number(own) === 1)?.state ?? 'OFFLINE');
}

function valuesOf(rows: readonly SqlRow[]): Map<string, string> {
  return new Map(rows.map(({ Variable_name: name, Value: value }) => [String(name), String(value)]));
}
