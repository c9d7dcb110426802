import { create, type Message } from '@bufbuild/protobuf';
import {
  type ApplicationFields,
  ApplicationFieldsSchema,
  type ApplicationReport,
  ApplicationReportKind,
} from '../../../gen/marina/broker/v1/applications_pb.ts';
import type { CreateApplicationRequest } from '../../../gen/marina/gateway/v1/applications_pb.ts';
import { type Clock, statedInstant } from '../../../kit/clock.ts';
import type { Logger } from '../../../kit/log.ts';
import type { Database } from '../../store/database.ts';
import type { Statement } from '../../store/statement.ts';
import { openAccount } from '../accounts/store.ts';
import type { BrokerApplications, LookedUp, Sent } from '../broker/broker.ts';
import { Change } from '../submission/change.ts';
import { type CreatedKind, type Prepared, preparedAs } from '../submission/kind.ts';
import type { ReportedKind } from '../submission/report-session.ts';
import { objectHistory, readUpToDate } from '../submission/table.ts';
import { applicationStates } from './rules.ts';
import { applyReport } from './settlement/rules.ts';
import { applications, findForeignAccount, type StoredApplication, toApplicationMessage } from './table.ts';

/** How applications use the mechanism that stores, sends once, records and reconciles. */
export class ApplicationKind
  implements
    CreatedKind<StoredApplication, ApplicationReport, CreateApplicationRequest>,
    ReportedKind<StoredApplication, ApplicationReport>
{
  readonly name = 'application';
  readonly prefix = 'app';
  readonly table = applications;
  readonly history = objectHistory;
  readonly upstream = 'broker';
  readonly accepted = 'accepted';
  readonly states = applicationStates;
  readonly absent = { state: 'unplaced', reason: 'The broker never had it.' } as const;
  /** A note keeps nothing of the customer. */
  readonly noted = ['createdAt', 'notAfter'] as const;
  readonly applyReport = applyReport<StoredApplication>;
  readonly blank = {
    ...{ reference: null, account: null, param: null, lastReport: 0n, missedReport: 0n },
    evidence: 'stored, before it is sent',
  };

  constructor(
    private readonly broker: BrokerApplications,
    private readonly database: Database,
    private readonly clock: Clock,
    private readonly log: Logger,
  ) {}

  prepare(): Prepared<StoredApplication> {
    return preparedAs(this.blank);
  }

  affects({ partnerId }: StoredApplication) {
    return { action: 'apply', partnerId } as const;
  }

  /** Only the broker refuses applications. */
  preconditions(): readonly [] {
    return [];
  }

  toMessage(row: StoredApplication) {
    return toApplicationMessage(row);
  }

  send(row: StoredApplication, request: CreateApplicationRequest, note: Buffer): Promise<Sent<ApplicationReport>> {
    const fields = toApplicationFields(request);
    return this.broker.submitApplication({ ...row, origin: row, fields, note }, row.notAfter);
  }

  isRejection({ kind }: ApplicationReport): boolean {
    return kind === ApplicationReportKind.REJECTED;
  }

  async lookUp(row: StoredApplication): Promise<LookedUp<readonly ApplicationReport[]>> {
    const looked = await this.broker.lookUpApplication(row.id, row.lastReport, row);
    return looked.found ? { ...looked, answer: await this.#vet(looked.answer) } : looked;
  }

  async *streamReports(afterNumber: bigint, signal: AbortSignal): AsyncIterable<readonly ApplicationReport[]> {
    for await (const reports of this.broker.streamApplicationReports(afterNumber, signal)) {
      yield await this.#vet(reports);
    }
  }

  objectIdOf({ clientApplicationId }: ApplicationReport): string {
    return clientApplicationId;
  }

  describeReport({ kind, reference }: ApplicationReport) {
    return { report: (ApplicationReportKind[kind] ?? String(kind)).toLowerCase(), reference };
  }

  reportStep({ number, at }: ApplicationReport) {
    return { reportNumber: number, upstreamAt: statedInstant(at) };
  }

  /** A change to build up. */
  begin(row: StoredApplication): Change<StoredApplication, ApplicationReport> {
    return new Change(this, row, this.clock.now());
  }

  /** The broker has all four documents. It may have decided before the last of them was recorded. */
  documentsDelivered(row: StoredApplication): Change<StoredApplication, ApplicationReport> | undefined {
    if (row.state !== 'documents_required') return undefined;
    const evidence = 'the broker has the four documents';
    return this.begin(row).move('submitted', null).note({ evidence }).step('document', evidence);
  }

  /** The account of an application that was opened is one to trade for in the same commit. */
  settle(before: StoredApplication, after: StoredApplication): Statement[] {
    if (before.state === 'opened' || after.state !== 'opened' || after.account === null) return [];
    const { partnerId, account, id, updatedAt } = after;
    return openAccount({ partnerId, account, applicationId: id, createdAt: updatedAt });
  }

  /**
   * If the broker opens another partner's account, the report counts as one without an account, and so as inconsistent. A
   * person must look, and no partner trades for another's account. If an account becomes another partner's after this check,
   * `openAccount` undoes the change, and the look-up that follows checks again.
   */
  #vet(reports: readonly ApplicationReport[]): Promise<ApplicationReport[]> {
    return Promise.all(
      reports.map(async (report) => {
        if (report.kind !== ApplicationReportKind.OPENED) return report;
        const { clientApplicationId: id, account } = report;
        const [foreign] = await readUpToDate(this.database, findForeignAccount(id, account));
        if (foreign === undefined) return report;
        this.log.error({ objectId: id }, "the broker opens an account that is another partner's");
        return { ...report, account: '' };
      }),
    );
  }
}

type FieldOf<Shape extends Message> = Exclude<keyof Shape, keyof Message>;

/** The fields have the same names for partners and for the broker. A field that only one of them has does not compile. */
const fieldNames: readonly FieldOf<ApplicationFields>[] = ApplicationFieldsSchema.fields.map(
  ({ localName }) => localName as FieldOf<CreateApplicationRequest>,
);

/** The customer's data for the broker. It must not outlive the send. */
function toApplicationFields(request: CreateApplicationRequest): ApplicationFields {
  const fields = create(ApplicationFieldsSchema);
  for (const name of fieldNames) fields[name] = request[name] ?? '';
  return fields;
}
