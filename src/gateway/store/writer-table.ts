import { type Statement, statement } from './statement.ts';
import { defineTable, instant, text, whole } from './table.ts';

export const longestNode = 200;

/** One row: through which node of a cluster gateways write, and since when. `fence` counts the nodes there have been. */
export const writer = defineTable({
  name: 'writer',
  columns: { id: whole(), node: text(longestNode), fence: whole(), since: instant() },
  primary: ['id'],
});

/** One row, which grows each second while a gateway writes through that node. Every transaction locks the other table. */
export const writerBeats = defineTable({
  name: 'writer_beats',
  columns: { id: whole(), beat: whole() },
  primary: ['id'],
});

/** The constraint that a transaction fails by at a node which gateways do not write through. */
export const writerCheck = 'marina_writer';

/**
 * Fails a transaction unless gateways write through this node. The lock on the row makes a change that comes meanwhile undo
 * the transaction. It also fails if `autocommit` is on, as a proxy between could leave it: each statement would commit by itself.
 */
export function mayWriteGuard(node: string): Statement {
  return statement(
    'INSERT INTO writer_guards (ok) SELECT 0 FROM DUAL WHERE @@autocommit OR NOT EXISTS (SELECT 1 FROM writer WHERE id = 1 AND node = ? LOCK IN SHARE MODE)',
    node,
  );
}

/** Only the part about `autocommit`, for a gateway that makes another node the one that is written through. */
export const noAutocommitGuard = statement('INSERT INTO writer_guards (ok) SELECT 0 FROM DUAL WHERE @@autocommit');

/**
 * Fails a transaction on a member of a group that was switched to several primaries after its connection was made. Row locks are those
 * of one member, and a member that was read-only takes writes then.
 */
export const onePrimaryGuard = statement(
  'INSERT INTO writer_guards (ok) SELECT 0 FROM DUAL WHERE NOT @@GLOBAL.group_replication_single_primary_mode',
);
