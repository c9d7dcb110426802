import type { Statement } from '../../store/statement.ts';
import type { Sent } from '../broker/broker.ts';
import { keepContradictions } from './contradictions.ts';
import { type CreatedKind, type Kind, unclearReason } from './kind.ts';
import { isUnsettled, type ReportedStep, type Settled } from './rules.ts';
import { earliestAfter, isBehind, isHeld, type NewStep, type Submission, sentFrom } from './table.ts';

/** The history's sentence for an object whose sender recorded no outcome in time. */
const leaseRanOutDetail = 'the time to send it ran out without a recorded outcome';

/**
 * Collects the changes of one object, starting from its row under the lock: its fields, its history, and the rows that make
 * events. It writes nothing; the recorder saves it.
 */
export class Change<Row extends Submission, Report = unknown> {
  after: Row;
  /** The row at each moment that makes an event, oldest first. */
  readonly events: Row[] = [];
  readonly steps: NewStep[] = [];
  /** Reports that contradict the state, in our own words. The state was kept, and a person must look. */
  readonly inconsistencies: string[] = [];
  readonly #writes: Statement[] = [];

  constructor(
    private readonly kind: Kind<Row, Report>,
    readonly before: Row,
    private readonly now: number,
  ) {
    this.after = before;
  }

  /** The statements that are written together with the row and its events. */
  get writes(): Statement[] {
    const appended = this.kind.history.append(this.after, this.steps);
    const kept = this.inconsistencies.length === 0 ? [] : keepContradictions(this.after, this.steps);
    return [...this.#writes, ...appended, ...kept];
  }

  /** The time from the storing of the row to the earliest report in this change, by the broker's clock, in milliseconds. */
  get reportedAfterMs(): number | undefined {
    return earliestAfter(sentFrom(this.before), this.steps);
  }

  /** Changes fields that partners do not see. */
  note(fields: Partial<Row>): this {
    this.after = { ...this.after, ...fields };
    return this;
  }

  /** Writes something together with the object, such as a document of it. */
  write(...writes: readonly Statement[]): this {
    this.#writes.push(...writes);
    return this;
  }

  step(kind: NewStep['kind'], detail: string, report: ReportedStep = {}): this {
    this.steps.push({ kind, at: this.now, state: this.after.state, detail, ...report });
    const counted = { steps: this.after.steps + 1 } as Partial<Row>;
    return this.note(this.#isEvidence(kind) ? { evidence: detail, ...counted } : counted);
  }

  /** Moves the object to a state, and emits an event. */
  move(state: Row['state'], reason: string | null): this {
    return this.#emit(this.kind.states.move(this.after, state, reason, this.now));
  }

  /** Applies reports in the order of their numbers, each once. */
  reports(reports: readonly Report[]): this {
    for (const report of reports) {
      const applied = this.kind.applyReport(this.after, report, this.now);
      if (applied === undefined) continue;
      const { row, changed, inconsistent, detail, tradeSequence } = applied;
      const step = { ...this.kind.reportStep(report, this.after, row), tradeSequence };
      if (changed) this.#emit(row);
      else this.after = this.#settled(row);
      if (inconsistent) this.inconsistencies.push(detail);
      this.step(inconsistent ? 'contradiction' : 'report', detail, step);
    }
    return this;
  }

  /** Notes that the upstream contradicted itself, unless a report in this change did. The state is kept. */
  contradicted(detail: string): this {
    if (this.inconsistencies.length > 0) return this;
    this.inconsistencies.push(detail);
    return this.step('contradiction', detail);
  }

  /** Applies what an operator settled by evidence: each change with its event and its step, as if the upstream had reported it. */
  settle(changes: readonly Settled<Row>[]): this {
    for (const { fields, detail, step } of changes) {
      this.#emit({ ...this.after, ...fields });
      this.step('settled_by_operator', `settled by the operator: ${detail}`, step);
    }
    return this;
  }

  /** Whether a step is the evidence for the state. A step of a settled object that leaves its state alone is not. */
  #isEvidence(kind: NewStep['kind']): boolean {
    const { state } = this.after;
    const tellsOfState = state !== this.before.state || isUnsettled(state) || kind === 'contradiction';
    return 'evidence' in this.after && kind !== 'document' && tellsOfState;
  }

  #emit(row: Row): this {
    this.after = this.#settled(row);
    this.events.push(this.after);
    return this;
  }

  /** Takes an object whose outcome is known off the reconciler's list. */
  #settled(row: Row): Row {
    if (isUnsettled(row.state)) return row;
    const checkAt = isBehind(row) ? row.checkAt : null;
    return { ...row, checkAt, ...this.kind.cleared?.(row) };
  }
}

/** Applies the outcome of a send. A report or the reconciler may have changed the object before. */
export function applySent<Row extends Submission, Report>(
  kind: Kind<Row, Report> & Pick<CreatedKind<Row, Report, never>, 'isRejection' | 'accepted'>,
  row: Row,
  sent: Sent<Report>,
  now: number,
  realNow: number,
): Change<Row, Report> {
  const change = new Change(kind, row, now);
  if (sent.outcome === 'answered') {
    const isRejected = kind.isRejection(sent.answer);
    change
      .step('sent', `sent, and the ${kind.upstream} ${isRejected ? 'refused' : kind.accepted} it`)
      .reports([sent.answer]);
    // A report that came before the answer may say otherwise. Then the partner is not told that it was rejected.
    const isBelieved = isRejected && change.after.state === 'rejected';
    if (isRejected && !isBelieved)
      change.contradicted(`the ${kind.upstream} answered that it rejected it, and had reported it`);
    return change.note({ firstAnswer: row.firstAnswer ?? (isBelieved ? 'rejected' : 'object') } as Partial<Row>);
  }
  if (sent.outcome === 'never-left') {
    if (isUnsettled(row.state)) change.move('refused', sent.reason ?? 'It never left the gateway.');
    return noteAnswer(change).step('sent', `not sent: ${sent.evidence}`);
  }
  if (row.state === 'sending') {
    change.move('uncertain', unclearReason(kind)).note({ checkAt: realNow } as Partial<Row>);
  }
  return noteAnswer(change).step('sent', `sent, and the outcome is unclear: ${sent.evidence}`);
}

