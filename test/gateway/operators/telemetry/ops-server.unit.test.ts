import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { Trouble } from '../../../../src/gateway/operators/telemetry/health.ts';
import { createOpsServer } from '../../../../src/gateway/operators/telemetry/ops-server.ts';

/** Serves operations, and answers what the paths show: with the right token, with others, and without one. */
async function serve(troubles: readonly Partial<Trouble>[] | Error, token: string | undefined) {
  const server = createOpsServer({
    health: {
      troubles: async () => {
        if (troubles instanceof Error) throw troubles;
        return troubles.map((trouble) => ({ part: 'database', reason: 'away', sinceMs: 0, stops: true, ...trouble }));
      },
    },
    metrics: { registry: { metrics: async () => 'figures', contentType: 'text/plain' } },
    gauges: { set: async () => {} },
    identity: undefined,
    token: { current: { token } },
  } as never);
  const port = await server.listen(0, '127.0.0.1');
  const ask = async (path: string, given?: string, method = 'GET') => {
    const headers: Record<string, string> = given === undefined ? {} : { authorization: given };
    const answer = await fetch(`http://127.0.0.1:${port}${path}`, { method, headers });
    return { status: answer.status, text: await answer.text() };
  };
  return { ask, close: () => server.close() };
}

it('metrics and reasons are shown to those who have the token, and probes need none', async () => {
  const { ask, close } = await serve([{ stops: true }, { part: 'webhooks', stops: false }], 'secret');
  try {
    for (const given of [undefined, 'secret', 'Bearer secre', 'Bearer secrets', 'Bearer', 'bearer secret']) {
      assert.equal((await ask('/metrics', given)).status, 401, given);
      assert.deepEqual(await ask('/readyz', given), { status: 503, text: '{"status":"not ready"}' }, given);
      assert.equal((await ask('/livez', given)).status, 200);
    }
    assert.deepEqual(await ask('/metrics', 'Bearer secret'), { status: 200, text: 'figures' });
    const { status, text } = await ask('/readyz', 'Bearer secret');
    const { reasons, degraded } = JSON.parse(text) as Record<'reasons' | 'degraded', { part: string }[]>;
    assert.deepEqual(
      [status, reasons?.map(({ part }) => part), degraded?.map(({ part }) => part)],
      [503, ['database'], ['webhooks']],
    );
    assert.equal((await ask('/other', 'Bearer secret')).status, 404);
    for (const method of ['POST', 'PUT', 'DELETE']) assert.equal((await ask('/livez', undefined, method)).status, 405);
  } finally {
    await close();
  }
});

it('a gateway is ready while no trouble stops it, and lives also while nobody knows its troubles', async () => {
  const degraded = await serve([{ stops: false }], undefined);
  const { status, text } = await degraded.ask('/readyz');
  assert.deepEqual([status, JSON.parse(text).status, JSON.parse(text).degraded.length], [200, 'ready', 1]);
  assert.equal((await degraded.ask('/metrics')).status, 200, 'without a token none is needed');
  await degraded.close();
  const unknown = await serve(new Error('away'), undefined);
  assert.equal((await unknown.ask('/readyz')).status, 500);
  assert.equal((await unknown.ask('/livez')).status, 200);
  await unknown.close();
});
