import { status } from '@grpc/grpc-js';
import { type ProposeSettlementRequest, Settlements } from '../../../../gen/marina/admin/v1/settlements_pb.ts';
import { isGuardFalse } from '../../../store/errors.ts';
import { allFacts, queryFact } from '../../../store/facts.ts';
import { Change } from '../../../trading/submission/change.ts';
import { settleContradictions } from '../../../trading/submission/contradictions.ts';
import type { AnyKind, Kinds } from '../../../trading/submission/kind.ts';
import { mayStillBeTaken } from '../../../trading/submission/look-up-times.ts';
import type { Recorder } from '../../../trading/submission/record.ts';
import { isBehind, isHeld, type Submission } from '../../../trading/submission/table.ts';
import { type AdminCall, type AdminParts, adminService } from '../call.ts';
import { AdminError, invalidField } from '../errors.ts';
import { newProposal, openAbout, ownOpen, sameAmong } from '../proposals/propose.ts';
import { changesSince, type Seen } from '../proposals/rules.ts';
import { type Approval, findObject, type ProposedAction, toProposal } from '../proposals/service.ts';
import { proposals, type StoredProposal } from '../proposals/table.ts';
import { readOutcome, type SettlementRules, toOutcome, writeOutcome } from './outcomes.ts';
import { seenOf } from './seen.ts';

interface SettlementParts extends AdminParts {
  readonly kinds: Kinds;
  readonly recorder: Pick<Recorder, 'change'>;
  /** How far the clocks of replicas and broker may differ. */
  readonly clockSkewMs: number;
}

const action = 'Settlements.ProposeSettlement';

/** The operators' call that proposes settlements, and what approving one does. */
export function settlements(parts: SettlementParts) {
  const approved: ProposedAction = { name: action, apply: (approval) => apply(parts, approval) };
  const service = adminService(Settlements, {
    proposeSettlement: (request, call) => propose(parts, request, call),
  });
  return { service, action: approved };
}

async function propose(parts: SettlementParts, request: ProposeSettlementRequest, call: AdminCall) {
  const { database, clock, ids, kinds } = parts;
  const { objectId, outcome: message, evidence, reference } = request;
  if (message === undefined) throw invalidField('outcome', 'is required.');
  const outcome = toOutcome(message);
  if (!objectId.startsWith(`${outcome.prefix}_`)) throw invalidField('outcome', "must be of the object's kind.");
  const object = await findObject(database, kinds, objectId);
  const kind = kinds.ofId(objectId);
  if (object === undefined || kind === undefined) throw noSuchObject();
  const { partnerId } = object;
  const proposing = { partnerId, objectId, action, request: writeOutcome(message), evidence, reference };
  const { row, created } = await database.inPartnerTransaction(partnerId, {
    touches: [objectId, ...outcome.touches],
    fact: allFacts({
      row: queryFact(kind.table.find({ partnerId, id: objectId }), ([row]) => row && kind.table.all.read(row)),
      open: openAbout(proposing),
      own: ownOpen(call, clock.now()),
      facts: outcome.fact(partnerId, objectId),
    }),
    decide: ({ row, open, own, facts }) => {
      const same = sameAmong(open, proposing, call, clock.now());
      if (same !== undefined) return { writes: [], result: { row: same, created: false } };
      if (row === undefined) throw noSuchObject();
      const now = clock.now();
      check(parts, { kind, row, outcome, facts, proposedAt: now });
      const { row: made, writes } = newProposal(proposing, seenOf(row), ids.object('prp'), call, now, own);
      return { writes, result: { row: made, created: true } };
    },
  });
  return { proposal: toProposal(row, clock.now()), created };
}

