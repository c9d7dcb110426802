import { Reconciler } from '../submission/reconcile.ts';
import { Recovery } from '../submission/recovery.ts';
import { ReportConsumer } from '../submission/reports.ts';
import type { Base } from './base.ts';
import type { Submissions } from './submissions.ts';
import type { Upstream } from './upstream.ts';

export type Outcomes = ReturnType<typeof createOutcomes>;

/** What becomes of what went out: reported by the broker, settled where it is unclear, restored if it was lost. */
export function createOutcomes(
  base: Base,
  { broker, submissions }: Upstream,
  { kinds, allKinds, recorder, notes, gate, clocks }: Submissions,
) {
  const { config, log, database, clock, holder, metrics } = base;
  const recovery = new Recovery({
    database,
    broker: submissions,
    kinds: allKinds,
    clock,
    notes,
    gate,
    log,
    holder,
  });
  const changing = { database, recorder, clock, log, holder };
  const reporting = {
    ...changing,
    findLost: () => recovery.look(),
    onApplied: (kind: string, seconds: number) => metrics.reportDelays.observe({ kind }, seconds),
  };
  const settling = {
    ...changing,
    clockSkewMs: config.clockSkewMs,
    honoursNotAfter: () => broker.honoursNotAfter(),
    clocks,
  };
  const reports = {
    order: new ReportConsumer({ ...reporting, kind: kinds.order }),
    application: new ReportConsumer({ ...reporting, kind: kinds.application }),
  };
  const reconcilers = {
    order: new Reconciler({ ...settling, kind: kinds.order }),
    application: new Reconciler({ ...settling, kind: kinds.application }),
    allocation: new Reconciler({ ...settling, kind: kinds.allocation }),
  };
  const working = [
    reports.order,
    reconcilers.order,
    reports.application,
    reconcilers.application,
    reconcilers.allocation,
    recovery,
  ];
  return {
    recovery,
    reports,
    reconcilers,
    /** What changes objects waits until it is known that none is missing. */
    workers: working.map(({ worker }) => gate.behind(worker)),
  };
}
