import type { Clock, RemovalTime } from '../../../../kit/clock.ts';
import type { Logger } from '../../../../kit/log.ts';
import type { Worker } from '../../../../kit/worker.ts';
import type { Database } from '../../../store/database.ts';
import { eachPartner } from '../../../store/each-partner.ts';
import { removalWorker } from '../../../store/removal.ts';
import { applyNotReleased } from '../../../trading/submission/change.ts';
import type { Recorder } from '../../../trading/submission/record.ts';
import { isHeld } from '../../../trading/submission/table.ts';
import type { WithdrawalKind } from '../../../trading/withdrawals/kind.ts';
import type { StoredWithdrawal } from '../../../trading/withdrawals/table.ts';
import { findOverdueHeld, heldKey } from './table.ts';

const restMs = 60_000;

interface ExpiryParts {
  readonly database: Database;
  readonly recorder: Pick<Recorder, 'change'>;
  readonly kind: WithdrawalKind;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Refuses withdrawals that nobody released in time. */
export function releaseExpiry(
  { database, recorder, kind, clock, log }: ExpiryParts,
  timeOf: RemovalTime,
  holder: string,
): Worker {
  const name = 'release-expiry';
  return removalWorker({ database, holder, timeOf, name, restMs }, (now, most) =>
    eachPartner({
      find: async (without) => {
        const [rows = []] = await database.readAll([findOverdueHeld(now, without, most)]);
        return rows.map(heldKey.read);
      },
      change: async (partnerId, overdue) => {
        for (const { id } of overdue) {
          await recorder.change(kind, partnerId, id, (row) => applyExpiry(kind, row, now, clock.now()));
        }
      },
      failed: (partnerId, [first], error) => {
        log.warn(
          { err: error, partnerId, objectId: first?.id },
          'withdrawals whose time is over cannot be refused now',
        );
      },
    }),
  );
}

/**
 * Nobody released a withdrawal by its time. Undefined if it does not wait any more: it can have been released since it was found.
 * `now` is the time by which it is judged, `changedAt` that of the change.
 */
export function applyExpiry(kind: WithdrawalKind, row: StoredWithdrawal, now: number, changedAt: number) {
  if (!isHeld(row) || (row.heldUntil ?? 0) > now) return undefined;
  return applyNotReleased(kind, row, 'Nobody released it in time.', changedAt);
}
