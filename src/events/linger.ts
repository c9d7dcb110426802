/** How long the first of some events waits for others, so that they travel together: nobody notices it. */
export const lingerMs = 10;
/** The same while there are many, when each trip costs more than the wait. */
const busyLingerMs = 30;
/** From how many on a trip's events count as many. */
const manyEvents = 4;

/** How long to wait for others after a trip with so many events. */
export function lingerAfter(events: number): number {
  return events >= manyEvents ? busyLingerMs : lingerMs;
}
