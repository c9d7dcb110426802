import type { Clock } from '../../../kit/clock.ts';
import { ApiError } from '../../edge/errors.ts';
import { existsFact } from '../../store/facts.ts';
import { type SqlRow, type Statement, statement } from '../../store/statement.ts';
import type { Table } from '../../store/table.ts';
import type { KindName, Precondition } from './kind.ts';
import { farAheadMs, isHeldBack, type SimilarObjects } from './rules.ts';
import type { Submission } from './table.ts';

/**
 * That no earlier object holds back a new one like it (`isHeldBack`). Between the request and the decision lies the wait
 * for the partner's lock, which takes seconds at worst, so no instant from before the wait may decide. Under the lock the
 * ends of the senders' times are read, and compared with the clock afterwards. A guard is compared with the clock when the
 * transaction is made, and also with the server's when it runs, because the transaction may wait for its connection.
 */
export function noSimilar<Row extends Submission>(
  kind: Exclude<KindName, 'application'>,
  similar: SimilarTo<Row>,
  clock: Pick<Clock, 'realNow'>,
): Precondition {
  return {
    fact: {
      reads: [readSimilarUnsettled(similar)],
      value: ([rows]) => isHeldBack(toSimilarObjects(rows?.[0]), clock.realNow()),
      get expected() {
        return existsFact(findSimilarUnsettled(similar, clock.realNow(), true), false).expected;
      },
    },
    mustBe: false,
    otherwise: () => new ApiError(`similar_${kind}_unresolved`),
  };
}

/** The objects that hold back a new one like them, as far as their states say. */
export interface SimilarTo<Row extends Submission> {
  readonly table: Table<Row>;
  readonly alike: Partial<Row>;
}

/** Outcome unknown. An object in a state of another version counts while the reconciler has it on its list. */
const isUnknown = "(state = 'uncertain' OR (state <> 'sending' AND check_at IS NOT NULL))";

/** The index is named because the server would weigh all indexes first, which takes longer than the query. */
function fromSimilar<Row extends Submission>({ table, alike }: SimilarTo<Row>): Statement {
  const { sql, values } = table.where(alike);
  const isUnsettled = `NOT ${table.hasKnownName('state', 'sending', 'uncertain')}`;
  return { sql: `FROM ${table.name} FORCE INDEX (${table.name}_state) WHERE ${sql} AND ${isUnsettled}`, values };
}

/**
 * Finds an object that holds back a new one like it (`isHeldBack` in `rules`) at an instant, or, with `orLater`, when the
 * statement runs, by the server's clock. `now` is real time.
 */
export function findSimilarUnsettled<Row extends Submission>(
  similar: SimilarTo<Row>,
  now: number,
  orLater = false,
): Statement {
  const { sql, values } = fromSimilar(similar);
  const isOverdue = orLater ? '(check_at <= ? OR check_at <= UTC_TIMESTAMP(3))' : 'check_at <= ?';
  return statement(
    `SELECT 1 ${sql} AND (${isUnknown} OR ${isOverdue} OR (state = 'sending' AND not_after > ?)) LIMIT 1`,
    ...values,
    new Date(now),
    new Date(now + farAheadMs),
  );
}

/** Reads the objects that hold back a new one like them, or will if their senders do not finish: one row. */
function readSimilarUnsettled<Row extends Submission>(similar: SimilarTo<Row>): Statement {
  const { sql, values } = fromSimilar(similar);
  return statement(
    `SELECT MAX(${isUnknown}) AS has_unknown, MIN(CASE WHEN state = 'sending' THEN check_at END) AS first_lease_end,
      MAX(CASE WHEN state = 'sending' THEN not_after END) AS last_not_after ${sql}`,
    ...values,
  );
}

/** The row of `readSimilarUnsettled`. */
function toSimilarObjects(row: SqlRow | undefined): SimilarObjects {
  const instantOf = (stored: unknown) => (stored instanceof Date ? stored.getTime() : null);
  return {
    hasUnknown: Number(row?.has_unknown ?? 0) !== 0,
    firstLeaseEnd: instantOf(row?.first_lease_end),
    lastNotAfter: instantOf(row?.last_not_after),
  };
}
