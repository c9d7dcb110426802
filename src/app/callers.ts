import { randomUUID } from 'node:crypto';
import { Authenticator } from '../auth/authenticate.ts';
import { KeyUses } from '../keys/uses.ts';
import { LocalLimits } from '../limits/local.ts';
import { ReadQueue } from '../limits/read-queue.ts';
import { SharedLimits } from '../limits/shared.ts';
import { SharedBuckets } from '../limits/shared-buckets.ts';
import { SharedSlots } from '../limits/shared-slots.ts';
import { Sharing } from '../limits/sharing.ts';
import { SlotBoard } from '../limits/slot-board.ts';
import type { Base } from './base.ts';

export type Callers = ReturnType<typeof createCallers>;

/** Who calls, and how much they may: keys, and the limits that replicas count together. */
export function createCallers({ config, log, database, clock, keyMacSecret, nats }: Base) {
  const keyUses = new KeyUses(database, clock);
  const authenticator = new Authenticator({
    database,
    environment: config.environment,
    macSecret: keyMacSecret,
    onUsed: (partnerId, keyId) => keyUses.note(partnerId, keyId),
  });
  const { natsPrefix: prefix } = config;
  const sharing = new Sharing(new SlotBoard({ nats, prefix, replica: randomUUID(), log }), log);
  const slots = new SharedSlots(sharing, log);
  const local = new LocalLimits();
  const limits = new SharedLimits(local, slots, new SharedBuckets(sharing));
  const reads = new ReadQueue({ slots, timeoutMs: config.recordsTimeoutMs });
  return { keyUses, authenticator, sharing, slots, local, limits, reads };
}
