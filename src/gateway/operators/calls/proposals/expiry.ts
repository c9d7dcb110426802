import type { RemovalTime } from '../../../../kit/clock.ts';
import type { Logger } from '../../../../kit/log.ts';
import type { Worker } from '../../../../kit/worker.ts';
import type { Database } from '../../../store/database.ts';
import { eachPartner } from '../../../store/each-partner.ts';
import { removalWorker } from '../../../store/removal.ts';
import { audit } from '../audit.ts';
import {
  type ExpiredProposal,
  expiredProposal,
  expireProposals,
  findOverdueProposals,
  lockOverdueProposals,
  overdueProposals,
  proposalKey,
} from './table.ts';

const restMs = 60_000;
/** Who the audit says did it: no operator. */
const by = { operator: 'marina', action: 'gateway.ExpireProposal' };

/**
 * Stores that proposals have expired which nobody decided in time, and says so in the audit and the log. It decides nothing: such
 * a proposal cannot be approved from the instant on that it names. If another replica whose clock is behind approves one in the
 * same moment, it is applied, and is stored as applied.
 */
export function proposalExpiry(database: Database, timeOf: RemovalTime, holder: string, log: Logger): Worker {
  return removalWorker({ database, holder, timeOf, name: overdueProposals.name, restMs }, (now, most) =>
    eachPartner({
      find: async (without) => {
        const [rows = []] = await database.readAll([findOverdueProposals(now, without, most)]);
        return rows.map(proposalKey.read);
      },
      change: async (partnerId, own) => {
        const ids = own.map(({ id }) => id);
        for (const { id, action, proposedBy } of await expire(database, partnerId, ids, now)) {
          log.warn({ partnerId, proposal: id, action, proposedBy }, 'a proposal expired, because nobody decided it');
        }
      },
      failed: (partnerId, [first], error) => {
        log.warn({ err: error, partnerId, proposal: first?.id }, 'proposals whose time is over cannot be changed now');
      },
    }),
  );
}

/** Stores that proposals of a partner have expired. Returns those that nobody has decided since. */
function expire(database: Database, partnerId: string, ids: string[], now: number): Promise<ExpiredProposal[]> {
  return database.transaction([lockOverdueProposals(partnerId, ids, now)], ([rows = []]) => {
    const expired = rows.map(expiredProposal.read);
    if (expired.length === 0) return { writes: [], result: expired };
    const entries = expired.map(({ id, objectId, action, proposedBy }) =>
      audit(by, now, { partnerId, subject: objectId, detail: { proposal: id, action, proposedBy } }),
    );
    const expiring = expireProposals(
      partnerId,
      expired.map(({ id }) => id),
      now,
    );
    return { writes: [expiring, ...entries], result: expired };
  });
}
