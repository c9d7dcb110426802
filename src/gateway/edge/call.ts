import type { MessageShape } from '@bufbuild/protobuf';
import type { GenService, GenServiceMethods } from '@bufbuild/protobuf/codegenv2';
import type { Logger } from '../../kit/log.ts';
import type { Caller, Permission } from './auth/caller.ts';
import type { Origin } from './origin.ts';

/** One call of an operation, as its handler sees it, over any protocol. */
export interface Call {
  readonly requestId: string;
  readonly caller: Caller;
  /** Undefined on operations that take none. */
  readonly idempotencyKey: string | undefined;
  readonly origin: Origin;
  readonly log: Logger;
  /** Must be renewed before anything is stored or sent after a wait (`whilePermitted`). */
  readonly permission: Permission;
  /**
   * Receives the file of an operation that takes one. The handler calls it after all checks that come before the file,
   * so that a refused request does not wait for the file. Throws `unsupported_media_type`, the operation's code for a
   * file that is too large, and `invalid_request` for one that is empty or incomplete.
   */
  receiveFile(): Promise<ReceivedFile>;
  /** Facts for the protocol in addition to the message. */
  readonly reply: { replayed: boolean };
}

/** A file that arrived completely. */
export interface ReceivedFile {
  readonly mediaType: string;
  readonly content: Buffer;
}

/** An operation's code. It throws an ApiError for every refusal. */
export type Handler<Request, Response> = (request: Request, call: Call) => Promise<Response>;

/**
 * The code of an operation that answers with a stream. It ends when the signal is aborted: when the caller has left or
 * lost its permission, or the server closes.
 */
export type StreamHandler<Request, Response> = (
  request: Request,
  call: Call,
  signal: AbortSignal,
) => AsyncIterable<Response>;

export type ServiceHandlers<Shape extends GenServiceMethods> = {
  readonly [Name in keyof Shape]: Shape[Name]['methodKind'] extends 'unary'
    ? Handler<MessageShape<Shape[Name]['input']>, MessageShape<Shape[Name]['output']>>
    : Shape[Name]['methodKind'] extends 'server_streaming'
      ? StreamHandler<MessageShape<Shape[Name]['input']>, MessageShape<Shape[Name]['output']>>
      : never;
};

/** The handlers of a generated service, as in `HandlersOf<typeof Orders>`. */
export type HandlersOf<Service> =
  Service extends GenService<infer Shape extends GenServiceMethods> ? ServiceHandlers<Shape> : never;
