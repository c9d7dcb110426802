import { openAccount } from '../accounts/store.ts';
import type { ApplicationBroker, LookedUp, Sent } from '../broker/port.ts';
import type { Database } from '../db/database.ts';
import type { Statement } from '../db/statement.ts';
import { type ApplicationReport, ApplicationReportKind } from '../gen/marina/broker/v1/applications_pb.ts';
import type { CreateApplicationRequest } from '../gen/marina/gateway/v1/applications_pb.ts';
import type { Clock } from '../lib/clock.ts';
import type { IdMaker } from '../lib/ids.ts';
import type { Logger } from '../lib/log.ts';
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
import type { ReportedKind } from '../submission/reports.ts';
import { isBehind } from '../submission/row-store.ts';
import { insertObjectSteps } from '../submission/step-store.ts';
import { ApplicationChange, applySent } from './changes.ts';
import { stateWords, toApplicationFields, toApplicationMessage } from './messages.ts';
import { isFinal, isUnsettled } from './rules.ts';
import {
  findApplication,
  findApplicationByKey,
  findApplications,
  findDueApplications,
  findForeignAccount,
  findPartnersOfApplications,
  insertApplication,
  type StoredApplication,
  toStoredApplication,
  updateApplication,
} from './store.ts';

/** What applications need from the rest of the gateway. */
export interface ApplicationParts {
  readonly broker: ApplicationBroker;
  readonly database: Database;
  readonly clock: Clock;
  readonly ids: IdMaker;
  readonly notes: Notes;
  readonly log: Logger;
  /** How long a send may take: the broker must not take the application later than this after it was stored. */
  readonly submitTimeoutMs: number;
  /** How far the broker's clock may be from ours. */
  readonly clockSkewMs: number;
}

/** An application that is ready to be stored. What the request says of the customer is not in it. */
type ApplicationDraft = Omit<
  StoredApplication,
  'partnerId' | 'origin' | 'idempotencyKey' | 'requestDigest' | 'notAfter' | 'checkAt'
>;

