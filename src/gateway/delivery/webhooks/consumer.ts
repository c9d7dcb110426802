import type { Clock } from '../../../kit/clock.ts';
import type { Logger } from '../../../kit/log.ts';
import type { Database } from '../../store/database.ts';
import { sql, toBigInt } from '../../store/statement.ts';
import { areThese, type EventKey, OutboxConsumer, outboxByKey } from '../events/outbox.ts';
import { markDue } from './plan/endpoint-store.ts';

/** Queues events for partners' endpoints. One without an endpoint, or from before its registration, is only acknowledged. `onQueued` is called after the commit, to wake who serves them. */
export function webhookConsumer(
  database: Database,
  clock: Clock,
  log: Logger,
  onQueued: (partnerIds: readonly string[]) => void,
): OutboxConsumer {
  return new OutboxConsumer('webhooks', database, log, {
    // An event after a registration was committed after it, so a process that reads the event also finds the endpoint.
    reads: (events) => [
      sql`SELECT partner_id, after_version FROM webhook_endpoints FORCE INDEX (PRIMARY)
        WHERE partner_id IN (${partnersOf(events)})`,
    ],
    decide: (consumed, [endpoints = []]) => {
      const afterOf = new Map(endpoints.map((row) => [String(row.partner_id), toBigInt(row.after_version)]));
      const queued = consumed.filter(({ partnerId, version }) => {
        const after = afterOf.get(partnerId);
        return after !== undefined && version > after;
      });
      if (queued.length === 0) return { writes: [], afterwards: () => undefined };
      const now = clock.now();
      const insert = sql`INSERT INTO webhook_deliveries
          (partner_id, version, event_id, type, occurred_at, committed_at, taken_at, state, queue)
        SELECT partner_id, version, id, type, occurred_at, publish_at, ${new Date(now)}, 'waiting', 1
        FROM ${outboxByKey} WHERE ${areThese(queued)}`;
      return { writes: [insert, markDue(partnersOf(queued), now)], afterwards: () => onQueued(partnersOf(queued)) };
    },
    written: (events) =>
      sql`SELECT partner_id, version, event_id AS id FROM webhook_deliveries FORCE INDEX (PRIMARY) WHERE ${areThese(events)}`,
  });
}

function partnersOf(events: readonly EventKey[]): string[] {
  return [...new Set(events.map(({ partnerId }) => partnerId))];
}
