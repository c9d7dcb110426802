import type { Feature, Scope } from '../../../gen/marina/options/v1/options_pb.ts';
import { ApiError } from '../errors.ts';

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
