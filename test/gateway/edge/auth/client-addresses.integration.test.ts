import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { Metadata } from '@grpc/grpc-js';
import { Limits } from '../../../../src/gen/marina/gateway/v1/limits_pb.ts';
import { createGrpcClient } from '../../../../src/kit/grpc-client.ts';
import { adminClient } from '../../../support/admin.ts';
import { startGateway, type TestGateway, type TestPartner } from '../../../support/gateway.ts';
import { scrape } from '../../../support/metrics.ts';

interface Line {
  readonly msg: string;
  readonly requestId?: string;
  readonly clientAddress?: string;
  readonly code?: string;
  readonly partnerId?: string;
}

/** How many lines of one address without a key are written in a minute. */
const sampled = 20;
const many = 60;

describe('the log of a gateway behind a trusted proxy', { concurrency: true }, () => {
  let gateway: TestGateway;
  let partner: TestPartner;
  before(async () => {
    gateway = await startGateway({ MARINA_TRUSTED_PROXIES: '127.0.0.1' });
    partner = await gateway.newPartner();
  });
  after(() => gateway.stop());

  function linesOf(address: string): Line[] {
    return parsed(gateway).filter(({ clientAddress }) => clientAddress === address);
  }

  it('names the client of each request, over every protocol', async () => {
    const proxied = { 'x-forwarded-for': '198.51.100.9, 203.0.113.1' };
    await gateway.rest('GET', '/v1/limits', { key: partner.key, headers: proxied });
    await fetch(`http://127.0.0.1:${gateway.app.restPort}/marina.gateway.v1.Limits/GetLimits`, {
      method: 'POST',
      headers: { ...proxied, authorization: `Bearer ${partner.key}`, 'content-type': 'application/json' },
      body: '{}',
    });
    const metadata = new Metadata();
    metadata.set('authorization', `Bearer ${partner.key}`);
    metadata.set('x-forwarded-for', '203.0.113.1');
    const client = createGrpcClient(Limits, `127.0.0.1:${gateway.app.grpcPort}`);
    await client.getLimits({}, { timeoutMs: 10_000, metadata });
    client.close();
    await gateway.rest('GET', '/docs/none', { headers: { 'x-forwarded-for': '203.0.113.1' } });
    const lines = linesOf('203.0.113.1');
    assert.equal(
      lines.filter(({ partnerId }) => partnerId === partner.id).length,
      3,
      'what the client wrote is not believed',
    );
    assert.equal(lines.length, 4);
    assert.ok(lines.every(({ msg }) => msg === 'request'));
  });

  it('has each request of a good key, a bounded number of others, and the metrics have all', async () => {
    const before = await scrape(gateway.app.opsPort);
    const ask = (key: string | undefined, address: string) =>
      gateway.rest('GET', '/v1/limits', { ...(key && { key }), headers: { 'x-forwarded-for': address } });
    for (let at = 0; at < many; at += 1) {
      assert.equal((await ask(undefined, '203.0.113.2')).status, 401);
      assert.equal((await ask(`${partner.key.slice(0, -4)}AAAA`, '203.0.113.3')).status, 401);
      assert.equal((await ask(partner.key, '203.0.113.4')).status, 200);
    }
    assert.equal(linesOf('203.0.113.2').length, sampled);
    assert.equal(linesOf('203.0.113.3').length, sampled);
    assert.equal(linesOf('203.0.113.4').length, many, 'each request of a good key has its line');
    const refused = (await scrape(gateway.app.opsPort)).value('marina_request_refusals_total', {
      code: 'unauthorized',
    });
    assert.ok(refused - before.value('marina_request_refusals_total', { code: 'unauthorized' }) >= 2 * many);
  });

  it('has a bounded number of requests that are no HTTP', async () => {
    for (let at = 0; at < many; at += 1) {
      await new Promise<void>((resolve) => {
        const socket = connect({ port: gateway.app.restPort, host: '127.0.0.1' }, () =>
          socket.write('nonsense\r\n\r\n'),
        );
        socket
          .on('error', () => {})
          .on('close', () => resolve())
          .resume();
      });
    }
    assert.equal(linesOf('127.0.0.1').filter(({ code }) => code === 'invalid_request').length, sampled);
  });

  it("names an operator's client, and a bounded number of calls without a token", async () => {
    const operator = adminClient(gateway.app.adminPort);
    const stranger = adminClient(gateway.app.adminPort, 'not-a-token-of-anybody-here');
    await operator.diagnostics.getStatus({}, operator.options);
    for (let at = 0; at < many; at += 1) {
      await assert.rejects(stranger.diagnostics.getStatus({}, stranger.options));
    }
    operator.close();
    stranger.close();
    const lines = linesOf('127.0.0.1');
    assert.ok(lines.some(({ msg }) => msg === 'an operator called'));
    assert.equal(lines.filter(({ msg }) => msg === 'an operator call failed').length, sampled);
    const { value } = await scrape(gateway.app.opsPort);
    assert.ok(value('marina_operator_calls_total', { code: 'UNAUTHENTICATED' }) >= many);
  });
});

describe('the log of a gateway that is to write less of addresses', () => {
  for (const [detail, shown] of [
    ['network', '127.0.0.0/24'],
    ['none', undefined],
  ] as const) {
    it(`shows ${shown ?? 'nothing'} with MARINA_LOG_CLIENT_ADDRESS=${detail}`, async () => {
      const gateway = await startGateway({ MARINA_LOG_CLIENT_ADDRESS: detail });
      try {
        const { key } = await gateway.newPartner();
        await gateway.rest('GET', '/v1/limits', { key });
        await gateway.rest('GET', '/v1/limits');
        const operator = adminClient(gateway.app.adminPort);
        await operator.diagnostics.getStatus({}, operator.options);
        operator.close();
        const lines = parsed(gateway).filter(({ msg }) => msg === 'request' || msg === 'an operator called');
        assert.deepEqual(
          lines.map(({ clientAddress }) => clientAddress),
          [shown, shown, shown],
        );
      } finally {
        await gateway.stop();
      }
    });
  }
});

function parsed(gateway: TestGateway): Line[] {
  return gateway.logged.map((line) => JSON.parse(line) as Line);
}
