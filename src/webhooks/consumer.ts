import type { Database } from '../db/database.ts';
import { statement, toBigInt } from '../db/statement.ts';
import { consumeFromOutbox, type EventKey } from '../events/outbox.ts';
import type { EventStream } from '../events/stream.ts';
import type { Clock } from '../lib/clock.ts';
import { crash } from '../lib/crash.ts';
import type { Worker } from '../lib/worker.ts';
import { insertDeliveries } from './delivery-store.ts';
import { markDue } from './endpoint-store.ts';

/**
 * Consumes events: puts them into the queues of their partners' endpoints. An event of a partner without an endpoint, or
 * from before its registration, is only acknowledged.
 */
export class WebhookConsumer {
  readonly worker: Worker;

  constructor(
    private readonly database: Database,
    stream: EventStream,
    private readonly clock: Clock,
    /** Called with the partners whose endpoints have something to be sent. */
    private readonly onQueued: (partnerIds: readonly string[]) => void = () => {},
  ) {
    this.worker = stream.consumer('webhooks', (events) => this.consume(events));
  }

  /** Moves events from the outbox into the queues, each once. */
  async consume(events: readonly EventKey[]): Promise<void> {
    if (events.length === 0) return;
    crash('webhooks.before-acknowledge');
    const partnerIds = partnersOf(events);
    let queued: readonly EventKey[] = [];
    await consumeFromOutbox(this.database, 'webhooks', events, {
      // An event after a registration was committed after it, so whoever finds the event finds the endpoint.
      reads: [statement('SELECT partner_id, after_version FROM webhook_endpoints WHERE partner_id IN (?)', partnerIds)],
      writes: (taken, [endpoints = []]) => {
        const afterOf = new Map(endpoints.map((row) => [String(row.partner_id), toBigInt(row.after_version)]));
        queued = taken.filter(({ partnerId, version }) => {
          const after = afterOf.get(partnerId);
          return after !== undefined && version > after;
        });
        if (queued.length === 0) return [];
        const now = this.clock.now();
        return [insertDeliveries(queued, now), markDue(partnersOf(queued), now)];
      },
    });
    crash('webhooks.acknowledged');
    if (queued.length > 0) this.onQueued(partnersOf(queued));
  }
}

function partnersOf(events: readonly EventKey[]): string[] {
  return [...new Set(events.map(({ partnerId }) => partnerId))];
}
