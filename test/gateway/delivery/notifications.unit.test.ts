import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Notifications } from '../../../src/gateway/delivery/notifications.ts';
import type { PeerMessages } from '../../../src/gateway/edge/peers/messages.ts';

/** The messages between two processes, which wait until they are carried; without NATS they are lost. */
class Carrier {
  hasNats = true;
  readonly #waiting: [subject: string, text: string][] = [];
  readonly #receivers: [subject: string, receive: (text: string) => void][] = [];

  process(): Notifications {
    const peers: Pick<PeerMessages, 'subscribe' | 'publish'> = {
      subscribe: (subject, receive) => void this.#receivers.push([subject, receive as (text: string) => void]),
      publish: (subject, text) => {
        if (this.hasNats) this.#waiting.push([subject, String(text)]);
      },
    };
    return new Notifications(peers as PeerMessages, 'a.');
  }

  carry(): void {
    for (const [subject, text] of this.#waiting.splice(0)) {
      for (const [wanted, receive] of this.#receivers) if (wanted === subject) receive(text);
    }
  }
}

describe('a change that counts in all processes', () => {
  function twoProcesses() {
    const carrier = new Carrier();
    const applied: { here: string[]; there: string[] } = { here: [], there: [] };
    const [here, there] = [carrier.process(), carrier.process()];
    const changed = here.everywhere('key-revoked', (text) => applied.here.push(text));
    there.everywhere('key-revoked', (text) => applied.there.push(text));
    there.everywhere('partner-changed', (text) => applied.there.push(`other: ${text}`));
    return { carrier, applied, changed };
  }

  it('a change counts at once in the process that made it, and in the others once they are notified', () => {
    const { carrier, applied, changed } = twoProcesses();
    changed('key_1');
    assert.deepEqual(applied, { here: ['key_1'], there: [] });
    carrier.carry();
    assert.deepEqual(applied.there, ['key_1']);
    changed();
    assert.equal(applied.here.at(-1), '');
  });

  it('a change counts in the process that made it also while NATS is away', () => {
    const { carrier, applied, changed } = twoProcesses();
    carrier.hasNats = false;
    changed('key_1');
    changed('key_2');
    carrier.carry();
    assert.deepEqual(applied, { here: ['key_1', 'key_2'], there: [] });
  });

  it('a change is told only after it counts here, and told also if it is only heard of again', () => {
    const order: string[] = [];
    const peers: Pick<PeerMessages, 'subscribe' | 'publish'> = {
      subscribe: () => {},
      publish: (subject, text) => void order.push(`told ${subject} ${text}`),
    };
    const changed = new Notifications(peers as PeerMessages, 'a.').everywhere('key-revoked', (text) =>
      order.push(`applied ${text}`),
    );
    changed('key_1');
    changed('key_1');
    const once = ['applied key_1', 'told a.peers.say.key-revoked key_1'];
    assert.deepEqual(order, [...once, ...once]);
  });
});
