const unitMs: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };
/** Lagos is an hour ahead of UTC all year. */
const lagosAheadMs = 3_600_000;
const dayMs = 86_400_000;

/** How times may be written, for people. */
export const timeForms =
  '`15m`, `2h` or `3d` ago; `09:30` today or `2026-11-26 09:30` in Lagos; or with a zone: `2026-11-26T08:30:00Z`';

/** Reads an instant as an operator writes it, in milliseconds; undefined if it is none. */
export function readTime(text: string, now: number): number | undefined {
  const [, count, unit = ''] = /^(\d{1,5})([smhd])$/.exec(text) ?? [];
  if (count !== undefined) return now - Number(count) * (unitMs[unit] ?? 0);
  const time = /^\d\d:\d\d(:\d\d(\.\d{1,3})?)?$/;
  if (time.test(text)) {
    const midnight = Math.floor((now + lagosAheadMs) / dayMs) * dayMs;
    return parsed(`${new Date(midnight).toISOString().slice(0, 10)}T${text}+01:00`);
  }
  const [, day, rest, zone] =
    /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d(?:\.\d{1,3})?)?)(Z|[+-]\d\d:\d\d)?)?$/.exec(text) ?? [];
  return day === undefined || !isDay(day) ? undefined : parsed(`${day}T${rest ?? '00:00'}${zone ?? '+01:00'}`);
}

/** An instant in Lagos: `2026-11-26 09:30:00.123`. */
export function lagosTime(ms: number): string {
  return new Date(ms + lagosAheadMs).toISOString().replace('T', ' ').replace('Z', '');
}

/** The time of an instant in UTC, without its day: `08:30:00.123Z`. */
export function utcTime(ms: number): string {
  return new Date(ms).toISOString().slice(11);
}

/** How long something lasts, for people: `35 s`, `12 min`, `3 h`. */
export function duration(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1_000));
  if (seconds < 120) return `${seconds} s`;
  if (seconds < 7_200) return `${Math.round(seconds / 60)} min`;
  return seconds < 172_800 ? `${Math.round(seconds / 3_600)} h` : `${Math.round(seconds / 86_400)} days`;
}

/** Whether a month has the day: `Date.parse` takes 31 February for one of March. */
function isDay(day: string): boolean {
  const ms = Date.parse(`${day}T00:00:00Z`);
  return !Number.isNaN(ms) && new Date(ms).toISOString().startsWith(day);
}

function parsed(text: string): number | undefined {
  const ms = Date.parse(text);
  return Number.isNaN(ms) ? undefined : ms;
}
