import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Scope } from '../../../src/gen/marina/options/v1/options_pb.ts';
import { operationNames, sampleBody } from '../../support/e2e/calls.ts';
import { protocols } from '../../support/e2e/protocols.ts';
import { useGateway } from '../../support/e2e/suite.ts';
import { noTraces, tracesOf } from '../../support/e2e/traces.ts';
import { eventually } from '../../support/eventually.ts';
import type { TestPartner } from '../../support/gateway.ts';
import { createKey, forgedKey } from '../../support/keys.ts';

const limited = { code: 'rate_limited' } as const;

/** A bucket that is never refilled, so that no test depends on how fast it runs. */
const bucketOf = (requestsBurst: number) => ({ limits: { requestsBurst, requestsPerSecond: 0 } });

describe('the rate of requests', () => {
  const suite = useGateway();
  const auth = ({ key }: TestPartner) => [['Authorization', `Bearer ${key}`]] as const;
  const list = (key: string) => ({ operation: 'listOrders', key }) as const;

  for (const protocol of protocols) {
    for (const operation of operationNames) {
      it(`${protocol}: ${operation} past the rate is answered rate_limited, and nothing is done`, async () => {
        const partner = await suite.gateway.newPartner(bucketOf(0));
        const body = sampleBody(operation, partner.account);
        const call = { operation, key: partner.key, idempotencyKey: ['k'], body };
        await suite.protocols.refuses(protocol, call, limited);
        assert.deepEqual(await tracesOf(suite.gateway, partner), noTraces);
      });
    }

    it(`${protocol}: the burst is answered, and not one request more`, async () => {
      const partner = await suite.gateway.newPartner(bucketOf(3));
      for (let at = 0; at < 3; at += 1) await suite.protocols.answers(protocol, list(partner.key));
      for (const other of protocols) await suite.protocols.refuses(other, list(partner.key), limited);
    });

    it(`${protocol}: all keys of a partner share one bucket, and partners do not`, async () => {
      const partner = await suite.gateway.newPartner(bucketOf(1));
      const { key } = await createKey(suite.gateway.database, { partnerId: partner.id, scopes: [Scope.READ] });
      await suite.protocols.answers(protocol, list(partner.key));
      for (const other of protocols) await suite.protocols.refuses(other, list(key), limited);
      await suite.protocols.answers(protocol, list(suite.partner.key));
    });

    it(`${protocol}: the bucket is refilled`, async () => {
      const limits = { requestsBurst: 1, requestsPerSecond: 4 };
      const partner = await suite.gateway.newPartner({ limits });
      await suite.protocols.answers(protocol, list(partner.key));
      await eventually(() => suite.protocols.answers(protocol, list(partner.key)));
    });
  }

  it('40 requests at once are answered unless more was agreed, and 20 a second after them', async () => {
    const limits = { requestsBurst: undefined, requestsPerSecond: undefined };
    const partner = await suite.gateway.newPartner({ limits });
    const startedMs = performance.now();
    const answers = await Promise.all(Array.from({ length: 120 }, () => suite.protocols.rest(list(partner.key))));
    const refilled = Math.ceil(((performance.now() - startedMs) * 20) / 1000);
    const answered = answers.filter(({ status }) => status === 200).length;
    assert.equal(answers.filter(({ status }) => status === 429).length, 120 - answered);
    assert.ok(answered >= 40 && answered <= 40 + refilled, `${answered} were answered`);
  });

  /** Requests that count against the partner's rate, whatever becomes of them. */
  const counted: readonly (readonly [string, string, string, number])[] = [
    ['an unknown path', 'GET', '/v1/nothing', 404],
    ['a method the path does not support', 'PUT', '/v1/orders', 405],
    ['HEAD', 'HEAD', '/v1/orders', 405],
    ['a malformed id', 'GET', '/v1/orders/x', 404],
    ['a bad query', 'GET', '/v1/orders?limit=0', 400],
    ['a body of no media type', 'POST', '/v1/orders/estimate', 415],
    ['a good request', 'GET', '/v1/events', 200],
  ];
  for (const [name, method, path, status] of counted) {
    it(`${name} counts`, async () => {
      const partner = await suite.gateway.newPartner(bucketOf(1));
      const headers = auth(partner);
      assert.equal((await suite.protocols.raw({ method, path, headers })).status, status);
      await suite.protocols.refusesRaw({ method, path, headers }, limited);
      await suite.protocols.refuses('gRPC', list(partner.key), limited);
    });
  }

  it('a key without the scope counts', async () => {
    const partner = await suite.gateway.newPartner({ ...bucketOf(1), scopes: [Scope.TRADE] });
    await suite.protocols.refuses('gRPC', list(partner.key), { code: 'insufficient_scope' });
    await suite.protocols.refuses('REST', list(partner.key), limited);
  });

  it("who does not know a key's secret uses none of its partner's rate", async () => {
    const partner = await suite.gateway.newPartner(bucketOf(1));
    const guessed = forgedKey('sandbox', partner.keyId);
    for (const protocol of protocols) await suite.protocols.refuses(protocol, list(guessed), { code: 'unauthorized' });
    await suite.protocols.answers('REST', list(partner.key));
  });

  it('requests without a key have no rate to keep', async () => {
    for (let at = 0; at < 60; at += 1) {
      await suite.protocols.refusesRaw({ method: 'GET', path: '/v1/nothing' }, { code: 'not_found' });
    }
  });
});
