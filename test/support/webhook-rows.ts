import type { LoadedDelivery } from '../../src/webhooks/delivery-store.ts';
import { type Endpoint, freshHealth } from '../../src/webhooks/rules.ts';

/** A healthy endpoint's row. */
export function endpoint(change: Partial<Endpoint> = {}): Endpoint {
  return {
    partnerId: 'par_1',
    url: 'https://example.com/',
    secret: Buffer.alloc(0),
    oldSecret: null,
    oldSecretUntil: null,
    afterVersion: 0n,
    registeredAt: 0,
    generation: 1,
    ...freshHealth,
    heldAt: null,
    draining: false,
    dueAt: null,
    fence: 1n,
    revision: 1n,
    changedRevision: 0n,
    seenRevision: 0n,
    ...change,
  };
}

/** An event that waits: to be sent at once, or again. */
export function delivery(version: number, isRetry = false): LoadedDelivery {
  return {
    partnerId: 'par_1',
    version: BigInt(version),
    eventId: `msg_${version}`,
    type: 'order.pending',
    occurredAt: 0,
    committedAt: 0,
    takenAt: version,
    state: 'waiting',
    queue: isRetry ? 2 : 1,
    dueAt: isRetry ? version : null,
    attempts: isRetry ? 1 : 0,
    tries: isRetry ? 1 : 0,
    round: 0,
    endedAt: null,
    body: Buffer.from('{}'),
    requestId: null,
    traceParent: null,
  };
}
