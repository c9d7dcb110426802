/** The points that every kind of submission has. The kind's name comes before them. */
export const kindPoints = [
  '.before-store',
  '.stored',
  '.sent',
  '.recorded',
  '-reconcile.looked-up',
  '-reconcile.recorded',
] as const;

/** The further points of a kind with reports. */
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
  'consumer.before-acknowledge',
  'consumer.acknowledged',
  'delivery.claimed',
  'delivery.before-send',
  'delivery.sent',
  'delivery.recorded',
] as const;

/** A named point at which a test can end the process, to prove recovery. An unarmed point costs one comparison. */
export type CrashPoint =
  | `${string}${(typeof kindPoints)[number] | (typeof reportPoints)[number]}`
  | (typeof otherPoints)[number];

/** Whether a text has the form of a point. Only the whole gateway knows which kinds exist. */
export function isCrashPoint(text: string): text is CrashPoint {
  return (
    [...kindPoints, ...reportPoints].some((point) => text.endsWith(point)) ||
    (otherPoints as readonly string[]).includes(text)
  );
}

let armed: CrashPoint | undefined;
let signal: NodeJS.Signals = 'SIGKILL';

/** Ends the process at the next pass of a point; SIGSTOP freezes it. For tests and sandboxes only. */
export function armCrash(point: CrashPoint, with_: NodeJS.Signals = 'SIGKILL'): void {
  armed = point;
  signal = with_;
}

/** A point at which a test may end the process. */
export function crash(point: CrashPoint): void {
  if (armed !== point) return;
  armed = undefined;
  process.kill(process.pid, signal);
  // A signal to oneself comes soon, but not at once. Nothing may happen in between.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, signal === 'SIGKILL' ? 10_000 : 1_000);
}
