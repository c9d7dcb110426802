import { milliseconds, type SqlRow, type SqlValue, type Statement, statement } from '../../db/statement.ts';

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

/** Something of which nobody knows yet what became of it. */
export interface UnsettledRow {
  readonly kind: UnsettledWord;
  readonly partnerId: string;
  /** Of a cancel the order's, of a document the application's. */
  readonly id: string;
  readonly documentType: string;
  /** Its place among those of its kind. */
  readonly place: string;
  readonly state: string;
  readonly createdAt: number;
  /** Real: until when it could be taken, or the send can be under way. */
  readonly until: number | null;
  readonly checkAt: number | null;
  readonly sends: number;
  readonly asked: number;
  readonly lastAskedAt: number | null;
  readonly lastAnswer: string | null;
  readonly errorClass: string | null;
  readonly evidence: string;
}

const lookedUp = 'l.asked, l.last_at, l.outcome, l.error_class';

function joinLookUps(table: string): string {
  return `LEFT JOIN look_ups l ON l.partner_id = ${table}.partner_id AND l.object_id = ${table}.id`;
}

/** The last step of an order says by what its state is known. */
const lastStep = `COALESCE((SELECT s.detail FROM order_steps s WHERE s.partner_id = o.partner_id AND s.order_id = o.id
  ORDER BY s.sequence DESC LIMIT 1), '')`;

interface Source {
  readonly sql: string;
  readonly partner: string;
  readonly createdAt: string;
  readonly place: string;
}

/**
 * Where each kind is found without reading the whole of its table: by the index of what the reconciler looks at, which
 * holds nothing that is settled; documents by partner and state. Without a hint a server may rather walk all ids, because
 * it is asked for their order.
 */
const sources: Record<UnsettledWord, Source> = {
  order: {
    sql: `SELECT o.partner_id, o.id, '' AS type, o.id AS place, o.state, o.created_at, o.not_after AS until_at, o.check_at,
      1 AS sends, ${lookedUp}, ${lastStep} AS evidence
      FROM orders o FORCE INDEX (orders_check_at) ${joinLookUps('o')} WHERE o.check_at IS NOT NULL`,
    partner: 'o.partner_id',
    createdAt: 'o.created_at',
    place: 'o.id',
  },
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
  application: {
    sql: `SELECT a.partner_id, a.id, '' AS type, a.id AS place, a.state, a.created_at, a.not_after AS until_at, a.check_at,
      1 AS sends, ${lookedUp}, a.evidence
      FROM applications a FORCE INDEX (applications_check_at) ${joinLookUps('a')} WHERE a.check_at IS NOT NULL`,
    partner: 'a.partner_id',
    createdAt: 'a.created_at',
    place: 'a.id',
  },
  document: {
    sql: `SELECT d.partner_id, d.application_id AS id, d.type, CONCAT(d.application_id, ' ', d.type) AS place, d.state,
      d.created_at, d.lease_until AS until_at, NULL AS check_at, d.attempt AS sends, NULL AS asked, NULL AS last_at,
      NULL AS outcome, NULL AS error_class, '' AS evidence
      FROM partners p STRAIGHT_JOIN documents d ON d.partner_id = p.id WHERE d.state IN ('sending', 'unconfirmed')`,
    partner: 'p.id',
    createdAt: 'd.created_at',
    place: "CONCAT(d.application_id, ' ', d.type)",
  },
  allocation: {
    sql: `SELECT a.partner_id, a.id, '' AS type, a.id AS place, a.state, a.created_at, a.not_after AS until_at, a.check_at,
      1 AS sends, ${lookedUp}, a.evidence
      FROM allocations a FORCE INDEX (allocations_check_at) ${joinLookUps('a')} WHERE a.check_at IS NOT NULL`,
    partner: 'a.partner_id',
    createdAt: 'a.created_at',
    place: 'a.id',
  },
};

/** What is unsettled of a kind, oldest first, after a place. */
export function findUnsettled(
  kind: UnsettledWord,
  { partnerId, until }: UnsettledFilter,
  after: string,
  most: number,
): Statement {
  const source = sources[kind];
  const conditions: [string, SqlValue | undefined][] = [
    [`${source.partner} = ?`, partnerId],
    [`${source.createdAt} <= ?`, until === undefined ? undefined : new Date(until)],
    [`${source.place} > ?`, after === '' ? undefined : after],
  ];
  const used = conditions.filter((condition): condition is [string, SqlValue] => condition[1] !== undefined);
  return statement(
    `${source.sql}${used.map(([sql]) => ` AND ${sql}`).join('')} ORDER BY place LIMIT ${most}`,
    ...used.map(([, value]) => value),
  );
}

/** Counts the cancels and documents that are unsettled, at most so many of each, and finds the oldest. */
export function countUnsettled(kind: 'cancel' | 'document', most: number): Statement {
  return statement(
    `SELECT COUNT(*) AS count, MIN(created_at) AS oldest FROM (${sources[kind].sql} LIMIT ${most}) AS unsettled`,
  );
}

/** `realNow` tells what is still being sent from what was cut off. */
export function toUnsettled(kind: UnsettledWord, row: SqlRow, realNow: number): UnsettledRow {
  const until = milliseconds(row.until_at);
  const hasNoState = kind === 'cancel' || kind === 'document';
  const isUnderWay = until !== null && until > realNow && row.state !== 'unconfirmed';
  return {
    kind,
    partnerId: String(row.partner_id),
    id: String(row.id),
    documentType: String(row.type),
    place: String(row.place),
    state: hasNoState ? (isUnderWay ? 'sending' : 'unconfirmed') : String(row.state),
    createdAt: (row.created_at as Date).getTime(),
    until,
    checkAt: milliseconds(row.check_at),
    sends: Number(row.sends),
    asked: Number(row.asked ?? 0),
    lastAskedAt: milliseconds(row.last_at),
    lastAnswer: row.outcome as string | null,
    errorClass: row.error_class as string | null,
    evidence: String(row.evidence),
  };
}
