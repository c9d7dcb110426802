import { type DescField, type DescMethod, getOption, type Message } from '@bufbuild/protobuf';
import { status } from '@grpc/grpc-js';
import {
  OperatorRoleSchema,
  operator_call as operatorCall,
  type OperatorRole as RoleNumber,
} from '../../../gen/marina/options/v1/options_pb.ts';
import { enumWords } from '../../../kit/enums.ts';
import { hasRole, type IdentifiedOperator, type OperatorRole } from '../../../kit/operator-tokens.ts';
import { AdminError, invalidField } from './errors.ts';

const roleWords = enumWords<typeof RoleNumber>(OperatorRoleSchema);

/** The rules that the proto states about a call of operators. */
export interface CallRules {
  /** A token needs one of these roles. `admin` is always among them. */
  readonly roles: readonly OperatorRole[];
  readonly readsOnly: boolean;
  readonly showsMoney: boolean;
  /** The field that says why; undefined: the call only reads. */
  readonly reason: DescField | undefined;
}

/** The rules of a call. One that states no role is for `admin` alone. */
export function callRules(method: DescMethod): CallRules {
  const { roles, readsOnly, showsMoney, reasonField } = getOption(method, operatorCall);
  const reason = method.input.fields.find(({ name }) => name === (reasonField || 'reason'));
  const named = roles.map((role) => roleWords.word(role)).filter((role) => role !== 'admin');
  return { roles: [...named, 'admin'], readsOnly, showsMoney, reason: readsOnly ? undefined : reason };
}

/** Service and method, as in `Trading.PauseTrading`. */
export function callName(method: DescMethod): string {
  return `${method.parent.name}.${method.name}`;
}

/** Throws PERMISSION_DENIED, with the roles needed, unless the operator's token has one of them. */
export function requireRole(
  what: string,
  { roles: needed }: Pick<CallRules, 'roles'>,
  { roles }: Pick<IdentifiedOperator, 'roles'>,
): void {
  if (needed.some((role) => hasRole(roles, role))) return;
  const which = needed.length === 1 ? `the role ${needed[0]}` : `one of the roles ${needed.join(', ')}`;
  throw new AdminError(status.PERMISSION_DENIED, `${what} needs ${which}; this token has ${roles.join(', ')}`);
}

/** Throws INVALID_ARGUMENT if a call that changes something does not say why. */
export function requireReason({ reason }: CallRules, request: Message): void {
  if (reason === undefined) return;
  const given = (request as unknown as Readonly<Record<string, unknown>>)[reason.localName];
  if (!/[\p{L}\p{N}]/u.test(String(given ?? ''))) throw invalidField(reason.name, 'must say why.');
}
