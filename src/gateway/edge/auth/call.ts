import type { MessageShape } from '@bufbuild/protobuf';
import type { GenService, GenServiceMethods } from '@bufbuild/protobuf/codegenv2';
import type { Feature, Scope } from '../../../gen/marina/options/v1/options_pb.ts';
import type { Logger } from '../../../kit/log.ts';
import { ApiError } from '../errors.ts';
import type { Origin } from '../origin.ts';

/** A partner's limits. */
export interface PartnerLimits {
  readonly requestsPerSecond: number;
  readonly requestsBurst: number;
  readonly requestsUnderWay: number;
  readonly ordersKoboPerDay: bigint;
  readonly allocationsKoboPerDay: bigint;
}

/** The partner and key that make a call. */
export interface Caller {
  readonly partnerId: string;
  readonly keyId: string;
  readonly scopes: ReadonlySet<Scope>;
  readonly features: ReadonlySet<Feature>;
  readonly limits: PartnerLimits;
}

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

/** Why a credential is refused, for metrics. The caller is not told. */
export type CredentialRefusal =
  /** No Authorization header, or more than one. */
  | 'missing'
  /** Not the form of a key, or a wrong checksum. */
  | 'malformed'
  | 'other_environment'
  /** The gateway never made such a key. */
  | 'forged'
  /** The gateway may have made it, but has no such key. */
  | 'unknown'
  /** Its row in the database is not what the gateway wrote, or no gateway of this version wrote it. */
  | 'unsealed'
  | 'revoked'
  | 'suspended'
  /** The key does not work from the client's address. */
  | 'address';

/** The result of looking at a credential, before anything else of the call is checked. */
export interface Identification {
  /** Known once the key is proven, also if it is refused. */
  readonly caller: Caller | undefined;
  /** Why the call is refused with 401, after the route was checked. Such a call counts against no limit. */
  readonly refusal: CredentialRefusal | undefined;
  /** Identifies again, from the cache if nothing changed. If absent, the credential is read again. */
  readonly again?: () => Identification | Promise<Identification>;
  /** Whether no later read or notification may have changed it. It queries nothing; if absent, nothing can. */
  readonly isLatest?: () => boolean;
}

/** A caller's permission to make a call, checked again while the call runs. */
export interface Permission {
  /** Checks again. Throws `unauthorized` or the code of a 403. */
  renew(): Promise<void>;
  /** Whether no notification since may have ended it. It queries nothing, so it may be used under a lock. */
  isLatest(): boolean;
}

/**
 * Finds the caller of a request: at once, unless its key must be read. `authorization` is undefined if the header is absent
 * or repeated.
 */
export type Identify = (
  authorization: string | undefined,
  clientAddress: string,
) => Identification | Promise<Identification>;

/** How often work is repeated because its caller may have changed meanwhile. */
const maxTries = 4;

/** The caller may have lost its permission since it was renewed. */
class PermissionInDoubt extends Error {
  override readonly name = 'PermissionInDoubt';
}

/**
 * Runs work that stores something for a caller. When the work has its lock, it calls `check`, which throws if the key
 * or the partner may have changed since. Then the work stores nothing, the permission is renewed, and the work runs
 * again.
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
      if (tries === maxTries) throw new ApiError('service_unavailable', { cause: error });
    }
  }
}
