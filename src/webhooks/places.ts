/** How many attempts of a process are under way at once, at most. */
export const mostUnderWay = 1_024;
/** Beyond this many, places are for endpoints whose last attempt was answered with a 2xx. */
const mostUnproven = 768;
/** Beyond this many, an endpoint has no more places than a new one. */
const crowdedFrom = 512;
/** How many attempts of retries are under way at once, at most: the rest is kept for first attempts. */
const mostRetriesUnderWay = 512;

/** How many attempts of one endpoint are under way at once: at first, and when all has gone well for long. */
export const firstWindow = 4;
const smallestWindow = 2;
export const largestWindow = 16;
/**
 * Beyond the first places, an endpoint has as many as it takes for so many deliveries a second. One that answers at once
 * needs no more, and where many are to be sent, more at the same time only wait for each other and hold memory.
 */
const deliveriesPerSecond = 200;

/** What of an endpoint decides whether it may have one more attempt under way. */
export interface LaneLoad {
  readonly window: number;
  /** How long it takes for an answer when it has nothing else to do, in milliseconds. */
  readonly answerMs: number;
  readonly underWay: number;
  readonly retriesUnderWay: number;
  /** Whether its last attempt was answered with a 2xx. */
  readonly isProven: boolean;
}

/** What of the process decides it. */
export interface TotalLoad {
  readonly underWay: number;
  readonly retriesUnderWay: number;
}

/** Whether one more attempt may begin for the endpoint's own sake. */
export function hasOwnPlace(lane: LaneLoad, total: TotalLoad): boolean {
  const places = placesOf(lane);
  return lane.underWay < (total.underWay < crowdedFrom ? places : Math.min(places, firstWindow));
}

/** How many places an endpoint has while there is no crowd. */
export function placesOf({ window, answerMs }: Pick<LaneLoad, 'window' | 'answerMs'>): number {
  const needed = Math.ceil((deliveriesPerSecond * answerMs) / 1_000);
  return Math.min(Math.floor(window), Math.max(firstWindow, needed));
}

/** Whether one more attempt may begin for the sake of all. */
export function hasSharedPlace(lane: LaneLoad, total: TotalLoad): boolean {
  return total.underWay < (lane.isProven ? mostUnderWay : mostUnproven);
}

/** Whether a retry may begin: at most half of an endpoint's places are for retries, and half of all. */
export function hasRetryPlace(lane: LaneLoad, total: TotalLoad): boolean {
  return (
    lane.retriesUnderWay < Math.max(1, Math.floor(placesOf(lane) / 2)) && total.retriesUnderWay < mostRetriesUnderWay
  );
}

/**
 * How many may be under way after an attempt: one more when as many as may be were delivered, half as many after a
 * failure.
 */
export function windowAfter(window: number, isDelivered: boolean): number {
  return isDelivered ? Math.min(window + 1 / window, largestWindow) : Math.max(smallestWindow, Math.floor(window / 2));
}

/**
 * How long an endpoint takes for an answer when it has nothing else to do, after one more delivery: the shortest seen,
 * which is slowly forgotten. What an answer waits for others, here or there, is not in it.
 */
export function answerMsAfter(answerMs: number, durationMs: number): number {
  return Math.min(durationMs, answerMs * 1.02 + 0.1);
}
