import { randomUUID } from 'node:crypto';
import { IdMaker } from '../../src/gateway/edge/ids.ts';
import { Metrics } from '../../src/gateway/edge/metrics.ts';
import { statement } from '../../src/gateway/store/statement.ts';
import { AllocationKind } from '../../src/gateway/trading/allocations/kind.ts';
import { DocumentSender } from '../../src/gateway/trading/applications/documents/sender.ts';
import { ApplicationKind } from '../../src/gateway/trading/applications/kind.ts';
import {
  applications as applicationTable,
  type StoredApplication,
} from '../../src/gateway/trading/applications/table.ts';
import {
  type BrokerAllocations,
  type BrokerApplications,
  type BrokerDocuments,
  type BrokerOrders,
  firstBroker,
} from '../../src/gateway/trading/broker/broker.ts';
import { Canceller } from '../../src/gateway/trading/orders/cancel.ts';
import { OrderKind, TradingContexts } from '../../src/gateway/trading/orders/kind.ts';
import { orders, type StoredOrder } from '../../src/gateway/trading/orders/table.ts';
import { Change } from '../../src/gateway/trading/submission/change.ts';
import { type Kind, newRow } from '../../src/gateway/trading/submission/kind.ts';
import { Notes } from '../../src/gateway/trading/submission/notes.ts';
import { Reconciler } from '../../src/gateway/trading/submission/reconcile.ts';
import { Recorder } from '../../src/gateway/trading/submission/record.ts';
import { StartGate } from '../../src/gateway/trading/submission/start-gate.ts';
import { StuckPartners } from '../../src/gateway/trading/submission/stuck-partners.ts';
import type { Submission } from '../../src/gateway/trading/submission/table.ts';
import type { Report } from '../../src/gen/marina/broker/v1/orders_pb.ts';
import { type Clock, lagosDay } from '../../src/kit/clock.ts';
import { type Keys, onlyKey, Seal } from '../../src/kit/key-ring.ts';
import { createLogger } from '../../src/kit/log.ts';
import { createPartner } from '../../src/sandbox/provision.ts';
import { openTestDatabase } from './database.ts';
import { walletSeals } from './ledger.ts';
import { plainOrder } from './plain-order.ts';

/** An environment in which nothing is paused or stopped. */
export const nothingStopped = { paused: false, stops: [], stopsVersion: 0n, obstacleTo: () => undefined };

export const submitTimeoutMs = 10_000;
export const clockSkewMs = 2_000;

/** Both times of a gateway, moved by the test alone. Business time is far ahead, so that a test notices a mix-up. */
export class TestClock implements Clock {
  #realMs = Date.UTC(2026, 2, 2, 9, 30);
  #aheadMs = 400 * 86_400_000;

  now(): number {
    return this.#realMs + this.#aheadMs;
  }

  realNow(): number {
    return this.#realMs;
  }

  advance(ms: number): void {
    this.#realMs += ms;
  }

  /** Moves business time alone, as operators of a sandbox do. */
  advanceBusiness(ms: number): void {
    this.#aheadMs += ms;
  }

  /** Moves real time to an instant. */
  moveTo(realMs: number): void {
    this.#realMs = realMs;
  }
}

/** The broker's calls that a test answers itself. Those it does not set fail. */
export type TestBroker = {
  -readonly [Name in 'honoursNotAfter' | 'lookUpOrder' | 'cancelOrder' | 'streamReports']: BrokerOrders[Name];
} & {
  -readonly [Name in 'lookUpApplication' | 'streamApplicationReports']: BrokerApplications[Name];
} & {
  -readonly [Name in keyof BrokerDocuments]: BrokerDocuments[Name];
} & {
  -readonly [Name in 'lookUpAllocation']: BrokerAllocations[Name];
};

const unanswered = async () => {
  throw new Error('the test does not answer this call');
};
const noStream = () => {
  throw new Error('the test has no stream of reports');
};

/**
 * Builds the parts that settle orders and applications, as the gateway puts them together, over a real database. The
 * test is the broker and moves the clock: it decides what the broker answers, and how late.
 */
