import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { statement } from '../../../../src/gateway/store/statement.ts';
import { adminClient } from '../../../support/admin.ts';
import { startGateway, type TestGateway } from '../../../support/gateway.ts';
import { patient } from '../../../support/patience.ts';
import { WebhookReceiver } from '../../../support/webhook-receiver.ts';

describe("an operator's call about an endpoint", () => {
  let receiver: WebhookReceiver;
  let gateway: TestGateway;
  let admin: ReturnType<typeof adminClient>;
  before(async () => {
    receiver = await WebhookReceiver.start();
    gateway = await startGateway({ ...receiver.variables, MARINA_ROLES: 'api,worker' });
    admin = adminClient(gateway.app.adminPort);
  });
  after(async () => {
    admin.close();
    await gateway.stop();
    await receiver.close();
  });

  const rotate = (partnerId: string) => admin.webhooks.rotateSecret({ partnerId }, admin.options);
  const move = (partnerId: string) =>
    admin.webhooks.moveEndpoint({ partnerId, url: receiver.url('/moved') }, admin.options);
  const pause = (partnerId: string) => admin.webhooks.pauseEndpoint({ partnerId, reason: 'asked' }, admin.options);
  const resume = (partnerId: string) => admin.webhooks.resumeEndpoint({ partnerId, reason: 'asked' }, admin.options);

  /** Each call, also as the repetition of one whose answer was lost, which finds nothing to change. */
  const calls: readonly [string, boolean, (partnerId: string) => Promise<unknown>][] = [
    ['a rotation', false, rotate],
    ['a move', false, move],
    ['a pause', false, pause],
    ['a repeated pause', true, pause],
    ['a resumption', true, resume],
    ['a repeated resumption', false, resume],
  ];

  /** Makes each call about an endpoint that is prepared, all at once, and returns the milliseconds that each took. */
  function timeCalls(prepare: (partnerId: string) => Promise<unknown>): Promise<{ name: string; tookMs: number }[]> {
    const timed = calls.map(async ([name, isPaused, call]) => {
      const { id: partnerId } = await gateway.newPartner();
      await admin.webhooks.registerEndpoint({ partnerId, url: receiver.url('/before') }, admin.options);
      if (isPaused) await pause(partnerId);
      await prepare(partnerId);
      const startedAt = performance.now();
      await call(partnerId);
      return { name, tookMs: performance.now() - startedAt };
    });
    return Promise.all(timed);
  }

  it('is answered at once if no process sends to the endpoint', async () => {
    for (const { name, tookMs } of await timeCalls(async () => {})) {
      assert.ok(tookMs < patient(1_000), `${name} took ${tookMs} ms`);
    }
  });

  it('is answered after three seconds if the process that sends does not confirm the last change, also if it is repeated', async () => {
    // A process sends that is gone, and has not confirmed an operator's change.
    const set = 'lease_fence = 1, revision = revision + 1, changed_revision = revision, seen_revision = 0';
    const sql = `UPDATE webhook_endpoints SET lease_name = 'webhooks-gone', ${set} WHERE partner_id = ?`;
    const timed = await timeCalls((partnerId) => gateway.database.write(statement(sql, partnerId)));
    for (const { name, tookMs } of timed) {
      assert.ok(tookMs > 2_900 && tookMs < patient(4_500), `${name} took ${tookMs} ms`);
    }
  });
});
