import { parseArgs } from 'node:util';
import {
  newOperatorToken,
  type OperatorRole,
  operatorRoles,
  parseOperatorRoles,
} from '../../../kit/operator-tokens.ts';

const usage = `usage: node src/main.js operator-token NAME [--role ROLE[+ROLE]] [--days N]

Prints a new token of an operator, which is shown once, and the line for the file of MARINA_OPERATOR_TOKENS_FILE that admits it
for N days (90; at most 3650). NAME has at most 64 letters, digits, full stops, underscores and hyphens. ROLE is one of
${operatorRoles.join(', ')}. Without --role the token may only read.`;

/** Runs `operator-token …`. Answers the exit code: 0, or 2 if it was called wrongly. */
export function operatorTokenCommand(args: string[]): number {
  const call = readCall(args);
  if (call === undefined) {
    console.error(usage);
    return 2;
  }
  const { token, line } = newOperatorToken(call.name, Date.now() + call.days * 86_400_000, call.roles);
  console.log(`token: ${token}\nline:  ${line}`);
  return 0;
}

function readCall(args: string[]): { name: string; days: number; roles: readonly OperatorRole[] } | undefined {
  try {
    const options = { days: { type: 'string', default: '90' }, role: { type: 'string', default: 'read' } } as const;
    const { positionals, values } = parseArgs({ args, allowPositionals: true, options });
    const [name = '', ...more] = positionals;
    const days = /^\d{1,4}$/.test(values.days) ? Number(values.days) : 0;
    const roles = parseOperatorRoles(values.role);
    if (roles === undefined) return undefined;
    const isRight = /^[A-Za-z0-9._-]{1,64}$/.test(name) && more.length === 0 && days >= 1 && days <= 3_650;
    return isRight ? { name, days, roles } : undefined;
  } catch {
    return undefined; // An option that it does not know.
  }
}
