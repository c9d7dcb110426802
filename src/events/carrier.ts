import {
  AckPolicy,
  type Consumer,
  headers,
  type JetStreamClient,
  type JetStreamManager,
  type JsMsg,
  NatsError,
  nanos,
  RetentionPolicy,
  StorageType,
} from 'nats';
import type { Nats } from '../lib/nats.ts';
import { pause } from '../lib/worker.ts';
import { lingerAfter } from './linger.ts';

/** An event on its way: where its row is, and what makes a second publication of it recognisable. */
export interface Carried {
  readonly partnerId: string;
  readonly version: bigint;
  readonly id: string;
  readonly type: string;
}

export interface CarrierOptions {
  readonly nats: Nats;
  /** Stands before the names of the stream and its subjects, so that gateways can share a NATS. */
  readonly prefix: string;
}

const publishTimeoutMs = 1_000;
/** How long nothing is published after NATS took nothing, so that events do not wait for it again and again. */
const restMs = 2_000;
const mostAtOnce = 500;
/** How long NATS drops what comes twice. It spares work; what is dropped wrongly the relay hands over. */
const rememberedMs = 20_000;
const keptMs = 10 * 60_000;
const mostBytes = 64 * 1024 * 1024;
/** For how long an event that JetStream did not store says something about JetStream. */
const failureLastsMs = 60_000;
const partnerHeader = 'Marina-Partner';
const versionHeader = 'Marina-Version';

/**
 * NATS as the carrier of events. It holds nothing the database does not: when it is away, or lost all it had, callers get
 * an error within a second and go on without it.
 */
export class Carrier {
  readonly #options: CarrierOptions;
  readonly #stream: string;
  readonly #subjects: string;
  #streamKnown = false;
  #restsUntil = 0;
  #streamFails = false;
  #failedAt = Number.NEGATIVE_INFINITY;
  readonly #consumers = new Set<string>();

  constructor(options: CarrierOptions) {
    this.#options = options;
    this.#stream = `${options.prefix}EVENTS`;
    this.#subjects = `${options.prefix}events`;
    // NATS may come back without the stream.
    options.nats.onChange(() => {
      this.#streamKnown = false;
    });
  }

  /** Whether NATS can be reached, as far as is known. */
  get connected(): boolean {
    return this.#options.nats.connection !== undefined;
  }

  /** Whether JetStream stores events, as far as is known. */
  get isStoring(): boolean {
    return !this.#streamFails && performance.now() - this.#failedAt > failureLastsMs;
  }

  /** Which version the server is that this process is connected to. */
  get serverVersion(): string | undefined {
    return this.#options.nats.connection?.info?.version;
  }

