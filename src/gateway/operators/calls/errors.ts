import { status } from '@grpc/grpc-js';

/** The error of an operator's call. */
export class AdminError extends Error {
  override readonly name = 'AdminError';
  /** The field at fault, if there is one. */
  readonly param: string | undefined;

  constructor(
    readonly status: status,
    message: string,
    options: { readonly param?: string; readonly cause?: unknown } = {},
  ) {
    super(message, { cause: options.cause });
    this.param = options.param;
  }
}

/** INVALID_ARGUMENT for a field. `problem` goes on after its name: "must be …". */
export function invalidField(param: string, problem: string): AdminError {
  return new AdminError(status.INVALID_ARGUMENT, `\`${param}\` ${problem}`, { param });
}
