import type { CallOutcome, RecordedCall } from './exchange.ts';

/** A broken promise, with the calls that showed it. */
export class Breach extends Error {
  override readonly name = 'Breach';
  readonly exchanges: readonly RecordedCall[];

  constructor(message: string, ...exchanges: readonly RecordedCall[]) {
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
export function expect(holds: boolean, message: string, ...exchanges: readonly RecordedCall[]): asserts holds {
  if (!holds) throw new Breach(message, ...exchanges);
}

type Answered<Answer> = CallOutcome<Answer> & { readonly answer: Answer };

/** The outcome of a call that an adapter must answer. Throws a breach if it ended with a status. */
export function answered<Answer>(outcome: CallOutcome<Answer>, what = 'it'): Answered<Answer> {
  const { answer, exchange } = outcome;
  if (answer === undefined) throw new Breach(endedWith(what, exchange), exchange);
  return { ...outcome, answer };
}

/** The outcome of a call without whose answer the check cannot be made. Throws `NotRun` if it ended with a status. */
export function needed<Answer>(outcome: CallOutcome<Answer>, what: string): Answered<Answer> {
  const { answer, exchange } = outcome;
  if (answer === undefined) throw new NotRun(endedWith(what, exchange));
  return { ...outcome, answer };
}

function endedWith(what: string, { status }: RecordedCall): string {
  return `${what} ended with ${status}`;
}
