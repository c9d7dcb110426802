import type { RemovedRows } from '../../../store/removal.ts';
import { joined, type Statement, sql, statement } from '../../../store/statement.ts';
import {
  defineTable,
  exactText,
  instant,
  longText,
  optional,
  type RowOf,
  type ShownBy,
  text,
} from '../../../store/table.ts';

/**
 * What operators propose and others decide. A proposal changes nothing before it is approved; then it is applied in the
 * transaction that records the approval.
 */
export const proposals = defineTable({
  name: 'proposals',
  columns: {
    partnerId: text(24),
    id: text(24),
    /** The call that proposed it, as service and method. */
    action: text(64),
    /** The object that it changes. */
    objectId: text(24),
    /** One that is stored as open has expired once `expiresAt` is over. A worker stores that it has (`expiry`). */
    state: text<'open' | 'applied' | 'declined' | 'expired'>(16),
    /** What is proposed, as the action writes it: JSON. */
    request: longText(),
    /** The object when it was proposed: JSON. */
    seen: longText(),
    evidence: longText(),
    reference: text(200),
    proposedBy: text(64),
    proposedAt: instant(),
    expiresAt: instant(),
    decidedBy: optional(text(64)),
    decidedAt: optional(instant()),
    decisionReason: optional(text(200)),
    /** The thing that only one open proposal of its call may be about; null: the object. */
    about: optional(exactText(100)),
  },
  primary: ['partnerId', 'id'],
  indexes: {
    proposals_state: ['state', 'id'],
    proposals_object: ['partnerId', 'objectId', 'id'],
    proposals_about: ['partnerId', 'about', 'id'],
  },
  unique: { proposals_id: ['id'] },
});

export type StoredProposal = RowOf<typeof proposals>;

/** An open proposal, in short. */
export const openProposal = proposals.only('id', 'objectId', 'proposedBy', 'proposedAt', 'expiresAt');
export type OpenProposal = ShownBy<typeof openProposal>;

/** Finds a proposal by its id, whoever's it is. */
export function proposalById(id: string): Statement {
  return proposals.find({ id }, proposals.all, undefined, 'proposals_id');
}

/** Finds the open proposals about some objects of a partner. `now` is business time. */
export function openProposalsOf(partnerId: string, objectIds: readonly string[], now: number): Statement {
  const isOpen = statement('AND expires_at > ?', new Date(now));
  return proposals.find({ partnerId, objectId: objectIds, state: 'open' }, openProposal, isOpen, 'proposals_object');
}

/** A list of proposals, newest first. */
export interface ProposalList {
  readonly state: 'open' | 'applied' | 'declined' | 'expired' | undefined;
  /** The object, with its partner. */
  readonly object: { readonly partnerId: string; readonly objectId: string } | undefined;
  /** Only those with a lower id. */
  readonly before: string | undefined;
}

/** A page of proposals. `now` is business time. */
export function listProposals(wanted: ProposalList, now: number, most: number): Statement {
  const { state, before } = wanted;
  const [isInTime, isOver] = [statement('expires_at > ?', new Date(now)), statement('expires_at <= ?', new Date(now))];
  // So that there is always a condition.
  const isBefore = before === undefined ? statement("id > ''") : statement('id < ?', before);
  if (state !== 'expired') return pageOf(wanted, state, [...(state === 'open' ? [isInTime] : []), isBefore], most);
  // Those that are stored as expired, and those that will be. Each part is read in the order of an index.
  const expired = pageOf(wanted, 'expired', [isBefore], most);
  const over = pageOf(wanted, 'open', [isOver, isBefore], most);
  return sql`(${expired}) UNION ALL (${over}) ORDER BY id DESC LIMIT ${statement(String(most))}`;
}

/** Those that are stored in a state, newest first. */
function pageOf(
  { object }: ProposalList,
  stored: ProposalList['state'],
  more: readonly Statement[],
  most: number,
): Statement {
  const equal = {
    ...(object && { partnerId: object.partnerId, objectId: object.objectId }),
    ...(stored && { state: stored }),
  };
  const conditions = [...(Object.keys(equal).length === 0 ? [] : [proposals.where(equal)]), ...more];
  const index = object !== undefined ? 'proposals_object' : stored !== undefined ? 'proposals_state' : 'proposals_id';
  const list = `SELECT ${proposals.all.list} FROM proposals FORCE INDEX (${index}) WHERE`;
  return joined([statement(list), joined(conditions, ' AND '), statement(`ORDER BY id DESC LIMIT ${most}`)], ' ');
}

/** Counts the open proposals of an operator. `operator` is in lower case; `now` is business time. */
export function countOpenProposalsOf(operator: string, now: number, most: number): Statement {
  return statement(
    `SELECT COUNT(*) AS count FROM (
      SELECT proposed_by FROM proposals FORCE INDEX (proposals_state) WHERE state = 'open' AND expires_at > ?
      ORDER BY id DESC LIMIT ${most}) AS waiting WHERE LOWER(proposed_by) = ?`,
    ...[new Date(now), operator],
  );
}

/** Counts the open proposals, at most so many, and finds the oldest. `now` is business time. */
export function countOpenProposals(now: number, most: number): Statement {
  return statement(
    `SELECT COUNT(*) AS count, MIN(proposed_at) AS oldest FROM (
      SELECT proposed_at FROM proposals FORCE INDEX (proposals_state) WHERE state = 'open' AND expires_at > ?
      LIMIT ${most}) AS waiting`,
    new Date(now),
  );
}

/** The proposals that are stored as open although their time is over, for the worker that stores that they have expired. */
export const overdueProposals: RemovedRows = {
  name: 'proposal-expiry',
  keptMs: 0,
  // Each is open for equally long, so the oldest is the first that is over.
  oldest: statement(
    "SELECT expires_at AS oldest FROM proposals FORCE INDEX (proposals_state) WHERE state = 'open' ORDER BY id LIMIT 1",
  ),
};

export const proposalKey = proposals.only('partnerId', 'id');

/**
 * Finds proposals that are stored as open and whose time is over, oldest first. Some partners are left out. `now` is business time.
 */
export function findOverdueProposals(now: number, without: readonly string[], most: number): Statement {
  return statement(
    `SELECT ${proposalKey.list} FROM proposals FORCE INDEX (proposals_state) WHERE state = 'open' AND expires_at <= ?
      AND partner_id NOT IN (?) ORDER BY id LIMIT ${most}`,
    ...[new Date(now), ['', ...without]],
  );
}

/** The fields of a proposal that the audit and the log name when it expires. */
export const expiredProposal = proposals.only('id', 'objectId', 'action', 'proposedBy');
export type ExpiredProposal = ShownBy<typeof expiredProposal>;

/** Locks those of a partner's proposals that are open although their time is over. `now` is business time. */
export function lockOverdueProposals(partnerId: string, ids: readonly string[], now: number): Statement {
  const isOver = statement('AND expires_at <= ? FOR UPDATE', new Date(now));
  return proposals.find({ partnerId, id: ids, state: 'open' }, expiredProposal, isOver);
}

/** Stores that proposals of a partner have expired, unless they are decided since. `now` is business time. */
export function expireProposals(partnerId: string, ids: readonly string[], now: number): Statement {
  return sql`UPDATE proposals FORCE INDEX (PRIMARY) SET state = 'expired'
    WHERE ${proposals.where({ partnerId, id: ids })} AND state = 'open' AND expires_at <= ${new Date(now)}`;
}
