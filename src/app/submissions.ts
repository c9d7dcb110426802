import { AllocationKind } from '../allocations/kind.ts';
import { DocumentRelease } from '../applications/documents/release.ts';
import { DocumentSender } from '../applications/documents/sender.ts';
import { ImageChecker } from '../applications/images/checker.ts';
import { ApplicationKind } from '../applications/kind.ts';
import { Seal } from '../lib/seal.ts';
import { Canceller } from '../orders/cancel.ts';
import { OrderKind } from '../orders/kind.ts';
import { TradingContexts } from '../orders/trading-context.ts';
import { ClockWatch } from '../submission/clock-watch.ts';
import { Kinds } from '../submission/kind.ts';
import { Notes } from '../submission/notes.ts';
import { Recorder } from '../submission/record.ts';
import { StartGate } from '../submission/start-gate.ts';
import { Submitter } from '../submission/submit.ts';
import type { Base } from './base.ts';
import type { Events } from './events.ts';
import type { Upstream } from './upstream.ts';

export type Submissions = ReturnType<typeof createSubmissions>;

/** What partners submit and cancel on its way out: stored, sent once, recorded. */
export function createSubmissions(base: Base, upstream: Upstream, { relay }: Events) {
  const { config, log, database, clock, ids, environment, metrics } = base;
  const { submitTimeoutMs, clockSkewMs } = config;
  const { broker } = upstream;
  const gate = new StartGate();
  const clocks = new ClockWatch({
    ...{ database, clock, log },
    brokerClock: upstream.clock,
    askBroker: () => broker.honoursNotAfter(),
  });
  const recorder = new Recorder({ database, clock, ids, gate, log, metrics, relay, clocks });
  const notes = new Notes(new Seal(base.key('submission notes')));
  const contexts = new TradingContexts(broker);
  const sending = { recorder, clock, clocks, ids, notes, log, environment, submitTimeoutMs, clockSkewMs };
  const kinds = {
    order: new OrderKind({ ...sending, broker, contexts }),
    application: new ApplicationKind({ ...sending, broker: upstream.applications, database }),
    allocation: new AllocationKind({ ...sending, broker: upstream.allocations }),
  };
  const submitter = new Submitter({ ...sending, database, gate });
  const canceller = new Canceller({ ...sending, kind: kinds.order, broker });
  const documents = new DocumentSender({
    ...sending,
    database,
    kind: kinds.application,
    broker,
    digestKey: base.key('document digests'),
    onSent: (outcome) => metrics.documents.inc({ outcome }),
  });
  const release = new DocumentRelease({
    ...sending,
    kind: kinds.application,
    broker,
    applications: upstream.applications,
  });
  const images = new ImageChecker({ log, walls: config.decoderWalls });
  const allKinds = new Kinds(Object.values(kinds));
  return { gate, clocks, recorder, notes, contexts, kinds, allKinds, submitter, canceller, documents, release, images };
}
