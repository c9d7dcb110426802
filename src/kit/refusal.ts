/** An error that its caller is told. Nothing is wrong with the program; `cause` is what happened. */
export class Refusal extends Error {
  override readonly name: string = 'Refusal';
}

/**
 * Something that the work needs cannot be used now, such as a database that is away. The same work may be tried again.
 */
export class UnavailableError extends Refusal {
  override readonly name = 'UnavailableError';

  constructor(options: { readonly cause?: unknown } = {}) {
    super('The service is not available.', options);
  }
}
