import { status } from '@grpc/grpc-js';
import type { Database } from '../../../store/database.ts';
import { milliseconds, type SqlRow, sql, statement, toBigInt } from '../../../store/statement.ts';
import { readUpToDate } from '../../../trading/submission/table.ts';
import { emptyLedger, type WalletSums } from '../../../trading/wallet/rules.ts';
import { ledgerHead, toEntry, transfers, wallets } from '../../../trading/wallet/store.ts';
import { AdminError } from '../errors.ts';

/** How far the instants of two neighbours in a ledger may be in the wrong order, because replicas' clocks differ. */
const marginMs = 60_000;
/** How many entries are passed over at a time. */
const together = 200;

/** The end of a partner's ledger; undefined if it has no entry. */
export async function readHead(database: Database, partnerId: string) {
  const [row] = await database.read(wallets.find({ partnerId }, ledgerHead));
  return row && ledgerHead.read(row);
}

/**
 * The number of the first entry at an instant or later; that after the last if there is none. An entry belongs to the day in
 * which the ledger is there, also if its own instant is a little before that of the entry before it: so days have no gap, and
 * they add up. `from` is known to be no later than it.
 */
export async function firstEntryAt(
  database: Database,
  partnerId: string,
  atMs: number,
  { from, last }: { readonly from: bigint; readonly last: bigint },
): Promise<bigint> {
  let [low, high] = [from, last + 1n];
  while (low < high) {
    const middle = (low + high) / 2n;
    const [row] = await readInstants(database, partnerId, middle, 1);
    if (row === undefined || instantOf(row) >= atMs - marginMs) high = middle;
    else low = middle + 1n;
  }
  for (let next = low; next <= last; ) {
    const rows = await readInstants(database, partnerId, next, together);
    const found = rows.find((row) => instantOf(row) >= atMs);
    if (found !== undefined) return toBigInt(found.sequence);
    const end = rows.at(-1);
    if (end === undefined) break;
    next = toBigInt(end.sequence) + 1n;
  }
  return last + 1n;
}

/** The sums of a ledger after an entry; 0: before the first. */
export async function sumsAt(database: Database, partnerId: string, sequence: bigint): Promise<WalletSums> {
  const [row] = sequence === 0n ? [] : await readUpToDate(database, transfers.find({ partnerId, sequence }));
  if (row === undefined && sequence > 0n) throw missingEntry(partnerId, sequence);
  const { availableKobo, reservedKobo, postedKobo } = row === undefined ? emptyLedger(partnerId) : toEntry(row);
  return { availableKobo, reservedKobo, postedKobo };
}

/** An entry from a number on could not be read: the server lags, or it was removed. A report must not show that as no money. */
export function missingEntry(partnerId: string, from: bigint): AdminError {
  const what = `an entry from ${from} on of the ledger of ${partnerId}`;
  return new AdminError(status.UNAVAILABLE, `${what} could not be read: call again, and VerifyLedger if it stays so`);
}

function readInstants(database: Database, partnerId: string, from: bigint, most: number): Promise<SqlRow[]> {
  return database.read(
    sql`SELECT sequence, created_at FROM wallet_transfers FORCE INDEX (PRIMARY)
      WHERE partner_id = ${partnerId} AND sequence >= ${from.toString()} ORDER BY sequence ${statement(`LIMIT ${most}`)}`,
  );
}

function instantOf(row: SqlRow): number {
  return milliseconds(row.created_at) ?? 0;
}
