import { type Timestamp, timestampFromMs } from '@bufbuild/protobuf/wkt';

/** An instant as partners see it over every protocol: to the second, rounded down. */
export function toSecond(ms: number): Timestamp {
  return timestampFromMs(Math.floor(ms / 1_000) * 1_000);
}

/** The instants that can be: from the year 2000 until the first moment of 2200, in milliseconds. */
export const instantRange = { least: 946_684_800_000, most: 7_258_118_400_000 };

/** An instant that another system states, in milliseconds; undefined if it states none, or one that cannot be. */
export function statedInstant(at: Timestamp | undefined): number | undefined {
  const ms = at && toMilliseconds(at);
  return ms === undefined || ms < instantRange.least || ms > instantRange.most ? undefined : ms;
}

/** Rounded down: to round up at the end of the last year there is would leave what a database holds. */
export function toMilliseconds({ seconds, nanos }: Timestamp): number {
  return Number(seconds) * 1_000 + Math.floor(nanos / 1e6);
}
