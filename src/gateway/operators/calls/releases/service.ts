import { status } from '@grpc/grpc-js';
import {
  type ProposeReleaseRequest,
  Releases,
  SetReleaseAmountRequestSchema,
} from '../../../../gen/marina/admin/v1/releases_pb.ts';
import { Feature } from '../../../../gen/marina/options/v1/options_pb.ts';
import type { Logger } from '../../../../kit/log.ts';
import { partners, toFeatures } from '../../../edge/auth/store.ts';
import { allFacts, existsFact, queryFact } from '../../../store/facts.ts';
import { milliseconds } from '../../../store/statement.ts';
import { accounts } from '../../../trading/accounts/store.ts';
import { applyNotReleased, applyReleased } from '../../../trading/submission/change.ts';
import { type EnvironmentState, inForceFact, refusalBy } from '../../../trading/submission/environment.ts';
import type { SendTimes } from '../../../trading/submission/kind.ts';
import type { Recorder } from '../../../trading/submission/record.ts';
import type { Submitter } from '../../../trading/submission/submit.ts';
import { isHeld, readUpToDate } from '../../../trading/submission/table.ts';
import type { WithdrawalKind } from '../../../trading/withdrawals/kind.ts';
import {
  type StoredWithdrawal,
  shownWithdrawal,
  toWithdrawalMessage,
  withdrawals,
} from '../../../trading/withdrawals/table.ts';
import { audit } from '../audit.ts';
import { type AdminCall, adminService, listed } from '../call.ts';
import { AdminError } from '../errors.ts';
import { approvedCall, askFor, type FourEyesParts, type GuardedCall } from '../proposals/four-eyes.ts';
import { newProposal, openAbout, ownOpen, sameAmong } from '../proposals/propose.ts';
import type { Seen } from '../proposals/rules.ts';
import { type Approval, type ProposedAction, readOpenProposals, toProposal } from '../proposals/service.ts';
import { proposals, type StoredProposal } from '../proposals/table.ts';
import { findHeld } from './table.ts';

export interface ReleaseParts extends FourEyesParts, SendTimes {
  readonly kind: WithdrawalKind;
  readonly recorder: Pick<Recorder, 'change'>;
  readonly submitter: Pick<Submitter, 'sendReleased'>;
  readonly environment: Pick<EnvironmentState, 'stops' | 'stopsVersion'>;
  readonly log: Logger;
}

const action = 'Releases.ProposeRelease';

/** The operators' calls on withdrawals that wait for their release, and what approving a release does. */
export function releases(parts: ReleaseParts) {
  const { clock, kind, recorder } = parts;
  const approved: ProposedAction = { name: action, apply: (approval) => release(parts, approval) };
  const amount = amountCall();
  const service = adminService(Releases, {
    async setReleaseAmount(request, call) {
      const { result = false, proposal } = await askFor(parts, amount, request, call);
      return { changed: result, proposal };
    },

    listHeldWithdrawals: ({ limit }) => listHeld(parts, limit),
    proposeRelease: (request, call) => propose(parts, request, call),

    async refuseWithdrawal({ withdrawalId, reason }, call) {
      const { partnerId } = await find(parts, withdrawalId);
      let changed: boolean | undefined;
      await recorder.change(kind, partnerId, withdrawalId, (row) => {
        changed = isHeld(row);
        if (!changed && row.state === 'refused' && row.releasedAt === null && row.heldUntil === null) return undefined;
        if (!changed) throw waitsNot(row);
        const change = applyNotReleased(kind, row, 'The operators refused it.', clock.now());
        const entry = {
          partnerId,
          subject: withdrawalId,
          detail: { reason },
          before: seen(row),
          after: seen(change.after),
        };
        return change.write(audit(call, clock.now(), entry));
      });
      if (changed === undefined) throw unknownToThisVersion();
      return { changed };
    },
  });
  return { service, actions: [approved, approvedCall(parts, amount)] };
}

