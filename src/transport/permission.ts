import type { Caller, Identification, Identify, Permission } from '../auth/call.ts';
import { Feature } from '../gen/marina/options/v1/options_pb.ts';
import { ApiError } from '../lib/errors.ts';
import type { Operation } from './operations.ts';
import type { Visit } from './visit.ts';

/** The caller, if the credential is good and lets it use the operation. */
export function permit(operation: Operation, { caller, refusal }: Identification): Caller {
  if (refusal !== undefined) throw new ApiError(refusal);
  if (caller === undefined) throw new ApiError('unauthorized');
  if (!caller.scopes.has(operation.scope)) throw new ApiError('insufficient_scope');
  const { feature } = operation;
  if (feature !== Feature.UNSPECIFIED && !caller.features.has(feature)) throw new ApiError('feature_not_enabled');
  return caller;
}

/**
 * Identifies a visit's caller again and decides anew. A key may have been revoked, or what was agreed with its partner
 * changed, since the head of the request came. It takes no token of the rate.
 */
export async function permitAgain(visit: Visit, operation: Operation, identify: Identify): Promise<Caller> {
  const { identification, credential } = visit;
  if (credential === undefined) throw new Error('called before it was admitted');
  const again = identification?.again ?? (() => identify(credential.authorization, credential.clientAddress));
  visit.identification = await again();
  return permit(operation, visit.identification);
}

/** The permission of a call that was admitted. */
export function permissionOf(visit: Visit, operation: Operation, identify: Identify): Permission {
  return {
    renew: async () => {
      await permitAgain(visit, operation, identify);
    },
    isLatest: () => visit.identification?.isLatest?.() ?? true,
  };
}
