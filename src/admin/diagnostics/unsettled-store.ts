import { type SqlValue, type Statement, statement } from '../../db/statement.ts';

/** What can be unsettled, in the order in which it is listed. */
export const unsettledKinds = ['order', 'cancel', 'application', 'document', 'allocation'] as const;
export type UnsettledWord = (typeof unsettledKinds)[number];

/** Which unsettled objects to read. */
export interface UnsettledFilter {
  /** Of this partner only. */
  readonly partnerId?: string | undefined;
  /** Stored at this instant or before. */
  readonly until?: number | undefined;
}

/** The last step of an order says by what its state is known. */
const lastStep = `COALESCE((SELECT s.detail FROM order_steps s WHERE s.partner_id = o.partner_id AND s.order_id = o.id
  ORDER BY s.sequence DESC LIMIT 1), '')`;

interface Source {
  /** Selects the columns of a listed object, and all that is unsettled. */
  readonly sql: string;
  readonly partner: string;
  readonly createdAt: string;
  /** An object's place among those of its kind. */
  readonly place: string;
}

/**
 * Where each kind is found without reading the whole of its table: by the index of what the reconciler looks at, which
 * holds nothing that is settled; documents by partner and state. Without a hint a server may rather walk all ids, because
 * it is asked for their order.
 */
const sources: Record<UnsettledWord, Source> = {
  order: submissions('orders', lastStep),
  cancel: {
    sql: `SELECT o.partner_id, o.id, '' AS type, o.id AS place, '' AS state, c.sent_at AS created_at,
      o.cancel_until AS until_at, NULL AS check_at, 1 AS sends, NULL AS asked, NULL AS last_at, NULL AS outcome,
      NULL AS error_class, ${lastStep} AS evidence
      FROM open_cancels c STRAIGHT_JOIN orders o ON o.partner_id = c.partner_id AND o.id = c.order_id
      WHERE o.cancel_until IS NOT NULL`,
    partner: 'c.partner_id',
    createdAt: 'c.sent_at',
    place: 'o.id',
  },
  application: submissions('applications', 'o.evidence'),
  document: {
    sql: `SELECT d.partner_id, d.application_id AS id, d.type, CONCAT(d.application_id, ' ', d.type) AS place, d.state,
      d.created_at, d.lease_until AS until_at, NULL AS check_at, d.attempt AS sends, NULL AS asked, NULL AS last_at,
      NULL AS outcome, NULL AS error_class, '' AS evidence
      FROM partners p STRAIGHT_JOIN documents d ON d.partner_id = p.id WHERE d.state IN ('sending', 'unconfirmed')`,
    partner: 'p.id',
    createdAt: 'd.created_at',
    place: "CONCAT(d.application_id, ' ', d.type)",
  },
  allocation: submissions('allocations', 'o.evidence'),
};

/** What is stored before it is sent, and looked up until it is known what became of it. */
function submissions(table: string, evidence: string): Source {
  return {
    sql: `SELECT o.partner_id, o.id, '' AS type, o.id AS place, o.state, o.created_at, o.not_after AS until_at, o.check_at,
      1 AS sends, l.asked, l.last_at, l.outcome, l.error_class, ${evidence} AS evidence
      FROM ${table} o FORCE INDEX (${table}_check_at)
      LEFT JOIN look_ups l ON l.partner_id = o.partner_id AND l.object_id = o.id WHERE o.check_at IS NOT NULL`,
    partner: 'o.partner_id',
    createdAt: 'o.created_at',
    place: 'o.id',
  };
}

/** What is unsettled of a kind, oldest first, after a place. */
export function findUnsettled(
  kind: UnsettledWord,
  { partnerId, until }: UnsettledFilter,
  after: string,
  most: number,
): Statement {
  const { sql, partner, createdAt, place } = sources[kind];
  const conditions: [string, SqlValue | undefined][] = [
    [`${partner} = ?`, partnerId],
    [`${createdAt} <= ?`, until === undefined ? undefined : new Date(until)],
    [`${place} > ?`, after === '' ? undefined : after],
  ];
  const used = conditions.filter((condition): condition is [string, SqlValue] => condition[1] !== undefined);
  return statement(
    `${sql}${used.map(([condition]) => ` AND ${condition}`).join('')} ORDER BY place LIMIT ${most}`,
    ...used.map(([, value]) => value),
  );
}

/** Counts the cancels and documents that are unsettled, at most so many of each, and finds the oldest. */
export function countUnsettled(kind: 'cancel' | 'document', most: number): Statement {
  return statement(
    `SELECT COUNT(*) AS count, MIN(created_at) AS oldest FROM (${sources[kind].sql} LIMIT ${most}) AS unsettled`,
  );
}
