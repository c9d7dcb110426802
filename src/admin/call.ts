import type { DescMethodUnary, Message, MessageInitShape, MessageShape } from '@bufbuild/protobuf';
import { status } from '@grpc/grpc-js';
import type { TypedService } from '../lib/grpc-service.ts';

/** The name of an operator, as its token says. */
export type Operator = string;

/** What an operator's call is refused with. */
export class AdminError extends Error {
  override readonly name = 'AdminError';
  /** The field that is at fault, when one is. */
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

/** The code of a call: message in, what the answer is made of out. */
export type AdminHandler = (request: never, operator: Operator) => Promise<object>;

/** The code of a service's unary calls, by its descriptor. */
export type AdminCalls<S extends TypedService> = {
  readonly [K in keyof S['method'] as S['method'][K] extends DescMethodUnary ? K : never]: (
    request: MessageShape<S['method'][K]['input']>,
    operator: Operator,
  ) => Promise<MessageInitShape<S['method'][K]['output']>>;
};

/** The code of a call that is answered with a stream. It ends when the signal is aborted. */
export type AdminStreamHandler = (request: never, operator: Operator, signal: AbortSignal) => AsyncIterable<Message>;

/** A service of the operators' port, with its calls. */
export interface AdminService {
  readonly service: TypedService;
  readonly handlers: Record<string, AdminHandler | AdminStreamHandler>;
}

/** How many a list shows where it is not said, and at most. */
export const usuallyListed = 25;

/** The rules of lists: a limit of 0 is the usual one. */
export function pageSize(limit: number): number {
  return limit === 0 ? usuallyListed : limit;
}
