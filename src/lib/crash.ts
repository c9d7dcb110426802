/** The points that every kind of submission has, after its name. */
export const kindPoints = [
  '.before-store',
  '.stored',
  '.sent',
  '.recorded',
  '-reconcile.looked-up',
  '-reconcile.recorded',
] as const;

/** Those that a kind with reports has besides. */
export const reportPoints = ['-report.before-apply', '-report.applied', '-report.position-moved'] as const;

export const otherPoints = [
  'cancel.before-store',
  'cancel.stored',
  'cancel.sent',
  'cancel.recorded',
  'document.before-store',
  'document.stored',
  'document.sent',
  'document.recorded',
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

/**
 * A named point at which a test can end the process, to prove that whatever was stored before is enough to go on. If none is
 * armed, a point costs one comparison.
 */
export type CrashPoint =
  | `${string}${(typeof kindPoints)[number] | (typeof reportPoints)[number]}`
  | (typeof otherPoints)[number];

/** Whether a point can be one: which kinds there are, only the whole gateway knows. */
export function isCrashPoint(text: string): text is CrashPoint {
  return (
    [...kindPoints, ...reportPoints].some((point) => text.endsWith(point)) ||
    (otherPoints as readonly string[]).includes(text)
  );
}

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
