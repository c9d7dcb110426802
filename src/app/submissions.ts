import { AllocationKind } from '../allocations/kind.ts';
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
import { type Inconsistency, Recorder } from '../submission/record.ts';
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
  const isPaused = () => environment.paused;
  const gate = new StartGate();
  const clocks = new ClockWatch({
    ...{ database, clock, log },
    brokerClock: upstream.clock,
    askBroker: () => broker.honoursNotAfter(),
  });
  const onInconsistency = ({ kind, partnerId, id, state, detail }: Inconsistency) => {
    metrics.contradictions.inc({ kind });
    if (state === 'refused' || state === 'unplaced') {
      metrics.falseRefusals.inc({ kind });
      log.error(
        { kind, partnerId, objectId: id, state, reported: detail },
        'the broker has what its partner was told had never arrived',
      );
    }
    log.error(
      { kind, partnerId, objectId: id, state, contradiction: detail },
      'the upstream says what contradicts the state of an object',
    );
  };
  const recorder = new Recorder({
    ...{ database, clock, ids, gate, onInconsistency },
    onEvents: () => relay.notify(),
    onReported: (afterMs) => clocks.reported(afterMs),
  });
  const notes = new Notes(new Seal(base.key('submission notes')));
  const contexts = new TradingContexts(broker);
  const sending = { recorder, clock, clocks, ids, notes, log, isPaused, submitTimeoutMs, clockSkewMs };
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
    broker: upstream.applications,
    orders: broker,
    digestKey: base.key('document digests'),
    onSent: (outcome) => metrics.documents.inc({ outcome }),
  });
  const images = new ImageChecker({ log, walls: config.decoderWalls });
  const allKinds = new Kinds(Object.values(kinds));
  return { gate, clocks, recorder, notes, contexts, kinds, allKinds, submitter, canceller, documents, images };
}
