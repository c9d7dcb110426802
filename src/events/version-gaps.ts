import type { Database } from '../db/database.ts';
import { noFact } from '../db/facts.ts';
import { type SqlRow, type Statement, statement, toBigInt } from '../db/statement.ts';

/** How long a gap is: far more than any partner's events between a backup and the loss of the database. */
const gapLength = 100_000_000;
const mostAtOnce = 500;

/** Versions that no event of the partner will ever have: after `from` comes the one after `to`. */
export interface VersionGap {
  readonly from: bigint;
  readonly to: bigint;
}

/**
 * Leaves a gap in the versions of every partner after a restore from a backup. Partners may have seen events from after
 * the backup, which the database no longer has, so their versions must never be used again.
 */
export async function leaveVersionGaps(database: Database): Promise<void> {
  for (let after = ''; ; ) {
    const partners = await database.read(
      statement(`SELECT id FROM partners WHERE id > ? ORDER BY id LIMIT ${mostAtOnce}`, after),
    );
    for (const { id } of partners) {
      await database.inPartner(String(id), {
        touches: ['versions'],
        fact: noFact,
        decide: (_, partner) => {
          const from = partner.takeVersions(gapLength) - 1n;
          return { writes: [insertGap(partner.id, { from, to: partner.version })], result: undefined };
        },
      });
    }
    const last = partners.at(-1);
    if (last === undefined || partners.length < mostAtOnce) return;
    after = String(last.id);
  }
}

function insertGap(partnerId: string, { from, to }: VersionGap): Statement {
  return statement(
    'INSERT INTO feed_skips (partner_id, from_version, to_version) VALUES (?, ?, ?)',
    partnerId,
    from,
    to,
  );
}

/** The gaps of a partner, of which there are as many as there were restores. */
export function findVersionGaps(partnerId: string): Statement {
  return statement(
    'SELECT from_version, to_version FROM feed_skips WHERE partner_id = ? ORDER BY from_version',
    partnerId,
  );
}

export function toVersionGap(row: SqlRow): VersionGap {
  return { from: toBigInt(row.from_version), to: toBigInt(row.to_version) };
}

/** The version that comes after one. */
export function versionAfter(version: bigint, gaps: readonly VersionGap[]): bigint {
  const gap = gaps.find(({ from, to }) => from <= version && version <= to);
  return (gap?.to ?? version) + 1n;
}
