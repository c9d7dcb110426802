import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { type App, startApp } from '../../src/app.ts';
import { makeKey } from '../../src/auth/keys.ts';
import { readConfig } from '../../src/config.ts';
import { Call, WireFault } from '../../src/gen/marina/simulator/v1/controls_pb.ts';
import { IdMaker } from '../../src/lib/ids.ts';
import { createLogger } from '../../src/lib/log.ts';
import { eventually } from '../support/eventually.ts';
import { callTimeout, startGateway, type TestGateway, type TestPartner } from '../support/gateway.ts';

const silent = createLogger({ name: 'test', level: 'silent' });

describe('three replicas', () => {
  let gateway: TestGateway;
  let others: App[] = [];
  before(async () => {
    gateway = await startGateway({ MARINA_SUBMIT_TIMEOUT_MS: '6000' });
    others = await Promise.all([1, 2].map(() => startApp(readConfig({ ...gateway.variables }), silent)));
  });
  after(async () => {
    await Promise.all(others.map((app) => app.stop()));
    await gateway.stop();
  });

  const request = async (at: number, method: string, path: string, partner: TestPartner, body?: object) => {
    const port = [gateway.app, ...others][at % 3]?.restPort;
    const response = await fetch(`http://127.0.0.1:${port}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${partner.key}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json', 'idempotency-key': crypto.randomUUID() }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    // biome-ignore lint/suspicious/noExplicitAny: a test looks into answers freely.
    return { status: response.status, body: (await response.json()) as any };
  };

  it('let five orders be in progress together and no sixth, and each tells how many are', async () => {
    const partner = await gateway.newPartner({ limits: { requestsUnderWay: undefined } });
    const { account } = partner;
    const fault = { call: Call.SUBMIT_ORDER, account, times: 5, fault: WireFault.HANG };
    await gateway.controls.injectFault(fault, callTimeout);
    const order = { account, symbol: 'SIM-REST', side: 'buy', type: 'limit', price_kobo: 1_000 };
    const answers = Array.from({ length: 30 }, (_, at) =>
      request(at, 'POST', '/v1/orders', partner, { ...order, quantity: at + 1 }),
    );
    const refused = (async () => {
      const done = await Promise.all(answers);
      return done.filter(({ status }) => status === 429);
    })();
    await eventually(async () => {
      for (const at of [0, 1, 2]) {
        const { body } = await request(at, 'GET', '/v1/limits', partner);
        assert.deepEqual(body.requests_under_way, { limit: 5, used: 5, remaining: 0, resets_at: null });
      }
    }, 4_000);
    for (const at of [0, 1, 2]) {
      const sixth = await request(at, 'POST', '/v1/orders', partner, { ...order, quantity: 100 + at });
      assert.deepEqual([sixth.status, sixth.body.error.code], [429, 'rate_limited']);
      assert.match(sixth.body.error.message, /limit of 5 requests in progress is used up: 5 are in progress, 0 remain/);
    }
    assert.equal((await refused).length, 25);
    await eventually(async () => {
      for (const at of [0, 1, 2]) {
        const { body } = await request(at, 'GET', '/v1/limits', partner);
        assert.equal(body.requests_under_way.used, 0);
      }
    });
    const next = await request(1, 'POST', '/v1/orders', partner, { ...order, quantity: 200 });
    assert.equal(next.status, 201, JSON.stringify(next.body));
  });

  it('look up few of the keys that are nobody’s and come from one address, and serve others from there', async () => {
    const partner = await gateway.newPartner();
    assert.equal((await request(0, 'GET', '/v1/orders', partner)).status, 200);
    const ids = new IdMaker(Date.now);
    const startedMs = performance.now();
    const answers = await Promise.all(
      Array.from({ length: 300 }, () =>
        gateway.rest('GET', '/v1/orders', { key: makeKey('sandbox', ids.object('key')).key }),
      ),
    );
    const lookedUp = answers.filter(({ status }) => status === 401).length;
    const refilled = Math.ceil((performance.now() - startedMs) / 100);
    assert.ok(lookedUp <= 100 + refilled, `${lookedUp} were looked up`);
    const throttled = answers.filter(({ status }) => status === 429);
    assert.equal(throttled.length, 300 - lookedUp);
    for (const { headers, body } of throttled) {
      assert.equal(headers.get('retry-after'), '1');
      assert.equal(body.error.code, 'rate_limited');
    }
    assert.equal((await request(0, 'GET', '/v1/orders', partner)).status, 200, 'a key that is known');
  });
});
