import type { PasswordOutcome } from './table.ts';

/** SessionStatus (1409), as far as it is about passwords. */
const statuses = {
  active: '0',
  changed: '1',
  dueToExpire: '2',
  doesNotComply: '3',
  wrongPassword: '5',
  expired: '8',
} as const;

/** A notice to operators. */
export interface PasswordNotice {
  readonly level: 'info' | 'warn' | 'error';
  readonly line: string;
}

/** How the other side answered a Logon. */
export interface LogonReply {
  /** Whether there is a session. */
  readonly isAccepted: boolean;
  /** SessionStatus (1409); undefined: it has none. */
  readonly sessionStatus: string | undefined;
}

/**
 * Returns the outcome that the answer to a Logon with a NewPassword (925) proves. An answer that does not say so proves
 * nothing.
 */
export function outcomeOf({ isAccepted, sessionStatus }: LogonReply): Exclude<PasswordOutcome, 'sent'> {
  if (sessionStatus === statuses.changed) return 'changed';
  if (sessionStatus === statuses.doesNotComply || sessionStatus === statuses.wrongPassword) return 'refused';
  return isAccepted || sessionStatus !== undefined ? 'unknown' : 'refused';
}

/**
 * Returns the notices to operators about the passwords after the answer to a Logon. `outcome` is that of a new password
 * that was sent with it.
 */
export function passwordNotices(
  { sessionStatus }: LogonReply,
  outcome: Exclude<PasswordOutcome, 'sent'> | undefined,
): PasswordNotice[] {
  const notices: PasswordNotice[] = [];
  if (outcome === 'changed') {
    const line =
      "the exchange has changed the session's password: set MARINA_FIX_PASSWORD to the new one, then unset MARINA_FIX_NEW_PASSWORD";
    notices.push({ level: 'warn', line });
  }
  if (outcome === 'refused') {
    const why = sessionStatus === statuses.doesNotComply ? ', because it does not comply with its rules' : '';
    notices.push({ level: 'error', line: `the exchange refuses the new password${why}; the former one stays in use` });
  }
  if (outcome === 'unknown') {
    const line = 'the exchange does not say whether it has changed the password: ask the broker which one holds';
    notices.push({ level: 'error', line });
  }
  if (sessionStatus === statuses.dueToExpire) {
    notices.push({ level: 'warn', line: 'the password of the session is due to expire: set MARINA_FIX_NEW_PASSWORD' });
  }
  if (sessionStatus === statuses.expired) {
    notices.push({ level: 'error', line: 'the password of the session has expired: ask the broker for a new one' });
  }
  if (sessionStatus === statuses.wrongPassword && outcome === undefined) {
    notices.push({ level: 'error', line: 'the exchange does not accept the user name or the password' });
  }
  return notices;
}
