import { create, type DescMessage } from '@bufbuild/protobuf';
import { timestampFromMs, timestampMs } from '@bufbuild/protobuf/wkt';
import { status } from '@grpc/grpc-js';
import { AllocationOutcome, AllocationRejectReason } from '../../src/gen/marina/broker/v1/allocations_pb.ts';
import {
  ApplicationRejectReason,
  ApplicationReportKind,
  ApplicationReportSchema,
  DocumentOutcome,
  DocumentPresence,
} from '../../src/gen/marina/broker/v1/applications_pb.ts';
import {
  AccountStatus,
  CancelOutcome,
  InstrumentKind,
  ReportKind,
  ReportSchema,
} from '../../src/gen/marina/broker/v1/orders_pb.ts';
import {
  WithdrawalDestination,
  WithdrawalRejectReason,
  WithdrawalReportKind,
  WithdrawalReportSchema,
} from '../../src/gen/marina/broker/v1/withdrawals_pb.ts';
import { type Asked, Ended, ended } from './scripted-adapter.ts';

const { ALREADY_EXISTS, CANCELLED, FAILED_PRECONDITION, INVALID_ARGUMENT, NOT_FOUND } = status;
const [lowerPriceKobo, upperPriceKobo] = [900n, 1_100n];
const { BANK_ACCOUNT, WALLET } = WithdrawalDestination;

/** Reports with the numbers 1, 2, 3 …, and streams of them. */
export class ReportList {
  readonly reports: Asked[] = [];
  readonly #waiting = new Set<() => void>();

  constructor(private readonly schema: DescMessage) {}