/** Applies an approved settlement. The object changes in the transaction that records the approval. */
async function apply(parts: SettlementParts, { proposal, call, mayApply, record }: Approval) {
  const { kinds, recorder, clock } = parts;
  const { partnerId, id, objectId } = proposal;
  const kind = kinds.ofId(objectId);
  if (kind === undefined) throw noSuchObject();
  let outcome: SettlementRules;
  try {
    outcome = readOutcome(proposal.request);
  } catch (error) {
    const message = 'another version proposed it: call a replica of that version';
    throw new AdminError(status.FAILED_PRECONDITION, message, { cause: error });
  }
  // The decision may be made more than once, on cached values and again under the lock: the last one counts.
  let decided: 'applied' | 'before' | undefined;
  const fact = allFacts({
    proposal: queryFact(proposals.find({ partnerId, id }), ([row]) => row && proposals.all.read(row)),
    facts: outcome.fact(partnerId, objectId),
  });
  const decide = (row: Submission, current: { proposal: StoredProposal | undefined; facts: unknown }) => {
    if (current.proposal === undefined) throw new Error(`${id} is not stored`);
    if (!mayApply(current.proposal)) {
      decided = 'before';
      return undefined;
    }
    const changed = changesSince(JSON.parse(proposal.seen) as Seen, seenOf(row));
    if (changed !== '') {
      const message = `the object changed after this was proposed: ${changed}. Decline it, and propose what still holds`;
      throw new AdminError(status.FAILED_PRECONDITION, message);
    }
    const { proposedAt } = proposal;
    const changes = check(parts, { kind, row, outcome, facts: current.facts, proposedAt });
    const change = new Change(kind, row, clock.now()).settle(changes);
    decided = 'applied';
    const end = { endedAt: clock.now(), endedBy: call.operator, endReason: null, proposalId: id };
    return change.write(
      ...record(current.proposal, seenOf(row), seenOf(change.after)),
      settleContradictions(partnerId, objectId, end, { proposedAt, countedSteps: outcome.countedSteps }),
    );
  };
  const touches = [id, ...outcome.touches];
  const after: Submission = await recorder
    .change(kind, partnerId, objectId, decide, { fact, touches })
    .catch((error: unknown) => {
      // Another partner's transaction linked the account after this one had read who has it.
      if (!isGuardFalse(error)) throw error;
      throw new AdminError(status.FAILED_PRECONDITION, "the account is another partner's", { cause: error });
    });
  if (decided === undefined) throw otherVersion();
  return { changed: decided === 'applied', objectState: after.state };
}

/** A settlement of an object that was proposed at an instant of business time. */
interface Checked {
  readonly kind: AnyKind;
  readonly row: Submission;
  readonly outcome: SettlementRules;
  readonly facts: unknown;
  readonly proposedAt: number;
}

/** The changes of a settlement that is checked now. Throws FAILED_PRECONDITION if the object cannot have this outcome. */
function check({ clock, clockSkewMs }: SettlementParts, { kind, row, outcome, facts, proposedAt }: Checked) {
  if (!kind.table.isKnown(row)) throw otherVersion();
  if (isHeld(row)) throw new AdminError(status.FAILED_PRECONDITION, 'it waits for its release and was not sent');
  if (isBehind(row)) {
    const message = 'reports about it were not applied yet: they are looked up first';
    throw new AdminError(status.FAILED_PRECONDITION, message);
  }
  const settling = outcome.settle(row, facts, clock.now(), proposedAt);
  if ('problem' in settling) throw new AdminError(status.FAILED_PRECONDITION, settling.problem);
  const isAbsent = settling.changes.some(({ fields }) => fields.state === kind.absent.state);
  if (isAbsent && mayStillBeTaken(row, clockSkewMs, clock.realNow())) {
    const until = new Date(row.notAfter + clockSkewMs).toISOString();
    const message = `it may still be taken until ${until}: only after that can it be known that it never will be`;
    throw new AdminError(status.FAILED_PRECONDITION, message);
  }
  return settling.changes;
}

function noSuchObject(): AdminError {
  return new AdminError(status.NOT_FOUND, 'there is no such object');
}

function otherVersion(): AdminError {
  return new AdminError(
    status.FAILED_PRECONDITION,
    'another version of the gateway stored a state that this one does not know: call a replica of that version',
  );
}
