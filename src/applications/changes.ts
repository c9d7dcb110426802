import type { Sent } from '../broker/port.ts';
import type { Statement } from '../db/statement.ts';
import { type ApplicationReport, ApplicationReportKind } from '../gen/marina/broker/v1/applications_pb.ts';
import type { Change } from '../submission/kind.ts';
import { applyReport, isUnsettled, moveTo } from './rules.ts';
import type { StoredApplication } from './store.ts';

const unclear = 'It is not known whether the broker received it; the gateway is finding out.';

/** Builds up what becomes of an application: each step moves it on, and a step the partner must hear of is told. */
export class ApplicationChange implements Change<StoredApplication> {
  after: StoredApplication;
  readonly told: StoredApplication[] = [];
  readonly writes: Statement[] = [];
  contradictions = 0;

  constructor(
    readonly before: StoredApplication,
    private readonly now: number,
  ) {
    this.after = before;
  }

  /** Changes what partners do not see. */
  note(fields: Partial<StoredApplication>): this {
    this.after = { ...this.after, ...fields };
    return this;
  }

  /** Writes something beside the application, such as a document of it. */
  write(...writes: readonly Statement[]): this {
    this.writes.push(...writes);
    return this;
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
      if (contradiction) this.contradictions += 1;
      if (changed) this.#tell({ ...application, evidence });
      else this.after = contradiction ? { ...application, evidence } : application;
    }
    return this;
  }

  #tell(application: StoredApplication): this {
    // Once nothing is unclear about it, the reconciler need not look at it.
    this.after = isUnsettled(application.state) ? application : { ...application, checkAt: null };
    this.told.push(this.after);
    return this;
  }
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
    return change.note({ firstAnswer: rejected ? 'rejected' : 'object' }).reports([sent.answer]);
  }
  if (sent.outcome === 'never-left') {
    if (isUnsettled(application.state)) {
      change.move('refused', 'It never left the gateway.', `not sent: ${sent.evidence}`);
    }
    return change.note({ firstAnswer: firstAnswerOf(change.after) });
  }
  if (application.state === 'sending') {
    change.moveToUncertain(`sent, and the outcome is unclear: ${sent.evidence}`).note({ checkAt: realNow });
  }
  return change.note({ firstAnswer: firstAnswerOf(change.after) });
}

/** Where the send itself told nothing, the application as it is by now is the answer. */
function firstAnswerOf({ state }: StoredApplication): 'object' | 'rejected' | 'not_sent' {
  if (state === 'rejected') return 'rejected';
  return state === 'refused' ? 'not_sent' : 'object';
}
