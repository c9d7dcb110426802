import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { adminClient } from '../../../support/admin.ts';
import { eventually } from '../../../support/eventually.ts';
import { startGateway, type TestPartner } from '../../../support/gateway.ts';
import { WebhookReceiver } from '../../../support/webhook-receiver.ts';

/** Far above what it takes, and far below the ten seconds a hanging endpoint is waited for. */
const soonMs = 3_000;

describe('a hundred endpoints that hang', () => {
  it("leave a healthy one's events as quick as they were, and are paused each for itself", async () => {
    const receiver = await WebhookReceiver.start();
    const gateway = await startGateway({ ...receiver.variables, MARINA_LOG_LEVEL: 'warn' });
    const admin = adminClient(gateway.app.adminPort);
    try {
      const register = async (path: string): Promise<TestPartner> => {
        const partner = await gateway.newPartner();
        const call = { partnerId: partner.id, url: receiver.url(path) };
        await admin.webhooks.registerEndpoint(call, admin.options);
        return partner;
      };
      const place = async (partner: TestPartner, quantity: number) => {
        const { status, text } = await gateway.place(partner, { symbol: 'SIM-REST', time_in_force: 'gtc', quantity });
        assert.equal(status, 201, text);
      };
      /** How long events take from the answer to the order until they arrive, the longest last. */
      const arrivals = async (partner: TestPartner, path: string, count: number, first: number) => {
        const took: number[] = [];
        for (let number = 0; number < count; number += 1) {
          const already = receiver.at(path).length;
          await place(partner, first + number);
          const placedAt = performance.now();
          const at = await eventually(() => {
            const arrived = receiver.at(path)[already];
            assert.ok(arrived !== undefined, 'the event has arrived');
            return arrived.at;
          }, soonMs * 3);
          took.push(at - placedAt);
        }
        return took.sort((left, right) => left - right);
      };
      const healthy = await register('/healthy');
      await arrivals(healthy, '/healthy', 10, 1);
      const hanging = await Promise.all(
        Array.from({ length: 100 }, async (_, count) => {
          receiver.reply(`/hangs/${count}`, () => 'hang');
          const partner = await register(`/hangs/${count}`);
          for (const quantity of [1, 2, 3, 4, 5, 6]) await place(partner, quantity);
          return partner;
        }),
      );
      await eventually(() => {
        const reached = new Set(receiver.received.map(({ path }) => path)).size;
        assert.equal(reached, 101, 'all of them have been tried');
      }, 20_000);
      const took = await arrivals(healthy, '/healthy', 20, 100);
      assert.ok((took.at(-1) ?? 0) < soonMs, `the slowest took ${Math.round(took.at(-1) ?? 0)} ms`);
      const [first] = hanging;
      assert.ok(first !== undefined);
      await eventually(async () => {
        const { endpoint } = await admin.webhooks.getEndpoint({ partnerId: first.id }, admin.options);
        assert.notEqual(endpoint?.failingSince, undefined, 'it is paused after ten seconds of silence');
      }, 20_000);
      assert.ok(receiver.at('/hangs/0').length <= 4, 'an endpoint of which nothing is known gets few at a time');
      const { endpoint } = await admin.webhooks.getEndpoint({ partnerId: healthy.id }, admin.options);
      assert.equal(endpoint?.failuresInARow, 0);
    } finally {
      admin.close();
      await gateway.stop();
      await receiver.close();
    }
  });
});
