import type { Exchange } from './exchange.ts';

/** A broken promise, with the calls that showed it. */
export class Breach extends Error {
  override readonly name = 'Breach';
  readonly exchanges: readonly Exchange[];

  constructor(message: string, ...exchanges: readonly Exchange[]) {
    super(message);
    this.exchanges = exchanges;
  }
}

/** The check could not be made. */
export class NotRun extends Error {
  override readonly name = 'NotRun';
}

/** The adapter says that it does not offer this. */
export class NotOffered extends Error {
  override readonly name = 'NotOffered';
}

/** Throws a breach unless the condition holds. */
export function expect(holds: boolean, message: string, ...exchanges: readonly Exchange[]): asserts holds {
  if (!holds) throw new Breach(message, ...exchanges);
}
