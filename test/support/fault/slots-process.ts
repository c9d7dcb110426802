/**
 * A replica of a test. It acquires slots and gives them back, again and again. It keeps a connection to the judge for as
 * long as it uses a slot, so that the use ends with the process.
 */
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createConnection } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { CounterStore } from '../../../src/gateway/edge/limits/counter-store.ts';
import { SharedSlots } from '../../../src/gateway/edge/limits/shared-slots.ts';
import { Sharing } from '../../../src/gateway/edge/limits/sharing.ts';
import { PeerMac } from '../../../src/gateway/edge/peers/mac.ts';
import { PeerMessages } from '../../../src/gateway/edge/peers/messages.ts';
import { onlyKey } from '../../../src/kit/key-ring.ts';
import { createLogger } from '../../../src/kit/log.ts';
import { Nats } from '../../../src/kit/nats.ts';

const { SLOTS_NATS_URL, SLOTS_PREFIX, SLOTS_JUDGE_PORT, SLOTS_MOST, SLOTS_HOLD, SLOTS_LEASE_MS } = process.env;
const most = Number(SLOTS_MOST);
const log = createLogger({ name: 'slots', level: 'silent' });
const nats = new Nats({ url: SLOTS_NATS_URL ?? '', log });
const replica = randomUUID();
const prefix = SLOTS_PREFIX ?? '';
const mac = new PeerMac(onlyKey(Buffer.alloc(32, 7)));
const distrust = () => {};
const store = new CounterStore(nats, prefix, replica, { mac, distrust });
const peers = new PeerMessages(nats, mac, distrust);
const sharing = new Sharing({ nats: peers, store, distrust, prefix, replica, log }, Number(SLOTS_LEASE_MS ?? 5_000));
const slots = new SharedSlots(sharing);
sharing.start();
await nats.start();
while (!sharing.isShared) await delay(10);
process.send?.(true);
void sendChanges();

await Promise.all(Array.from({ length: most * 2 }, () => hammer('documents.0')));

/** Sends whether slots are counted across replicas, whenever that changes. */
async function sendChanges(): Promise<void> {
  for (let isShared = true; ; await delay(10)) {
    if (sharing.isShared === isShared) continue;
    isShared = sharing.isShared;
    process.send?.(isShared);
  }
}

async function hammer(name: string): Promise<void> {
  for (;;) {
    const slot = await slots.acquire(name, most);
    if (slot === undefined) {
      await delay(1);
      continue;
    }
    const socket = createConnection(Number(SLOTS_JUDGE_PORT), '127.0.0.1');
    socket.write(name);
    await once(socket, 'data');
    if (SLOTS_HOLD !== undefined) await new Promise(() => {});
    await delay(Math.random() * 5);
    socket.end();
    await once(socket, 'close');
    slot.release();
  }
}
