import type { Database } from '../db/database.ts';
import { noFact } from '../db/facts.ts';
import { type Statement, statement } from '../db/statement.ts';
import { feedSkips, type VersionGap } from './table.ts';

/** How long a gap is: far more than any partner's events between a backup and the loss of the database. */
const gapLength = 100_000_000;
const mostAtOnce = 500;

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
          const fromVersion = partner.takeVersions(gapLength) - 1n;
          const gap = { partnerId: partner.id, fromVersion, toVersion: partner.version };
          return { writes: [feedSkips.insert(gap)], result: undefined };
        },
      });
    }
    const last = partners.at(-1);
    if (last === undefined || partners.length < mostAtOnce) return;
    after = String(last.id);
  }
}

/** The gaps of a partner, of which there are as many as there were restores. */
export function findVersionGaps(partnerId: string): Statement {
  return feedSkips.find({ partnerId }, feedSkips.all, statement('ORDER BY from_version'));
}

/** The version that comes after one. */
export function versionAfter(version: bigint, gaps: readonly VersionGap[]): bigint {
  const gap = gaps.find(({ fromVersion, toVersion }) => fromVersion <= version && version <= toVersion);
  return (gap?.toVersion ?? version) + 1n;
}