  add(fields: object): Asked {
    const numbered = { number: BigInt(this.reports.length + 1), at: timestampFromMs(Date.now()), ...fields };
    const report = this.#made(numbered);
    this.reports.push(report);
    for (const wake of [...this.#waiting]) wake();
    return report;
  }

  /** A stream of the reports above a number. `change` makes it a wrong one: it may end the stream. */
  open(change: (message: Asked, nth: number) => Asked = (message) => message) {
    return async function* (this: ReportList, after: bigint, signal: AbortSignal): AsyncGenerator<never> {
      let sent = after;
      for (let nth = 0; ; nth += 1) {
        const reports = this.reports.filter(({ number }) => number > sent);
        sent = reports.at(-1)?.number ?? sent;
        const message = change({ reports, lastNumber: BigInt(this.reports.length) }, nth);
        if (message instanceof Ended) throw message;
        yield { ...message, reports: message.reports.map((report: Asked) => this.#made(report)) } as never;
        await this.#changed(sent, signal);
      }
    }.bind(this);
  }

  #made({ $typeName: _, ...fields }: Asked): Asked {
    return create(this.schema, fields as never);
  }

  async #changed(sent: bigint, signal: AbortSignal): Promise<void> {
    if (this.reports.some(({ number }) => number > sent)) return;
    // A stream that waits keeps its process running, as a connection does.
    const open = setInterval(() => {}, 60_000);
    try {
      await new Promise<void>((resolve, reject) => {
        const wake = () => {
          this.#waiting.delete(wake);
          resolve();
        };
        this.#waiting.add(wake);
        const end = () => reject(ended(CANCELLED));
        if (signal.aborted) end();
        signal.addEventListener('abort', end);
      });
    } finally {
      clearInterval(open);
    }
  }
}

/** The answers of an adapter that keeps each promise, for the symbols and amounts of `scriptedSession`. */
export function rightBroker() {
  const orders = new ReportList(ReportSchema);
  const applications = new ReportList(ApplicationReportSchema);
  const withdrawals = new ReportList(WithdrawalReportSchema);
  const refused = new Set<string>();
  const records = new Map<string, Asked>();
  const documents = new Map<string, string>();
  const submissions: { number: bigint; clientId: string; note: Uint8Array }[] = [];
  const balance = { kobo: 1_000_000n };

  const list = (clientId: string, note: Uint8Array) => {
    submissions.push({ number: BigInt(submissions.length + 1), clientId, note });
  };
  /** The end of a send that comes again, comes late, or makes no sense. */
  const refusal = (id: string, isKnown: boolean, { notAfter }: Asked, isSense: boolean): Ended | undefined => {
    if (isKnown || refused.has(id)) return ended(ALREADY_EXISTS);
    if (!isSense) return ended(INVALID_ARGUMENT);
    if (timestampMs(notAfter) >= Date.now()) return undefined;
    refused.add(id);
    return ended(FAILED_PRECONDITION);
  };
  const about = (of: ReportList, name: string, id: string, after = 0n) =>
    of.reports.filter((report) => report[name] === id && report.number > after);
  const complete = () => ({ completeUntil: timestampFromMs(Date.now()) });
  const isAmount = (kobo: bigint) => kobo >= 1n && kobo <= 10_000_000_000n;

  const answers = {
    getCapabilities: { honoursNotAfter: true, withdrawalDestinations: [BANK_ACCOUNT, WALLET] },
    getTradingContext: ({ account, symbol }: Asked) => ({
      accountStatus: account === 'ACC1' ? AccountStatus.ACTIVE : AccountStatus.NOT_AT_BROKER,
      instrument: { symbol, kind: InstrumentKind.EQUITY, lowerPriceKobo, upperPriceKobo },
    }),
    submitOrder: (request: Asked): object => {
      const { clientOrderId, symbol, quantity, side, priceKobo = 0n, note } = request;
      const isKnown = about(orders, 'clientOrderId', clientOrderId).length > 0;
      const isSense = quantity > 0n && side !== 0 && priceKobo > 0n;
      const end = refusal(clientOrderId, isKnown, request, isSense);
      if (end !== undefined) return end;
      list(clientOrderId, note);
      const kind = symbol === 'REJECTS' ? ReportKind.REJECTED : ReportKind.ACCEPTED;
      const report = orders.add({ clientOrderId, kind, rejectReason: symbol === 'REJECTS' ? 9 : 0 });
      if (symbol === 'FILLS') orders.add({ clientOrderId, kind: ReportKind.TRADE, quantity, priceKobo });
      return { report };
    },
    lookUpOrder: ({ clientOrderId, afterNumber }: Asked): object => {
      const found = about(orders, 'clientOrderId', clientOrderId).length > 0;
      return { found, reports: about(orders, 'clientOrderId', clientOrderId, afterNumber), ...complete() };
    },
    cancelOrder: ({ clientOrderId }: Asked): object => {
      const reports = about(orders, 'clientOrderId', clientOrderId);
      const last = reports.at(-1);
      if (last === undefined) return ended(NOT_FOUND);
      const isOpen = last.kind === ReportKind.ACCEPTED;
      if (!isOpen && last.kind !== ReportKind.CANCELLED) return { outcome: CancelOutcome.TOO_LATE };
      const report = isOpen ? orders.add({ clientOrderId, kind: ReportKind.CANCELLED }) : last;
      return { outcome: CancelOutcome.CANCELLED, report };
    },
    submitApplication: (request: Asked): object => {
      const { clientApplicationId, fields, note } = request;
      const isKnown = about(applications, 'clientApplicationId', clientApplicationId).length > 0;
      const end = refusal(clientApplicationId, isKnown, request, true);
      if (end !== undefined) return end;
      list(clientApplicationId, note);
      const param = fields.firstName === '' ? 'first_name' : fields.state === 'LAGOS' ? '' : 'state';
      const isGood = param === '';
      const kind = isGood ? ApplicationReportKind.ACCEPTED : ApplicationReportKind.REJECTED;
      const rejectReason = isGood ? 0 : ApplicationRejectReason.INVALID_FIELD;
      const reference = `B${applications.reports.length}`;
      return { report: applications.add({ clientApplicationId, kind, reference, rejectReason, param }) };
    },
    lookUpApplication: ({ clientApplicationId, afterNumber }: Asked): object => {
      const found = about(applications, 'clientApplicationId', clientApplicationId).length > 0;
      const reports = about(applications, 'clientApplicationId', clientApplicationId, afterNumber);
      return { found, reports, ...complete() };
    },
    sendDocument: ({ clientApplicationId, type, content, notAfter }: Asked): object => {
      if (about(applications, 'clientApplicationId', clientApplicationId).length === 0) return ended(NOT_FOUND);
      if (timestampMs(notAfter) < Date.now()) return ended(FAILED_PRECONDITION);
      const key = `${clientApplicationId} ${type}`;
      const given = Buffer.from(content).toString('base64');
      const kept = documents.get(key) ?? given;
      if (kept !== given) return { outcome: DocumentOutcome.REFUSED };
      documents.set(key, given);
      const has = [1, 2, 3, 4].every((each) => documents.has(`${clientApplicationId} ${each}`));
      const kind = ApplicationReportKind.OPENED;
      if (has) applications.add({ clientApplicationId, kind, reference: 'B1', account: 'NEW1' });
      return { outcome: DocumentOutcome.DELIVERED };
    },
    lookUpDocument: ({ clientApplicationId, type }: Asked): object => {
      if (about(applications, 'clientApplicationId', clientApplicationId).length === 0) return ended(NOT_FOUND);
      const has = documents.has(`${clientApplicationId} ${type}`);
      return { presence: has ? DocumentPresence.DELIVERED : DocumentPresence.MISSING, ...complete() };
    },
    submitAllocation: (request: Asked): object => {
      const { clientAllocationId, amountKobo, note } = request;
      const end = refusal(clientAllocationId, records.has(clientAllocationId), request, isAmount(amountKobo));
      if (end !== undefined) return end;
      list(clientAllocationId, note);
      const isGood = amountKobo !== 501n;
      if (isGood) balance.kobo += amountKobo;
      const record = {
        ...{ clientAllocationId, at: timestampFromMs(Date.now()), brokerReference: isGood ? 'K1' : '' },
        outcome: isGood ? AllocationOutcome.BOOKED : AllocationOutcome.REJECTED,
        rejectReason: isGood ? 0 : AllocationRejectReason.REJECTED_BY_BROKER,
      };
      records.set(clientAllocationId, record);
      return { record };
    },
    lookUpAllocation: ({ clientAllocationId }: Asked): object => ({
      ...{ record: records.get(clientAllocationId) },
      ...complete(),
    }),
    submitWithdrawal: (request: Asked): object => {
      const { clientWithdrawalId, amountKobo, note } = request;
      const isKnown = about(withdrawals, 'clientWithdrawalId', clientWithdrawalId).length > 0;
      const end = refusal(clientWithdrawalId, isKnown, request, isAmount(amountKobo));
      if (end !== undefined) return end;
      list(clientWithdrawalId, note);
      const isGood = amountKobo !== 301n;
      if (isGood) balance.kobo -= amountKobo;
      const kind = isGood ? WithdrawalReportKind.ACCEPTED : WithdrawalReportKind.REJECTED;
      const rejectReason = isGood ? 0 : WithdrawalRejectReason.REJECTED_BY_BROKER;
      const brokerReference = isGood ? 'W1' : '';
      return { report: withdrawals.add({ clientWithdrawalId, kind, brokerReference, rejectReason }) };
    },
    lookUpWithdrawal: ({ clientWithdrawalId, afterNumber }: Asked): object => {
      const found = about(withdrawals, 'clientWithdrawalId', clientWithdrawalId).length > 0;
      const reports = about(withdrawals, 'clientWithdrawalId', clientWithdrawalId, afterNumber);
      return { found, reports, ...complete() };
    },
    getBalance: () => ({ account: 'ACC1', availableKobo: balance.kobo }),
    listSubmissions: ({ afterNumber, limit }: Asked): object => ({
      submissions: submissions.filter(({ number }) => number > afterNumber).slice(0, limit),
    }),
  };
  return { answers, orders, applications, withdrawals };
}

export type RightBroker = ReturnType<typeof rightBroker>;
