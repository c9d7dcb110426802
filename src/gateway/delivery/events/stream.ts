import {
  AckPolicy,
  type Consumer,
  type JetStreamClient,
  type JetStreamManager,
  type JsMsg,
  NatsError,
  nanos,
  RetentionPolicy,
  StorageType,
  type StreamConfig,
} from 'nats';
import { coalesce } from '../../../kit/coalesce.ts';
import { type Nats, offlineMs } from '../../../kit/nats.ts';
import { pause, type Worker } from '../../../kit/worker.ts';
import type { PeerMac } from '../../edge/peers/mac.ts';
import type { Distrust } from '../../edge/peers/untrusted.ts';
import { eventHeaders, eventKeyOf } from './event-headers.ts';
import type { EventKey, OutboxConsumer, OutboxEvent } from './outbox.ts';

type EventConsumer = Pick<OutboxConsumer, 'name' | 'consume'>;

const publishTimeoutMs = 1_000;
/** How long nothing is published after NATS stored nothing, so that events do not wait for it each time. */
const backoffMs = 2_000;
const maxAtOnce = 500;
/** How long NATS drops a repeated event. It only saves work, because a consumer consumes each event once anyway. */
const duplicateWindowMs = 20_000;
const keptMs = 10 * 60_000;
const maxBytes = 64 * 1024 * 1024;
/** How long JetStream counts as failing after it did not store an event. */
const failureLastsMs = 60_000;

/**
 * How long a consumer gathers messages, in milliseconds. The relay has made batches of them already, so it waits for the rest
 * of one: for longer if batches are large.
 */
function gatheringWindow(eventsBefore: number): number {
  return eventsBefore >= 64 ? 10 : 2;
}

export interface EventStreamOptions {
  readonly nats: Nats;
  readonly mac: PeerMac;
  readonly distrust: Distrust;
  /** The prefix of the names of stream, subjects and consumers, so that gateways can share a NATS. */
  readonly prefix: string;
  /** On how many servers of a cluster the stream is kept. */
  readonly replicas: number;
}

/**
 * The events' stream in NATS JetStream, from the relay to the consumers (docs/EVENTS-NATS.md). The database has all of its
 * content. If NATS is away or lost it, callers get an error within a second and go on without it.
 */
export class EventStream {
  readonly #stream: string;
  readonly #subjects: string;
  #isStreamKnown = false;
  /** Since when the stream does not answer. */
  #offlineSince: number | undefined;
  #backsOffUntil = 0;
  #isStreamFailing = false;
  #failedAt = Number.NEGATIVE_INFINITY;
  readonly #consumers = new Set<string>();

  constructor(private readonly options: EventStreamOptions) {
    const { nats, prefix } = options;
    this.#stream = `${prefix}EVENTS`;
    this.#subjects = `${prefix}events`;
    // NATS may come back without the stream.
    nats.onChange(() => {
      this.#isStreamKnown = false;
    });
  }

  /** Whether JetStream stores events, as far as this process knows. */
  get isStoring(): boolean {
    return !this.#isStreamFailing && performance.now() - this.#failedAt > failureLastsMs;
  }

  /** Publishes events and returns those that NATS has stored. Throws if it stored none. */
  async publish(events: readonly OutboxEvent[]): Promise<OutboxEvent[]> {
    if (performance.now() < this.#backsOffUntil) throw new Error('NATS stored nothing a moment ago');
    try {
      const published = await this.#publish(events);
      this.#failedAt = Number.NEGATIVE_INFINITY;
      return published;
    } catch (error) {
      if (this.options.nats.connection !== undefined) this.#failedAt = performance.now();
      this.#backsOffUntil = performance.now() + backoffMs;
      throw error;
    }
  }

  /** Tries to find the stream, or to make it, when there are no events to publish. */
  async restore(): Promise<void> {
    if (this.#isStreamKnown || this.options.nats.connection === undefined || performance.now() < this.#backsOffUntil)
      return;
    await this.#ready(true).catch(() => {
      this.#backsOffUntil = performance.now() + backoffMs;
    });
  }

