import { bytes, defineTable, instant, type RowOf, text, whole } from '../../gateway/store/table.ts';

/**
 * The outcome of a new password. `sent`: it was about to be sent, and nothing is known. `changed`: it is the password
 * now. `refused`: the former one still is. `unknown`: the exchange answered, and did not say.
 */
export type PasswordOutcome = 'sent' | 'changed' | 'refused' | 'unknown';

/** New passwords that were sent with a Logon, by their salted digests. */
export const fixPasswordChanges = defineTable({
  name: 'fix_password_changes',
  columns: { id: whole(), salt: bytes(16), digest: bytes(32), sentAt: instant(), outcome: text<PasswordOutcome>(8) },
  primary: ['id'],
  generated: 'id',
});

export type PasswordChangeRow = RowOf<typeof fixPasswordChanges>;
