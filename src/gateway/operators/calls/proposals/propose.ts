import { status } from '@grpc/grpc-js';
import type { AuditedBy } from '../../../edge/auth/audit-store.ts';
import { type Fact, queryFact } from '../../../store/facts.ts';
import { type Statement, statement } from '../../../store/statement.ts';
import { audit } from '../audit.ts';
import { AdminError } from '../errors.ts';
import { proposalLifeMs, type Seen } from './rules.ts';
import { countOpenProposalsOf, proposals, type StoredProposal } from './table.ts';

/** A proposal that an operator's call makes. */
export type Proposing = Pick<
  StoredProposal,
  'partnerId' | 'objectId' | 'action' | 'request' | 'evidence' | 'reference'
> & { readonly about?: string };

/** The newest proposal about an object that is stored as open. Only it can be in time: others were refused while it was open. */
export function openAbout({ partnerId, objectId }: Pick<Proposing, 'partnerId' | 'objectId'>): Fact<StoredProposal[]> {
  const newest = statement('ORDER BY id DESC LIMIT 1');
  const find = proposals.find({ partnerId, objectId, state: 'open' }, proposals.all, newest, 'proposals_object');
  return queryFact(find, (rows) => rows.map(proposals.all.read));
}

/** The same of a call's proposals, if an object may have several that are about different things. */
export function openOf({
  partnerId,
  action,
  about,
}: Pick<Proposing, 'partnerId' | 'action'> & { readonly about: string }): Fact<StoredProposal[]> {
  const newest = statement('ORDER BY id DESC LIMIT 1');
  const find = proposals.find({ partnerId, about, action, state: 'open' }, proposals.all, newest, 'proposals_about');
  return queryFact(find, (rows) => rows.map(proposals.all.read));
}

/** The most open proposals of one operator: the lists that others decide by stay short. */
const maxOpenOfOne = 50;
/** The newest open proposals that are looked through. 200 operators have as many together at most. */
const maxLookedThrough = 10_000;

/** How many open proposals an operator has, of whichever partner. The names of tokens that differ only in case are one person's. */
export function ownOpen({ operator }: Pick<AuditedBy, 'operator'>, now: number): Fact<number> {
  const count = countOpenProposalsOf(operator.toLowerCase(), now, maxLookedThrough);
  return queryFact(count, ([row]) => Number(row?.count ?? 0));
}

/** Throws RESOURCE_EXHAUSTED if an operator has as many open proposals as one may have. */
function checkOwn(own: number): void {
  if (own < maxOpenOfOne) return;
  const message = `${maxOpenOfOne} proposals of yours are open: have another operator decide about them, or decline those that no longer hold`;
  throw new AdminError(status.RESOURCE_EXHAUSTED, message);
}

/**
 * The open proposal, if it is this one: a call whose answer was lost may be repeated. Undefined if none is open. Throws
 * ALREADY_EXISTS if another one is. `now` is business time.
 */
export function sameAmong(
  open: readonly StoredProposal[],
  { action, request, evidence, reference }: Proposing,
  { operator }: Pick<AuditedBy, 'operator'>,
  now: number,
): StoredProposal | undefined {
  const before = open.find(({ expiresAt }) => expiresAt > now);
  if (before === undefined) return undefined;
  const isSame =
    before.action === action &&
    before.request === request &&
    before.evidence === evidence &&
    before.reference === reference;
  if (isSame && before.proposedBy === operator) return before;
  const message = `the proposal ${before.id} of ${before.proposedBy} about it is open: decline it first`;
  throw new AdminError(status.ALREADY_EXISTS, message);
}

/**
 * A new proposal, and what stores it with its audit entry. `seen` is the object now; `now` is business time; `own` is how many the
 * operator has open. Throws RESOURCE_EXHAUSTED if these are too many.
 */
export function newProposal(
  proposing: Proposing,
  seen: Seen,
  id: string,
  call: AuditedBy,
  now: number,
  own: number,
): { readonly row: StoredProposal; readonly writes: Statement[] } {
  checkOwn(own);
  const { partnerId, objectId: subject, request, evidence, reference } = proposing;
  const row: StoredProposal = {
    ...proposing,
    about: proposing.about ?? null,
    ...{ id, state: 'open', seen: JSON.stringify(seen), proposedBy: call.operator },
    ...{ proposedAt: now, expiresAt: now + proposalLifeMs },
    ...{ decidedBy: null, decidedAt: null, decisionReason: null },
  };
  const detail = { proposal: id, request: JSON.parse(request) as unknown, evidence, reference };
  const entry = { partnerId, subject, detail, before: { ...seen } };
  return { row, writes: [proposals.insert(row), audit(call, now, entry)] };
}
