import { Seal } from '../../kit/key-ring.ts';
import type { Relay } from '../delivery/events/relay.ts';
import type { SharedSlots } from '../edge/limits/shared-slots.ts';
import { ReconciliationWorker } from '../operators/reconciliation/worker.ts';
import { neededUsesLackedBy } from '../operators/secret-keys/table.ts';
import { AllocationKind } from '../trading/allocations/kind.ts';
import { DocumentSender } from '../trading/applications/documents/sender.ts';
import { ApplicationKind } from '../trading/applications/kind.ts';
import type { Broker, BrokerId } from '../trading/broker/broker.ts';
import { createGrpcBroker } from '../trading/broker/grpc-broker.ts';
import { ReadQueue } from '../trading/broker/read-queue.ts';
import { BulkCancelWorker } from '../trading/orders/bulk-cancels/worker.ts';
import { Canceller } from '../trading/orders/cancel.ts';
import { OrderKind, TradingContexts } from '../trading/orders/kind.ts';
import { ClockWatch } from '../trading/submission/clock-watch.ts';
import { Kinds } from '../trading/submission/kind.ts';
import { Notes } from '../trading/submission/notes.ts';
import { Reconciler } from '../trading/submission/reconcile.ts';
import { Recorder } from '../trading/submission/record.ts';
import { Recovery } from '../trading/submission/recovery.ts';
import { ReportConsumer } from '../trading/submission/reports.ts';
import { StartGate } from '../trading/submission/start-gate.ts';
import { StuckPartners } from '../trading/submission/stuck-partners.ts';
import { Submitter } from '../trading/submission/submit.ts';
import { WithdrawalKind } from '../trading/withdrawals/kind.ts';
import type { Base } from './base.ts';

export type BrokerWork = ReturnType<typeof createBrokerWork>;

/** The work of each configured broker. */
export function createBrokers(base: Base, relay: Relay, slots: SharedSlots): readonly [BrokerWork] {
  const [id] = base.config.brokerIds;
  return [createBrokerWork(base, createBroker(base, id), relay, slots)];
}

/** A broker. It connects at its first use. */
function createBroker({ config, links, log, tracer, metrics }: Base, id: BrokerId): Broker {
  const { brokerAddress: address, backOfficeAddress = address, submitTimeoutMs, readTimeoutMs, clockSkewMs } = config;
  const deadlines = { submitTimeoutMs, readTimeoutMs, clockSkewMs };
  return createGrpcBroker(id, {
    ...{ address, backOfficeAddress, access: links.broker },
    ...{ ...deadlines, log, tracer, metrics },
  });
}

/** Makes everything that belongs to one broker: submissions to it, their outcomes, reads, and the comparison of days. */
function createBrokerWork(base: Base, broker: Broker, relay: Relay, slots: SharedSlots) {
  const { config, metrics } = base;
  const submissions = createSubmissions(base, broker, relay);
  const { gate, clocks, recorder, notes, kinds, allKinds } = submissions;
  const { clockSkewMs, brokerShared: isShared } = config;
  const lackedKeys = async () => (await neededUsesLackedBy(base.database, base.ring.current)).map(({ id }) => id);
  const recovery = new Recovery({ ...base, broker, kinds: allKinds, notes, gate, lackedKeys, isShared });
  const stuck = new StuckPartners(base.log);
  const reporting = {
    ...{ ...base, broker: broker.id, stuck, recorder },
    findLost: () => recovery.findLost(),
    onApplied: (kind: string, seconds: number) => metrics.reportDelays.observe({ kind }, seconds),
    onWentBack: (kind: string) => metrics.databaseWentBack.inc({ kind }),
    onUnclaimed: (kind: string) => metrics.unclaimedReports.inc({ kind }),
  };
  const reports = {
    order: new ReportConsumer({ ...reporting, kind: kinds.order }),
    application: new ReportConsumer({ ...reporting, kind: kinds.application }),
    withdrawal: new ReportConsumer({ ...reporting, kind: kinds.withdrawal }),
  };
  const settling = {
    ...{ ...base, broker: broker.id, stuck, recorder, clockSkewMs, clocks },
    honoursNotAfter: () => broker.orders.honoursNotAfter(),
  };
  const reconcilers = {
    order: new Reconciler({ ...settling, kind: kinds.order }),
    application: new Reconciler({ ...settling, kind: kinds.application }),
    allocation: new Reconciler({ ...settling, kind: kinds.allocation }),
    withdrawal: new Reconciler({ ...settling, kind: kinds.withdrawal }),
  };
  const reads = new ReadQueue(broker.id, slots, config.recordsTimeoutMs);
  const reconciliation = new ReconciliationWorker({
    ...{ ...base, broker, reads, isShared },
    minute: config.reconciliationTime,
    mostRecords: config.reconciliationMaxRecords,
    ended: (state, seconds) => metrics.reconciliationSeconds.observe({ state }, seconds),
  });
  const bulkCancels = new BulkCancelWorker({
    ...{ ...settling, broker, canceller: submissions.canceller, kind: kinds.order },
    perSecond: config.bulkCancelsPerSecond,
  });
  const working = [...Object.values(reports), ...Object.values(reconcilers), reconciliation, bulkCancels];
  return {
    ...{ broker, ...submissions, stuck, reports, reconcilers, reconciliation, reads },
    /** Workers of every process. */
    watchers: [clocks.worker, recovery.worker],
    /** Workers that change objects, or compare them. They wait until no object is missing. */
    workers: working.map(({ worker }) => gate.behind(worker)),
  };
}

/** Submissions and cancels: stored, sent once, recorded. */
function createSubmissions(base: Base, broker: Broker, relay: Relay) {
  const { submitTimeoutMs, clockSkewMs } = base.config;
  const gate = new StartGate();
  const clocks = new ClockWatch(broker, base.database, base.clock, base.log);
  const recorder = new Recorder({ ...base, gate, relay, clocks });
  const notes = new Notes(new Seal(base.keys('submission notes')));
  const contexts = new TradingContexts(broker.orders);
  const sending = { ...base, recorder, clocks, notes, gate, submitTimeoutMs, clockSkewMs };
  const kinds = {
    order: new OrderKind(broker.orders, contexts, base.clock),
    application: new ApplicationKind(broker.applications, base.database, base.clock, base.log),
    allocation: new AllocationKind(broker.allocations, base.clock, base.ids, base.walletSeals),
    withdrawal: new WithdrawalKind(broker.withdrawals, broker.orders, base.clock, base.ids, base.walletSeals),
  };
  const documents = new DocumentSender({
    ...sending,
    kind: kinds.application,
    broker: broker.documents,
    orders: broker.orders,
    digestKeys: base.keys('document digests'),
    onSent: (outcome) => base.metrics.documents.inc({ outcome }),
  });
  return {
    ...{ gate, clocks, recorder, notes, contexts, kinds, documents },
    allKinds: new Kinds(Object.values(kinds)),
    submitter: new Submitter(sending),
    canceller: new Canceller({ ...sending, kind: kinds.order, broker: broker.orders }),
  };
}
