import { joined, type Statement, sql } from '../../store/statement.ts';
import { count, defineTable, flag, instant, optional, type RowOf, shortened, text, whole } from '../../store/table.ts';
import { type NewStep, type Submission, sequenceOf } from './table.ts';

/**
 * Statements of the broker against the state of an object. A row is added in the transaction that appends its step to the history. It is
 * open until a settlement of the object by evidence is approved, which counts its trade if it has one, or an operator acknowledges it.
 * Rows stay, with all that the step says: the steps of applications and allocations leave the database when they are archived.
 */
export const contradictions = defineTable({
  name: 'contradictions',
  columns: {
    /** Grows with each one. */
    number: whole(),
    partnerId: text(24),
    objectId: text(24),
    /** The number of its step in the object's history. */
    step: count(),
    /** Business time. */
    at: instant(),
    /** The object's state, which was kept. */
    state: text(20),
    /** The statement, in our own words. Never a customer's data. */
    detail: shortened(300),
    reportNumber: optional(whole()),
    /** The broker's time of it. */
    upstreamAt: optional(instant()),
    /** The trade, if it is one. */
    quantity: optional(whole()),
    priceKobo: optional(whole()),
    /** Whether the trade counts all the same: one of an order that was refused or rejected. */
    isCounted: flag(),
    /** Business time; null: it is open. */
    endedAt: optional(instant()),
    endedBy: optional(text(64)),
    /** Why an operator acknowledged it; null: it is open, or was settled. */
    endReason: optional(text(200)),
    /** The settlement that ended it. */
    proposalId: optional(text(24)),
  },
  primary: ['number'],
  generated: 'number',
  indexes: {
    contradictions_object: ['partnerId', 'objectId', 'number'],
    contradictions_ended_at: ['endedAt', 'number'],
    contradictions_partner: ['partnerId', 'number'],
    contradictions_partner_ended_at: ['partnerId', 'endedAt', 'number'],
  },
});

export type StoredContradiction = RowOf<typeof contradictions>;

const open = { endedAt: null, endedBy: null, endReason: null, proposalId: null } as const;

/** Adds the contradictions among the steps that are appended to an object's history; `object` is as it is after them. */
export function keepContradictions(
  { partnerId, id: objectId, steps }: Pick<Submission, 'partnerId' | 'id' | 'steps'>,
  added: readonly NewStep[],
): Statement[] {
  const rows = added.flatMap((step, index) => {
    if (step.kind !== 'contradiction') return [];
    const { at, state, detail, reportNumber = null, upstreamAt = null, quantity = null, priceKobo = null } = step;
    const said = { at, state, detail, reportNumber, upstreamAt, quantity, priceKobo };
    const isCounted = (step.filledChange ?? 0n) !== 0n;
    return [{ number: 0n, partnerId, objectId, step: sequenceOf(steps, added, index), ...said, isCounted, ...open }];
  });
  return rows.length === 0 ? [] : [contradictions.insert(...rows)];
}

/** How open contradictions end. */
export type ContradictionEnd = Pick<StoredContradiction, 'endedAt' | 'endedBy' | 'endReason' | 'proposalId'>;

/** Ends the open contradictions about an object, up to a step of its history. */
export function acknowledgeContradictions(
  partnerId: string,
  objectId: string,
  end: ContradictionEnd,
  upToStep: number,
): Statement {
  return joined([endOpen(partnerId, objectId, end), sql`AND step <= ${upToStep}`], ' ');
}

/** A settlement by evidence, as contradictions need it. */
interface Settled {
  /** Business time. It says nothing about what came later. */
  readonly proposedAt: number;
  /** The steps whose trades it counts. */
  readonly countedSteps: readonly number[];
}

/**
 * Ends the open contradictions about an object that a settlement settles. A trade that it does not count stays open: otherwise
 * nobody would hear of it any more.
 */
export function settleContradictions(
  partnerId: string,
  objectId: string,
  end: ContradictionEnd,
  { proposedAt, countedSteps }: Settled,
): Statement {
  // No history has a step 0.
  const isSettled = sql`AND at <= ${new Date(proposedAt)} AND (quantity IS NULL OR is_counted = 1 OR step IN (${[0, ...countedSteps]}))`;
  return joined([endOpen(partnerId, objectId, end), isSettled], ' ');
}

function endOpen(
  partnerId: string,
  objectId: string,
  { endedAt, endedBy, endReason, proposalId }: ContradictionEnd,
): Statement {
  return sql`UPDATE contradictions FORCE INDEX (contradictions_object)
    SET ended_at = ${new Date(endedAt ?? 0)}, ended_by = ${endedBy}, end_reason = ${endReason}, proposal_id = ${proposalId}
    WHERE partner_id = ${partnerId} AND object_id = ${objectId} AND ended_at IS NULL`;
}
