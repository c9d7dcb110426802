import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { afterEach } from 'node:test';
import { CounterStore } from '../../src/gateway/edge/limits/counter-store.ts';
import { SharedBuckets } from '../../src/gateway/edge/limits/shared-buckets.ts';
import { SharedSlots, type Slot } from '../../src/gateway/edge/limits/shared-slots.ts';
import { Sharing } from '../../src/gateway/edge/limits/sharing.ts';
import { PeerMac } from '../../src/gateway/edge/peers/mac.ts';
import { PeerMessages } from '../../src/gateway/edge/peers/messages.ts';
import type { Distrust } from '../../src/gateway/edge/peers/untrusted.ts';
import { onlyKey } from '../../src/kit/key-ring.ts';
import { createLogger } from '../../src/kit/log.ts';
import { Nats } from '../../src/kit/nats.ts';
import { eventually } from './eventually.ts';

const log = createLogger({ name: 'slots', level: 'silent' });
/** The MAC of replicas of tests. */
export const testMac = new PeerMac(onlyKey(Buffer.alloc(32, 7)));
const running = new Set<Replica>();

/** Ends the replicas of each test of a file. */
export function endReplicasAfterEach(): void {
  afterEach(async () => {
    for (const replica of running) await replica.close();
    running.clear();
  });
}

/** The settings that replicas which count together share. */
export interface Together {
  readonly url: string;
  readonly prefix: string;
  readonly leaseMs?: number;
  /** Absent: that of all replicas of tests. */
  readonly mac?: PeerMac;
  readonly distrust?: Distrust;
}

/** A replica: its slots, its buckets, and whether they are counted together with the others'. */
export interface Replica {
  readonly acquire: SharedSlots['acquire'];
  readonly used: SharedSlots['used'];
  readonly take: SharedBuckets['take'];
  readonly isShared: boolean;
  /** How many replicas it knows of, with itself. */
  readonly replicas: number;
  close(): Promise<void>;
}

/** A replica in this process, counting with the others of the same prefix as soon as it can. */
export async function startReplica({ url, ...together }: Together): Promise<Replica> {
  const nats = new Nats({ url, log });
  const sharing = newSharing(nats, together);
  const slots = new SharedSlots(sharing);
  const buckets = new SharedBuckets(sharing);
  const replica = {
    acquire: slots.acquire.bind(slots),
    used: slots.used.bind(slots),
    take: buckets.take.bind(buckets),
    get isShared() {
      return sharing.isShared;
    },
    get replicas() {
      return sharing.replicas;
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

function newSharing(
  nats: Nats,
  { prefix, mac = testMac, distrust = () => {}, leaseMs }: Omit<Together, 'url'>,
): Sharing {
  const replica = randomUUID();
  const store = new CounterStore(nats, prefix, replica, { mac, distrust });
  const peers = new PeerMessages(nats, mac, distrust);
  return new Sharing({ nats: peers, store, distrust, prefix, replica, log }, leaseMs);
}

/** The slots of a single replica that never connects to NATS. */
export function slotsOfOne(): SharedSlots {
  return new SharedSlots(newSharing(new Nats({ url: '', log }), { prefix: '' }));
}

/** A prefix of a test's own. */
export const newPrefix = () => `t${randomUUID().slice(0, 8)}_`;

/** Acquires a slot, which must be there. */
export async function taken(slots: Replica, name: string, most: number): Promise<Slot> {
  const slot = await slots.acquire(name, most);
  if (slot === undefined) throw new assert.AssertionError({ message: `no slot of ${name} was left` });
  return slot;
}
