import assert from 'node:assert/strict';
import { after, afterEach, before, describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { Cluster, type GatewayProcess } from '../../../support/cluster.ts';
import { eventually } from '../../../support/eventually.ts';
import { FaultProxy } from '../../../support/fault-proxy.ts';
import { scrape } from '../../../support/metrics.ts';

/** The promised bound of an answer, and how long it is tried. */
const promisedMs = 1_000;
const hangsForMs = 4_000;

describe('the operations port', () => {
  let cluster: Cluster;
  let gateway: GatewayProcess;
  const proxies: Record<string, FaultProxy> = {};
  before(async () => {
    cluster = await Cluster.start();
    const { gatewayVariables: variables } = cluster;
    const through = async (name: string) => {
      const proxy = await FaultProxy.start(variables[name] ?? '');
      proxies[name] = proxy;
      return name.endsWith('URL') ? proxy.through(variables[name] ?? '') : proxy.address;
    };
    gateway = await cluster.startGateway({
      MARINA_DATABASE_URL: await through('MARINA_DATABASE_URL'),
      MARINA_NATS_URL: await through('MARINA_NATS_URL'),
      MARINA_BROKER_ADDRESS: await through('MARINA_BROKER_ADDRESS'),
    });
  });
  afterEach(() => {
    for (const proxy of Object.values(proxies)) proxy.heal();
  });
  after(async () => {
    await cluster.stop();
    for (const proxy of Object.values(proxies)) await proxy.close();
  });

  async function timed(path: string): Promise<{ status: number; tookMs: number }> {
    const startedAt = performance.now();
    const response = await fetch(`http://127.0.0.1:${gateway.opsPort}${path}`);
    await response.arrayBuffer();
    return { status: response.status, tookMs: performance.now() - startedAt };
  }

  for (const [name, parts] of [
    ['MARINA_DATABASE_URL', ['database']],
    ['MARINA_NATS_URL', ['limits']],
    // A broker that is silent is noticed half a minute later.
    ['MARINA_BROKER_ADDRESS', []],
  ] as const) {
    it(`answers within a second while ${name} hangs, and the metrics go on`, async () => {
      proxies[name]?.set('both', { hold: true });
      const end = performance.now() + hangsForMs;
      while (performance.now() < end) {
        for (const path of ['/livez', '/metrics', '/readyz']) {
          const { status, tookMs } = await timed(path);
          if (path !== '/readyz') assert.equal(status, 200, path);
          assert.ok(tookMs < promisedMs, `${path} took ${Math.round(tookMs)} ms`);
        }
        await delay(100);
      }
      await eventually(async () => {
        const { value, has } = await scrape(gateway.opsPort);
        for (const part of parts) assert.ok(value('marina_part_trouble_seconds', { part }) > 0, part);
        assert.ok(has('nodejs_eventloop_lag_p99_seconds'), 'what needs nobody is there');
      });
      const { status } = await timed('/readyz');
      assert.equal(status, name === 'MARINA_DATABASE_URL' ? 503 : 200);
      proxies[name]?.heal();
      await eventually(async () => {
        assert.deepEqual(await (await fetch(`http://127.0.0.1:${gateway.opsPort}/readyz`)).json(), {
          status: 'ready',
          reasons: [],
          degraded: [],
        });
      }, 45_000);
    });
  }
});
