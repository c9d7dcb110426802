import assert from 'node:assert/strict';
import { statement } from '../../../../../src/gateway/store/statement.ts';
import { Call } from '../../../../../src/gen/marina/simulator/v1/controls_pb.ts';
import { callTimeout, type Partner } from '../../../../support/cluster.ts';
import { eventually } from '../../../../support/eventually.ts';
import { checkEverything } from '../../../../support/fault/checker.ts';
import { describeMoments } from '../../../../support/fault/moments/cases.ts';
import type { WatchedCluster } from '../../../../support/fault/moments/watched-cluster.ts';

/** A partner with open orders, all of which a job cancels. */
interface Case {
  readonly partner: Partner;
  readonly orders: readonly string[];
}

const jobSize = 4;

await describeMoments<Case>({
  name: 'a job that cancels the open orders of a partner',
  only: /bulk_cancel|CancelOrder/,
  maxOccurrences: 3,
  async prepare(watched) {
    const partner = await watched.cluster.newPartner();
    const gateway = await watched.gateway();
    const orders: string[] = [];
    for (let at = 0; at < jobSize; at += 1) {
      const { status, body } = await gateway.place(partner, { symbol: 'SIM-REST', quantity: 100 + at });
      assert.equal(status, 201, JSON.stringify(body));
      orders.push(body.id);
    }
    return { partner, orders };
  },
  async run(watched, { partner }) {
    const wanted = { partnerId: partner.id, atMost: jobSize, reason: 'a leaked key' };
    await watched.operate(async ({ trading, options }) => {
      // The answer to the call before may have been lost.
      if ((await jobsOf(watched, partner)).length === 0) await trading.cancelOpenOrders(wanted, options);
    });
    await eventually(async () => {
      // A gateway that was killed is followed by the next one.
      await watched.gateway();
      assert.ok((await jobsOf(watched, partner)).every(({ hasEnded }) => hasEnded));
    }, 40_000);
  },
  async check(watched, gateway, { partner, orders }) {
    const { cluster } = watched;
    const [job, ...others] = await jobsOf(watched, partner);
    assert.deepEqual([job?.matched, others], [jobSize, []], 'one job was made of all orders');
    const query = statement('SELECT order_id, result, due_at FROM bulk_cancel_orders WHERE partner_id = ?', partner.id);
    const rows = await cluster.database.read(query);
    const results = new Map(rows.map(({ order_id: id, result }) => [String(id), String(result)]));
    assert.deepEqual([...results.keys()].sort(), [...orders].sort());
    for (const [id, result] of results) {
      const { body } = await gateway.request('GET', `/v1/orders/${id}`, { key: partner.key });
      assert.equal(body.state === 'cancelled', result === 'cancelled', `${id} is ${body.state}, and ${result}`);
      assert.match(result, /^(cancelled|unconfirmed)$/);
      const { messages } = await cluster.controls.listMessages({ clientOrderId: id }, callTimeout);
      const sent = messages.filter(({ call }) => call === Call.CANCEL_ORDER).length;
      assert.ok(sent <= 1 && (sent === 1 || result === 'unconfirmed'), `${sent} cancels of ${id} were sent`);
    }
    // The worker sends several at once, so that as many may have been stored and not sent.
    assert.ok([...results.values()].filter((result) => result === 'unconfirmed').length < jobSize);
    await checkEverything(cluster, gateway, [partner]);
  },
});

async function jobsOf({ cluster }: WatchedCluster, { id }: Partner) {
  const rows = await cluster.database.read(
    statement('SELECT matched, ended_at FROM bulk_cancels WHERE partner_id = ? ORDER BY id', id),
  );
  return rows.map(({ matched, ended_at: endedAt }) => ({ matched: Number(matched), hasEnded: endedAt !== null }));
}
