import { createHash } from 'node:crypto';
import { TransactionType } from '../../gen/marina/broker/v1/accounts_pb.ts';
import { AllocationOutcome, AllocationRejectReason } from '../../gen/marina/broker/v1/allocations_pb.ts';
import {
  ApplicationRejectReason,
  ApplicationReportKind,
  type DocumentType,
} from '../../gen/marina/broker/v1/applications_pb.ts';
import type { DirectSale } from '../clearing/direct-sales.ts';
import type { Booked, TransactionsUnit } from '../clearing/transactions-unit.ts';
import type { World } from '../world.ts';
import type {
  Allocation,
  AllocationSubmission,
  Application,
  ApplicationEvent,
  CashEntry,
  DocumentFile,
} from './model.ts';
import { allocations, applicationReports, applications, cash, cashEntries, documents } from './tables.ts';
import type { Withdrawal } from './withdrawal-model.ts';

/** The applications and allocations loaded for a change. */
export interface HeldByBackOffice {
  readonly applications: Map<string, Application>;
  /** The received files, by the application's id. */
  readonly files: Map<string, DocumentFile[]>;
  readonly allocations: Map<string, Allocation>;
}

const withdrawalTypes = {
  taken: TransactionType.WITHDRAWAL,
  given_back: TransactionType.WITHDRAWAL_RETURN,
  duty: TransactionType.FEE,
} as const;

/** The back office's part of a unit of work. */
export class BackOfficeUnit {
  readonly reports: ApplicationEvent[] = [];
  readonly changedApplications = new Set<Application>();
  readonly #files = new Set<DocumentFile>();
  readonly #allocations: Allocation[] = [];
  readonly #entries: CashEntry[] = [];

  constructor(
    private readonly world: World,
    private readonly held: HeldByBackOffice,
    private readonly transactions: TransactionsUnit,
  ) {}

  /** One of the applications loaded for the change, if it exists. */
  application(clientApplicationId: string): Application | undefined {
    return this.held.applications.get(clientApplicationId);
  }

  files(clientApplicationId: string): readonly DocumentFile[] {
    return this.held.files.get(clientApplicationId) ?? [];
  }

  /** One of the allocations loaded for the change, if it exists. */
  allocation(clientAllocationId: string): Allocation | undefined {
    return this.held.allocations.get(clientAllocationId);
  }

  /** Adds an application, with the broker's reference if it is accepted. */
  addApplication(
    fields: Pick<Application, 'clientApplicationId' | 'course' | 'decideAfterMs' | 'magicName'>,
    accepted: boolean,
  ): Application {
    this.world.lastApplication += 1;
    const sequence = this.world.lastApplication;
    const application: Application = {
      ...fields,
      sequence,
      reference: accepted ? `BRK${String(sequence).padStart(12, '0')}` : '',
      state: ApplicationReportKind.UNSPECIFIED,
      account: '',
      rejectReason: ApplicationRejectReason.UNSPECIFIED,
      param: '',
      decideAtMs: null,
    };
    this.held.applications.set(application.clientApplicationId, application);
    this.changedApplications.add(application);
    return application;
  }

  /** Reports an application's new state, with the next number. */
  report(application: Application, kind: ApplicationReportKind): ApplicationEvent {
    application.state = kind;
    this.world.lastApplicationReport += 1;
    const report: ApplicationEvent = {
      number: this.world.lastApplicationReport,
      clientApplicationId: application.clientApplicationId,
      kind,
      atMs: this.world.clock.shownNow(),
      reference: application.reference,
      account: application.account,
      rejectReason: application.rejectReason,
      param: application.param,
    };
    this.reports.push(report);
    this.changedApplications.add(application);
    return report;
  }

