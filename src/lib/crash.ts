/**
 * Named points at which a test can end the process, to prove that whatever was stored before is enough to go on.
 * Off, a point costs one comparison.
 */
export const crashPoints = [
  'order.before-store',
  'order.stored',
  'order.sent',
  'order.recorded',
  'cancel.before-store',
  'cancel.stored',
  'cancel.sent',
  'cancel.recorded',
  'order-report.before-apply',
  'order-report.applied',
  'order-report.position-moved',
  'order-reconcile.looked-up',
  'order-reconcile.recorded',
  'application.before-store',
  'application.stored',
  'application.sent',
  'application.recorded',
  'application-report.before-apply',
  'application-report.applied',
  'application-report.position-moved',
  'application-reconcile.looked-up',
  'application-reconcile.recorded',
  'document.before-store',
  'document.stored',
  'document.sent',
  'document.recorded',
  'allocation.before-store',
  'allocation.stored',
  'allocation.sent',
  'allocation.recorded',
  'allocation-reconcile.looked-up',
  'allocation-reconcile.recorded',
  'relay.before-publish',
  'relay.published',
  'relay.handed-over',
  'feed.before-acknowledge',
  'feed.acknowledged',
  'webhooks.before-acknowledge',
  'webhooks.acknowledged',
  'delivery.claimed',
  'delivery.before-send',
  'delivery.sent',
  'delivery.recorded',
] as const;

export type CrashPoint = (typeof crashPoints)[number];

let armed: CrashPoint | undefined;
let signal: NodeJS.Signals = 'SIGKILL';

/** Ends (or, with SIGSTOP, freezes) the process at the next pass of a point. Only tests and sandboxes arm one. */
export function armCrash(point: CrashPoint, with_: NodeJS.Signals = 'SIGKILL'): void {
  armed = point;
  signal = with_;
}

/** A point at which the process may be made to end. */
export function crash(point: CrashPoint): void {
  if (armed !== point) return;
  armed = undefined;
  process.kill(process.pid, signal);
  // A signal to oneself is delivered soon, not at once: nothing may happen in between.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, signal === 'SIGKILL' ? 10_000 : 1_000);
}
