import { type Timestamp, timestampFromMs } from '@bufbuild/protobuf/wkt';

/** An instant as partners see it over every protocol: to the second, rounded down. */
export function toSecond(ms: number): Timestamp {
  return timestampFromMs(Math.floor(ms / 1_000) * 1_000);
}

/** The accepted instants in milliseconds: from the year 2000 until the start of 2200. */
export const instantRange = { least: 946_684_800_000, most: 7_258_118_400_000 };

/** Another system's instant in milliseconds; undefined if it is absent or out of range. */
export function statedInstant(at: Timestamp | undefined): number | undefined {
  const ms = at && toMilliseconds(at);
  return ms === undefined || ms < instantRange.least || ms > instantRange.most ? undefined : ms;
}

/** Rounded down. Rounding up at the end of the last year would exceed the database's range. */
export function toMilliseconds({ seconds, nanos }: Timestamp): number {
  return Number(seconds) * 1_000 + Math.floor(nanos / 1e6);
}
