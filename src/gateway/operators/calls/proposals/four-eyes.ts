import {
  type DescMessage,
  fromJson,
  type JsonObject,
  type JsonValue,
  type MessageShape,
  toJson,
} from '@bufbuild/protobuf';
import { status } from '@grpc/grpc-js';
import type { AuditEntry, AuditedBy } from '../../../edge/auth/audit-store.ts';
import { allFacts, type Fact, queryFact } from '../../../store/facts.ts';
import type { PartnerTransaction } from '../../../store/partner-transaction.ts';
import type { Statement } from '../../../store/statement.ts';
import { audit } from '../audit.ts';
import { type AdminParts, requirePartner } from '../call.ts';
import { AdminError } from '../errors.ts';
import { newProposal, openOf, ownOpen, sameAmong } from './propose.ts';
import { changesSince, type Seen } from './rules.ts';
import { type ProposedAction, toProposal } from './service.ts';
import { proposals, type StoredProposal } from './table.ts';

/** The parts of calls that need a second operator if they move much money, or rights. */
export interface FourEyesParts extends AdminParts {
  /** Amounts above it need a second operator, in kobo; undefined: no call needs one. */
  readonly fourEyesAboveKobo: bigint | undefined;
}

/** A call that may need a second operator. */
export interface GuardedCall<Schema extends DescMessage, Value, Result> {
  /** Service and method, as in `Wallets.CreditWallet`. */
  readonly name: string;
  /** Its request. A proposal stores it without its `reason`, which is the proposal's evidence. */
  readonly schema: Schema;
  /** Reads what a request asks for. `objectId` is the proposal's; undefined: it is not proposed yet. */
  asked(request: MessageShape<Schema>, objectId?: string): GuardedWork<Value, Result>;
}

/** A change of one partner in one transaction, which is made at once or when it is approved. */
export interface GuardedWork<Value, Result> {
  readonly partnerId: string;
  /** The object that it changes, as its proposal shows it. */
  readonly objectId: string;
  /** The partner has at most one open proposal of this call about it. */
  readonly about: string;
  /** The name that only one piece of work in a transaction may touch. */
  readonly touches: string;
  readonly fact: Fact<Value>;
  /** Decides under the partner's lock, and again when it is approved. Throws an AdminError if it cannot be made. */
  decide(value: Value, partner: PartnerTransaction): GuardedChange<Result>;
  /** Called at the end. Without a result it is only proposed, it failed, or its outcome is unknown. */
  ended?(result: Result | undefined): void;
  /** Called with an error of the transaction. Throws it, or answers what was made by another one. */
  failed?(error: unknown): Promise<Result>;
}

/** A change that can be made, or the answer if there is nothing to change. */
export type GuardedChange<Result> =
  | { readonly unchanged: Result }
  | {
      /** Whether it needs a second operator, if four eyes are on. */
      readonly needsSecond: boolean;
      /** The values on which it depends: if one of them has changed, it is not approved. */
      readonly seen: Seen;
      /** Makes it, at an instant of business time. */
      apply(now: number): AppliedChange<Result>;
    };

interface AppliedChange<Result> {
  readonly writes: readonly Statement[];
  /** The call's audit entry, which gets the reason too. */
  readonly entry: AuditEntry;
  /** The values of `seen` after the change, for the audit entry of the approval. */
  readonly after: Seen;
  readonly result: Result;
}

/** The result of a call; or the proposal that waits for a second operator. */
interface Made<Result> {
  readonly result?: Result;
  readonly proposal?: ReturnType<typeof toProposal>;
}

const nothingOpen: Fact<StoredProposal[]> = { reads: [], value: () => [], expected: { value: [], guards: [] } };
const noneOwn: Fact<number> = { reads: [], value: () => 0, expected: { value: 0, guards: [] } };

/** Makes the change that a call asks for, or proposes it if it needs a second operator. */
export async function askFor<Schema extends DescMessage, Value, Result>(
  { database, clock, ids, fourEyesAboveKobo }: FourEyesParts,
  guarded: GuardedCall<Schema, Value, Result>,
  request: MessageShape<Schema>,
  by: AuditedBy,
): Promise<Made<Result>> {
  const work = guarded.asked(request);
  const reason = reasonOf(request);
  const proposing = proposingOf(guarded, work, request);
  const isOn = fourEyesAboveKobo !== undefined;
  await requirePartner(database, work.partnerId);
  return ending(work, async () =>
    database.inPartnerTransaction<{ value: Value; open: StoredProposal[]; own: number }, Made<Result>>(work.partnerId, {
      touches: [work.touches],
      fact: allFacts({
        value: work.fact,
        open: isOn ? openOf(proposing) : nothingOpen,
        own: isOn ? ownOpen(by, clock.now()) : noneOwn,
      }),
      decide: ({ value, open, own }, partner) => {
        const change = work.decide(value, partner);
        if ('unchanged' in change) return { writes: [], result: { result: change.unchanged } };
        const now = clock.now();
        if (!isOn || !change.needsSecond) {
          const { writes, entry, result } = change.apply(now);
          const own = audit(by, now, { ...entry, detail: { ...entry.detail, reason } });
          return { writes: [...writes, own], result: { result } };
        }
        const same = sameAmong(open, proposing, by, now);
        if (same !== undefined) return { writes: [], result: { proposal: toProposal(same, now) } };
        const { row, writes } = newProposal(proposing, change.seen, ids.object('prp'), by, now, own);
        return { writes, result: { proposal: toProposal(row, now) } };
      },
    }),
  );
}

