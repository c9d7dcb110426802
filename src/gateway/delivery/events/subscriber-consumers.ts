import { AckPolicy, DeliverPolicy, NatsError, nanos } from 'nats';
import type { Nats } from '../../../kit/nats.ts';
import { periodic, type Worker } from '../../../kit/worker.ts';

/** How soon a consumer is there again after NATS has lost it. */
const everyMs = 2_000;
const timeoutMs = 1_000;
/** Long enough for a transaction of the internal system. Then NATS delivers the event again. */
const ackWaitMs = 30_000;
/** NATS delivers no more while so many are not acknowledged. */
const maxAckPending = 1_000;
/** JetStream's code of an error: there is no such consumer. */
const consumerNotFound = 10_014;
/** There is no such stream: the relay makes it. */
const streamNotFound = 10_059;

export interface SubscriberConsumersOptions {
  readonly nats: Nats;
  /** The prefix of the stream's name. Consumers need none, because each belongs to its stream. */
  readonly prefix: string;
  readonly names: readonly string[];
}

/**
 * Keeps the durable consumers of internal systems in NATS (docs/EVENTS-NATS.md). A subscriber cannot make its own: who may
 * make a consumer may have NATS deliver events to any subject. The stream is in memory, so a restart of NATS forgets
 * consumers too. One that exists is left as it is: several processes may run this, and an operator may have changed it.
 */
export function subscriberConsumers({ nats, prefix, names }: SubscriberConsumersOptions): Worker {
  const stream = `${prefix}EVENTS`;
  return periodic('subscribers', everyMs, async () => {
    const manager = await nats.connection?.jetstreamManager({ timeout: timeoutMs, checkAPI: false });
    if (manager === undefined) return;
    for (const name of names) {
      try {
        await manager.consumers.info(stream, name);
      } catch (error) {
        if (codeOf(error) === streamNotFound || nats.connection === undefined) return;
        if (codeOf(error) !== consumerNotFound) throw error;
        await manager.consumers.add(stream, {
          durable_name: name,
          deliver_policy: DeliverPolicy.All,
          ack_policy: AckPolicy.Explicit,
          ack_wait: nanos(ackWaitMs),
          max_ack_pending: maxAckPending,
          max_deliver: -1,
        });
      }
    }
  });
}

function codeOf(error: unknown): number | undefined {
  return error instanceof NatsError ? error.api_error?.err_code : undefined;
}
