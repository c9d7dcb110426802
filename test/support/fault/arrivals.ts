import assert from 'node:assert/strict';
import type { Database } from '../../../src/gateway/store/database.ts';
import { statement } from '../../../src/gateway/store/statement.ts';
import { adminClient } from '../admin.ts';
import type { GatewayProcess, Partner } from '../cluster.ts';
import { eventually } from '../eventually.ts';
import { verify, type WebhookReceiver } from '../webhook-receiver.ts';

/** A partner's endpoint at a receiver. */
export interface Endpoint {
  readonly partnerId: string;
  readonly path: string;
  readonly secret: string;
}

/** Registers an endpoint of its own for each partner. */
export async function registerEndpoints(
  gateway: GatewayProcess,
  receiver: WebhookReceiver,
  partners: readonly Partner[],
): Promise<Endpoint[]> {
  const admin = adminClient(gateway.adminPort);
  try {
    return await Promise.all(
      partners.map(async ({ id: partnerId }) => {
        const path = `/${partnerId}`;
        const call = { partnerId, url: receiver.url(path) };
        const { secret } = await admin.webhooks.registerEndpoint(call, admin.options);
        return { partnerId, path, secret };
      }),
    );
  } finally {
    admin.close();
  }
}

/** Waits until every event of the feed has arrived at its endpoint: its own bytes, none foreign, none unsigned. */
export async function checkArrivals(
  database: Database,
  receiver: WebhookReceiver,
  endpoints: readonly Endpoint[],
  boundMs = 30_000,
): Promise<void> {
  for (const { partnerId, path, secret } of endpoints) {
    const bodyOf = await eventually(async () => {
      const [outbox, rows] = await Promise.all([
        database.read(statement('SELECT version FROM outbox WHERE partner_id = ?', partnerId)),
        database.read(statement('SELECT id, body FROM feed_events WHERE partner_id = ?', partnerId)),
      ]);
      assert.deepEqual(outbox, [], 'events are still on their way');
      const seen = new Set(receiver.at(path).map(({ id }) => id));
      const missing = rows.filter((row) => !seen.has(String(row.id)));
      assert.deepEqual(missing, [], 'events have not arrived');
      return new Map(rows.map((row) => [String(row.id), String(row.body)]));
    }, boundMs);
    for (const each of receiver.at(path)) {
      verify(each, secret);
      assert.equal(each.body, bodyOf.get(each.id), 'what arrived is an event of this partner, byte for byte');
    }
    await eventually(async () => {
      const waiting = await database.read(
        statement('SELECT version FROM webhook_deliveries WHERE partner_id = ? AND queue IS NOT NULL', partnerId),
      );
      assert.deepEqual(waiting, [], 'what arrived is recorded');
    }, boundMs);
  }
}
