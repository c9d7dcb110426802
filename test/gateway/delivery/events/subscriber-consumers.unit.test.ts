/** The durable consumers of internal systems, over a NATS that the test scripts. */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { AckPolicy, DeliverPolicy, NatsError } from 'nats';
import { subscriberConsumers } from '../../../../src/gateway/delivery/events/subscriber-consumers.ts';
import { eventually } from '../../../support/eventually.ts';

const [consumerNotFound, streamNotFound] = [10_014, 10_059];

/** Lets the worker look once at a stream that has some consumers, or at none. Returns the consumers that it makes. */
async function look(names: readonly string[], there: readonly string[], missing = consumerNotFound) {
  const made: object[] = [];
  let looked = 0;
  const consumers = {
    info: async (stream: string, name: string) => {
      assert.equal(stream, 'test.EVENTS');
      looked += 1;
      if (there.includes(name)) return;
      throw Object.assign(new NatsError('not found', 'not found'), { api_error: { err_code: missing } });
    },
    add: async (_: string, consumer: object) => void made.push(consumer),
  };
  const nats = { connection: { jetstreamManager: async () => ({ consumers }) } };
  const worker = subscriberConsumers({ nats: nats as never, prefix: 'test.', names });
  const stop = new AbortController();
  const running = worker.run(stop.signal).catch((error: unknown) => error);
  await eventually(() => assert.equal(looked, missing === consumerNotFound ? names.length : 1));
  stop.abort();
  await running;
  return made;
}

it('each consumer that NATS has lost is made again, and gets all events that the stream still has', async () => {
  const consumer = {
    ...{ deliver_policy: DeliverPolicy.All, ack_policy: AckPolicy.Explicit, max_deliver: -1 },
    ...{ ack_wait: 30_000_000_000, max_ack_pending: 1_000 },
  };
  assert.deepEqual(await look(['back-office', 'risk', 'tax'], ['risk']), [
    { durable_name: 'back-office', ...consumer },
    { durable_name: 'tax', ...consumer },
  ]);
});

it('no consumer is made before its stream, or for another error', async () => {
  assert.deepEqual(await look(['back-office', 'risk'], [], streamNotFound), []);
  assert.deepEqual(await look(['back-office', 'risk'], [], 10_000), []);
});