export async function openSettling() {
  const { database, url, close, openAsGateway } = await openTestDatabase();
  const clock = new TestClock();
  const ids = new IdMaker(clock);
  const log = createLogger({ name: 'test', level: 'silent' });
  const gate = new StartGate();
  gate.open();
  /** The lines of the log that alarm of a contradiction. */
  const contradictions: { readonly objectId: string }[] = [];
  const recorderLog = createLogger({
    name: 'test',
    level: 'error',
    destination: { write: (line) => void contradictions.push(JSON.parse(line)) },
  });
  const reportedAfterMs: number[] = [];
  let wakes = 0;
  const recorder = new Recorder({
    ...{ database, clock, ids, gate, log: recorderLog, metrics: new Metrics() },
    relay: {
      notify: () => {
        wakes += 1;
      },
    },
    clocks: { reported: (afterMs) => reportedAfterMs.push(afterMs) },
  });
  const broker: TestBroker = {
    honoursNotAfter: async () => true,
    lookUpOrder: unanswered,
    cancelOrder: unanswered,
    lookUpApplication: unanswered,
    lookUpDocument: unanswered,
    sendDocument: unanswered,
    lookUpAllocation: unanswered,
    streamReports: noStream,
    streamApplicationReports: noStream,
  };
  const sending = {
    clock,
    ids,
    log,
    database,
    recorder,
    notes: new Notes(new Seal(onlyKey(Buffer.alloc(32, 1)))),
    clocks: { agreement: async () => 'in_step' as const },
    submitTimeoutMs,
    clockSkewMs,
  };
  const asBroker = broker as Partial<BrokerOrders> as BrokerOrders;
  const order = new OrderKind(asBroker, new TradingContexts(asBroker), clock);
  const applications = broker as Partial<BrokerApplications> as BrokerApplications;
  const application = new ApplicationKind(applications, database, clock, log);
  const allocation = new AllocationKind(
    broker as Partial<BrokerAllocations> as BrokerAllocations,
    clock,
    ids,
    walletSeals(),
  );
  return {
    database,
    url,
    openAsGateway,
    clock,
    log,
    ids,
    recorder,
    broker,
    order,
    application,
    allocation,
    contradictions,
    /** How long after its object was stored the earliest report of each change happened, by the broker's clock. */
    reportedAfterMs,
    /** How often the relay was told that there are events. */
    wakes: () => wakes,
    newPartner: () => createPartner(database, { name: 'Test Partner', limits: {}, features: [] }),
    /** One gateway's canceller: two of them are two replicas. */
    newCanceller: () => new Canceller({ ...sending, kind: order, broker: asBroker }),
    newReconciler<Row extends Submission, Answer>(kind: Kind<Row, Answer>) {
      return new Reconciler({
        ...sending,
        broker: firstBroker,
        kind,
        stuck: new StuckPartners(log),
        holder: 'test',
        honoursNotAfter: () => broker.honoursNotAfter(),
      });
    },
    /** One gateway's sender of documents: two of them are two replicas. */
    newDocumentSender: (digestKeys: Keys = onlyKey(Buffer.alloc(32, 2))) =>
      new DocumentSender({
        ...{ ...sending, kind: application, broker, orders: broker },
        ...{ digestKeys, environment: nothingStopped },
      }),
    /** Stores an application, uncertain unless said otherwise. */
    async storeApplication(fields: Partial<StoredApplication> & Pick<StoredApplication, 'partnerId'>) {
      const { requestId, traceParent, keyId, requestDigest } = plainOrder;
      const submission = { partnerId: fields.partnerId, requestId, traceParent, keyId, requestDigest };
      const notAfter = clock.realNow() + submitTimeoutMs;
      const stored: StoredApplication = newRow(
        application,
        ids.object('app'),
        { ...submission, idempotencyKey: randomUUID() },
        { state: 'uncertain', ...fields },
        { now: clock.now(), notAfter, checkAt: notAfter + clockSkewMs },
      );
      await database.write(applicationTable.insert(stored));
      return stored;
    },
    /** Stores an order, uncertain unless said otherwise. */
    async storeOrder(fields: Partial<StoredOrder> & Pick<StoredOrder, 'partnerId'>): Promise<StoredOrder> {
      const now = clock.now();
      const realNow = clock.realNow();
      const row: StoredOrder = {
        ...plainOrder,
        id: ids.object('ord'),
        state: 'uncertain',
        createdAt: now,
        updatedAt: now,
        countedDay: lagosDay(now),
        notAfter: realNow + submitTimeoutMs,
        checkAt: realNow + submitTimeoutMs + clockSkewMs,
        ...fields,
      };
      await database.write(orders.insert(row));
      return row;
    },
    async readOrder({ partnerId, id }: Pick<StoredOrder, 'partnerId' | 'id'>): Promise<StoredOrder> {
      const [row = {}] = await database.read(orders.find({ partnerId, id }));
      return orders.all.read(row);
    },
    async readApplication({ partnerId, id }: { readonly partnerId: string; readonly id: string }) {
      const [row = {}] = await database.read(applicationTable.find({ partnerId, id }));
      return applicationTable.all.read(row);
    },
    /** Records reports about an order, as the stream of reports does. */
    applyReports({ partnerId, id }: Pick<StoredOrder, 'partnerId' | 'id'>, reports: readonly Report[]) {
      return recorder.change(order, partnerId, id, (row) => new Change(order, row, clock.now()).reports(reports));
    },
    /** Reads the sentences of an order's history, oldest first. */
    async stepsOf({ id }: Pick<StoredOrder, 'id'>): Promise<string[]> {
      const rows = await database.read(
        statement('SELECT detail FROM order_steps WHERE order_id = ? ORDER BY sequence', id),
      );
      return rows.map(({ detail }) => String(detail));
    },
    close,
  };
}

export type Settling = Awaited<ReturnType<typeof openSettling>>;
