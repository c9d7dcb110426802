/** When there is a session, in the time of Lagos, which is an hour ahead of UTC all year. */
export interface Schedule {
  readonly days: 'mon-fri' | 'mon-sun';
  /** `HH:MM` or `HH:MM:SS`. */
  readonly start: string;
  /** After the start, on the same day. */
  readonly end: string;
}

const dayMs = 86_400_000;
const lagosAheadMs = 3_600_000;

/** When the session of this instant began, in milliseconds; undefined if there is none now. */
export function sessionStartAt(schedule: Schedule, now: number): number | undefined {
  const local = now + lagosAheadMs;
  const midnight = Math.floor(local / dayMs) * dayMs;
  const weekday = new Date(midnight).getUTCDay();
  const isDay = schedule.days === 'mon-sun' || (weekday >= 1 && weekday <= 5);
  const time = local - midnight;
  // The second of the end belongs to the session, so that one until 23:59:59 has no pause.
  const isOpen = isDay && time >= timeOf(schedule.start) && time < timeOf(schedule.end) + 1_000;
  return isOpen ? midnight + timeOf(schedule.start) - lagosAheadMs : undefined;
}

/** Milliseconds from midnight. */
function timeOf(text: string): number {
  const [hours = 0, minutes = 0, seconds = 0] = text.split(':').map(Number);
  return (hours * 3_600 + minutes * 60 + seconds) * 1_000;
}
