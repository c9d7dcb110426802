import { userInfo } from 'node:os';
import type { Statement } from '../../gateway/store/statement.ts';
import { fixAudit } from '../operations/table.ts';

/** Who changes something at the database, when, and why. */
export interface ChangeAuthor {
  /** In milliseconds. */
  readonly at: number;
  readonly operator: string;
  /** In the operator's words. */
  readonly reason: string;
}

/** How many characters the entry keeps of a name, and how many bytes of a reason. */
const longest = { operator: 64, reason: 200 };

/** The author of a command that was given no name: the account of the operating system. */
export function unnamedAuthor(): ChangeAuthor {
  return { at: Date.now(), operator: `account ${accountName()}`, reason: 'no reason was given' };
}

/** The entry of a change: `was` and `became` are the values before and after it. */
export function auditOf(
  { at, operator, reason }: ChangeAuthor,
  action: string,
  was: string,
  became: string,
): Statement {
  const kept = { operator: operator.slice(0, longest.operator), reason: reason.slice(0, longest.reason) };
  return fixAudit.insert({ id: 0n, at, ...kept, action, was, became });
}

/** In a container, an account may have no name. */
function accountName(): string {
  try {
    return userInfo().username;
  } catch {
    return String(process.getuid?.() ?? 'unknown');
  }
}
