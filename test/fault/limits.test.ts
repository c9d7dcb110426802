import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { statement } from '../../src/db/statement.ts';
import { Call, WireFault } from '../../src/gen/marina/simulator/v1/controls_pb.ts';
import { Cluster, callTimeout, type GatewayProcess, type Partner } from '../support/cluster.ts';
import { eventually } from '../support/eventually.ts';
import { FaultProxy } from '../support/fault-proxy.ts';
import { type RestartableServer, startTestNats } from '../support/servers.ts';

describe('the limit of requests in progress', () => {
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

  it('has the places of a replica that was killed again, once it has not been heard of for a while', async () => {
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

  it('goes on without NATS, each replica with its share', async () => {
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
