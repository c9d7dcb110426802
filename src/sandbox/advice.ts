/** A failure a person can do something about: shown as what happened and what to do, without a stack. */
export class Advice extends Error {
  override readonly name = 'Advice';

  constructor(
    message: string,
    readonly advice: string,
  ) {
    super(message);
  }
}

/** An error as people read it. */
export function explain(error: unknown): string {
  if (error instanceof Advice) return `${error.message}\n${error.advice}`;
  if (error instanceof Error) return error.stack ?? error.message;
  return String(error);
}
