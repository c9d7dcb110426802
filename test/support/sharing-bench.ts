import type { ReplicatedCounter, SharingParts } from '../../src/gateway/edge/limits/sharing.ts';
import { Sharing } from '../../src/gateway/edge/limits/sharing.ts';
import { createLogger } from '../../src/kit/log.ts';

type Receive = Parameters<SharingParts['nats']['subscribe']>[1];

/** One replica over a NATS, a store and a clock that the test holds. Its own heartbeats come back while `echoes` is set. */
export class SharingBench {
  now = 1_000_000;
  echoes = true;
  /** The age of the store, or how opening it fails. */
  open: () => Promise<number> = async () => 0;
  readClock: () => Promise<number> = async () => 0;
  readonly published: string[] = [];
  readonly asked: string[] = [];
  readonly untrusted: string[] = [];
  readonly logged: string[] = [];
  readonly done: string[] = [];
  readonly sharing: Sharing;
  readonly #subscriptions = new Map<string, Receive>();
  #watch: (isConnected: boolean) => void = () => {};
  #waits: { at: number; resolve: () => void }[] = [];

  constructor() {
    const write = (text: string) => {
      const { level, msg } = JSON.parse(text);
      this.logged.push(`${level} ${msg}`);
    };
    const parts = {
      nats: {
        subscribe: (subject: string, receive: Receive) => void this.#subscriptions.set(subject, receive),
        onChange: (watch: (isConnected: boolean) => void) => {
          this.#watch = watch;
        },
        publish: (subject: string, text = '') => {
          this.published.push(`${subject} ${text}`);
          if (this.echoes && subject === 'p.peers.here') this.receive('here', text);
        },
        ask: async (...asked: unknown[]) => void this.asked.push(asked.join(' ')),
        flush: async () => void this.done.push('flush'),
      },
      store: { open: () => this.open(), readClock: () => this.readClock() },
      distrust: (kind: string, reason: string) => void this.untrusted.push(`${kind} ${reason}`),
      ...{ prefix: 'p.', replica: 'own' },
      log: createLogger({ name: 'test', level: 'info', destination: { write } }),
    };
    const time = {
      now: () => this.now,
      wait: (ms: number, signal?: AbortSignal) =>
        new Promise<void>((resolve) => {
          if (signal?.aborted) return resolve();
          signal?.addEventListener('abort', () => resolve());
          this.#waits.push({ at: this.now + ms, resolve });
        }),
    };
    this.sharing = new Sharing(parts as unknown as SharingParts, 5_000, time);
  }

  /** A replica that was started and is connected, after so many milliseconds. */
  static async started(ms = 0, change: (bench: SharingBench) => void = () => {}): Promise<SharingBench> {
    const bench = new SharingBench();
    change(bench);
    bench.sharing.start();
    await bench.connect(true);
    await bench.run(ms);
    return bench;
  }

  async connect(isConnected: boolean): Promise<void> {
    this.#watch(isConnected);
    await settled();
  }

  /** Receives a message between replicas, as from another one. */
  receive(subject: string, text: string, message: object = {}): void {
    this.#subscriptions.get(`p.peers.${subject}`)?.(text, message as Parameters<Receive>[1]);
  }

  /** Lets so many milliseconds pass. Heartbeats of the named replicas come all the time. */
  async run(ms: number, ...others: readonly string[]): Promise<void> {
    const end = this.now + ms;
    await settled();
    for (;;) {
      for (const other of others) this.receive('here', `${other} 1`);
      const next = Math.min(end, ...this.#waits.map(({ at }) => at));
      this.now = Math.max(this.now, next);
      const due = this.#waits.filter(({ at }) => at <= this.now);
      this.#waits = this.#waits.filter(({ at }) => at > this.now);
      if (due.length === 0) return;
      for (const { resolve } of due) resolve();
      await settled();
    }
  }

  /** Adds a counter that notes what is done with it. */
  counter(name: string, change: Partial<ReplicatedCounter> = {}): void {
    const made: ReplicatedCounter = {
      isUnused: false,
      needs: () => true,
      update: async (purpose) => void this.done.push(`${name} ${purpose}`),
      lost: () => void this.done.push(`${name} lost`),
      ...change,
    };
    this.sharing.counters(() => made)(name);
  }

  /** How long it takes until the replicas count together, in milliseconds; undefined: longer than so many. */
  async joinedAfter(mostMs: number, ...others: readonly string[]): Promise<number | undefined> {
    const from = this.now;
    await this.run(0, ...others);
    while (!this.sharing.isShared) {
      if (this.now - from >= mostMs) return undefined;
      await this.run(1, ...others);
    }
    return this.now - from;
  }
}

/** Resolves when everything that needs no time has happened. */
function settled(): Promise<void> {
  return new Promise(setImmediate);
}
