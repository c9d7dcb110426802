import type { Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

/** A fault of the bytes that go one way. Nothing set: they go through. */
export interface Fault {
  /** Everything arrives this much later. */
  readonly delayMs?: number;
  /** Everything is kept until the fault is lifted, as by a network that comes back. */
  readonly hold?: boolean;
  /** Everything is swallowed, the end too. The sender sees nothing of it, and it cannot be lifted. */
  readonly blackhole?: boolean;
  /** The receiver is told that nothing more comes; what does is swallowed. It cannot be lifted. */
  readonly halfClose?: boolean;
  /** After this many more bytes both sides see a reset. */
  readonly cutAfter?: number;
}

interface Waiting {
  /** Undefined: the sender's end. */
  readonly bytes: Buffer | undefined;
  readonly due: number;
}

/** How many bytes wait before the sender is told to wait too. */
const maxWaiting = 1024 * 1024;

/** A reset takes unread bytes with it: this long the receiver has to read those that were let through. */
const readWithinMs = 10;

/** One direction of a connection through the proxy. */
export class OneWay {
  #fault: Fault = {};
  #waiting: Waiting[] = [];
  #waitingBytes = 0;
  #swallows = false;
  #left: number | undefined;
  #pumping = false;
  #changed = new AbortController();

  constructor(
    private readonly from: Socket,
    private readonly to: Socket,
    /** Resets both sides. */
    private readonly cut: () => void,
  ) {
    from.on('data', (bytes) => this.#take(bytes));
    from.on('end', () => this.#take(undefined));
  }

  /** Whether nothing of what the sender does is seen by the receiver any more. */
  get isSevered(): boolean {
    return this.#swallows;
  }

  set(fault: Fault): void {
    this.#fault = fault;
    this.#left = fault.cutAfter;
    if (fault.halfClose === true && !this.#swallows) this.to.end();
    if (fault.blackhole === true || fault.halfClose === true) this.#swallows = true;
    this.#changed.abort();
    this.#changed = new AbortController();
  }

  /** Sends the receiver bytes the sender never sent. */
  inject(bytes: Buffer): void {
    this.to.write(bytes);
  }

  #take(bytes: Buffer | undefined): void {
    this.#waiting.push({ bytes, due: performance.now() + (this.#fault.delayMs ?? 0) });
    this.#waitingBytes += bytes?.length ?? 0;
    if (this.#waitingBytes > maxWaiting) this.from.pause();
    void this.#pump();
  }

  async #pump(): Promise<void> {
    if (this.#pumping) return;
    this.#pumping = true;
    for (let next = this.#waiting[0]; next !== undefined && !this.to.destroyed; next = this.#waiting[0]) {
      const waitMs = next.due - performance.now();
      if (!this.#swallows && this.#fault.hold === true) await this.#wait(undefined);
      else if (!this.#swallows && waitMs > 0) await this.#wait(waitMs);
      else {
        this.#waiting.shift();
        this.#waitingBytes -= next.bytes?.length ?? 0;
        if (this.#waitingBytes <= maxWaiting) this.from.resume();
        if (!this.#swallows) await this.#pass(next.bytes);
      }
    }
    this.#pumping = false;
  }

  /** Waits a time, or without end, and at most until the fault is changed or the receiver is gone. */
  async #wait(ms: number | undefined): Promise<void> {
    const signal = this.#changed.signal;
    const gone = () => this.set(this.#fault);
    this.to.once('close', gone);
    await delay(ms ?? 2 ** 31 - 1, undefined, { signal, ref: false }).catch(() => undefined);
    this.to.off('close', gone);
  }

  async #pass(bytes: Buffer | undefined): Promise<void> {
    if (bytes === undefined) {
      this.to.end();
      return;
    }
    const left = this.#left;
    if (left !== undefined && bytes.length >= left) {
      this.#swallows = true;
      if (left > 0) {
        await new Promise((resolve) => this.to.write(bytes.subarray(0, left), resolve));
        await delay(readWithinMs);
      }
      this.cut();
      return;
    }
    if (left !== undefined) this.#left = left - bytes.length;
    if (this.to.write(bytes)) return;
    await new Promise<void>((resolve) => {
      const done = () => {
        this.to.off('drain', done);
        this.to.off('close', done);
        resolve();
      };
      this.to.once('drain', done);
      this.to.once('close', done);
    });
  }
}
