import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { Call } from '../../../../src/gateway/edge/call.ts';
import { ApiError } from '../../../../src/gateway/edge/errors.ts';
import { webhookToolHandlers } from '../../../../src/gateway/partners/sandbox/webhooks.ts';

/** The row of an endpoint at which nothing happened. */
const endpoint = {
  ...{ registered_at: new Date(0), after_version: 0, probed_version: 0, fence: 0 },
  ...{ revision: 0, changed_revision: 0, seen_revision: 0, lease_fence: null, old_secret_until: null },
  ...{ paused_at: null, probe_at: null, held_at: null, due_at: null, failing_since: null },
};

it('a partner sends one webhook test at a time and one a second, whatever became of the last, and beside others', async (t) => {
  let now = 1_000_000;
  t.mock.method(performance, 'now', () => now);
  let sends = 0;
  let send: () => Promise<object | undefined> = async () => ({ id: 'evt_1', outcome: 'delivered', durationMs: 1 });
  const read = async () => [endpoint];
  const handlers = webhookToolHandlers({ read } as never, {} as never, () => {
    sends += 1;
    return send() as never;
  });
  /** Sends a test, and tells the code of its refusal. */
  const test = async (partnerId = 'par_a') => {
    const call = { caller: { partnerId } } as unknown as Call;
    try {
      await handlers.sendWebhookTest({} as never, call);
      return 'sent';
    } catch (error) {
      return error instanceof ApiError ? error.code : String(error);
    }
  };
  const after = (ms: number, partnerId?: string) => {
    now += ms;
    return test(partnerId);
  };

  let end = () => {};
  send = () => new Promise((resolve) => (end = () => resolve({ id: 'evt_1', outcome: 'delivered', durationMs: 1 })));
  const first = test();
  await new Promise(setImmediate);
  assert.equal(await after(60_000), 'rate_limited', 'however long the first one takes');
  end();
  assert.equal(await first, 'sent');
  send = async () => ({ id: 'evt_1', outcome: 'delivered', durationMs: 1 });
  assert.deepEqual([await after(999), await after(0, 'par_b'), await after(1)], ['rate_limited', 'sent', 'sent']);
  send = async () => {
    throw new Error('it could not be sent');
  };
  assert.deepEqual([await after(1_000), await after(999)], ['Error: it could not be sent', 'rate_limited']);
  send = async () => undefined;
  assert.equal(await after(1), 'rate_limited', 'too many tests of all are under way');
  send = async () => ({ id: 'evt_1', outcome: 'delivered', durationMs: 1 });
  assert.deepEqual([await after(999), await after(1), sends], ['rate_limited', 'sent', 6]);
});
