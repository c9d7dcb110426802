/** When there is a session, in the time of Lagos, which is an hour ahead of UTC all year. */
export interface Schedule {
  /** The days of the week on which a session begins: 0 is Sunday. */
  readonly days: ReadonlySet<number>;
  /** `HH:MM` or `HH:MM:SS`. */
  readonly start: string;
  /** If it is not after the start, the session ends on the next day. */
  readonly end: string;
  /** Days that are not as their weekday, by the date on which the session begins: `2026-12-25`. */
  readonly calendar: ReadonlyMap<string, CalendarDay>;
}

/** The difference of one day: there is no session, or it has other hours. */
export type CalendarDay = 'closed' | SessionHours;

export interface SessionHours {
  readonly start: string;
  readonly end: string;
}

const dayMs = 86_400_000;
const lagosAheadMs = 3_600_000;
const weekdays = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'];

/** When the session of this instant began, in milliseconds; undefined if there is none now. */
export function sessionStartAt(schedule: Schedule, now: number): number | undefined {
  const local = now + lagosAheadMs;
  const midnight = Math.floor(local / dayMs) * dayMs;
  // The one that began last, if two touch.
  for (const day of [midnight, midnight - dayMs]) {
    const hours = hoursOf(schedule, day);
    if (hours === undefined) continue;
    const start = day + timeOf(hours.start);
    const lastsOver = timeOf(hours.end) <= timeOf(hours.start);
    // The second of the end belongs to the session, so that one until 23:59:59 has no pause.
    const end = day + timeOf(hours.end) + (lastsOver ? dayMs : 0) + 1_000;
    if (local >= start && local < end) return start - lagosAheadMs;
  }
  return undefined;
}

/** The hours of the session that begins on a day; undefined if none does. */
function hoursOf({ days, start, end, calendar }: Schedule, midnight: number): SessionHours | undefined {
  const special = calendar.get(new Date(midnight).toISOString().slice(0, 10));
  if (special === 'closed') return undefined;
  if (special !== undefined) return special;
  return days.has(new Date(midnight).getUTCDay()) ? { start, end } : undefined;
}

/** Reads days of the week: `mon-fri`, `mon,tue,thu`, `sun-thu,sat`. Throws if the text is none. */
export function parseDays(text: string): ReadonlySet<number> {
  const days = text.split(',').flatMap((part) => {
    const [first = -1, last = first, ...more] = part.split('-').map((name) => weekdays.indexOf(name));
    if (first < 0 || last < 0 || more.length > 0) throw new Error('must be days such as mon-fri or mon,tue,thu');
    const count = ((last - first + weekdays.length) % weekdays.length) + 1;
    return Array.from({ length: count }, (_, nth) => (first + nth) % weekdays.length);
  });
  if (new Set(days).size < days.length) throw new Error('must name each day once');
  return new Set(days);
}

const time = String.raw`(?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d)?`;
const linePattern = new RegExp(`^(\\d{4}-\\d\\d-\\d\\d)\\s+(?:(closed)|(?:(${time})-)?(${time}))$`);

/**
 * Reads a calendar: a day in each line, as `2026-12-25 closed`, `2026-12-24 12:30` (another end) or `2027-01-02 09:00-13:00`
 * (other hours, also of a day on which there is no session otherwise). `usual` are the hours of the other days. Throws with the line
 * that is wrong.
 */
export function parseCalendar(text: string, usual: SessionHours): ReadonlyMap<string, CalendarDay> {
  const days = new Map<string, CalendarDay>();
  for (const [at, line] of text.split('\n').entries()) {
    const content = line.trim();
    if (content === '' || content.startsWith('#')) continue;
    const wrong = (what: string) => new Error(`line ${at + 1} ${what}`);
    const [, date = '', closed, start = usual.start, end = ''] = linePattern.exec(content) ?? [];
    if (date === '') throw wrong('must be as 2026-12-25 closed, 2026-12-24 12:30 or 2027-01-02 09:00-13:00');
    if (!isDate(date)) throw wrong('must begin with a date that there is');
    if (days.has(date)) throw wrong('must not name a date again');
    if (closed === undefined && timeOf(start) === timeOf(end)) throw wrong('must not end when it begins');
    const isNight = timeOf(usual.end) <= timeOf(usual.start);
    if (closed === undefined && start === usual.start && timeOf(end) < timeOf(start) && !isNight) {
      throw wrong('must end after the session begins');
    }
    days.set(date, closed === undefined ? { start, end } : 'closed');
  }
  return days;
}

function isDate(text: string): boolean {
  const ms = Date.parse(`${text}T00:00:00Z`);
  return !Number.isNaN(ms) && new Date(ms).toISOString().startsWith(text);
}

/** Milliseconds from midnight. */
export function timeOf(text: string): number {
  const [hours = 0, minutes = 0, seconds = 0] = text.split(':').map(Number);
  return (hours * 3_600 + minutes * 60 + seconds) * 1_000;
}
