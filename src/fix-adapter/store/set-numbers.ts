import type { Database } from '../../gateway/store/database.ts';
import { hasNotRunOut, type SqlRow, statement } from '../../gateway/store/statement.ts';
import { dropCopyNumbers } from '../drop-copy/table.ts';
import { auditOf, type ChangeAuthor, unnamedAuthor } from './audit.ts';
import { markPassedOver } from './marks.ts';
import { leaseName } from './store.ts';
import { type FixNumbers, fixNumbers } from './table.ts';

/** The numbers of the next messages, as the two sides agreed on by other means. */
export interface AgreedNumbers {
  readonly nextOut: number;
  readonly nextIn: number;
}

/** Sets the session's numbers, and notes who did so and why. Throws while an adapter has the session. Returns the former ones. */
export async function setNumbers(
  database: Database,
  { nextOut, nextIn }: AgreedNumbers,
  by: ChangeAuthor = unnamedAuthor(),
): Promise<AgreedNumbers> {
  const locked = fixNumbers.find({ id: 1n }, fixNumbers.all, statement('FOR UPDATE'));
  return database.transaction([adapterLease, locked], ([leases, rows]) => {
    checkNoAdapter(leases);
    const [row] = rows ?? [];
    if (row === undefined) throw new Error('the database has no numbers of a session: migrate it first');
    const before = fixNumbers.all.read(row);
    const after = agreedNumbers(before, { nextOut: BigInt(nextOut), nextIn: BigInt(nextIn) });
    const result = { nextOut: Number(before.nextOut), nextIn: Number(before.nextIn) };
    const entry = auditOf(by, 'fix numbers', shownNumbers(before), shownNumbers(after));
    return { writes: [...fixNumbers.update(before, after), ...markPassedOver, entry], result };
  });
}

/**
 * Sets the numbers of the drop copy's session, and notes who did so and why. What was booked before them is compared all the same,
 * and is not confirmed where the copies were among the messages that the numbers pass over.
 */
export async function setDropCopyNumbers(
  database: Database,
  { nextOut, nextIn }: AgreedNumbers,
  by: ChangeAuthor = unnamedAuthor(),
): Promise<AgreedNumbers> {
  const locked = dropCopyNumbers.find({ id: 1n }, dropCopyNumbers.all, statement('FOR UPDATE'));
  const lastReport = fixNumbers.find({ id: 1n }, fixNumbers.only('lastReport'));
  return database.transaction([adapterLease, lastReport, locked], ([leases, reports, rows]) => {
    checkNoAdapter(leases);
    const [row] = rows ?? [];
    const [last] = reports ?? [];
    if (row === undefined || last === undefined) {
      throw new Error('the database has no numbers of a drop copy: migrate it first');
    }
    const before = dropCopyNumbers.all.read(row);
    const passedOverTo = fixNumbers.only('lastReport').read(last).lastReport;
    const after = { ...before, nextOut: BigInt(nextOut), nextIn: BigInt(nextIn), passedOverTo };
    const result = { nextOut: Number(before.nextOut), nextIn: Number(before.nextIn) };
    const entry = auditOf(by, 'fix numbers --drop-copy', shownNumbers(before), shownNumbers(after));
    return { writes: [...dropCopyNumbers.update(before, after), entry], result };
  });
}

const adapterLease = statement(
  `SELECT ${hasNotRunOut('expires_at')} AS is_held FROM leases WHERE name = ? FOR UPDATE`,
  leaseName,
);

function checkNoAdapter(leases: readonly SqlRow[] | undefined): void {
  if (Number(leases?.[0]?.is_held ?? 0) !== 0) throw new Error('an adapter has the session: stop all of them first');
}

/** The numbers as an entry of the audit has them. */
export function shownNumbers({ nextOut, nextIn }: { readonly nextOut: bigint; readonly nextIn: bigint }): string {
  return JSON.stringify({ next_out: Number(nextOut), next_in: Number(nextIn) });
}

/** The row of numbers with what was agreed. Its version shows the process that has the session that they have changed. */
export function agreedNumbers(
  before: FixNumbers,
  { nextOut, nextIn }: { readonly nextOut: bigint; readonly nextIn: bigint },
): FixNumbers {
  return { ...before, nextOut, nextIn, version: before.version + 1n };
}
