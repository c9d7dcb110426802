import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { type App, startApp } from '../../../src/gateway/app/app.ts';
import { readConfig } from '../../../src/gateway/app/config.ts';
import { createLogger } from '../../../src/kit/log.ts';
import { restCaller, startGateway, type TestGateway } from '../../support/gateway.ts';

describe('a gateway that stops', () => {
  let gateway: TestGateway;
  let app: App;
  before(async () => {
    gateway = await startGateway();
    const variables = { ...gateway.variables, MARINA_DRAIN_MS: '3000' };
    app = await startApp(readConfig(variables), createLogger({ name: 'test', level: 'silent' }));
  });
  after(() => gateway.stop());

  it('a gateway that stops says at once that it is not ready, and still serves until load balancers have noticed', async () => {
    const { key } = await gateway.newPartner();
    const ready = async () => (await fetch(`http://127.0.0.1:${app.opsPort}/readyz`)).status;
    const listed = () => restCaller(app)('GET', '/v1/orders', { key });
    assert.deepEqual([await ready(), (await listed()).headers.get('connection')], [200, 'keep-alive']);
    const stopping = app.stop();
    assert.equal(await ready(), 503);
    const answer = await listed();
    assert.deepEqual([answer.status, answer.headers.get('connection')], [200, 'close']);
    await stopping;
    await assert.rejects(listed(), /fetch failed/);
    await assert.rejects(ready(), /fetch failed/);
  });
});