/** A proposal with a new key or partner is not counted: only `admin` makes these, and there are few. */
const noneBefore = 0;

/**
 * Makes a proposal that is stored by another call, which makes the rest of its change at once. `seen` is what `decide` of the
 * proposed call would see after that.
 */
export function proposedWith<Schema extends DescMessage, Value, Result>(
  { ids }: Pick<FourEyesParts, 'ids'>,
  guarded: GuardedCall<Schema, Value, Result>,
  request: MessageShape<Schema>,
  seen: Seen,
  by: AuditedBy,
  now: number,
): { readonly proposal: ReturnType<typeof toProposal>; readonly writes: readonly Statement[] } {
  const { row, writes } = newProposal(
    proposingOf(guarded, guarded.asked(request), request),
    ...([seen, ids.object('prp'), { ...by, action: guarded.name }, now, noneBefore] as const),
  );
  return { proposal: toProposal(row, now), writes };
}

/** The proposal of a call's change. */
function proposingOf<Schema extends DescMessage, Value, Result>(
  { name, schema }: GuardedCall<Schema, Value, Result>,
  { partnerId, objectId, about }: GuardedWork<Value, Result>,
  request: MessageShape<Schema>,
) {
  const { reason: _, ...asked } = toJson(schema, request, { useProtoFieldName: true }) as JsonObject;
  const evidence = reasonOf(request);
  return { partnerId, objectId, about, action: name, request: JSON.stringify(asked), evidence, reference: '' };
}

function reasonOf(request: unknown): string {
  return (request as { readonly reason: string }).reason;
}

/** Makes the action of the proposals of a call: the change is decided again, and made in the transaction of the approval. */
export function approvedCall<Schema extends DescMessage, Value, Result>(
  { database, clock }: Pick<FourEyesParts, 'database' | 'clock'>,
  guarded: GuardedCall<Schema, Value, Result>,
): ProposedAction {
  return {
    name: guarded.name,
    async apply({ proposal: { id, partnerId, objectId, request }, mayApply, record, call }) {
      const work = guarded.asked(readRequest(guarded.schema, request), objectId);
      const made = await ending(work, () =>
        database.inPartnerTransaction<ApprovedFacts<Value>, Made<Result>>(partnerId, {
          touches: [work.touches, id],
          fact: allFacts({
            value: work.fact,
            row: queryFact(proposals.find({ partnerId, id }), ([row]) => row && proposals.all.read(row)),
          }),
          decide: ({ value, row }, partner) => {
            if (row === undefined) throw new Error(`${id} is not stored`);
            if (!mayApply(row)) return { writes: [], result: {} };
            const change = work.decide(value, partner);
            if ('unchanged' in change) throw unlikeProposed('there is nothing left to change');
            const changed = changesSince(JSON.parse(row.seen) as Seen, change.seen);
            if (changed !== '') throw unlikeProposed(changed);
            const now = clock.now();
            const { writes, entry, after, result } = change.apply(now);
            const { evidence: reason, proposedBy } = row;
            const detail = { ...entry.detail, reason, proposal: id, proposed_by: proposedBy };
            const own = audit({ ...call, action: guarded.name }, now, { ...entry, detail });
            return { writes: [...record(row, change.seen, after), ...writes, own], result: { result } };
          },
        }),
      );
      return { changed: made.result !== undefined, objectState: '' };
    },
  };
}

interface ApprovedFacts<Value> extends Readonly<Record<string, unknown>> {
  readonly value: Value;
  readonly row: StoredProposal | undefined;
}

/** Makes a transaction's end known, whatever it is. */
async function ending<Value, Result, Answer extends Made<Result>>(
  work: GuardedWork<Value, Result>,
  transaction: () => Promise<Answer>,
): Promise<Answer | Made<Result>> {
  let made: Answer | Made<Result> = {};
  try {
    made = await transaction();
    return made;
  } catch (error) {
    if (work.failed === undefined) throw error;
    made = { result: await work.failed(error) };
    return made;
  } finally {
    work.ended?.(made.result);
  }
}

/** Reads the request of a proposal. Throws FAILED_PRECONDITION for one that this version does not know. */
function readRequest<Schema extends DescMessage>(schema: Schema, request: string): MessageShape<Schema> {
  try {
    return fromJson(schema, JSON.parse(request) as JsonValue);
  } catch (error) {
    const message = 'another version proposed it: call a replica of that version';
    throw new AdminError(status.FAILED_PRECONDITION, message, { cause: error });
  }
}

function unlikeProposed(changed: string): AdminError {
  const message = `it changed after this was proposed: ${changed}. Decline it, and propose what still holds`;
  return new AdminError(status.FAILED_PRECONDITION, message);
}
