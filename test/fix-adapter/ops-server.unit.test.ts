import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { describe, it } from 'node:test';
import { createOpsServer, type OpsView } from '../../src/fix-adapter/ops-server.ts';

/** Serves a view, and tells its answers by path. */
async function serve(
  changes: Partial<Record<keyof OpsView, unknown>>,
  work: (ask: (path: string, method?: string) => Promise<[number, string, Headers]>) => Promise<void>,
) {
  const view = {
    reasons: () => [],
    refresh: async () => {},
    metrics: { registry: { metrics: async () => 'figures', contentType: 'text/plain; version=1' } },
    ...changes,
  };
  const server = createOpsServer(view as unknown as OpsView).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  try {
    await work(async (path, method = 'GET') => {
      const answer = await fetch(`http://127.0.0.1:${port}${path}`, { method, headers: { connection: 'close' } });
      return [answer.status, await answer.text(), answer.headers];
    });
  } finally {
    server.close();
    await once(server, 'close');
  }
}

describe('the operations port of the FIX adapter', () => {
  it('an adapter lives, and is ready without a reason against it', () =>
    serve({}, async (ask) => {
      assert.deepEqual((await ask('/livez')).slice(0, 2), [200, '{"status":"live"}']);
      const [code, text, headers] = await ask('/readyz');
      assert.deepEqual([code, JSON.parse(text)], [200, { status: 'ready', reasons: [] }]);
      assert.deepEqual([headers.get('cache-control'), headers.get('content-type')], ['no-store', 'application/json']);
      assert.equal(headers.get('x-content-type-options'), 'nosniff');
    }));

  it('an adapter with reasons against it is not ready, says them, and lives', () =>
    serve({ reasons: () => ['the Logon is not answered'] }, async (ask) => {
      const [code, text] = await ask('/readyz');
      assert.deepEqual(
        [code, JSON.parse(text)],
        [503, { status: 'not ready', reasons: ['the Logon is not answered'] }],
      );
      assert.equal((await ask('/livez'))[0], 200);
    }));

  it('metrics are set anew for each scrape, before they are read', async () => {
    let count = 0;
    const counted = async () => {
      await new Promise(setImmediate);
      count += 1;
    };
    const metrics = { registry: { metrics: async () => `figures ${count}`, contentType: 'text/plain; version=1' } };
    await serve({ metrics, refresh: counted }, async (ask) => {
      for (const expected of [1, 2]) {
        const [code, text, headers] = await ask('/metrics');
        assert.deepEqual(
          [code, text, headers.get('content-type')],
          [200, `figures ${expected}`, 'text/plain; version=1'],
        );
      }
      await ask('/livez');
      assert.equal(count, 2);
    });
  });

  it('a scrape that fails is an error, and so are reasons that cannot be told', async () => {
    const fail = () => {
      throw new Error('away');
    };
    await serve({ refresh: async () => fail(), reasons: fail }, async (ask) => {
      for (const path of ['/metrics', '/readyz'])
        assert.deepEqual((await ask(path)).slice(0, 2), [500, '{"status":"error"}']);
      assert.equal((await ask('/livez'))[0], 200);
    });
  });

  it('other paths and methods are refused', () =>
    serve({}, async (ask) => {
      assert.equal((await ask('/'))[0], 404);
      assert.equal((await ask('/livez/x'))[0], 404);
      for (const method of ['POST', 'PUT', 'DELETE']) assert.equal((await ask('/livez', method))[0], 405);
    }));
});
