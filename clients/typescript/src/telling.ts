/**
 * Calls a function that the program gave, such as one that logs. What it throws, and what a promise of it rejects with, is written
 * to the console: the order was placed, so a mistake in a log must not take its answer and its key away, nor end the process.
 */
export function tell(name: string, call: () => unknown): void {
  const failed = (error: unknown) => console.error(`${name} failed`, error);
  try {
    Promise.resolve(call()).catch(failed);
  } catch (error) {
    failed(error);
  }
}
