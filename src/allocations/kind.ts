import { findAccount } from '../accounts/store.ts';
import { toDayLimits } from '../auth/store.ts';
import type { AllocationBroker, LookedUp, Sent } from '../broker/port.ts';
import type { LockedPartner } from '../db/locked-partner.ts';
import type { SqlRow, Statement } from '../db/statement.ts';
import type { AllocationRecord } from '../gen/marina/broker/v1/allocations_pb.ts';
import type { CreateAllocationRequest } from '../gen/marina/gateway/v1/allocations_pb.ts';
import { type Clock, lagosDay } from '../lib/clock.ts';
import { ApiError } from '../lib/errors.ts';
import type { IdMaker } from '../lib/ids.ts';
import type { Logger } from '../lib/log.ts';
import type { Origin } from '../lib/origin.ts';
import { checkDayLimit } from '../limits/rules.ts';
import { readUsage, toUsedKobo } from '../limits/usage.ts';
import { freeOldKey } from '../submission/key-retention.ts';
import {
  type Change,
  type Kind,
  type NewSubmission,
  type RenewedSubmission,
  renewedEvidence,
  type Stored,
} from '../submission/kind.ts';
import type { FactReader, Facts, Notes } from '../submission/notes.ts';
import type { ReconciledKind } from '../submission/reconcile.ts';
import type { RecoveredKind } from '../submission/recovery.ts';
import { insertObjectSteps } from '../submission/step-store.ts';
import type { TransferTypeWord } from '../wallet/rules.ts';
import { readWallet, sumsOf, transfer } from '../wallet/store.ts';
import { AllocationChange, applySent } from './changes.ts';
import { stateWords, toAllocationMessage } from './messages.ts';
import { countedKobo, isFinal, isUnsettled, settlementOf } from './rules.ts';
import {
  findAllocation,
  findAllocationByKey,
  findDueAllocations,
  findSimilarUnsettled,
  insertAllocation,
  type StoredAllocation,
  toStoredAllocation,
  updateAllocation,
} from './store.ts';

/** What allocations need from the rest of the gateway. */
export interface AllocationParts {
  readonly broker: AllocationBroker;
  readonly clock: Clock;
  readonly ids: IdMaker;
  readonly notes: Notes;
  readonly log: Logger;
  /** How long a send may take: the broker must not take the allocation later than this after it was stored. */
  readonly submitTimeoutMs: number;
  /** How far the broker's clock may be from ours. */
  readonly clockSkewMs: number;
}

/** An allocation that is ready to be stored. */
type AllocationDraft = Omit<
  StoredAllocation,
  'partnerId' | 'origin' | 'idempotencyKey' | 'requestDigest' | 'notAfter' | 'checkAt'
>;

