import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { afterEach } from 'node:test';
import { createLogger } from '../../src/lib/log.ts';
import { Nats } from '../../src/lib/nats.ts';
import { SharedBuckets } from '../../src/limits/shared-buckets.ts';
import { SharedSlots } from '../../src/limits/shared-slots.ts';
import { Sharing } from '../../src/limits/sharing.ts';
import { SlotBoard } from '../../src/limits/slot-board.ts';
import type { Slot } from '../../src/limits/slots.ts';
import { eventually } from './eventually.ts';

const log = createLogger({ name: 'slots', level: 'silent' });
const running = new Set<Replica>();

/** Ends the replicas of each test of a file. */
export function endReplicasAfterEach(): void {
  afterEach(async () => {
    for (const replica of running) await replica.close();
    running.clear();
  });
}

/** What replicas that count together have in common. */
export interface Together {
  readonly url: string;
  readonly prefix: string;
  readonly leaseMs?: number;
}

/** A replica: its places, its buckets, and whether they are counted with the others'. */
export interface Replica {
  readonly acquire: SharedSlots['acquire'];
  readonly taken: SharedSlots['taken'];
  readonly take: SharedBuckets['take'];
  readonly isShared: boolean;
  close(): Promise<void>;
}

/** A replica in this process, counting with the others of the same prefix as soon as it can. */
export async function startReplica({ url, ...together }: Together): Promise<Replica> {
  const nats = new Nats({ url, log });
  const sharing = new Sharing(new SlotBoard({ ...together, nats, replica: randomUUID(), log }), log);
  const slots = new SharedSlots(sharing, log);
  const buckets = new SharedBuckets(sharing);
  const replica = {
    acquire: slots.acquire.bind(slots),
    taken: slots.taken.bind(slots),
    take: buckets.take.bind(buckets),
    get isShared() {
      return sharing.isShared;
    },
    close: async () => {
      await sharing.close();
      await nats.close();
    },
  };
  running.add(replica);
  sharing.start();
  await nats.start();
  return replica;
}

/** The same, when it counts with the others. */
export async function startSharing(together: Together): Promise<Replica> {
  const replica = await startReplica(together);
  await eventually(() => assert.equal(replica.isShared, true));
  return replica;
}

/** A prefix of a test's own. */
export const newPrefix = () => `t${randomUUID().slice(0, 8)}_`;

/** Takes a place, which must be there. */
export async function taken(slots: Replica, name: string, most: number): Promise<Slot> {
  const slot = await slots.acquire(name, most);
  if (slot === undefined) throw new assert.AssertionError({ message: `no place of ${name} was left` });
  return slot;
}
