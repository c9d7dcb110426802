import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { startApp } from '../../../../src/gateway/app/app.ts';
import { readConfig } from '../../../../src/gateway/app/config.ts';
import { statement } from '../../../../src/gateway/store/statement.ts';
import { createLogger } from '../../../../src/kit/log.ts';
import { adminClient } from '../../../support/admin.ts';
import { eventually } from '../../../support/eventually.ts';
import { startGateway } from '../../../support/gateway.ts';
import { WebhookReceiver } from '../../../support/webhook-receiver.ts';

const silent = createLogger({ name: 'test', level: 'silent' });
/** Well within what a stop waits for attempts. */
const answerMs = 700;

describe('an orderly stop while an endpoint takes its time', () => {
  it('waits for its answer and records it, so that the event is not sent again', async () => {
    const receiver = await WebhookReceiver.start();
    const gateway = await startGateway(receiver.variables);
    const admin = adminClient(gateway.app.adminPort);
    try {
      const partner = await gateway.newPartner();
      const endpoint = { partnerId: partner.id, url: receiver.url('/slow') };
      await admin.webhooks.registerEndpoint(endpoint, admin.options);
      receiver.slow('/slow', answerMs);
      const placed = await gateway.place(partner, { symbol: 'SIM-REST' });
      assert.equal(placed.status, 201, placed.text);
      await eventually(() => assert.equal(receiver.at('/slow').length, 1, 'the event is on its way'));
      admin.close();
      await gateway.app.stop();

      const rows = await gateway.database.read(
        statement('SELECT version, number, status FROM webhook_attempts WHERE partner_id = ?', partner.id),
      );
      const recorded = rows.map(({ version, number, status }) => `event ${version}, attempt ${number}: ${status}`);
      assert.deepEqual(recorded, ['event 1, attempt 1: 200'], `recorded after the stop: [${recorded}]`);
      const [endpointRow] = await gateway.database.read(
        statement('SELECT lease_name FROM webhook_endpoints WHERE partner_id = ?', partner.id),
      );
      assert.equal(endpointRow?.lease_name, null, 'the endpoint was given back: nobody waits for a lease to run out');

      // The next process sends the next event, and not this one again.
      const next = await startApp(
        readConfig({ ...gateway.variables, MARINA_REST_PORT: `${gateway.app.restPort}` }),
        silent,
      );
      try {
        const cancelled = await gateway.rest('DELETE', `/v1/orders/${placed.body.id}`, { key: partner.key });
        assert.equal(cancelled.status, 200, cancelled.text);
        const versions = () => receiver.at('/slow').map(({ version }) => version);
        await eventually(() => assert.ok(versions().includes(2), `received so far: ${versions()}`));
        assert.deepEqual(versions(), [1, 2], `the endpoint received the events ${versions()}`);
      } finally {
        await next.stop();
      }
    } finally {
      admin.close();
      await gateway.stop();
      await receiver.close();
    }
  });
});
