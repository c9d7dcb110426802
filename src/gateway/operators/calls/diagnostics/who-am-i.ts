import type { Diagnostics } from '../../../../gen/marina/admin/v1/diagnostics_pb.ts';
import { hasRole } from '../../../../kit/operator-tokens.ts';
import type { AdminCalls, AdminService } from '../call.ts';
import { callName, callRules } from '../roles.ts';

/** The operators' call that says whose token it has, and what that may do. `services` are those of this port. */
export function whoAmICalls(
  environment: 'sandbox' | 'live',
  services: () => readonly AdminService[],
): Pick<AdminCalls<typeof Diagnostics>, 'whoAmI'> {
  return {
    async whoAmI(_, { operator, roles, tokenEndsAt }) {
      const allowed = services()
        .flatMap(({ service }) => service.methods)
        .map((method) => ({ name: callName(method), rules: callRules(method) }))
        .filter(({ rules }) => rules.roles.some((role) => hasRole(roles, role)));
      const named = (readsOnly: boolean) =>
        allowed.flatMap(({ name, rules }) => (rules.readsOnly === readsOnly ? [name] : [])).sort();
      const [reads, changes] = [named(true), named(false)];
      return { operator, roles, tokenEndsAt, environment, readsOnly: changes.length === 0, reads, changes };
    },
  };
}
