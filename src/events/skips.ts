import type { Database } from '../db/database.ts';
import { noFact } from '../db/facts.ts';
import { type SqlRow, type Statement, statement, toBigInt } from '../db/statement.ts';

/** How many versions are skipped: far more than any partner's events between a backup and the loss of the database. */
const skippedVersions = 100_000_000;
const mostAtOnce = 500;

/** Versions that no event of the partner will ever have: after `from` comes the one after `to`. */
export interface Skip {
  readonly from: bigint;
  readonly to: bigint;
}

/** Skips versions of every partner, so that what was told after a backup, and is not known here, is never told again. */
export async function skipVersions(database: Database): Promise<void> {
  for (let after = ''; ; ) {
    const partners = await database.read(
      statement(`SELECT id FROM partners WHERE id > ? ORDER BY id LIMIT ${mostAtOnce}`, after),
    );
    for (const { id } of partners) {
      await database.inPartner(String(id), {
        touches: ['versions'],
        fact: noFact,
        decide: (_, partner) => {
          const from = partner.takeVersions(skippedVersions) - 1n;
          return { writes: [insertSkip(partner.id, { from, to: partner.version })], result: undefined };
        },
      });
    }
    const last = partners.at(-1);
    if (last === undefined || partners.length < mostAtOnce) return;
    after = String(last.id);
  }
}

function insertSkip(partnerId: string, { from, to }: Skip): Statement {
  return statement(
    'INSERT INTO feed_skips (partner_id, from_version, to_version) VALUES (?, ?, ?)',
    partnerId,
    from,
    to,
  );
}

/** The skips of a partner, of which there are as many as there were restores. */
export function findSkips(partnerId: string): Statement {
  return statement(
    'SELECT from_version, to_version FROM feed_skips WHERE partner_id = ? ORDER BY from_version',
    partnerId,
  );
}

export function toSkip(row: SqlRow): Skip {
  return { from: toBigInt(row.from_version), to: toBigInt(row.to_version) };
}

/** The version that comes after one. */
export function versionAfter(version: bigint, skips: readonly Skip[]): bigint {
  const skip = skips.find(({ from, to }) => from <= version && version <= to);
  return (skip?.to ?? version) + 1n;
}
