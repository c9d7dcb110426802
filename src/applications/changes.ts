import type { Sent } from '../broker/port.ts';
import type { Statement } from '../db/statement.ts';
import { type ApplicationReport, ApplicationReportKind } from '../gen/marina/broker/v1/applications_pb.ts';
import { statedInstant } from '../lib/timestamps.ts';
import type { Change } from '../submission/kind.ts';
import { isBehind } from '../submission/row-store.ts';
import { earliestAfter, insertObjectSteps, type ObjectStep } from '../submission/step-store.ts';
import { applyReport, isUnsettled, moveTo } from './rules.ts';
import type { StoredApplication } from './store.ts';

const unclear = 'It is not known whether the broker received it; the gateway is finding out.';

/** Builds up what becomes of an application: each step moves it on, and a step the partner must hear of is told. */
export class ApplicationChange implements Change<StoredApplication> {
  after: StoredApplication;
  readonly told: StoredApplication[] = [];
  readonly contradictions: string[] = [];
  readonly #steps: ObjectStep[] = [];
  readonly #beside: Statement[] = [];

  constructor(
    readonly before: StoredApplication,
    private readonly now: number,
  ) {
    this.after = before;
  }

  get writes(): Statement[] {
    return [...this.#beside, ...insertObjectSteps(this.after, this.#steps)];
  }

  get reportedAfterMs(): number | undefined {
    return earliestAfter(this.before.createdAt, this.#steps);
  }

  /** Changes what partners do not see. */
  note(fields: Partial<StoredApplication>): this {
    this.after = { ...this.after, ...fields };
    return this;
  }

  /** Writes something beside the application, such as a document of it. */
  write(...writes: readonly Statement[]): this {
    this.#beside.push(...writes);
    return this;
  }

  /** Adds a step to the history, after what it tells of. */
  step(kind: ObjectStep['kind'], detail: string, report?: ApplicationReport): this {
    const said = report === undefined ? {} : { reportNumber: report.number, upstreamAt: statedInstant(report.at) };
    this.#steps.push({ kind, at: this.now, state: this.after.state, detail, ...said });
    return this.note({ steps: this.after.steps + 1 });
  }

  /** Moves the application to a state and tells the partner. */
  move(state: StoredApplication['state'], reason: string | null, evidence: string): this {
    return this.#tell({ ...moveTo(this.after, state, reason, this.now), evidence });
  }

  /** Says that nobody knows whether the broker has it. */
  moveToUncertain(evidence: string): this {
    return this.move('uncertain', unclear, evidence);
  }

  /** Applies reports of the broker in the order of their numbers, each once. */
  reports(reports: readonly ApplicationReport[]): this {
    for (const report of reports) {
      const applied = applyReport(this.after, report, this.now);
      if (applied === undefined) continue;
      const { application, changed, contradiction, evidence } = applied;
      if (contradiction) this.contradictions.push(evidence);
      if (changed) this.#tell({ ...application, evidence });
      else this.after = settle(contradiction ? { ...application, evidence } : application);
      this.step(contradiction ? 'contradiction' : 'report', evidence, report);
    }
    return this;
  }

  #tell(application: StoredApplication): this {
    this.after = settle(application);
    this.told.push(this.after);
    return this;
  }
}

/** Once nothing is unclear about an application, the reconciler need not look at it. */
function settle(application: StoredApplication): StoredApplication {
  const mustStay = isUnsettled(application.state) || isBehind(application);
  return mustStay ? application : { ...application, checkAt: null };
}

/** What the send came to. The application may have moved on since: a report, or the reconciler, may have come first. */
export function applySent(
  application: StoredApplication,
  sent: Sent<ApplicationReport>,
  now: number,
  realNow: number,
): ApplicationChange {
  const change = new ApplicationChange(application, now);
  if (sent.outcome === 'answered') {
    const rejected = sent.answer.kind === ApplicationReportKind.REJECTED;
    return change
      .note({ firstAnswer: rejected ? 'rejected' : 'object' })
      .step('sent', rejected ? 'sent, and the broker refused it' : 'sent, and the broker accepted it')
      .reports([sent.answer]);
  }
  if (sent.outcome === 'never-left') {
    const evidence = `not sent: ${sent.evidence}`;
    if (isUnsettled(application.state)) change.move('refused', sent.reason ?? 'It never left the gateway.', evidence);
    return change.note({ firstAnswer: firstAnswerOf(change.after) }).step('sent', evidence);
  }
  const evidence = `sent, and the outcome is unclear: ${sent.evidence}`;
  if (application.state === 'sending') change.moveToUncertain(evidence).note({ checkAt: realNow });
  return change.note({ firstAnswer: firstAnswerOf(change.after) }).step('sent', evidence);
}

/** Where the send itself told nothing, the application as it is by now is the answer. */
function firstAnswerOf({ state }: StoredApplication): 'object' | 'rejected' | 'not_sent' {
  if (state === 'rejected') return 'rejected';
  return state === 'refused' ? 'not_sent' : 'object';
}
