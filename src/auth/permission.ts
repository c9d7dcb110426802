import { ApiError } from '../lib/errors.ts';
import type { Permission } from './call.ts';

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
