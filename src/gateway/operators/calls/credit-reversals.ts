import type { Database } from '../../store/database.ts';
import { type Statement, statement, toBigInt } from '../../store/statement.ts';
import type { LedgerEntry, LedgerFault } from '../../trading/wallet/rules.ts';
import { toEntry, transfers } from '../../trading/wallet/store.ts';

/** The reversals that have no credit before them, and those of a credit of which more is reversed than there was. */
export async function reversalFaults(
  database: Database,
  partnerId: string,
  entries: readonly LedgerEntry[],
): Promise<LedgerFault[]> {
  const reversals = entries.flatMap(({ reverses, ...entry }) =>
    typeof reverses === 'bigint' ? [{ ...entry, reverses }] : [],
  );
  if (reversals.length === 0) return [];
  const sequences = [...new Set(reversals.map(({ reverses }) => reverses))];
  const found = await database.readAll([
    transfers.find({ partnerId, sequence: sequences }),
    sumReversals(partnerId, sequences),
  ]);
  const [credits = [], sums = []] = found;
  const creditAt = new Map(credits.map(toEntry).map((credit) => [credit.sequence, credit]));
  const reversedAt = new Map(sums.map((row) => [toBigInt(row.reverses), toBigInt(row.kobo)]));
  return reversals.flatMap(({ reverses, sequence, id }) => {
    const credit = creditAt.get(reverses);
    const detail = disagreement(sequence, credit, reversedAt.get(reverses) ?? 0n);
    return detail === undefined ? [] : [{ kind: 'reversal' as const, sequence, id, detail }];
  });
}

/** Every reversal of a credit is summed, also one that was committed since, because it must fit too. */
function sumReversals(partnerId: string, sequences: readonly bigint[]): Statement {
  return statement(
    `SELECT reverses, SUM(amount_kobo) AS kobo FROM wallet_transfers FORCE INDEX (wallet_transfers_reverses)
      WHERE partner_id = ? AND reverses IN (?) GROUP BY reverses`,
    partnerId,
    sequences.map(String),
  );
}

function disagreement(sequence: bigint, credit: LedgerEntry | undefined, reversedKobo: bigint): string | undefined {
  if (credit === undefined || credit.type !== 'credit' || credit.sequence >= sequence) {
    return 'it reverses no credit before it';
  }
  if (reversedKobo <= credit.amountKobo) return undefined;
  return `${reversedKobo} kobo of a credit of ${credit.amountKobo} are reversed`;
}