/** How applications use the mechanism that stores, sends once, records and reconciles. */
export class ApplicationKind
  implements
    Kind<StoredApplication, CreateApplicationRequest, ApplicationDraft, ApplicationReport>,
    ReconciledKind<StoredApplication, readonly ApplicationReport[]>,
    ReportedKind<StoredApplication, ApplicationReport>,
    RecoveredKind<StoredApplication>
{
  readonly name = 'application';
  readonly table = 'applications';
  readonly prefix = 'app';
  readonly codes = {
    duplicate: 'duplicate_application',
    rejected: 'application_rejected',
    notSent: 'application_not_sent',
  } as const;
  readonly find = findApplication;
  readonly findMany = findApplications;
  readonly findByKey = findApplicationByKey;
  readonly findPartners = findPartnersOfApplications;
  readonly due = findDueApplications;
  readonly toRow = toStoredApplication;

  constructor(private readonly parts: ApplicationParts) {}

  path(id: string): string {
    return `/v1/applications/${id}`;
  }

  isKnown({ state }: StoredApplication): boolean {
    return stateWords.knows(state);
  }

  isBehind(row: StoredApplication): boolean {
    return isBehind(row);
  }

  preparationReads(): Statement[] {
    return [];
  }

  /** Nothing must be known beforehand: what there is to refuse, the broker refuses. */
  prepareKnown(): ApplicationDraft {
    const now = this.parts.clock.now();
    return {
      id: this.parts.ids.object('app'),
      state: 'sending',
      reference: null,
      account: null,
      reason: null,
      rejectReason: null,
      param: null,
      createdAt: now,
      updatedAt: now,
      firstAnswer: null,
      lastReport: 0n,
      evidence: 'stored, before it is sent',
      checks: 0,
      missingSince: null,
      steps: 1,
      missedReport: 0n,
    };
  }

  async prepare(): Promise<ApplicationDraft> {
    return this.prepareKnown();
  }

  storeReads(): Statement[] {
    return [];
  }

  store(draft: ApplicationDraft, submission: NewSubmission): Stored<StoredApplication> {
    const notAfter = this.parts.clock.realNow() + this.parts.submitTimeoutMs;
    const row = { ...draft, ...submission, notAfter, checkAt: notAfter + this.parts.clockSkewMs };
    this.parts.notes.checkLength(row, factsOf(row));
    const stored = { kind: 'stored', at: row.createdAt, state: row.state, detail: row.evidence } as const;
    return { row, writes: [insertApplication(row), ...insertObjectSteps(row, [stored])] };
  }

  send(row: StoredApplication, request: CreateApplicationRequest): Promise<Sent<ApplicationReport>> {
    const note = this.parts.notes.write(row, factsOf(row));
    return this.parts.broker.submitApplication({ ...row, fields: toApplicationFields(request), note }, row.notAfter);
  }

  renewReads(): Statement[] {
    return [];
  }

  renew(id: string, submission: RenewedSubmission, facts: FactReader): Stored<StoredApplication> {
    const createdAt = facts.instant('createdAt');
    const row: StoredApplication = {
      ...submission,
      id,
      state: 'uncertain',
      reference: null,
      account: null,
      reason: 'It is not known whether the broker received it; the gateway is finding out.',
      rejectReason: null,
      param: null,
      createdAt,
      updatedAt: createdAt,
      firstAnswer: null,
      lastReport: 0n,
      evidence: renewedEvidence,
      notAfter: facts.instant('notAfter'),
      checkAt: this.parts.clock.realNow(),
      checks: 0,
      missingSince: null,
      steps: 1,
      missedReport: 0n,
    };
    const stored = { kind: 'stored', at: createdAt, state: row.state, detail: renewedEvidence } as const;
    return { row, writes: [insertApplication(row), ...insertObjectSteps(row, [stored])] };
  }

  applySent(row: StoredApplication, sent: Sent<ApplicationReport>): ApplicationChange {
    return applySent(row, sent, this.parts.clock.now(), this.parts.clock.realNow());
  }

  async *streamReports(afterNumber: bigint, signal: AbortSignal): AsyncIterable<readonly ApplicationReport[]> {
    for await (const reports of this.parts.broker.streamApplicationReports(afterNumber, signal)) {
      yield await this.#vet(reports);
    }
  }

  objectIdOf({ clientApplicationId }: ApplicationReport): string {
    return clientApplicationId;
  }

  applyReports(row: StoredApplication, reports: readonly ApplicationReport[]): ApplicationChange | undefined {
    // Reports are applied in the order of their numbers: first come those that were passed over.
    if (isBehind(row)) return this.#passOver(row, reports, this.parts.clock.realNow());
    const change = this.begin(row).reports(reports);
    return change.after === row ? undefined : change;
  }

  passOver(row: StoredApplication, reports: readonly ApplicationReport[]): ApplicationChange | undefined {
    return this.#passOver(row, reports, row.checkAt ?? this.parts.clock.realNow());
  }

  #passOver(
    row: StoredApplication,
    reports: readonly ApplicationReport[],
    checkAt: number,
  ): ApplicationChange | undefined {
    const missedReport = reports.at(-1)?.number ?? 0n;
    if (missedReport <= row.lastReport || missedReport <= row.missedReport) return undefined;
    return this.begin(row).note({ missedReport, checkAt, checks: row.checks + 1 });
  }

  /** The broker has all four documents. It may have decided before the last of them was recorded. */
  documentsDelivered(row: StoredApplication): ApplicationChange | undefined {
    if (row.state !== 'documents_required') return undefined;
    const evidence = 'the broker has the four documents';
    return this.begin(row).move('submitted', null, evidence).step('document', evidence);
  }

  isUnsettled(row: StoredApplication): boolean {
    return isUnsettled(row.state);
  }

  /** A change to build up. */
  begin(row: StoredApplication): ApplicationChange {
    return new ApplicationChange(row, this.parts.clock.now());
  }

  /** The sender has had its time: whatever became of it, nobody knows it now. */
  leaseRanOut(row: StoredApplication): ApplicationChange | undefined {
    if (row.state !== 'sending') return undefined;
    const evidence = 'the time to send it ran out without a recorded outcome';
    return this.begin(row).moveToUncertain(evidence).step('reconciliation', evidence);
  }

  async lookUp(row: StoredApplication): Promise<LookedUp<readonly ApplicationReport[]>> {
    const looked = await this.parts.broker.lookUpApplication(row.id, row.lastReport, row.origin);
    return looked.found ? { found: true, answer: await this.#vet(looked.answer) } : looked;
  }

  found(row: StoredApplication, reports: readonly ApplicationReport[]): ApplicationChange | undefined {
    if (reports.length === 0) return undefined;
    return this.begin(row).step('reconciliation', "the broker's record has it").reports(reports);
  }

  missing(row: StoredApplication, askedAt: number, provesAbsence: boolean, nextCheckAt: number): ApplicationChange {
    const change = this.begin(row).note({ checks: row.checks + 1, checkAt: nextCheckAt });
    if (provesAbsence) {
      const evidence = "the broker's record does not have it, and it can no longer be taken";
      return change.move('unplaced', 'The broker never had it.', evidence).step('reconciliation', evidence);
    }
    if (row.missingSince !== null) return change;
    const evidence = "the broker's record does not have it yet";
    return change.note({ missingSince: askedAt, evidence }).step('reconciliation', evidence);
  }

  unanswered(row: StoredApplication, nextCheckAt: number): ApplicationChange {
    return this.begin(row).note({ checks: row.checks + 1, checkAt: nextCheckAt });
  }

  /** The account of an application that was opened is one to trade for in the same commit. */
  save({ before, after }: Change<StoredApplication>): Statement[] {
    const freed = isFinal(after.state) ? freeOldKey('applications', after, this.parts.clock) : [];
    const saved = [updateApplication(after), ...freed];
    if (before.state === 'opened' || after.state !== 'opened' || after.account === null) return saved;
    const { partnerId, account, id, updatedAt } = after;
    return [...saved, openAccount({ partnerId, account, applicationId: id, createdAt: updatedAt })];
  }

  toEvent(row: StoredApplication) {
    return {
      type: `application.${row.state}`,
      occurredAt: row.updatedAt,
      origin: row.origin,
      data: { case: 'application' as const, value: toApplicationMessage(row) },
    };
  }

  /**
   * An account belongs to one partner. One that the broker opens for a second partner is taken for no account, which
   * makes the report a contradiction: a person must look, and until then nobody trades for another's account.
   */
  #vet(reports: readonly ApplicationReport[]): Promise<ApplicationReport[]> {
    return Promise.all(
      reports.map(async (report) => {
        if (report.kind !== ApplicationReportKind.OPENED) return report;
        const { clientApplicationId: id, account } = report;
        const [foreign] = await this.parts.database.read(findForeignAccount(id, account));
        if (foreign === undefined) return report;
        this.parts.log.error({ objectId: id }, "the broker opens an account that is another partner's");
        return { ...report, account: '' };
      }),
    );
  }
}

/** What must be known of an application to store it anew: nothing of the customer. */
function factsOf({ createdAt, notAfter }: StoredApplication): Facts {
  return { createdAt, notAfter };
}
