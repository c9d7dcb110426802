import type { PeerMessages } from '../edge/peers/messages.ts';

/** The longest notification: the ids of the partners of a batch of 500 events. */
const maxBytes = 16_384;

/** Notifications between the gateway's processes. One can be lost, so it only speeds up what polling finds out. */
export class Notifications {
  constructor(
    private readonly peers: PeerMessages,
    private readonly prefix: string,
  ) {}

  /** Calls `receive` with each notification of a name, from other processes and this one. */
  subscribe(name: string, receive: (text: string) => void): void {
    this.peers.subscribe(`${this.prefix}peers.say.${name}`, receive, maxBytes);
  }

  /** Notifies all processes if NATS is connected. */
  publish(name: string, text = ''): void {
    this.peers.publish(`${this.prefix}peers.say.${name}`, text);
  }

  /** Makes the function that applies a change here at once, NATS or not, and in other processes when they are notified. */
  everywhere(name: string, change: (text: string) => void): (text?: string) => void {
    this.subscribe(name, change);
    return (text = '') => {
      change(text);
      this.publish(name, text);
    };
  }
}
