import type { Database } from '../../db/database.ts';
import { hasNotRunOut, statement } from '../../db/statement.ts';
import { leaseName, markPassedOver } from './store.ts';
import { type FixNumbers, fixNumbers } from './table.ts';

/** The numbers of the next messages, as the two sides agreed on by other means. */
export interface AgreedNumbers {
  readonly nextOut: number;
  readonly nextIn: number;
}

/** Sets the session's numbers. Throws while an adapter has the session. Returns the former ones. */
export async function setNumbers(database: Database, { nextOut, nextIn }: AgreedNumbers): Promise<AgreedNumbers> {
  const running = statement(
    `SELECT ${hasNotRunOut('expires_at')} AS is_held FROM leases WHERE name = ? FOR UPDATE`,
    leaseName,
  );
  const locked = fixNumbers.find({ id: 1n }, fixNumbers.all, statement('FOR UPDATE'));
  return database.transaction([running, locked], ([leases, rows]) => {
    if (Number(leases?.[0]?.is_held ?? 0) !== 0) throw new Error('an adapter has the session: stop all of them first');
    const [row] = rows ?? [];
    if (row === undefined) throw new Error('the database has no numbers of a session: migrate it first');
    const before = fixNumbers.all.read(row);
    const after = agreedNumbers(before, { nextOut: BigInt(nextOut), nextIn: BigInt(nextIn) });
    const result = { nextOut: Number(before.nextOut), nextIn: Number(before.nextIn) };
    return { writes: [...fixNumbers.update(before, after), ...markPassedOver], result };
  });
}

/** The row of numbers with what was agreed. Its version shows the process that has the session that they have changed. */
export function agreedNumbers(
  before: FixNumbers,
  { nextOut, nextIn }: { readonly nextOut: bigint; readonly nextIn: bigint },
): FixNumbers {
  return { ...before, nextOut, nextIn, version: before.version + 1n };
}
