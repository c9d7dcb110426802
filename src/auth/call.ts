import type { MessageShape } from '@bufbuild/protobuf';
import type { GenService, GenServiceMethods } from '@bufbuild/protobuf/codegenv2';
import type { Feature, Scope } from '../gen/marina/options/v1/options_pb.ts';
import { ApiError } from '../lib/errors.ts';
import type { Logger } from '../lib/log.ts';
import type { Origin } from '../lib/origin.ts';

/** What a partner may use, as agreed with it. */
export interface PartnerLimits {
  readonly requestsPerSecond: number;
  readonly requestsBurst: number;
  readonly requestsUnderWay: number;
  readonly ordersKoboPerDay: bigint;
  readonly allocationsKoboPerDay: bigint;
}

/** Who calls: one of a partner's keys. */
export interface Caller {
  readonly partnerId: string;
  readonly keyId: string;
  readonly scopes: ReadonlySet<Scope>;
  /** What is enabled for the partner by agreement. */
  readonly features: ReadonlySet<Feature>;
  readonly limits: PartnerLimits;
}

/** One call of one operation, as its handler sees it, whichever protocol it came over. */
export interface Call {
  readonly requestId: string;
  readonly caller: Caller;
  /** The Idempotency-Key, on the operations that take one. */
  readonly idempotencyKey: string | undefined;
  /** On whose behalf it is. */
  readonly origin: Origin;
  readonly log: Logger;
  /** Must be renewed before anything is stored or sent after a wait (`whilePermitted`). */
  readonly permission: Permission;
  /**
   * Receives the file of an operation that takes one. The handler calls it when it has looked at all that comes before
   * the file in the order of checks: a file that is refused unseen is not waited for. Throws `unsupported_media_type`,
   * the operation's own code for a file that is too large, and `invalid_request` for one that is empty or does not
   * arrive whole in its time.
   */
  receiveFile(): Promise<ReceivedFile>;
  /** What the handler tells the protocol in addition to the message. */
  readonly reply: { replayed: boolean };
}

/** A file that arrived whole. */
export interface ReceivedFile {
  /** One of the media types the operation takes. */
  readonly mediaType: string;
  readonly content: Buffer;
}

/** An operation's code: message in, message out. It throws an ApiError for everything it refuses. */
export type Handler<Request, Response> = (request: Request, call: Call) => Promise<Response>;

/**
 * The code of an operation that answers with a stream. It ends when the signal is aborted, which happens as soon as
 * nobody may or will take what it has to say.
 */
export type StreamHandler<Request, Response> = (
  request: Request,
  call: Call,
  signal: AbortSignal,
) => AsyncIterable<Response>;

/** A handler for each of a service's methods. */
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

/** Why a credential is refused, for metrics. The caller learns none of it. */
export type CredentialRefusal =
  /** There is no Authorization header, or more than one. */
  | 'missing'
  /** It is no key: another form, or a wrong checksum. */
  | 'malformed'
  | 'other_environment'
  /** The gateway never made such a key. */
  | 'forged'
  /** The gateway may have made it, and has no such key. */
  | 'unknown'
  | 'revoked'
  /** The partner is suspended. */
  | 'suspended'
  /** The key does not work from the client's address. */
  | 'address';

/** What is known of the caller before anything is decided about the call. */
export interface Identification {
  /** Whose request it is, as soon as the key itself is proven. */
  readonly caller: Caller | undefined;
  /** Why the call must be refused (401), after the route was looked at. A refused call counts against no limit. */
  readonly refusal: CredentialRefusal | undefined;
  /** Identifies again. It costs next to nothing when nothing has changed; without it the credential is read again. */
  readonly again?: () => Identification | Promise<Identification>;
  /** Whether nothing was read or heard since that may have changed it. It asks nobody; absent: nothing can. */
  readonly isLatest?: () => boolean;
}

/** That a caller may make a call, looked at again while the call goes on. */
export interface Permission {
  /** Makes sure that the caller may still make the call. Throws `unauthorized` or the code of a 403. */
  renew(): Promise<void>;
  /** Whether nothing was heard since that may have ended it. It asks nobody, so it may be used under a lock. */
  isLatest(): boolean;
}

/** Tells whose key a request carries. `authorization` is undefined when the header is absent or repeated. */
export type Identify = (authorization: string | undefined, clientAddress: string) => Promise<Identification>;

/** How often work is begun again because something was heard of its caller meanwhile. */
const mostTries = 4;

/** Something was heard of the caller since the permission was renewed, which may have ended it. */
class PermissionInDoubt extends Error {
  override readonly name = 'PermissionInDoubt';
}

/**
 * Runs work that stores something in the name of a caller, who must still be permitted to when it is stored. The work may
 * wait for a lock; when it has the lock it calls `check`, which throws if a key was revoked or a partner changed since.
 * Then nothing is stored, the permission is renewed, and the work runs again.
 */
export async function whilePermitted<T>(permission: Permission, work: (check: () => void) => Promise<T>): Promise<T> {
  const check = () => {
    if (!permission.isLatest()) throw new PermissionInDoubt();
  };
  for (let tries = 1; ; tries += 1) {
    await permission.renew();
    try {
      return await work(check);
    } catch (error) {
      if (!(error instanceof PermissionInDoubt)) throw error;
      if (tries === mostTries) throw new ApiError('service_unavailable', { cause: error });
    }
  }
}
