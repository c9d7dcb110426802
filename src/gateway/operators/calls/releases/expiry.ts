import type { Clock, RemovalTime } from '../../../../kit/clock.ts';
import type { Worker } from '../../../../kit/worker.ts';
import type { Database } from '../../../store/database.ts';
import { removalWorker } from '../../../store/removal.ts';
import { applyNotReleased } from '../../../trading/submission/change.ts';
import type { Recorder } from '../../../trading/submission/record.ts';
import { isHeld } from '../../../trading/submission/table.ts';
import type { WithdrawalKind } from '../../../trading/withdrawals/kind.ts';
import { findOverdueHeld, heldKey } from './table.ts';

const restMs = 60_000;

interface ExpiryParts {
  readonly database: Database;
  readonly recorder: Pick<Recorder, 'change'>;
  readonly kind: WithdrawalKind;
  readonly clock: Clock;
}

/** Refuses withdrawals that nobody released in time. */
export function releaseExpiry(
  { database, recorder, kind, clock }: ExpiryParts,
  timeOf: RemovalTime,
  holder: string,
): Worker {
  const name = 'release-expiry';
  return removalWorker({ database, holder, timeOf, name, restMs }, async (now, most) => {
    const overdue = (await database.read(findOverdueHeld(now, most))).map(heldKey.read);
    for (const { partnerId, id } of overdue) {
      await recorder.change(kind, partnerId, id, (row) =>
        isHeld(row) && (row.heldUntil ?? 0) <= now
          ? applyNotReleased(kind, row, 'Nobody released it in time.', clock.now())
          : undefined,
      );
    }
    return overdue.length;
  });
}