/** How allocations use the mechanism that stores, sends once, records and reconciles. */
export class AllocationKind
  implements
    Kind<StoredAllocation, CreateAllocationRequest, AllocationDraft, AllocationRecord>,
    ReconciledKind<StoredAllocation, AllocationRecord>,
    RecoveredKind<StoredAllocation>
{
  readonly name = 'allocation';
  readonly table = 'allocations';
  readonly prefix = 'alc';
  readonly codes = {
    duplicate: 'duplicate_allocation',
    rejected: 'allocation_rejected',
    notSent: 'allocation_not_sent',
  } as const;
  readonly find = findAllocation;
  readonly findByKey = findAllocationByKey;
  readonly due = findDueAllocations;
  readonly toRow = toStoredAllocation;
  /** What an allocation comes to moves money. */
  readonly saveReads = (partnerId: string) => [readWallet(partnerId)];

  constructor(private readonly parts: AllocationParts) {}

  path(id: string): string {
    return `/v1/allocations/${id}`;
  }

  isKnown({ state }: StoredAllocation): boolean {
    return stateWords.knows(state);
  }

  preparationReads(): Statement[] {
    return [];
  }

  /** Nothing outside has to be asked: everything is decided under the lock, where it has to be read anyway. */
  prepareKnown(_partnerId: string, { account, amountKobo, clientReference }: CreateAllocationRequest): AllocationDraft {
    if (account === undefined || amountKobo === undefined) throw new Error('a field that the rules require is missing');
    const now = this.parts.clock.now();
    return {
      id: this.parts.ids.object('alc'),
      state: 'sending',
      account,
      amountKobo,
      clientReference: clientReference ?? null,
      brokerReference: null,
      reason: null,
      rejectReason: null,
      createdAt: now,
      updatedAt: now,
      countedDay: lagosDay(now),
      firstAnswer: null,
      evidence: 'stored, before it is sent',
      checks: 0,
      missingSince: null,
      steps: 1,
    };
  }

  async prepare({ partnerId }: Origin, request: CreateAllocationRequest): Promise<AllocationDraft> {
    return this.prepareKnown(partnerId, request);
  }

  storeReads(partnerId: string, draft: AllocationDraft): Statement[] {
    return [
      findAccount(partnerId, draft.account),
      findSimilarUnsettled(partnerId, draft, this.parts.clock.realNow()),
      readUsage(partnerId, draft.countedDay, 'allocations'),
      readWallet(partnerId),
    ];
  }

  store(
    draft: AllocationDraft,
    submission: NewSubmission,
    partner: LockedPartner,
    [accounts, similar, usage, wallets]: readonly SqlRow[][],
  ): Stored<StoredAllocation> {
    if (accounts?.[0] === undefined) throw new ApiError('unknown_account', { param: 'account' });
    if (similar?.[0] !== undefined) throw new ApiError('similar_allocation_unresolved');
    const { allocationsKoboPerDay } = toDayLimits(partner.row);
    checkDayLimit(
      'allocations per day',
      allocationsKoboPerDay,
      toUsedKobo(partner, draft.countedDay, 'allocations', usage),
      draft.amountKobo,
      this.parts.clock.now(),
    );
    const { availableKobo } = sumsOf(partner, wallets);
    if (availableKobo < draft.amountKobo) {
      throw new ApiError('wallet_too_low', {
        message: `The wallet has ${availableKobo} kobo available, and this allocation needs ${draft.amountKobo}.`,
      });
    }

    const notAfter = this.parts.clock.realNow() + this.parts.submitTimeoutMs;
    const row = { ...draft, ...submission, notAfter, checkAt: notAfter + this.parts.clockSkewMs };
    this.parts.notes.checkLength(row, factsOf(row));
    this.#transfer('reserve', row, partner, wallets);
    partner.addUsage('allocations', row.countedDay, countedKobo(row));
    const stored = { kind: 'stored', at: row.createdAt, state: row.state, detail: row.evidence } as const;
    return { row, writes: [insertAllocation(row), ...insertObjectSteps(row, [stored])] };
  }

  send(row: StoredAllocation): Promise<Sent<AllocationRecord>> {
    const note = this.parts.notes.write(row, factsOf(row));
    return this.parts.broker.submitAllocation({ ...row, note }, row.notAfter);
  }

  renewReads(partnerId: string): Statement[] {
    return [readWallet(partnerId)];
  }

  /** Its reserve is made again; what became of it, post or return, comes with the broker's record. */
  renew(
    id: string,
    submission: RenewedSubmission,
    facts: FactReader,
    partner: LockedPartner,
    [wallets]: readonly SqlRow[][],
  ): Stored<StoredAllocation> {
    const createdAt = facts.instant('createdAt');
    const row: StoredAllocation = {
      ...submission,
      id,
      state: 'uncertain',
      account: facts.text('account'),
      amountKobo: facts.whole('amountKobo'),
      clientReference: facts.optionalText('clientReference'),
      brokerReference: null,
      reason: 'It is not known whether the broker received it; the gateway is finding out.',
      rejectReason: null,
      createdAt,
      updatedAt: createdAt,
      countedDay: facts.day('countedDay'),
      firstAnswer: null,
      evidence: renewedEvidence,
      notAfter: facts.instant('notAfter'),
      checkAt: this.parts.clock.realNow(),
      checks: 0,
      missingSince: null,
      steps: 1,
    };
    if (sumsOf(partner, wallets).availableKobo < row.amountKobo) throw new ApiError('wallet_too_low');
    this.#transfer('reserve', row, partner, wallets);
    partner.addUsage('allocations', row.countedDay, countedKobo(row));
    const stored = { kind: 'stored', at: createdAt, state: row.state, detail: renewedEvidence } as const;
    return { row, writes: [insertAllocation(row), ...insertObjectSteps(row, [stored])] };
  }

  applySent(row: StoredAllocation, sent: Sent<AllocationRecord>): AllocationChange {
    return applySent(row, sent, this.parts.clock.now(), this.parts.clock.realNow());
  }

  isUnsettled(row: StoredAllocation): boolean {
    return isUnsettled(row.state);
  }

  /** The sender has had its time: whatever became of it, nobody knows it now. */
  leaseRanOut(row: StoredAllocation): AllocationChange | undefined {
    if (row.state !== 'sending') return undefined;
    const evidence = 'the time to send it ran out without a recorded outcome';
    return this.#begin(row)
      .note({ evidence })
      .move('uncertain', 'It is not known whether the broker received it; the gateway is finding out.')
      .step('reconciliation', evidence);
  }

  lookUp(row: StoredAllocation): Promise<LookedUp<AllocationRecord>> {
    return this.parts.broker.lookUpAllocation(row.id, row.origin);
  }

  found(row: StoredAllocation, record: AllocationRecord): AllocationChange {
    const evidence = "the broker's record has it";
    return this.#begin(row).note({ evidence }).step('reconciliation', evidence).record(record);
  }

  missing(row: StoredAllocation, askedAt: number, provesAbsence: boolean, nextCheckAt: number): AllocationChange {
    const change = this.#begin(row).note({ checks: row.checks + 1, checkAt: nextCheckAt });
    if (provesAbsence) {
      const evidence = "the broker's record does not have it, and it can no longer be taken";
      return change.note({ evidence }).move('refused', 'It never reached the broker.').step('reconciliation', evidence);
    }
    if (row.missingSince !== null) return change;
    const evidence = "the broker's record does not have it yet";
    return change.note({ missingSince: askedAt, evidence }).step('reconciliation', evidence);
  }

  unanswered(row: StoredAllocation, nextCheckAt: number): AllocationChange {
    return this.#begin(row).note({ checks: row.checks + 1, checkAt: nextCheckAt });
  }

  save(
    { before, after }: Change<StoredAllocation>,
    partner: LockedPartner,
    [wallets]: readonly SqlRow[][],
  ): Statement[] {
    partner.addUsage('allocations', after.countedDay, countedKobo(after) - countedKobo(before));
    const settlement = settlementOf(before.state, after.state);
    if (settlement !== undefined) this.#transfer(settlement, after, partner, wallets);
    const freed = isFinal(after.state) ? freeOldKey('allocations', after, this.parts.clock) : [];
    return [updateAllocation(after), ...freed];
  }

  toEvent(row: StoredAllocation) {
    return {
      type: `allocation.${row.state}`,
      occurredAt: row.updatedAt,
      origin: row.origin,
      data: { case: 'allocation' as const, value: toAllocationMessage(row) },
    };
  }

  #begin(row: StoredAllocation): AllocationChange {
    return new AllocationChange(row, this.parts.clock.now());
  }

  #transfer(
    type: TransferTypeWord,
    { id, amountKobo, account }: StoredAllocation,
    partner: LockedPartner,
    wallets: readonly SqlRow[] | undefined,
  ): void {
    transfer(partner, wallets, {
      id: this.parts.ids.object('wtr'),
      type,
      amountKobo,
      allocation: id,
      account: type === 'post' ? account : null,
      bankReference: null,
      createdAt: this.parts.clock.now(),
    });
  }
}

/** What must be known of an allocation to store it anew. */
function factsOf(row: StoredAllocation): Facts {
  return {
    account: row.account,
    amountKobo: row.amountKobo.toString(),
    clientReference: row.clientReference,
    createdAt: row.createdAt,
    countedDay: row.countedDay,
    notAfter: row.notAfter,
  };
}
