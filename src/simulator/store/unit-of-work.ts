import mysql from 'mysql2/promise';
import { type AccountStatus, RejectReason, type ReportKind } from '../../gen/marina/broker/v1/orders_pb.ts';
import { BackOfficeUnit, type HeldByBackOffice } from '../back-office/unit.ts';
import { type HeldWithdrawals, WithdrawalsUnit } from '../back-office/withdrawals-unit.ts';
import { TransactionsUnit } from '../clearing/transactions-unit.ts';
import { ClearingUnit } from '../clearing/unit.ts';
import type { InstrumentState, Order, OrderReport, OrderRequest, ReceivedCall } from '../model.ts';
import { type Capabilities, capabilityNames, type World } from '../world.ts';
import { accounts, instruments, messages, orders, refusals, reports, settings } from './tables.ts';

/** The broker's objects for a change. */
export interface Held extends HeldByBackOffice, HeldWithdrawals {
  readonly orders: Map<string, Order>;
  /** The ids of submissions that were refused for good. */
  readonly refused: Set<string>;
}

/** Changes that are committed together. Each sees those before it. Nothing is visible outside before the commit. */
export class UnitOfWork {
  readonly reports: OrderReport[] = [];
  readonly changedOrders = new Set<Order>();
  readonly backOffice: BackOfficeUnit;
  readonly withdrawals: WithdrawalsUnit;
  readonly clearing: ClearingUnit;
  /** The bookings on accounts. */
  readonly transactions: TransactionsUnit;
  readonly #messages = new Map<number, ReceivedCall>();
  readonly #accounts = new Map<string, AccountStatus>();
  readonly #instruments = new Set<string>();
  readonly #settings = new Map<string, number>();
  readonly #refused = new Set<string>();
  readonly #submissions: (number | string | Buffer)[][] = [];

  constructor(
    readonly world: World,
    private readonly held: Held,
  ) {
    this.transactions = new TransactionsUnit(world);
    this.backOffice = new BackOfficeUnit(world, held, this.transactions);
    this.withdrawals = new WithdrawalsUnit(world, held);
    this.clearing = new ClearingUnit(world, this.transactions);
  }

  /** One of the orders loaded for the change, if it exists. */
  order(clientOrderId: string): Order | undefined {
    return this.held.orders.get(clientOrderId);
  }

  /** Adds an order, with the exchange's id if it is accepted. */
  addOrder(submission: OrderRequest, accepted: boolean): Order {
    if (this.held.orders.has(submission.clientOrderId))
      throw new Error(`Order ${submission.clientOrderId} taken twice`);
    this.world.lastSequence += 1;
    const sequence = this.world.lastSequence;
    const order: Order = {
      ...submission,
      sequence,
      exchangeOrderId: accepted ? `NGX${String(sequence).padStart(12, '0')}` : '',
      filled: 0,
      endedBy: 0,
      expiresAtMs: null,
      plan: [],
      planAtMs: null,
      inBook: false,
      tradedOn: null,
      tradedKobo: 0n,
    };
    this.held.orders.set(order.clientOrderId, order);
    this.changedOrders.add(order);
    return order;
  }

  /** Reports on an order, with the next number. */
  report(
    order: Order,
    kind: ReportKind,
    details: { quantity?: number; priceKobo?: number; rejectReason?: RejectReason } = {},
  ): OrderReport {
    this.world.lastReport += 1;
    const report: OrderReport = {
      number: this.world.lastReport,
      clientOrderId: order.clientOrderId,
      exchangeOrderId: order.exchangeOrderId,
      kind,
      atMs: this.world.clock.shownNow(),
      quantity: details.quantity ?? 0,
      priceKobo: details.priceKobo ?? 0,
      rejectReason: details.rejectReason ?? RejectReason.UNSPECIFIED,
    };
    this.reports.push(report);
    this.changedOrders.add(order);
    return report;
  }

  /** Records a received message, or with a number the outcome of a recorded one. */
  message(message: Omit<ReceivedCall, 'number'>, number = ++this.world.lastMessage): number {
    const clientOrderId = message.clientOrderId.slice(0, maxIdLength);
    const account = message.account.slice(0, maxIdLength);
    this.#messages.set(number, { ...message, clientOrderId, account, number });
    return number;
  }

  /** Records a submission with the gateway's note. */
  submitted(clientId: string, note: Uint8Array): void {
    this.world.lastSubmission += 1;
    this.#submissions.push([this.world.lastSubmission, clientId, Buffer.from(note)]);
  }

  /** Whether a submission with one of the ids loaded for the change was refused for good. */
  isRefused(clientId: string): boolean {
    return this.held.refused.has(clientId);
  }

  /** Refuses a submission for good, so that none with its id is taken later. */
  refuse(clientId: string): void {
    // No submission with a longer id is ever taken.
    if (clientId.length > maxIdLength) return;
    this.held.refused.add(clientId);
    this.#refused.add(clientId);
  }

  /** Pays out the sales that have settled directly, so that nothing else can use their proceeds. */
  payOutSales(): void {
    this.backOffice.payOut(this.clearing.directSales.takeSettled());
  }

  setAccount(account: string, status: AccountStatus): void {
    this.world.accounts.set(account, status);
    this.#accounts.set(account, status);
  }

  setInstrument(instrument: InstrumentState): void {
    this.world.instruments.set(instrument.symbol, instrument);
    this.#instruments.add(instrument.symbol);
  }

  setClockOffset(offsetMs: number): void {
    this.world.clock.moveTo(offsetMs);
    this.#settings.set('clock_offset_ms', this.world.clock.offsetMs);
  }

  /** Changes some of the capabilities. */
  setCapabilities(changed: Partial<Capabilities>): void {
    Object.assign(this.world.capabilities, changed);
    for (const [name, settingName] of capabilityNames) {
      this.#settings.set(settingName, this.world.capabilities[name] ? 1 : 0);
    }
  }

  statements(): string[] {
    const { world } = this;
    const submissions = this.#submissions;
    return [
      ...messages.save(this.#messages.values()),
      ...orders.save(this.changedOrders),
      ...reports.save(this.reports),
      ...(submissions.length === 0
        ? []
        : [mysql.format('INSERT INTO submissions (number, client_id, note) VALUES ?', [submissions])]),
      ...refusals.saveNew([...this.#refused].map((clientId) => ({ clientId }))),
      ...accounts.save([...this.#accounts].map(([account, status]) => ({ account, status }))),
      ...instruments.save([...this.#instruments].flatMap((symbol) => world.instruments.get(symbol) ?? [])),
      ...settings.save([...this.#settings].map(([name, value]) => ({ name, value }))),
      ...this.backOffice.statements(),
      ...this.withdrawals.statements(),
      ...this.clearing.statements(),
      ...this.transactions.statements(),
    ];
  }
}

/** A message with an overlong id is recorded too, with the id cut to the column's length. */
const maxIdLength = 64;
