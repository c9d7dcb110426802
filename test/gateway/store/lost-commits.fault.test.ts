import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { statement } from '../../../src/gateway/store/statement.ts';
import { Cluster, callTimeout, type GatewayProcess, type Partner } from '../../support/cluster.ts';
import { dump, restore } from '../../support/dump.ts';
import { eventually } from '../../support/eventually.ts';
import { FaultProxy } from '../../support/fault-proxy.ts';

describe('a database that loses the last seconds of commits in a failover, while a gateway runs', () => {
  let cluster: Cluster;
  let proxy: FaultProxy;
  let gateway: GatewayProcess;
  let partner: Partner;
  before(async () => {
    cluster = await Cluster.start();
    proxy = await FaultProxy.start(cluster.databaseUrl);
    const url = proxy.through(cluster.gatewayVariables.MARINA_DATABASE_URL ?? '');
    gateway = await cluster.startGateway({ MARINA_DATABASE_URL: url });
    partner = await cluster.newPartner();
  });
  after(async () => {
    await cluster.stop();
    await proxy.close();
  });

  const read = async (id: string) => (await gateway.request('GET', `/v1/orders/${id}`, { key: partner.key })).body;
  const position = async () => {
    const rows = await cluster.database.read(statement("SELECT position FROM positions WHERE name = 'order-reports'"));
    return Number(rows[0]?.position ?? 0);
  };

  it('has the fills of an order applied again, also when it trades on before anybody notices', async () => {
    const placed = await gateway.place(partner, { symbol: 'SIM-REST', quantity: 100 });
    assert.equal(placed.status, 201);
    const { id } = placed.body;
    await eventually(async () => assert.ok((await position()) > 0));
    const standby = join(cluster.folder, 'standby.sql');
    await dump(cluster.databaseUrl, standby);
    const before = await position();

    await cluster.controls.fillOrder({ clientOrderId: id, quantity: 60n, priceKobo: 1_000n }, callTimeout);
    await eventually(async () => assert.equal((await read(id)).filled_quantity, 60));
    await eventually(async () => {
      // Other reports, because a position is stored at most every 250 ms.
      await gateway.place(partner, { symbol: 'SIM-FILL' });
      assert.ok((await position()) > before, 'the position is stored');
    });

    // The standby takes over without the last commits. The gateway's lease is there too, and may not have run out.
    await proxy.refuse();
    proxy.reset();
    await restore(standby, cluster.databaseUrl);
    assert.equal(await position(), before);
    await cluster.controls.fillOrder({ clientOrderId: id, quantity: 15n, priceKobo: 1_000n }, callTimeout);
    await proxy.accept();

    await eventually(async () => assert.equal((await read(id))?.filled_quantity, 75), 30_000);
    await eventually(async () => assert.ok((await position()) > before + 1));
    const metrics = await (await fetch(`http://127.0.0.1:${gateway.opsPort}/metrics`)).text();
    assert.match(metrics, /marina_database_went_back_total\{kind="order"\} [1-9]/);
  });
});
