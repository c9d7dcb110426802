import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { afterEach } from 'node:test';
import { createLogger } from '../../src/lib/log.ts';
import { SharedSlots } from '../../src/limits/shared-slots.ts';
import { SlotBoard } from '../../src/limits/slot-board.ts';
import type { Slot } from '../../src/limits/slots.ts';
import { eventually } from './eventually.ts';

const log = createLogger({ name: 'slots', level: 'silent' });
const running = new Set<SharedSlots>();

/** Ends the replicas of each test of a file. */
export function endReplicasAfterEach(): void {
  afterEach(async () => {
    for (const slots of running) await slots.close();
    running.clear();
  });
}

/** What replicas that count together have in common. */
export interface Together {
  readonly url: string;
  readonly prefix: string;
  readonly leaseMs?: number;
}

/** A replica in this process, counting with the others of the same prefix as soon as it can. */
export async function startReplica(together: Together): Promise<SharedSlots> {
  const slots = new SharedSlots(new SlotBoard({ ...together, replica: randomUUID(), log }), log);
  running.add(slots);
  await slots.start();
  return slots;
}

/** The same, when it counts with the others. */
export async function startSharing(together: Together): Promise<SharedSlots> {
  const slots = await startReplica(together);
  await eventually(() => assert.equal(slots.isShared, true));
  return slots;
}

/** A prefix of a test's own. */
export const newPrefix = () => `t${randomUUID().slice(0, 8)}_`;

/** Takes a place, which must be there. */
export async function taken(slots: SharedSlots, name: string, most: number): Promise<Slot> {
  const slot = await slots.acquire(name, most);
  if (slot === undefined) throw new assert.AssertionError({ message: `no place of ${name} was left` });
  return slot;
}