/** The call that agrees on the amount. A higher one, or none, needs a second operator: less waits for one then. */
function amountCall(): GuardedCall<typeof SetReleaseAmountRequestSchema, bigint | null, boolean> {
  const amount = partners.only('withdrawalReleaseAboveKobo');
  return {
    name: 'Releases.SetReleaseAmount',
    schema: SetReleaseAmountRequestSchema,
    asked: ({ partnerId, aboveKobo }) => ({
      ...{ partnerId, objectId: partnerId, about: 'release amount', touches: 'partner' },
      fact: queryFact(
        partners.find({ id: partnerId }, amount),
        ([row = {}]) => amount.read(row).withdrawalReleaseAboveKobo,
      ),
      decide: (before) => {
        const after = aboveKobo ?? null;
        if (before === after) return { unchanged: false };
        const entry = { partnerId, detail: {}, before: { aboveKobo: before }, after: { aboveKobo: after } };
        return {
          needsSecond: isLoosened(before, after),
          seen: shownAmount(before),
          apply: () => ({
            writes: [partners.set({ id: partnerId }, { withdrawalReleaseAboveKobo: after })],
            ...{ entry, after: shownAmount(after), result: true },
          }),
        };
      },
    }),
  };
}

/** Whether withdrawals that wait for their release do so no longer. Null: none waits. */
export function isLoosened(before: bigint | null, after: bigint | null): boolean {
  return before !== null && (after === null || after > before);
}

function shownAmount(aboveKobo: bigint | null): Seen {
  return { above_kobo: aboveKobo === null ? null : String(aboveKobo) };
}

async function listHeld({ database, clock }: ReleaseParts, limit: number) {
  const { rows, hasMore } = await listed(limit, (most) => database.read(findHeld(most)));
  const owned = rows.map((row) => ({ partnerId: String(row.partner_id), id: String(row.id) }));
  const open = await readOpenProposals(database, owned, clock.now());
  const shown = rows.map((row) => ({
    partnerId: String(row.partner_id),
    withdrawal: toWithdrawalMessage(shownWithdrawal.read(row)),
    heldUntil: milliseconds(row.held_until ?? null),
    openProposal: open.get(String(row.id)),
  }));
  return { withdrawals: shown, hasMore };
}

async function propose(parts: ReleaseParts, { withdrawalId, evidence }: ProposeReleaseRequest, call: AdminCall) {
  const { database, clock, ids } = parts;
  const { partnerId } = await find(parts, withdrawalId);
  const proposing = { partnerId, objectId: withdrawalId, action, request: '{"release":true}', evidence, reference: '' };
  const { row, created } = await database.inPartnerTransaction(partnerId, {
    touches: [withdrawalId],
    fact: allFacts({
      row: queryFact(withdrawals.find({ partnerId, id: withdrawalId }), ([row]) => row && withdrawals.all.read(row)),
      open: openAbout(proposing),
      own: ownOpen(call, clock.now()),
    }),
    decide: ({ row, open, own }) => {
      const now = clock.now();
      const same = sameAmong(open, proposing, call, now);
      if (same !== undefined) return { writes: [], result: { row: same, created: false } };
      if (row === undefined) throw noSuchWithdrawal();
      if (!isHeld(row)) throw waitsNot(row);
      const { row: made, writes } = newProposal(proposing, seen(row), ids.object('prp'), call, now, own);
      return { writes, result: { row: made, created: true } };
    },
  });
  return { proposal: toProposal(row, clock.now()), created };
}

/** A release depends on these, under the partner's lock. */
interface ReleaseFacts extends Readonly<Record<string, unknown>> {
  readonly proposal: StoredProposal | undefined;
  readonly inForce: Parameters<typeof refusalBy>[0];
  readonly isLinked: boolean;
  readonly mayWithdraw: boolean;
}

/**
 * Sends a withdrawal that waited, once its release is recorded. A restored database may have lost that it was released before: so
 * the broker's record is asked first, and what the broker has is not sent.
 */