  /** Publishes some events and returns those that NATS has. Throws when it has none of them. */
  async publish(events: readonly Carried[]): Promise<Carried[]> {
    if (performance.now() < this.#restsUntil) throw new Error('NATS took nothing a moment ago');
    try {
      const carried = await this.#publish(events);
      this.#failedAt = Number.NEGATIVE_INFINITY;
      return carried;
    } catch (error) {
      if (this.connected) this.#failedAt = performance.now();
      this.#restsUntil = performance.now() + restMs;
      throw error;
    }
  }

  async #publish(events: readonly Carried[]): Promise<Carried[]> {
    const jetStream = await this.#ready();
    const results = await Promise.allSettled(
      events.map(async (event) => {
        const head = headers();
        head.set(partnerHeader, event.partnerId);
        head.set(versionHeader, event.version.toString());
        const subject = `${this.#subjects}.${event.partnerId}.${event.type}`;
        await jetStream.publish(subject, undefined, { msgID: event.id, headers: head, timeout: publishTimeoutMs });
        return event;
      }),
    );
    const carried = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []));
    const failure = results.find((result) => result.status === 'rejected');
    if (failure !== undefined) {
      // No answer may mean that the stream is gone: make sure of it before the next try.
      this.#streamKnown = false;
      if (carried.length === 0) throw failure.reason;
    }
    return carried;
  }

  /**
   * Takes events from the durable consumer of the given name, in batches of what has come, until the signal is aborted.
   * A batch is acknowledged when `take` has ended well; otherwise NATS brings it again.
   */
  async consume(
    name: string,
    take: (events: readonly { partnerId: string; version: bigint }[]) => Promise<void>,
    signal: AbortSignal,
  ): Promise<void> {
    this.#consumers.add(name);
    const jetStream = await this.#ready();
    const consumer = await this.#consumer(jetStream, name);
    const messages = await consumer.consume({ max_messages: mostAtOnce, expires: 5_000, idle_heartbeat: 1_000 });
    const stop = () => messages.stop();
    signal.addEventListener('abort', stop, { once: true });
    // Two missed heartbeats, a removed consumer or a removed stream: start over rather than wait for ever.
    const watch = watchStatus(messages, stop);
    let failure: { error: unknown } | undefined;
    try {
      let batch: JsMsg[] = [];
      let working: Promise<void> | undefined;
      const work = async () => {
        let taken: JsMsg[] = [];
        while (batch.length > 0 && failure === undefined) {
          // What comes close together is taken together.
          await pause(lingerAfter(taken.length), signal);
          taken = batch;
          batch = [];
          await takeBatch(taken, take);
        }
        working = undefined;
      };
      for await (const message of messages) {
        batch.push(message);
        working ??= work().catch((error: unknown) => {
          failure = { error };
          stop();
        });
        if (batch.length >= mostAtOnce) await working;
      }
      await working;
    } finally {
      signal.removeEventListener('abort', stop);
      stop();
      await watch;
    }
    if (failure !== undefined) throw failure.error;
    if (!signal.aborted) throw new Error(`the consumer ${name} ended`);
  }

  /** Calls the listener whenever another process says the given word. Messages can be lost. */
  listen(word: string, listener: (text: string) => void): void {
    this.#options.nats.subscribe(`${this.#options.prefix}say.${word}`, listener);
  }

  /** Says a word to the other processes, if NATS is there. */
  say(word: string, text = ''): void {
    this.#options.nats.publish(`${this.#options.prefix}say.${word}`, text);
  }

  /** How many messages each consumer has not taken yet; of those NATS does not say it of, nothing. */
  async pending(): Promise<ReadonlyMap<string, number>> {
    const manager = this.connected ? await this.#manager() : undefined;
    const pending = new Map<string, number>();
    for (const name of manager === undefined ? [] : this.#consumers) {
      const info = await manager?.consumers.info(this.#stream, `${this.#options.prefix}${name}`).catch(() => undefined);
      if (info !== undefined) pending.set(name, info.num_pending + info.num_ack_pending);
    }
    return pending;
  }

  /** Makes sure of the stream. Without a connection it throws at once: nobody waits for NATS. */
  async #ready(): Promise<JetStreamClient> {
    const jetStream = this.#options.nats.requireConnection().jetstream({ timeout: publishTimeoutMs });
    if (!this.#streamKnown) await this.#ensureStream(await this.#manager());
    return jetStream;
  }

  #manager(): Promise<JetStreamManager> {
    return this.#options.nats.requireConnection().jetstreamManager({ timeout: publishTimeoutMs, checkAPI: false });
  }

  async #ensureStream(manager: JetStreamManager): Promise<void> {
    this.#streamFails = true;
    const storage = await this.#findStorage(manager);
    // Versions up to 0.1.0 made a stream in files.
    if (storage === StorageType.File) await manager.streams.delete(this.#stream);
    if (storage !== StorageType.Memory) {
      await manager.streams.add({
        name: this.#stream,
        subjects: [`${this.#subjects}.>`],
        retention: RetentionPolicy.Limits,
        // When its disk is full, NATS 2.9 stands still while it writes to a file, until it is restarted.
        storage: StorageType.Memory,
        max_age: nanos(keptMs),
        max_bytes: mostBytes,
        duplicate_window: nanos(rememberedMs),
      });
    }
    this.#streamFails = false;
    this.#streamKnown = true;
  }

  /** Where the stream is stored; undefined: there is none. */
  async #findStorage(manager: JetStreamManager): Promise<StorageType | undefined> {
    try {
      return (await manager.streams.info(this.#stream)).config.storage;
    } catch (error) {
      if (!isMissing(error)) throw error;
      return undefined;
    }
  }

  async #consumer(jetStream: JetStreamClient, name: string): Promise<Consumer> {
    const durable = `${this.#options.prefix}${name}`;
    const config = {
      durable_name: durable,
      ack_policy: AckPolicy.Explicit,
      ack_wait: nanos(3_000),
      max_ack_pending: 2_000,
      max_deliver: -1,
    };
    try {
      return await jetStream.consumers.get(this.#stream, durable);
    } catch (error) {
      if (!isMissing(error)) throw error;
      await (await this.#manager()).consumers.add(this.#stream, config);
      return jetStream.consumers.get(this.#stream, durable);
    }
  }
}

async function takeBatch(
  messages: readonly JsMsg[],
  take: (events: readonly { partnerId: string; version: bigint }[]) => Promise<void>,
): Promise<void> {
  const events = messages.flatMap((message) => {
    const version = message.headers?.get(versionHeader) ?? '';
    const partnerId = message.headers?.get(partnerHeader) ?? '';
    return /^\d{1,18}$/.test(version) && partnerId !== '' ? [{ partnerId, version: BigInt(version) }] : [];
  });
  try {
    if (events.length > 0) await take(events);
  } catch (error) {
    // The relay hands over what stays; this brings it sooner.
    for (const message of messages) message.nak(1_000);
    throw error;
  }
  for (const message of messages) message.ack();
}

async function watchStatus(messages: Awaited<ReturnType<Consumer['consume']>>, stop: () => void): Promise<void> {
  const fatal = new Set(['heartbeats_missed', 'consumer_deleted', 'consumer_not_found', 'stream_not_found']);
  for await (const { type } of await messages.status()) {
    if (fatal.has(type)) stop();
  }
}

/** Whether JetStream says that a stream or consumer does not exist. */
function isMissing(error: unknown): boolean {
  return error instanceof NatsError && error.api_error?.code === 404;
}
