import type { Logger } from '../../../kit/log.ts';
import { pause, Wakeup, type Worker } from '../../../kit/worker.ts';
import type { Database } from '../../store/database.ts';
import { type Lease, underLease } from '../../store/lease.ts';
import type { Notifications } from '../notifications.ts';
import { type EventKey, type OutboxConsumer, type OutboxEvent, readOutbox } from './outbox.ts';
import type { EventStream } from './stream.ts';

export interface RelayOptions {
  readonly database: Database;
  readonly stream: EventStream;
  readonly notifications: Notifications;
  readonly log: Logger;
  readonly holder: string;
  /** Woken when this process has appended events to the feed. */
  readonly feedWatch: { wake(): void };
  /** The relay hands events to it itself while NATS is away. */
  readonly consumer: OutboxConsumer;
}

const maxAtOnce = 500;
const pollMs = 250;
/** How long further commits wait for the next notification after one. */
const notificationWindowMs = 30;
/** A published row that stays longer is handed over by the relay, because NATS may have lost it or the consumer may hang. */
const consumedWithinMs = 1_000;

/** Batching window in milliseconds, so that events share a round trip. It is longer under load. */
function batchingWindow(eventsBefore: number): number {
  return eventsBefore >= 4 ? 30 : 10;
}

/**
 * Publishes events from the outbox to NATS. While NATS is away it hands them to the consumer itself. Publishing twice is
 * safe, because the consumer consumes each row once. It does not mark published rows: most are gone within milliseconds,
 * and a mark would be a second write on rows that the consumer locks.
 */
export class Relay {
  readonly worker: Worker;
  readonly #wakeup = new Wakeup();
  /** Whether this process publishes, as far as it knows. */
  #holdsLease = false;
  /** Set for the batching window after a notification. Commits in that time share the next one. */
  #quiet: NodeJS.Timeout | undefined;
  #hasNews = false;
  /** When each row that may still be in the outbox was published, on a monotonic clock. */
  readonly #published = new Map<string, number>();

  constructor(private readonly options: RelayOptions) {
    this.worker = underLease(options.database, 'relay', options.holder, async (lease) => {
      this.#holdsLease = true;
      await this.#run(lease).finally(() => {
        this.#holdsLease = false;
      });
    });
  }

  /** Notifies of new events: readers of the feed in all processes, and the publishing process. Either may be here. */
  notify(): void {
    this.wake();
    this.options.feedWatch.wake();
    this.#hasNews = true;
    if (this.#quiet === undefined) this.#notifyOthers();
  }

  #notifyOthers(): void {
    const { notifications } = this.options;
    this.#hasNews = false;
    notifications.publish('feed');
    if (!this.#holdsLease) notifications.publish('relay');
    this.#quiet = setTimeout(() => {
      this.#quiet = undefined;
      if (this.#hasNews) this.#notifyOthers();
    }, notificationWindowMs);
  }

  /** Polls the outbox at once, if this process publishes. */
  wake(): void {
    this.#wakeup.wake();
  }

  async #run({ signal }: Lease): Promise<void> {
    const { database, stream, consumer } = this.options;
    this.#published.clear();
    while (!signal.aborted) {
      // Events of these partners wait to be tried again: they would fill the batch and hide those of others.
      const { resting } = consumer;
      const due = await readOutbox(database, [...this.#published.keys()], maxAtOnce, resting);
      const fresh = due.filter(({ id }) => !this.#published.has(id));
      // Published rows that fill the whole batch would hide new ones.
      await this.#handOverStuck(due, fresh.length === 0 && due.length === maxAtOnce);
      if (fresh.length > 0) await this.#publish(fresh);
      else await stream.restore();
      if (due.length < maxAtOnce) await this.#wakeup.wait(pollMs, signal);
      await pause(batchingWindow(fresh.length), signal);
    }
  }

  async #publish(events: readonly OutboxEvent[]): Promise<void> {
    const { stream, log } = this.options;
    const published = await stream.publish(events).catch((error: unknown) => {
      log.debug({ err: error, count: events.length }, 'events are handed over without NATS');
      return [];
    });
    const publishedAt = performance.now();
    for (const { id } of published) this.#published.set(id, publishedAt);
    await this.#handOver(events.filter(({ id }) => !this.#published.has(id)));
  }

  /** Hands over published rows that are still there after `consumedWithinMs`, or all. Forgets rows that are gone. */
  async #handOverStuck(due: readonly OutboxEvent[], all: boolean): Promise<void> {
    const before = performance.now() - (all ? 0 : consumedWithinMs);
    const stillThere = new Set(due.map(({ id }) => id));
    for (const id of this.#published.keys()) if (!stillThere.has(id)) this.#published.delete(id);
    await this.#handOver(due.filter(({ id }) => (this.#published.get(id) ?? Number.POSITIVE_INFINITY) <= before));
  }

  async #handOver(events: readonly EventKey[]): Promise<void> {
    if (events.length === 0) return;
    await this.options.consumer.consume(events);
  }
}
