import { newEndpoint } from '../../src/gateway/delivery/webhooks/plan/endpoint-store.ts';
import type { LoadedDelivery } from '../../src/gateway/delivery/webhooks/plan/queue-store.ts';
import type { Endpoint } from '../../src/gateway/delivery/webhooks/table.ts';

/** A healthy endpoint's row. */
export function endpoint(change: Partial<Endpoint> = {}): Endpoint {
  const made = {
    partnerId: 'par_1',
    url: 'https://example.com/',
    secret: Buffer.alloc(0),
    afterVersion: 0n,
    registeredAt: 0,
  };
  return { ...newEndpoint(made), generation: 1, fence: 1n, revision: 1n, ...change };
}

/** An event that waits: to be sent at once, or again. */
export function delivery(version: number, isRetry = false): LoadedDelivery {
  return {
    version: BigInt(version),
    eventId: `msg_${version}`,
    type: 'order.pending',
    occurredAt: Date.now(),
    committedAt: 0,
    takenAt: version,
    queue: isRetry ? 2 : 1,
    dueAt: isRetry ? version : null,
    tries: isRetry ? 1 : 0,
    round: 0,
    body: Buffer.from('{}'),
    requestId: null,
    traceParent: null,
    objectId: null,
  };
}
