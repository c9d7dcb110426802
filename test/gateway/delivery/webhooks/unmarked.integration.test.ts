import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { after, describe, it } from 'node:test';
import { WebhookSender } from '../../../../src/gateway/delivery/webhooks/attempt/sender.ts';
import { makeSecret, signingKeys } from '../../../../src/gateway/delivery/webhooks/attempt/signature.ts';
import { Dispatcher } from '../../../../src/gateway/delivery/webhooks/dispatcher.ts';
import { newEndpoint } from '../../../../src/gateway/delivery/webhooks/plan/endpoint-store.ts';
import { endpoints } from '../../../../src/gateway/delivery/webhooks/table.ts';
import { Metrics } from '../../../../src/gateway/edge/metrics.ts';
import type { Database } from '../../../../src/gateway/store/database.ts';
import { statement } from '../../../../src/gateway/store/statement.ts';
import { SystemClock } from '../../../../src/kit/clock.ts';
import { onlyKey, Seal } from '../../../../src/kit/key-ring.ts';
import { createLogger } from '../../../../src/kit/log.ts';
import { passingTracer } from '../../../../src/kit/trace.ts';
import { whileRunning, withDatabase } from '../../../support/database.ts';
import { eventually } from '../../../support/eventually.ts';
import { insertRows } from '../../../support/insert-rows.ts';
import { WebhookReceiver } from '../../../support/webhook-receiver.ts';

describe('a process that sends webhooks after, and together with, a version that does not mark endpoints with work', () => {
  const partnerId = `par_${randomBytes(10).toString('hex')}`;
  const clock = new SystemClock();
  let database: Database;
  let receiver: WebhookReceiver;
  withDatabase(async (opened) => {
    database = opened;
    receiver = await WebhookReceiver.start();
  });
  after(() => receiver.close());

  /** Puts an event into the queue and writes no due_at, which such a version does not know. */
  async function queueUnmarked(version: bigint): Promise<void> {
    const at = new Date();
    const body = JSON.stringify({ version: Number(version) });
    await database.write(
      insertRows(
        'feed_events',
        ['partner_id', 'version', 'id', 'body', 'occurred_at'],
        [[partnerId, version, `msg_${version}`, body, at]],
      ),
    );
    const columns = 'partner_id version event_id type occurred_at committed_at taken_at state queue'.split(' ');
    const row = [partnerId, version, `msg_${version}`, 'order.pending', at, at, at, 'waiting', 1];
    await database.write(insertRows('webhook_deliveries', columns, [row]));
    await database.write(statement('UPDATE webhook_endpoints SET due_at = NULL WHERE partner_id = ?', partnerId));
  }

  const arrived = () => receiver.received.map(({ version }) => version);

  it('sends what that version queued, at its start and again and again', async () => {
    const seal = new Seal(onlyKey(randomBytes(32)));
    await database.write(
      endpoints.insert(
        newEndpoint({
          partnerId,
          url: receiver.url('/'),
          secret: seal.seal(partnerId, makeSecret()),
          afterVersion: 0n,
          registeredAt: Date.now(),
        }),
      ),
    );
    await queueUnmarked(1n);
    const extraAuthorities = readFileSync(receiver.variables.MARINA_WEBHOOK_CA_FILE ?? '', 'utf8');
    const sender = new WebhookSender({ clock, allowLoopback: true, extraAuthorities });
    const { worker } = new Dispatcher({
      database,
      clock,
      log: createLogger({ name: 'test', level: 'silent' }),
      holder: 'test',
      sender,
      keysOf: signingKeys(seal),
      tracer: passingTracer,
      metrics: new Metrics(),
      fullScanMs: 200,
    });
    await whileRunning(worker, async () => {
      await eventually(() => assert.deepEqual(arrived(), [1]));
      await queueUnmarked(2n);
      await eventually(() => assert.deepEqual(arrived(), [1, 2]));
    });
    await sender.close();
  });
});