/** If the send has no answer, the present state of the object becomes the first answer. */
function noteAnswer<Row extends Submission, Report>(change: Change<Row, Report>): Change<Row, Report> {
  const { state, firstAnswer } = change.after;
  const answers: Record<string, Submission['firstAnswer']> = { rejected: 'rejected', refused: 'not_sent' };
  return change.note({ firstAnswer: firstAnswer ?? answers[state] ?? 'object' } as Partial<Row>);
}

/** How long a new object waits for its release by operators, in milliseconds: over a long weekend. */
const longestHoldMs = 7 * 86_400_000;

/** The fields of a new object that must wait for its release. The partner has its answer then. `now` is business time. */
export function heldFields(now: number, realNow: number) {
  const reason = 'It waits for its release by the operators.';
  return { heldUntil: now + longestHoldMs, reason, firstAnswer: 'object', notAfter: realNow, checkAt: null } as const;
}

/** The operators release an object that waited: from now on it may be sent, as a new one. */
export function applyReleased<Row extends Submission, Report>(
  kind: Kind<Row, Report>,
  row: Row,
  times: Pick<Submission, 'notAfter' | 'checkAt'>,
  now: number,
): Change<Row, Report> {
  const released = { ...times, heldUntil: null, releasedAt: now, reason: null };
  return new Change(kind, row, now).note(released as Partial<Row>).step('release', 'the operators released it');
}

/** An object that waited is not released, and is never sent. */
export function applyNotReleased<Row extends Submission, Report>(
  kind: Kind<Row, Report>,
  row: Row,
  why: string,
  now: number,
): Change<Row, Report> {
  return new Change(kind, row, now)
    .note({ heldUntil: null } as Partial<Row>)
    .move('refused', `${why} It never left the gateway.`)
    .step('release', `not released and not sent: ${why}`);
}

/** The sender's time has run out, so the outcome is unknown. Undefined if that is recorded already. */
export function applyLeaseEnd<Row extends Submission, Report>(
  kind: Kind<Row, Report>,
  row: Row,
  now: number,
): Change<Row, Report> | undefined {
  if (row.state !== 'sending' || isHeld(row)) return undefined;
  return new Change(kind, row, now).move('uncertain', unclearReason(kind)).step('reconciliation', leaseRanOutDetail);
}

/** The upstream's record has the object. Undefined if the record has no new report: the stream will bring it. */
export function applyFound<Row extends Submission, Report>(
  kind: Kind<Row, Report>,
  row: Row,
  reports: readonly Report[],
  now: number,
): Change<Row, Report> | undefined {
  if (reports.length === 0) return undefined;
  return new Change(kind, row, now).step('reconciliation', `the ${kind.upstream}'s record has it`).reports(reports);
}

/** The upstream's record does not have the object. If that is proof that it never will, the object is refused. */
export function applyMissing<Row extends Submission, Report>(
  kind: Kind<Row, Report>,
  row: Row,
  { askedAt, provesAbsence, nextCheckAt }: { askedAt: number; provesAbsence: boolean; nextCheckAt: number },
  now: number,
): Change<Row, Report> {
  const change = applyUnanswered(kind, row, nextCheckAt, now);
  if (provesAbsence) {
    return change
      .move(kind.absent.state, kind.absent.reason)
      .step('reconciliation', `the ${kind.upstream}'s record does not have it, and it can no longer be taken`);
  }
  if (row.missingSince !== null) return change;
  return change
    .note({ missingSince: askedAt } as Partial<Row>)
    .step('reconciliation', `the ${kind.upstream}'s record does not have it yet`);
}

/** The upstream was asked, and the outcome is still unknown. */
export function applyUnanswered<Row extends Submission, Report>(
  kind: Kind<Row, Report>,
  row: Row,
  nextCheckAt: number,
  now: number,
): Change<Row, Report> {
  return new Change(kind, row, now).note({ checks: row.checks + 1, checkAt: nextCheckAt } as Partial<Row>);
}

/**
 * Notes that reports about an object were not applied, so that they are looked up at `checkAt`. It counts as a check, so
 * that no transaction saves an older row over it. Undefined if that is noted already.
 */
export function passOver<Row extends Submission, Report extends { readonly number: bigint }>(
  kind: Kind<Row, Report>,
  row: Row,
  reports: readonly Report[],
  checkAt: number,
  now: number,
): Change<Row, Report> | undefined {
  const missedReport = reports.at(-1)?.number ?? 0n;
  if (missedReport <= (row.lastReport ?? 0n) || missedReport <= (row.missedReport ?? 0n)) return undefined;
  return applyUnanswered(kind, row, checkAt, now).note({ missedReport } as Partial<Row>);
}
