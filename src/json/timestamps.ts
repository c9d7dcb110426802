import { create } from '@bufbuild/protobuf';
import { type Timestamp, TimestampSchema } from '@bufbuild/protobuf/wkt';

const rfc3339 =
  /^(\d{4})-(\d{2})-(\d{2})[Tt]([01]\d|2[0-3]):([0-5]\d):([0-5]\d)(?:\.(\d{1,9}))?(?:[Zz]|([+-])([01]\d|2[0-3]):([0-5]\d))$/;
const firstSecond = -62_135_596_800;
const lastSecond = 253_402_300_799;
const daySeconds = 86_400;

/** Reads an RFC 3339 time with any offset; undefined when it is none, or lies outside the years 1 to 9999. */
export function parseTimestamp(text: string): Timestamp | undefined {
  const match = rfc3339.exec(text);
  if (match === null) return undefined;
  const [, year, month, day, hour, minute, second, fraction = '', sign, offsetHours, offsetMinutes] = match;
  const date = new Date(0);
  date.setUTCFullYear(Number(year), Number(month) - 1, Number(day));
  // A day the month does not have moves the date on.
  if (date.getUTCMonth() !== Number(month) - 1 || date.getUTCDate() !== Number(day)) return undefined;
  const offset =
    sign === undefined ? 0 : Number(`${sign}1`) * (Number(offsetHours) * 3_600 + Number(offsetMinutes) * 60);
  const seconds = date.getTime() / 1_000 + Number(hour) * 3_600 + Number(minute) * 60 + Number(second) - offset;
  if (seconds < firstSecond || seconds > lastSecond) return undefined;
  return create(TimestampSchema, { seconds: BigInt(seconds), nanos: Number(fraction.padEnd(9, '0')) });
}

/** Whether a timestamp from outside can be written as a date at all. */
export function isTimestampInRange({ seconds, nanos }: Timestamp): boolean {
  return seconds >= firstSecond && seconds <= lastSecond && nanos >= 0 && nanos <= 999_999_999;
}

let lastDay = Number.NaN;
let lastDayText = '';
const twoDigits = Array.from({ length: 60 }, (_, value) => String(value).padStart(2, '0'));

/** Writes a time in UTC to the second, as in `2026-11-20T17:12:33Z`; what is left of a second is cut off. */
export function formatTimestamp(timestamp: Timestamp): string {
  if (!isTimestampInRange(timestamp)) throw new RangeError('a timestamp lies outside the years 1 to 9999');
  const seconds = Number(timestamp.seconds);
  const day = Math.floor(seconds / daySeconds);
  if (day !== lastDay) {
    lastDayText = new Date(day * daySeconds * 1_000).toISOString().slice(0, 11);
    lastDay = day;
  }
  const inDay = seconds - day * daySeconds;
  const hour = twoDigits[Math.floor(inDay / 3_600)];
  return `${lastDayText}${hour}:${twoDigits[Math.floor(inDay / 60) % 60]}:${twoDigits[inDay % 60]}Z`;
}
