import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import { Call, WireFault } from '../../../../src/gen/marina/simulator/v1/controls_pb.ts';
import { Cluster, callTimeout, type GatewayProcess, type Partner } from '../../../support/cluster.ts';
import { eventually } from '../../../support/eventually.ts';
import { checkEverything } from '../../../support/fault/checker.ts';
import { fated } from '../../../support/fault/moments/fated.ts';

/** The faults of a submission's answer, and the order's possible ends after each. */
const faults: readonly { name: string; fault: WireFault; delayMs?: number; end: readonly string[] }[] = [
  { name: 'hangs untaken', fault: WireFault.HANG, end: ['refused'] },
  { name: 'is taken and its answer lost', fault: WireFault.LOSE_ANSWER, end: ['filled'] },
  { name: 'is answered after the deadline', fault: WireFault.LATE_ANSWER, delayMs: 1_500, end: ['filled'] },
  { name: 'is received after not_after', fault: WireFault.LATE_RECEIPT, delayMs: 1_500, end: ['refused'] },
  { name: 'meets a reset before it is taken', fault: WireFault.RESET_BEFORE, end: ['refused'] },
  { name: 'meets a reset after it is taken', fault: WireFault.RESET_AFTER, end: ['filled'] },
  { name: 'is answered UNAVAILABLE untaken', fault: WireFault.UNAVAILABLE_BEFORE, end: ['refused'] },
  { name: 'is answered UNAVAILABLE and taken', fault: WireFault.UNAVAILABLE_AFTER, end: ['filled'] },
  { name: 'is answered with nonsense', fault: WireFault.NONSENSE, end: ['filled'] },
];

/** Moments of an order's way. */
const stored = { kind: 'commit', label: 'insert orders, insert order_steps, insert usage_days' } as const;
const sent = { kind: 'call', label: 'Orders/SubmitOrder' } as const;

describe('an order whose submission', () => {
  let cluster: Cluster;
  let gateway: GatewayProcess;
  const partners: Partner[] = [];
  before(async () => {
    cluster = await Cluster.start();
    gateway = await cluster.startGateway();
  });
  after(() => cluster.stop());

  for (const { name, fault, delayMs = 0, end } of faults) {
    it(`${name}: sent once, settled as ${end.join(' or ')}`, async () => {
      const owner = await cluster.newPartner();
      partners.push(owner);
      await cluster.controls.injectFault(
        { call: Call.SUBMIT_ORDER, account: owner.account, fault, delayMs },
        callTimeout,
      );
      const key = randomUUID();
      const placed = await gateway.place(owner, { symbol: 'SIM-PARTS' }, key);
      assert.equal(placed.status, 201, JSON.stringify(placed.body));
      const replayed = await gateway.place(owner, { symbol: 'SIM-PARTS' }, key);
      assert.equal(replayed.status, 200);
      assert.equal(replayed.body.id, placed.body.id);
      await eventually(async () => {
        const { body } = await gateway.request('GET', `/v1/orders/${placed.body.id}`, { key: owner.key });
        assert.ok(end.includes(body.state), body.state);
      }, 20_000);
      await checkEverything(cluster, gateway, partners);
    });
  }

  it('stands still in a frozen process: another settles it, and the thawed one sends nothing that is taken', async () => {
    const owner = await cluster.newPartner();
    partners.push(owner);
    const frozen = await cluster.startGateway(fated(cluster.folder, { ...stored, fate: 'frozen' }));
    const key = randomUUID();
    const placing = frozen.place(owner, { symbol: 'SIM-PARTS' }, key);
    const id = await eventually(async () => {
      const { body } = await gateway.request('GET', '/v1/orders', { key: owner.key });
      assert.equal(body.data.length, 1);
      return body.data[0].id as string;
    });
    await eventually(async () => {
      const { body } = await gateway.request('GET', `/v1/orders/${id}`, { key: owner.key });
      assert.equal(body.state, 'refused');
    }, 20_000);
    frozen.thaw();
    const answer = await placing;
    assert.equal(answer.body?.error?.code, 'order_not_sent', JSON.stringify(answer.body));
    await checkEverything(cluster, gateway, partners);
    await frozen.stop();
  });

  it('left a process that was frozen after the send: the order follows the exchange', async () => {
    const owner = await cluster.newPartner();
    partners.push(owner);
    const frozen = await cluster.startGateway(fated(cluster.folder, { ...sent, fate: 'frozen' }));
    const placing = frozen.place(owner, { symbol: 'SIM-PARTS' });
    await eventually(async () => {
      const { body } = await gateway.request('GET', '/v1/orders', { key: owner.key });
      assert.equal(body.data[0]?.state, 'filled');
    }, 20_000);
    frozen.thaw();
    const answer = await placing;
    assert.equal(answer.status, 201);
    assert.equal(answer.body.state, 'filled');
    await checkEverything(cluster, gateway, partners);
    await frozen.stop();
  });

  it('finds the broker without a fence: not found proves nothing, and it stays uncertain', async () => {
    const owner = await cluster.newPartner();
    await cluster.controls.setCapabilities({ honoursNotAfter: false }, callTimeout);
    try {
      const placed = await gateway.place(owner, { symbol: 'SIM-HANG' });
      assert.equal(placed.body.state, 'uncertain');
      // Ask long after the fence would have proven it.
      const [checks] = await eventually(async () => {
        const { body } = await gateway.request('GET', `/v1/orders/${placed.body.id}/history`, { key: owner.key });
        const kinds = body.data.map((step: { kind: string }) => step.kind);
        assert.ok(kinds.includes('reconciliation'));
        return [kinds.length];
      });
      await eventually(() => assert.ok(Date.now() > Date.parse(placed.body.created_at) + 4_000));
      const { body } = await gateway.request('GET', `/v1/orders/${placed.body.id}`, { key: owner.key });
      assert.equal(body.state, 'uncertain');
      assert.ok((checks ?? 0) > 0);
    } finally {
      await cluster.controls.setCapabilities({ honoursNotAfter: true }, callTimeout);
    }
    partners.push(owner);
    await checkEverything(cluster, gateway, partners, 60_000);
  });
});