  async #publish(events: readonly OutboxEvent[]): Promise<OutboxEvent[]> {
    const jetStream = await this.#ready(true);
    const results = await Promise.allSettled(
      events.map(async (event) => {
        const subject = `${this.#subjects}.${event.partnerId}.${event.type}`;
        const options = {
          msgID: event.id,
          headers: eventHeaders(this.options.mac, subject, event),
          timeout: publishTimeoutMs,
        };
        await jetStream.publish(subject, event.body, options);
        return event;
      }),
    );
    const published = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []));
    const failure = results.find((result) => result.status === 'rejected');
    if (failure !== undefined) {
      // The stream may be gone: check it before the next try.
      this.#isStreamKnown = false;
      if (published.length === 0) throw failure.reason;
    }
    return published;
  }

  /** The worker of a durable consumer. Processes that run it share the events. */
  worker(consumer: EventConsumer): Worker {
    return { name: consumer.name, run: (signal) => this.#consume(consumer, signal) };
  }

  /** Receives batches until the signal is aborted. NATS delivers a batch again unless `consume` succeeds. */
  async #consume(to: EventConsumer, signal: AbortSignal) {
    const { name } = to;
    this.#consumers.add(name);
    const consumer = await this.#durableConsumer(await this.#ready(), `${this.options.prefix}${name}`);
    const messages = await consumer.consume({ max_messages: maxAtOnce, expires: 5_000, idle_heartbeat: 1_000 });
    const stop = () => messages.stop();
    signal.addEventListener('abort', stop, { once: true });
    // After two missed heartbeats, or without its consumer or stream, it starts over.
    const watch = watchStatus(messages, stop, () => this.options.distrust('event', 'nonsense'));
    try {
      const gather = (before: number) => pause(gatheringWindow(before), signal);
      for await (const batch of coalesce(each(messages), maxAtOnce, gather)) await this.#consumeBatch(batch, to);
    } finally {
      signal.removeEventListener('abort', stop);
      stop();
      await watch;
    }
    if (!signal.aborted) throw new Error(`the consumer ${name} ended`);
  }

  /**
   * A message that no gateway sent is dropped. It is
   * acknowledged at once, so that NATS brings it once, whatever becomes of the others.
   */
  async #consumeBatch(messages: readonly JsMsg[], to: EventConsumer): Promise<void> {
    const { mac, distrust } = this.options;
    const events: EventKey[] = [];
    const believed: JsMsg[] = [];
    for (const message of messages) {
      const key = eventKeyOf(mac, message);
      if (typeof key === 'string') {
        distrust('event', key);
        message.ack();
      } else {
        events.push(key);
        believed.push(message);
      }
    }
    try {
      if (events.length > 0) await to.consume(events);
    } catch (error) {
      // The relay hands over what stays; this is faster.
      for (const message of believed) message.nak(1_000);
      throw error;
    }
    for (const message of believed) message.ack();
  }

  /** How many messages each consumer that NATS knows has not acknowledged yet. */
  async pending(): Promise<ReadonlyMap<string, number>> {
    const pending = new Map<string, number>();
    if (this.options.nats.connection === undefined) return pending;
    const { consumers } = await this.#manager();
    for (const name of this.#consumers) {
      const info = await consumers.info(this.#stream, `${this.options.prefix}${name}`).catch(() => undefined);
      if (info !== undefined) pending.set(name, info.num_pending + info.num_ack_pending);
    }
    return pending;
  }

  /** Ensures that the stream exists. Throws at once without a connection. Only the relay replaces one that is offline. */
  async #ready(mayReplace = false): Promise<JetStreamClient> {
    const jetStream = this.options.nats.requireConnection().jetstream({ timeout: publishTimeoutMs });
    if (!this.#isStreamKnown) {
      await this.#ensureStream(await this.#manager(), mayReplace);
    }
    return jetStream;
  }

  /**
   * The stream's settings; undefined if there is none. One that has not answered for long while JetStream did is deleted: the
   * database has all of its content.
   */
  async #find(manager: JetStreamManager, mayReplace: boolean): Promise<StreamConfig | undefined> {
    try {
      const found = await unlessMissing(manager.streams.info(this.#stream));
      this.#offlineSince = undefined;
      return found?.config;
    } catch (error) {
      this.#offlineSince ??= performance.now();
      if (!mayReplace || performance.now() - this.#offlineSince < offlineMs(this.options.replicas)) throw error;
      await manager.getAccountInfo(); // Throws unless the cluster has a leader, who alone can delete it.
      // The servers that have the stream would answer, so that this fails even when it is done.
      await manager.streams.delete(this.#stream).catch(() => undefined);
      this.#offlineSince = undefined;
      return undefined;
    }
  }

  #manager(): Promise<JetStreamManager> {
    return this.options.nats.requireConnection().jetstreamManager({ timeout: publishTimeoutMs, checkAPI: false });
  }

  async #ensureStream(manager: JetStreamManager, mayReplace: boolean): Promise<void> {
    const { streams } = manager;
    this.#isStreamFailing = true;
    const config = await this.#find(manager, mayReplace);
    if (config !== undefined && config.num_replicas < this.options.replicas) {
      await streams.update(this.#stream, { ...config, num_replicas: this.options.replicas });
    }
    if (config === undefined) {
      await streams.add({
        name: this.#stream,
        subjects: [`${this.#subjects}.>`],
        retention: RetentionPolicy.Limits,
        // NATS 2.9 with a full disk hangs while it writes to a file, until it is restarted.
        storage: StorageType.Memory,
        num_replicas: this.options.replicas,
        max_age: nanos(keptMs),
        max_bytes: maxBytes,
        duplicate_window: nanos(duplicateWindowMs),
      });
    }
    this.#isStreamFailing = false;
    this.#isStreamKnown = true;
  }

  async #durableConsumer({ consumers }: JetStreamClient, name: string): Promise<Consumer> {
    const found = await unlessMissing(consumers.get(this.#stream, name));
    if (found !== undefined) return found;
    const manager = await this.#manager();
    await manager.consumers.add(this.#stream, {
      durable_name: name,
      // The outbox has the rest.
      headers_only: true,
      ack_policy: AckPolicy.Explicit,
      ack_wait: nanos(3_000),
      max_ack_pending: 2_000,
      max_deliver: -1,
    });
    return consumers.get(this.#stream, name);
  }
}

async function* each<Item>(items: AsyncIterable<Item>): AsyncGenerator<readonly Item[]> {
  for await (const item of items) yield [item];
}

/** What JetStream tells a consumer beside messages. `onNonsense` is called for each message to it that JetStream never sends. */
async function watchStatus(
  messages: Awaited<ReturnType<Consumer['consume']>>,
  stop: () => void,
  onNonsense: () => void,
): Promise<void> {
  const fatal = new Set(['heartbeats_missed', 'consumer_deleted', 'consumer_not_found', 'stream_not_found']);
  for await (const { type, data } of await messages.status()) {
    if (fatal.has(type)) stop();
    // A status message has a code. One without was sent by somebody else, or has headers that cannot be read.
    if (type === 'debug' && !/^[1-9]/.test(String(data))) onNonsense();
  }
}

/** JetStream's answer; undefined if there is no such stream or consumer. */
async function unlessMissing<T>(answer: Promise<T>): Promise<T | undefined> {
  return answer.catch((error: unknown) => {
    if (error instanceof NatsError && error.api_error?.code === 404) return undefined;
    throw error;
  });
}
