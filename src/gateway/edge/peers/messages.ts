import { randomBytes } from 'node:crypto';
import { headers, type Msg, type MsgHdrs } from 'nats';
import type { Nats } from '../../../kit/nats.ts';
import { flawOf } from '../../../kit/nats-headers.ts';
import type { PeerMac } from './mac.ts';
import type { Distrust, UntrustedReason } from './untrusted.ts';

/** The header with the sender, the time and the MAC of a message between gateways. */
export const macHeader = 'Marina-Mac';
const headerForm = /^([0-9a-f]{16}) (\d{16}) ([\w-]{22})$/;

/** How old a message may be, and how far ahead of this clock. Processes whose clocks are 10 s apart are not ready anyway. */
const believedWithinMs = 60_000;
/** The longest message but a list of partners. */
const usualBytes = 512;
/** What a message has beside its text at most: its subject, where it is answered, and the header with its MAC. */
const maxHeadBytes = 1_024;
/** Senders and subjects whose last message is remembered. Only who has the ring adds to them. */
const maxRemembered = 10_000;

/** The bytes of a message, headers included: nats.js knows them, and does not tell its types. */
function sizeOf(message: Msg): number {
  return (message as Msg & { size(): number }).size();
}

/** Answers a question. */
export interface Answerable {
  respond(): unknown;
}

/**
 * Messages between the processes of a gateway. Each carries a MAC over its subject, sender, time and text, and a process takes
 * each at most once. What has none, a wrong one, or one from another time is counted and dropped before it is read.
 */
export class PeerMessages {
  readonly #sender = randomBytes(8).toString('hex');
  /** The time of this process's last message, in microseconds. It grows with each message, also within one millisecond. */
  #sentAt = 0;
  /** The time of the last message of each sender and subject. */
  readonly #lastOf = new Map<string, number>();

  constructor(
    private readonly nats: Pick<Nats, 'ask' | 'flush' | 'onChange' | 'publish' | 'subscribe'>,
    private readonly mac: PeerMac,
    private readonly distrust: Distrust,
    private readonly now: () => number = Date.now,
  ) {}

  /** Calls `receive` with each message of a subject that another process, or this one, sent. Messages can be lost. */
  subscribe(subject: string, receive: (text: string, message: Answerable) => void, maxBytes = usualBytes): void {
    this.nats.subscribe(subject, (message) => {
      // Headers are read only when they are asked for, so their size comes first.
      const isTooLarge = message.data.length > maxBytes || sizeOf(message) > maxBytes + maxHeadBytes;
      const reason = isTooLarge ? 'too_large' : this.#check(subject, message);
      if (reason === undefined) receive(message.string(), message);
      else this.distrust('message', reason);
    });
  }

  /** Publishes a message if NATS is connected. */
  publish(subject: string, text = ''): void {
    this.nats.publish(subject, text, this.#headersFor(subject, text));
  }

  /** Sends a question and waits for an answer, at most the given time. Never throws. Nothing in an answer is believed. */
  async ask(subject: string, text: string, timeoutMs: number): Promise<void> {
    const answer = await this.nats.ask(subject, text, timeoutMs, this.#headersFor(subject, text));
    const flaw = flawOf(answer?.headers);
    if (flaw !== undefined) this.distrust('message', flaw);
  }

  flush(): Promise<void> {
    return this.nats.flush();
  }

  onChange(watcher: (isConnected: boolean) => void): void {
    this.nats.onChange(watcher);
  }

  #headersFor(subject: string, text: string): MsgHdrs {
    this.#sentAt = Math.max(this.#sentAt + 1, this.now() * 1_000);
    const mac = this.mac.make(['message', subject, this.#sender, this.#sentAt], text);
    const head = headers();
    head.set(macHeader, `${this.#sender} ${this.#sentAt} ${mac}`);
    return head;
  }

  /** Why a message is not believed; undefined if it is. */
  #check(subject: string, message: Msg): UntrustedReason | undefined {
    const flaw = flawOf(message.headers);
    if (flaw !== undefined) return flaw;
    const [, sender, stamp, mac] = headerForm.exec(message.headers?.get(macHeader) ?? '') ?? [];
    if (sender === undefined || stamp === undefined || mac === undefined) return 'unsigned';
    const sentAt = Number(stamp);
    if (!this.mac.isOf(mac, ['message', subject, sender, sentAt], message.string())) return 'forged';
    if (Math.abs(this.now() - sentAt / 1_000) > believedWithinMs) return 'late';
    const name = `${sender} ${subject}`;
    if (sentAt <= (this.#lastOf.get(name) ?? 0)) return 'repeated';
    this.#remember(name, sentAt);
    return undefined;
  }

  /** What is older than messages may be is refused for that, so it needs not be remembered. */
  #remember(name: string, sentAt: number): void {
    this.#lastOf.delete(name);
    this.#lastOf.set(name, sentAt);
    const isOver = (at: number) => this.now() - at / 1_000 > 2 * believedWithinMs;
    for (const [oldest, at] of this.#lastOf) {
      if (this.#lastOf.size <= maxRemembered && !isOver(at)) break;
      this.#lastOf.delete(oldest);
    }
  }
}
