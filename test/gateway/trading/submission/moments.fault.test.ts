import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { statement } from '../../../../src/gateway/store/statement.ts';
import { Call } from '../../../../src/gen/marina/simulator/v1/controls_pb.ts';
import { goodApplication } from '../../../support/applications.ts';
import type { Partner } from '../../../support/cluster.ts';
import { callTimeout } from '../../../support/cluster.ts';
import { checkFeed, checkUsage, storedOrders } from '../../../support/fault/checker.ts';
import { describeMoments } from '../../../support/fault/moments/cases.ts';

/** The amount of an allocation that the simulated broker books without an answer. */
const lostAmount = 999_006;

await describeMoments<Partner>({
  name: 'an order and an application that are never taken, and an allocation whose answer is lost, looked up at the broker',
  async prepare({ cluster }) {
    const partner = await cluster.newPartner();
    await cluster.fund(partner, 10_000_000n);
    return partner;
  },
  async run(watched, partner) {
    const { account } = partner;
    const order = { account, side: 'buy', quantity: 100, type: 'limit', price_kobo: 1_000, symbol: 'SIM-HANG' };
    const allocation = { account, amount_kobo: lostAmount };
    const application = { ...goodApplication, last_name: 'SIM-HANG' };
    await Promise.all([
      watched.ask(partner, 'POST', '/v1/applications', { idempotencyKey: randomUUID(), body: application }),
      watched.ask(partner, 'POST', '/v1/orders', { idempotencyKey: randomUUID(), body: order }),
      watched.ask(partner, 'POST', '/v1/allocations', { idempotencyKey: randomUUID(), body: allocation }),
    ]);
  },
  async check({ cluster }, gateway, partner) {
    const all = await storedOrders(cluster);
    const [order, ...others] = [...all.values()].filter(({ partnerId }) => partnerId === partner.id);
    assert.deepEqual([order?.state, others], ['refused', []], 'the order was never taken');
    await checkUsage(cluster, all);
    const query = statement('SELECT id, state FROM allocations WHERE partner_id = ?', partner.id);
    const [allocation, ...more] = await cluster.database.read(query);
    const { messages } = await cluster.controls.listMessages({ clientOrderId: String(allocation?.id) }, callTimeout);
    const sends = messages.filter(({ call }) => call === Call.SUBMIT_ALLOCATION).length;
    assert.deepEqual([allocation?.state, more], [sends === 1 ? 'booked' : 'refused', []]);
    assert.ok(sends <= 1, 'it was sent once at most');
    const find = statement('SELECT id, state FROM applications WHERE partner_id = ?', partner.id);
    const applications = await cluster.database.read(find);
    assert.deepEqual(
      applications.map(({ state }) => state),
      ['unplaced'],
      'the application was never taken',
    );
    const { messages: sent } = await cluster.controls.listMessages(
      { clientOrderId: String(applications[0]?.id) },
      callTimeout,
    );
    assert.ok(sent.filter(({ call }) => call === Call.SUBMIT_APPLICATION).length <= 1, 'it was sent once at most');
    const { body: wallet } = await gateway.request('GET', '/v1/wallet', { key: partner.key });
    const posted = sends * lostAmount;
    assert.deepEqual(
      [wallet.reserved_kobo, wallet.posted_kobo, wallet.available_kobo],
      [0, posted, 10_000_000 - posted],
    );
    await checkFeed(cluster, gateway, partner, all);
  },
});
