import type { RemovalTime } from '../../../../kit/clock.ts';
import { groupBy } from '../../../../kit/group.ts';
import type { Worker } from '../../../../kit/worker.ts';
import type { Database } from '../../../store/database.ts';
import { removalWorker } from '../../../store/removal.ts';
import { expireProposals, findOverdueProposals, overdueProposals, proposalKey } from './table.ts';

const restMs = 60_000;

/**
 * Stores that proposals have expired which nobody decided in time, so that the open rows are few. It decides nothing: such a
 * proposal cannot be approved from the instant on that it names. If another replica whose clock is behind approves one in the
 * same moment, it is applied, and is stored as applied.
 */
export function proposalExpiry(database: Database, timeOf: RemovalTime, holder: string): Worker {
  return removalWorker({ database, holder, timeOf, name: overdueProposals.name, restMs }, async (now, most) => {
    const overdue = (await database.read(findOverdueProposals(now, most))).map(proposalKey.read);
    for (const [partnerId, own] of groupBy(overdue, (one) => one.partnerId)) {
      const ids = own.map(({ id }) => id);
      await database.write(expireProposals(partnerId, ids, now));
    }
    return overdue.length;
  });
}