  /** Counts the receipt of a file, unless it was counted before. */
  receiveFile(clientApplicationId: string, type: DocumentType, content: Uint8Array, counts = true): DocumentFile {
    const sha256 = createHash('sha256').update(content).digest('hex');
    const files = this.held.files.get(clientApplicationId) ?? [];
    let file = files.find((each) => each.type === type && each.sha256 === sha256);
    if (file === undefined) {
      // The next message is the one it came in.
      const firstReceived = this.world.lastMessage + 1;
      file = {
        clientApplicationId,
        type,
        sha256,
        sizeBytes: content.length,
        firstReceived,
        timesReceived: 0,
        delivered: false,
      };
      files.push(file);
      this.held.files.set(clientApplicationId, files);
    }
    if (counts) file.timesReceived += 1;
    this.#files.add(file);
    return file;
  }

  deliver(file: DocumentFile): void {
    file.delivered = true;
    this.#files.add(file);
  }

  /** Adds an allocation. A booked one changes the account at once. */
  addAllocation(
    submission: AllocationSubmission,
    outcome: AllocationOutcome,
    rejectReason: AllocationRejectReason = AllocationRejectReason.UNSPECIFIED,
  ): Allocation {
    this.world.lastAllocation += 1;
    const sequence = this.world.lastAllocation;
    const booked = outcome === AllocationOutcome.BOOKED;
    const allocation: Allocation = {
      ...submission,
      sequence,
      outcome,
      brokerReference: booked ? `BKG${String(sequence).padStart(12, '0')}` : '',
      rejectReason,
      atMs: this.world.clock.shownNow(),
    };
    this.held.allocations.set(allocation.clientAllocationId, allocation);
    this.#allocations.push(allocation);
    if (booked) {
      const { account, amountKobo, clientAllocationId } = allocation;
      this.#enter(account, amountKobo, { type: TransactionType.ALLOCATION, clientAllocationId });
    }
    return allocation;
  }

  /** Sets an account's balance by a cash entry. */
  setCash(account: string, balanceKobo: number): void {
    const startKobo = Number(this.world.funds.startCashKobo);
    const changeKobo = balanceKobo - startKobo - (this.world.cash.get(account) ?? 0);
    this.#enter(account, changeKobo, { type: TransactionType.ADJUSTMENT });
  }

  /** Takes a withdrawal's amount, gives it back, or takes its duty. */
  bookWithdrawal(withdrawal: Withdrawal, what: 'taken' | 'given_back' | 'duty'): void {
    const { account, amountKobo, dutyKobo, clientWithdrawalId } = withdrawal;
    const changeKobo = { taken: -amountKobo, given_back: amountKobo, duty: -dutyKobo }[what];
    if (changeKobo !== 0) this.#enter(account, changeKobo, { type: withdrawalTypes[what], clientWithdrawalId });
  }

  /** Pays the proceeds of sales that have settled directly to the customers' banks. */
  payOut(sales: readonly DirectSale[]): void {
    for (const { account, kobo } of sales) {
      // Money that is too much to be counted exactly stays.
      const isCounted = Number.isSafeInteger((this.world.cash.get(account) ?? 0) - Number(kobo));
      if (isCounted) this.#enter(account, -Number(kobo), { type: TransactionType.WITHDRAWAL });
    }
  }

  statements(): string[] {
    const balances = new Map(this.#entries.map((entry) => [entry.account, entry]));
    return [
      ...applications.save(this.changedApplications),
      ...applicationReports.save(this.reports),
      ...documents.save(this.#files),
      ...allocations.save(this.#allocations),
      ...cashEntries.save(this.#entries),
      ...cash.save(balances.values()),
    ];
  }

  #enter(account: string, amountKobo: number, about: Omit<Booked, 'amountKobo'>): void {
    this.world.lastCashEntry += 1;
    const balanceKobo = (this.world.cash.get(account) ?? 0) + amountKobo;
    if (!Number.isSafeInteger(balanceKobo)) throw new Error('An account has more money than can be counted exactly');
    this.world.cash.set(account, balanceKobo);
    this.transactions.book(account, { ...about, amountKobo: BigInt(amountKobo) });
    const number = this.world.lastCashEntry;
    this.#entries.push({
      number,
      account,
      amountKobo,
      balanceKobo,
      clientAllocationId: about.clientAllocationId ?? '',
      atMs: this.world.clock.shownNow(),
    });
  }
}
