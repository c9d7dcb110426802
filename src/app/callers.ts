import { randomUUID } from 'node:crypto';
import { Authenticator, KeyUses } from '../auth/authenticate.ts';
import { CallerLimits } from '../limits/caller-limits.ts';
import { CounterStore } from '../limits/counter-store.ts';
import { ReadQueue } from '../limits/read-queue.ts';
import { SharedBuckets } from '../limits/shared-buckets.ts';
import { SharedSlots } from '../limits/shared-slots.ts';
import { Sharing } from '../limits/sharing.ts';
import type { Base } from './base.ts';

export type Callers = ReturnType<typeof createCallers>;

/** Who calls, and how much they may: keys, and the limits that replicas count together. */
export function createCallers({ config, log, database, clock, keyMacSecret, nats }: Base) {
  const keyUses = new KeyUses(database, clock);
  const authenticator = new Authenticator({
    database,
    environment: config.environment,
    macSecret: keyMacSecret,
    uses: keyUses,
  });
  const { natsPrefix: prefix } = config;
  const replica = randomUUID();
  const store = new CounterStore(nats, prefix, replica);
  const sharing = new Sharing({ nats, store, prefix, replica, log });
  const slots = new SharedSlots(sharing);
  const limits = new CallerLimits(slots, new SharedBuckets(sharing));
  const reads = new ReadQueue({ slots, timeoutMs: config.recordsTimeoutMs });
  return { keyUses, authenticator, sharing, slots, limits, reads };
}
