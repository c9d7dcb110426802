import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { SendRequest } from '../../../../../src/gateway/delivery/webhooks/attempt/sender.ts';
import { WebhookTester } from '../../../../../src/gateway/delivery/webhooks/attempt/tester.ts';
import type { SendResult } from '../../../../../src/gateway/delivery/webhooks/rules.ts';
import { endpoint } from '../../../../support/webhook-rows.ts';

const delivered: SendResult = { outcome: 'delivered', status: 200, errorClass: null, durationMs: 1 };

/** A tester whose attempts end when the test says so. */
function startTester() {
  const sent: (SendRequest & { end: (result: SendResult) => void; fail: (error: Error) => void })[] = [];
  const sender = {
    send: (request: SendRequest) =>
      new Promise<SendResult>((end, fail) => {
        sent.push({ ...request, end, fail });
      }),
  };
  let ids = 0;
  const clock = { now: () => 1_799, realNow: () => 0 };
  const tester = new WebhookTester(sender, () => [Buffer.from('key')], clock, { event: () => `msg_${++ids}` });
  return { tester, sent };
}

describe('test events to endpoints', () => {
  it('a process waits for ten at once, and each that ends makes room for another, however it ends', async () => {
    const { tester, sent } = startTester();
    const underWay = Array.from({ length: 10 }, () => tester.send(endpoint()));
    await new Promise(setImmediate);
    assert.deepEqual([sent.length, await tester.send(endpoint())], [10, undefined], 'ten wait');
    for (const how of ['an answer', 'an error', 'an answer']) {
      if (how === 'an error') sent[0]?.fail(new Error('no keys'));
      else sent[0]?.end(delivered);
      sent.shift();
      await Promise.race(underWay).catch(() => undefined);
      underWay.shift()?.catch(() => undefined);
      underWay.push(tester.send(endpoint()));
      await new Promise(setImmediate);
      assert.deepEqual([sent.length, await tester.send(endpoint())], [10, undefined], how);
    }
    for (const { end } of sent) end(delivered);
    assert.equal((await Promise.all(underWay)).length, 10);
  });

  it('a test that could not be noted is not sent, and takes no room', async () => {
    const { tester, sent } = startTester();
    const refuse = () => Promise.reject(new Error('no audit'));
    for (let count = 0; count < 11; count += 1) await assert.rejects(tester.send(endpoint(), refuse), /no audit/);
    assert.equal(sent.length, 0);
    const noted: unknown[] = [];
    const last = tester.send(endpoint({ url: 'https://a.example.com/' }), async (...note) => void noted.push(note));
    await new Promise(setImmediate);
    const [request] = sent;
    assert.deepEqual(noted, [['msg_12', 1_799]]);
    assert.deepEqual(
      [request?.id, request?.url, request?.endpointId],
      ['msg_12', 'https://a.example.com/', 'par_1 test'],
    );
    const event = { object: 'webhook_test', id: 'msg_12', type: 'webhook.test', timestamp: '1970-01-01T00:00:01Z' };
    assert.deepEqual(JSON.parse(String(request?.body)), event);
    request?.end(delivered);
    assert.deepEqual(await last, { ...delivered, id: 'msg_12' });
  });
});
