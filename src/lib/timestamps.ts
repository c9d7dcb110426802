import { type Timestamp, timestampFromMs } from '@bufbuild/protobuf/wkt';

/** An instant as partners see it over every door: to the second, rounded down. */
export function toSecond(ms: number): Timestamp {
  return timestampFromMs(Math.floor(ms / 1_000) * 1_000);
}

/** Rounded down: to round up at the end of the last year there is would leave what a database holds. */
export function toMilliseconds({ seconds, nanos }: Timestamp): number {
  return Number(seconds) * 1_000 + Math.floor(nanos / 1e6);
}
