import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { statement } from '../../../../src/gateway/store/statement.ts';
import { Call, WireFault } from '../../../../src/gen/marina/simulator/v1/controls_pb.ts';
import { Cluster, callTimeout, type GatewayProcess, type Partner } from '../../../support/cluster.ts';
import { eventually } from '../../../support/eventually.ts';
import { FaultProxy } from '../../../support/fault-proxy.ts';
import { type RestartableServer, startTestNats } from '../../../support/servers.ts';

describe('limits across replicas', () => {
  let nats: RestartableServer;
  let proxy: FaultProxy;
  let cluster: Cluster;
  const gateways: GatewayProcess[] = [];
  before(async () => {
    nats = await startTestNats();
    proxy = await FaultProxy.start(nats.url);
    cluster = await Cluster.start({ MARINA_SUBMIT_TIMEOUT_MS: '20000' }, { natsUrl: proxy.through(nats.url) });
    for (let count = 0; count < 2; count += 1) gateways.push(await cluster.startGateway());
  });
  after(async () => {
    await cluster.stop();
    await proxy.close();
    await nats.kill();
  });

  async function partnerOfFive(): Promise<Partner> {
    const partner = await cluster.newPartner();
    await cluster.database.write(statement('UPDATE partners SET requests_under_way = 5 WHERE id = ?', partner.id));
    return partner;
  }

  it('give the slots of a replica that was killed to others, once it has not been heard of for a while', async () => {
    const partner = await partnerOfFive();
    const [lost, kept] = gateways as [GatewayProcess, GatewayProcess];
    const fault = { call: Call.SUBMIT_ORDER, account: partner.account, times: 5, fault: WireFault.HANG };
    await cluster.controls.injectFault(fault, callTimeout);
    const hanging = [1, 2, 3, 4, 5].map((quantity) => lost.place(partner, { symbol: 'SIM-REST', quantity }));
    const inProgress = async () => {
      const { body } = await kept.request('GET', '/v1/limits', { key: partner.key });
      return body.requests_under_way;
    };
    await eventually(async () => assert.equal((await inProgress()).used, 5));
    assert.equal((await kept.place(partner, { symbol: 'SIM-REST', quantity: 6 })).status, 429);
    await lost.kill();
    await Promise.all(hanging);
    // An order that was not on its way yet has left its fault for others.
    await cluster.controls.clearDirectives({}, callTimeout);
    await eventually(async () => {
      const { status } = await kept.place(partner, { symbol: 'SIM-REST', quantity: 6 });
      assert.equal(status, 201);
    }, 20_000);
    await eventually(async () => assert.equal((await inProgress()).remaining, 5));
  });

  it('let no more pass in any second while NATS goes away and comes back, and requests go on', async () => {
    const partner = await partnerOfFive();
    await cluster.database.write(
      statement('UPDATE partners SET requests_per_second = 20, requests_burst = 40 WHERE id = ?', partner.id),
    );
    const [, kept] = gateways as [GatewayProcess, GatewayProcess];
    const both = [kept, await cluster.startGateway()];
    const passed: { sentAt: number; answeredAt: number }[] = [];
    let isOver = false;
    const hammers = Array.from({ length: 8 }, async (_, at) => {
      while (!isOver) {
        const sentAt = performance.now();
        const answer = await both[at % 2]?.request('GET', '/v1/orders', { key: partner.key });
        assert.ok(answer?.status === 200 || answer?.status === 429, String(answer?.status));
        if (answer.status === 200) passed.push({ sentAt, answeredAt: performance.now() });
        else await delay(10);
      }
    });
    const more = async (count: number) => {
      const before = passed.length;
      await eventually(() => assert.ok(passed.length >= before + count, 'requests pass'), 20_000);
    };
    await more(60);
    await nats.kill();
    await more(40);
    await nats.restart({ empty: true });
    await more(80);
    isOver = true;
    await Promise.all(hammers);
    for (const { sentAt } of passed) {
      const within = passed.filter((each) => each.sentAt >= sentAt && each.answeredAt <= sentAt + 1_000).length;
      assert.ok(within <= 60, `${within} passed in a second`);
    }
  });

  it('limits of requests in progress go on without NATS, each replica with its share', async () => {
    const partner = await partnerOfFive();
    const [, kept] = gateways as [GatewayProcess, GatewayProcess];
    await nats.kill();
    const placed = await kept.place(partner, { symbol: 'SIM-REST', quantity: 1 });
    assert.equal(placed.status, 201, JSON.stringify(placed.body));
    const { status, body } = await kept.request('GET', '/v1/limits', { key: partner.key });
    assert.equal(status, 200);
    assert.equal(body.requests_under_way.used, 0);
  });
});
