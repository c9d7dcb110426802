import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { type App, startApp } from '../../../src/gateway/app/app.ts';
import { readConfig } from '../../../src/gateway/app/config.ts';
import { statement } from '../../../src/gateway/store/statement.ts';
import { eventually } from '../../support/eventually.ts';
import { startGateway, type TestGateway } from '../../support/gateway.ts';

describe('a gateway in parts', () => {
  let api: TestGateway;
  let worker: App | undefined;
  before(async () => {
    api = await startGateway({ MARINA_ROLES: 'api' });
  });
  after(async () => {
    await worker?.stop();
    await api.stop();
  });

  it('one process serves partners, another works: an order is taken by the one and told of by the other', async () => {
    const partner = await api.newPartner();
    const { status, body } = await api.place(partner, { symbol: 'SIM-FILL' });
    assert.equal(status, 201);
    const feed = async () => (await api.rest('GET', '/v1/events', { key: partner.key })).body.data;
    const types = async () => (await feed()).map(({ type }: { type: string }) => type);
    assert.deepEqual(await types(), ['order.pending'], 'nobody works yet: the fill is not known');
    const leases = await api.database.read(statement('SELECT name FROM leases'));
    assert.deepEqual(leases, [], 'who serves partners holds no lease');

    worker = await startApp(readConfig({ ...api.variables, MARINA_ROLES: 'worker,webhooks' }));
    assert.deepEqual([worker.restPort, worker.grpcPort], [0, 0], 'who works serves no partners');
    await eventually(async () => {
      assert.deepEqual(await types(), ['order.pending', 'order.filled']);
    });
    const filled = await api.rest('GET', `/v1/orders/${body.id}`, { key: partner.key });
    assert.equal(filled.body.state, 'filled');
    const ready = await fetch(`http://127.0.0.1:${worker.opsPort}/readyz`);
    assert.equal(ready.status, 200);
  });
});
