import type { Sent } from '../broker/port.ts';
import type { Statement } from '../db/statement.ts';
import { AllocationOutcome, type AllocationRecord } from '../gen/marina/broker/v1/allocations_pb.ts';
import { statedInstant } from '../lib/timestamps.ts';
import type { Change } from '../submission/kind.ts';
import { earliestAfter, insertObjectSteps, type ObjectStep } from '../submission/step-store.ts';
import { bookedAfterAll, isUnsettled, moveTo, rejectReasonOf } from './rules.ts';
import type { StoredAllocation } from './store.ts';

/** Builds up what becomes of an allocation: a move to another state is told to the partner. */
export class AllocationChange implements Change<StoredAllocation> {
  after: StoredAllocation;
  readonly told: StoredAllocation[] = [];
  readonly #steps: ObjectStep[] = [];
  /** Set when the broker's record says another thing than what the partner was told for good. */
  contradiction: string | undefined;

  constructor(
    readonly before: StoredAllocation,
    private readonly now: number,
  ) {
    this.after = before;
  }

  get writes(): Statement[] {
    return insertObjectSteps(this.after, this.#steps);
  }

  get contradictions(): string[] {
    return this.contradiction === undefined ? [] : [this.contradiction];
  }

  get reportedAfterMs(): number | undefined {
    return earliestAfter(this.before.createdAt, this.#steps);
  }

  /** Adds a step to the history, after what it tells of. */
  step(kind: ObjectStep['kind'], detail: string, record?: AllocationRecord): this {
    const upstreamAt = statedInstant(record?.at);
    this.#steps.push({ kind, at: this.now, state: this.after.state, detail, upstreamAt });
    return this.note({ steps: this.after.steps + 1 });
  }

  /** Changes what partners do not see. */
  note(fields: Partial<StoredAllocation>): this {
    this.after = { ...this.after, ...fields };
    return this;
  }

  /** Moves the allocation to a state and tells the partner. */
  move(state: StoredAllocation['state'], reason: string | null): this {
    const moved = moveTo(this.after, state, reason, this.now);
    // Once nothing is unclear about it, the reconciler need not look at it.
    this.after = isUnsettled(state) ? moved : { ...moved, checkAt: null };
    this.told.push(this.after);
    return this;
  }

  /** Applies the broker's record, which never changes: to a settled allocation it can only say the same again. */
  record(record: AllocationRecord): this {
    const { outcome, brokerReference, rejectReason } = record;
    const booked = outcome === AllocationOutcome.BOOKED;
    if (!isUnsettled(this.after.state)) {
      const same = this.after.state === (booked ? 'booked' : 'rejected');
      // What never was at the broker was not booked there, and that is all a rejection says too.
      const harmless = this.after.state === 'refused' && !booked;
      if (same || harmless) return this;
      const said = booked ? 'booked' : 'rejected';
      this.contradiction = `the broker's record says ${said}, and the allocation is ${this.after.state}`;
      this.note({ evidence: this.contradiction });
      const { state, reason } = this.after;
      if (state === 'refused' && reason !== bookedAfterAll) this.#tell({ ...this.after, reason: bookedAfterAll });
      return this.step('contradiction', this.contradiction, record);
    }
    if (booked)
      return this.note({ brokerReference }).move('booked', null).step('report', 'the broker booked it', record);
    const { word, sentence } = rejectReasonOf(rejectReason);
    return this.note({ rejectReason: word })
      .move('rejected', sentence)
      .step('report', `the broker rejected it: ${word}`, record);
  }

  #tell(allocation: StoredAllocation): void {
    this.after = { ...allocation, updatedAt: Math.max(this.now, allocation.updatedAt) };
    this.told.push(this.after);
  }
}

/** What the send came to. The reconciler may have settled the allocation first. */
export function applySent(
  allocation: StoredAllocation,
  sent: Sent<AllocationRecord>,
  now: number,
  realNow: number,
): AllocationChange {
  const change = new AllocationChange(allocation, now);
  const unsettled = isUnsettled(allocation.state);
  if (sent.outcome === 'answered') {
    const rejected = sent.answer.outcome === AllocationOutcome.REJECTED;
    const evidence = rejected ? 'sent, and the broker refused it' : 'sent, and the broker booked it';
    return change
      .note({ firstAnswer: rejected ? 'rejected' : 'object', evidence })
      .step('sent', evidence)
      .record(sent.answer);
  }
  if (sent.outcome === 'never-left') {
    const evidence = `not sent: ${sent.evidence}`;
    if (unsettled) change.note({ evidence }).move('refused', sent.reason ?? 'It never left the gateway.');
    return change.note({ firstAnswer: firstAnswerOf(change.after) }).step('sent', evidence);
  }
  const evidence = `sent, and the outcome is unclear: ${sent.evidence}`;
  if (unsettled) change.note({ evidence });
  if (allocation.state === 'sending') {
    change.move('uncertain', 'It is not known whether the broker received it; the gateway is finding out.');
    change.note({ checkAt: realNow });
  }
  return change.note({ firstAnswer: firstAnswerOf(change.after) }).step('sent', evidence);
}

/** Where the send itself told nothing, the allocation as it is by now is the answer. */
function firstAnswerOf(allocation: StoredAllocation): 'object' | 'rejected' | 'not_sent' {
  if (allocation.state === 'rejected') return 'rejected';
  return allocation.state === 'refused' ? 'not_sent' : 'object';
}