async function release(parts: ReleaseParts, { proposal, mayApply, record }: Approval) {
  const { kind, recorder, submitter, environment, clock, submitTimeoutMs, clockSkewMs, log } = parts;
  const { partnerId, id, objectId } = proposal;
  const before = await find(parts, objectId);
  const asked = isHeld(before) ? await askBroker(kind, before) : undefined;
  let decided: 'sent' | 'found' | 'before' | undefined;
  const decide = (row: StoredWithdrawal, { proposal: current, inForce, ...partner }: ReleaseFacts) => {
    if (current === undefined) throw new Error(`${id} is not stored`);
    if (!mayApply(current)) {
      decided = 'before';
      return undefined;
    }
    if (!isHeld(row) || asked === undefined) throw waitsNot(row);
    const lookedUp = asked();
    // A withdrawal that the broker has already is taken over, whatever the partner has lost since.
    if (!lookedUp.found) requireRights(partner);
    const refusal = refusalBy(inForce, kind.affects(row), clock.now());
    if (refusal !== undefined) throw new AdminError(status.FAILED_PRECONDITION, refusal.message);
    const notAfter = clock.realNow() + submitTimeoutMs;
    const change = applyReleased(kind, row, { notAfter, checkAt: notAfter + clockSkewMs }, clock.now());
    decided = lookedUp.found ? 'found' : 'sent';
    if (lookedUp.found) change.reports(lookedUp.answer);
    return change.write(...record(current, seen(row), seen(change.after)));
  };
  const fact = allFacts({
    proposal: queryFact(proposals.find({ partnerId, id }), ([row]) => row && proposals.all.read(row)),
    inForce: inForceFact(environment),
    isLinked: existsFact(accounts.find({ partnerId, account: before.account }), true),
    mayWithdraw: queryFact(partners.find({ id: partnerId }), ([row = {}]) => {
      const partner = partners.all.read(row);
      return partner.state === 'active' && toFeatures(partner).has(Feature.WITHDRAWALS);
    }),
  });
  const released = await recorder.change(kind, partnerId, objectId, decide, { fact, touches: [id] });
  if (decided === undefined) throw unknownToThisVersion();
  if (decided !== 'sent') return { changed: decided === 'found', objectState: released.state };
  const after = await submitter.sendReleased(kind, released, undefined as never, log);
  return { changed: true, objectState: after.state };
}

/** Throws FAILED_PRECONDITION if the partner has lost the account, the feature or its right to call since it asked. */
function requireRights({ isLinked, mayWithdraw }: Pick<ReleaseFacts, 'isLinked' | 'mayWithdraw'>): void {
  if (!isLinked)
    throw new AdminError(status.FAILED_PRECONDITION, "the account is not the partner's any more: refuse it");
  if (!mayWithdraw) {
    throw new AdminError(status.FAILED_PRECONDITION, 'the partner is suspended or may not withdraw any more');
  }
}

/**
 * Asks the broker's record about a withdrawal. The result answers or throws: the answer does not matter to a second approval, which
 * may ask while the first one sends.
 */
async function askBroker(
  kind: WithdrawalKind,
  row: StoredWithdrawal,
): Promise<() => Awaited<ReturnType<WithdrawalKind['lookUp']>>> {
  try {
    const found = await kind.lookUp(row);
    return () => found;
  } catch (error) {
    const message = "the broker's record could not be read, and nothing was sent: approve it again";
    return () => {
      throw new AdminError(status.UNAVAILABLE, message, { cause: error });
    };
  }
}

async function find({ database }: Pick<ReleaseParts, 'database'>, id: string): Promise<StoredWithdrawal> {
  const [row] = await readUpToDate(database, withdrawals.find({ id }, withdrawals.all, undefined, 'withdrawals_id'));
  if (row === undefined) throw noSuchWithdrawal();
  return withdrawals.all.read(row);
}

/** A withdrawal as a proposal and its audit entry show it. */
function seen({ state, account, amountKobo, destination }: StoredWithdrawal): Seen {
  return { state, account, amount_kobo: String(amountKobo), destination };
}

function noSuchWithdrawal(): AdminError {
  return new AdminError(status.NOT_FOUND, 'there is no such withdrawal');
}

/** Nothing was decided about the withdrawal. */
function unknownToThisVersion(): AdminError {
  return new AdminError(status.FAILED_PRECONDITION, 'another version stored its state');
}

function waitsNot({ state }: StoredWithdrawal): AdminError {
  return new AdminError(status.FAILED_PRECONDITION, `the withdrawal is ${state} and does not wait for a release`);
}
