import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { connect } from 'nats';
import type { Origin } from '../../../../src/gateway/edge/origin.ts';
import { firstBroker } from '../../../../src/gateway/trading/broker/broker.ts';
import { ReadQueue } from '../../../../src/gateway/trading/broker/read-queue.ts';
import { eventually } from '../../../support/eventually.ts';
import { patient } from '../../../support/patience.ts';
import { type RestartableServer, startTestNats } from '../../../support/servers.ts';
import { endReplicasAfterEach, newPrefix, startReplica, startSharing, taken } from '../../../support/slots.ts';

let nats: RestartableServer;
before(async () => {
  nats = await startTestNats();
});
after(() => nats.kill());
endReplicasAfterEach();

/** A read of a partner's. */
const of = (partnerId: string): Origin => ({ partnerId, requestId: null, traceParent: null });

describe('slots across replicas', () => {
  it('are never more in use than the limit, whichever replica is asked, and another name has its own', async () => {
    const prefix = newPrefix();
    const [one, other] = [await startSharing({ url: nats.url, prefix }), await startSharing({ url: nats.url, prefix })];
    const first = await taken(one, 'documents.a', 2);
    await taken(other, 'documents.a', 2);
    assert.equal(await one.acquire('documents.a', 2), undefined);
    assert.equal(await other.acquire('documents.a', 2), undefined);
    await taken(other, 'documents.b', 2);
    first.release();
    await taken(other, 'documents.a', 2);
    assert.equal(await one.acquire('documents.a', 2), undefined);
  });

  it('slots that nobody uses go to the caller that needs them, at once', async () => {
    const prefix = newPrefix();
    const [one, other] = [await startSharing({ url: nats.url, prefix }), await startSharing({ url: nats.url, prefix })];
    for (let round = 0; round < 20; round += 1) {
      const [from, to] = round % 2 === 0 ? [one, other] : [other, one];
      const slots = await Promise.all([taken(from, 'orders', 5), taken(from, 'orders', 5), taken(from, 'orders', 5)]);
      for (const slot of slots) slot.release();
      const all = await Promise.all(Array.from({ length: 5 }, () => taken(to, 'orders', 5)));
      assert.equal(await from.acquire('orders', 5), undefined);
      for (const slot of all) slot.release();
    }
  });

  it('asked for all at once are given to as many as there are', async () => {
    const prefix = newPrefix();
    const replicas = [
      await startSharing({ url: nats.url, prefix }),
      await startSharing({ url: nats.url, prefix }),
      await startSharing({ url: nats.url, prefix }),
    ];
    const results = await Promise.all(
      Array.from({ length: 30 }, (_, index) => replicas[index % 3]?.acquire('orders', 7)),
    );
    const slots = results.filter((slot) => slot !== undefined);
    assert.ok(slots.length <= 7 && slots.length >= 5, `${slots.length} of 7`);
    for (const slot of slots) slot.release();
  });

  it('slots of a replica that stopped in order are free at once', async () => {
    const prefix = newPrefix();
    const [one, other] = [await startSharing({ url: nats.url, prefix }), await startSharing({ url: nats.url, prefix })];
    for (const slot of [await taken(one, 'orders', 2), await taken(one, 'orders', 2)]) slot.release();
    await one.close();
    await taken(other, 'orders', 2);
    await taken(other, 'orders', 2);
  });

  it('cost no message while one replica takes and gives back', async () => {
    const prefix = newPrefix();
    const slots = await startSharing({ url: nats.url, prefix });
    (await taken(slots, 'orders', 5)).release();
    const connection = await connect({ servers: nats.url });
    let writes = 0;
    connection.subscribe(`$KV.${prefix}SLOTS.places.>`, {
      callback: () => {
        writes += 1;
      },
    });
    await connection.flush();
    for (let count = 0; count < 10_000; count += 1) (await taken(slots, 'orders', 5)).release();
    await connection.flush();
    assert.ok(writes <= 1, `${writes} writes`);
    await connection.close();
  });
});

describe('reads of the broker on two replicas', () => {
  it('have their turn with a crowd on the other, of the same partner or of others', async () => {
    const prefix = newPrefix();
    const [one, other] = [await startSharing({ url: nats.url, prefix }), await startSharing({ url: nats.url, prefix })];
    const [crowded, quiet] = [one, other].map((slots) => new ReadQueue(firstBroker, slots, 20_000));
    let done = 0;
    const work = async () => {
      await delay(20);
      done += 1;
    };
    const partners = ['a', 'b', 'c', 'd', 'e', 'f'];
    const crowd = Promise.all(partners.flatMap((id) => Array.from({ length: 30 }, () => crowded?.read(of(id), work))));
    await eventually(() => assert.ok(done >= 4, 'the crowd has begun'));
    for (const partner of ['g', 'a', 'g', 'b', 'a']) {
      const before = done;
      await quiet?.read(of(partner), work);
      assert.ok(done - before <= 60, `${done - before} others were served first`);
    }
    await crowd;
    assert.equal(done, 6 * 30 + 5);
  });
});

describe('slots of a replica without NATS', () => {
  it('are all a single replica has, from its start, and it neither waits nor fails', async () => {
    const slots = await startReplica({ url: 'nats://127.0.0.1:9', prefix: newPrefix() });
    const started = performance.now();
    await taken(slots, 'documents.a', 2);
    await taken(slots, 'documents.a', 2);
    assert.equal(await slots.acquire('documents.a', 2), undefined);
    assert.ok(performance.now() - started < patient(500));
  });
});
