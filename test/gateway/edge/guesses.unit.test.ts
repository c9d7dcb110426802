import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { create } from '@bufbuild/protobuf';
import { status } from '@grpc/grpc-js';
import { ConnectionLimits } from '../../../src/gateway/edge/bounds.ts';
import { GetOrderRequestSchema, Orders } from '../../../src/gen/marina/gateway/v1/orders_pb.ts';
import { eventually } from '../../support/eventually.ts';
import { callGrpc, orderId, type Servers, send, withServers } from './fixture.ts';

/** Nothing is filled up while a test runs. */
const bounds = { guesses: 20, guessesPerSecond: 0.001, allGuesses: 50, allGuessesPerSecond: 0.001 };
const proxied = (run: (servers: Servers) => Promise<void>, proxies = ['127.0.0.1']) =>
  withServers({ pipeline: { connectionLimits: new ConnectionLimits(bounds, proxies) } }, run);

interface Asked {
  readonly client: string;
  readonly key?: string;
}

/** How often a protocol answered what, over as many requests of a client. */
async function answers(ask: (asked: Asked) => Promise<string>, count: number, asked: Asked) {
  const counts: Record<string, number> = {};
  for (let sent = 0; sent < count; sent += 1) {
    const answer = await ask(asked);
    counts[answer] = (counts[answer] ?? 0) + 1;
  }
  return counts;
}

const over: Record<string, { cost: number; ask: (servers: Servers) => (asked: Asked) => Promise<string> }> = {
  REST: {
    cost: 1,
    ask:
      ({ restPort }) =>
      async ({ client, key = 'guess' }) => {
        const headers = { Authorization: `Bearer ${key}`, 'X-Forwarded-For': client };
        const answer = await send(restPort, { method: 'GET', target: `/v1/orders/${orderId}`, headers });
        assert.equal(answer.headers.get('retry-after'), answer.status === 503 ? '5' : undefined);
        return answer.status === 200 ? 'ok' : answer.json.error.code;
      },
  },
  Connect: {
    cost: 1,
    ask:
      ({ restPort }) =>
      async ({ client, key = 'guess' }) => {
        const answer = await send(restPort, {
          target: '/marina.gateway.v1.Orders/GetOrder',
          headers: { Authorization: `Bearer ${key}`, 'X-Forwarded-For': client },
          body: JSON.stringify({ id: orderId }),
        });
        const [code] = /unauthorized|service_unavailable/.exec(answer.body) ?? ['ok'];
        return code;
      },
  },
  gRPC: {
    cost: 10,
    ask:
      ({ grpcPort }) =>
      async ({ client, key = 'guess' }) => {
        const metadata = { authorization: `Bearer ${key}`, 'x-forwarded-for': client };
        const message = create(GetOrderRequestSchema, { id: orderId });
        const { code, error } = await callGrpc(grpcPort, Orders.method.getOrder, message, metadata);
        if (code === status.UNAVAILABLE) assert.equal(error?.code, 'service_unavailable');
        return code === status.OK ? 'ok' : (error?.code ?? status[code] ?? '');
      },
  },
};

for (const [protocol, { ask, cost }] of Object.entries(over)) {
  describe(`guessed keys over ${protocol} through a trusted proxy`, () => {
    test('are looked at as often as the bound of their client allows, and those of others too', () =>
      proxied(async (servers) => {
        const asking = ask(servers);
        const guesses = await answers(asking, 25, { client: '203.0.113.1' });
        assert.deepEqual(guesses, { unauthorized: 20 / cost, service_unavailable: 25 - 20 / cost });
        assert.equal(await asking({ client: '203.0.113.2' }), 'unauthorized');
        assert.equal(await asking({ client: '203.0.113.2', key: 'full' }), 'ok');
        assert.equal(await asking({ client: '203.0.113.1', key: 'full' }), 'service_unavailable');
      }));

    test('of an address with a recent valid key are bounded by four times as many', () =>
      proxied(async (servers) => {
        const asking = ask(servers);
        const client = '203.0.113.1';
        assert.equal(await asking({ client, key: 'full' }), 'ok');
        const guesses = await answers(asking, 90, { client });
        assert.deepEqual(guesses, { unauthorized: 80 / cost, service_unavailable: 90 - 80 / cost });
      }));

    test('of many addresses are bounded in all, and keep nobody out whose key was valid lately', () =>
      proxied(async (servers) => {
        const asking = ask(servers);
        assert.equal(await asking({ client: '198.51.100.7', key: 'full' }), 'ok');
        let looked = 0;
        for (let last = 1; last <= 60; last += 1) {
          if ((await asking({ client: `203.0.113.${last}` })) === 'unauthorized') looked += 1;
        }
        assert.equal(looked, 50 / cost);
        assert.equal(await asking({ client: '198.51.100.7', key: 'full' }), 'ok');
      }));

    test('are each answered unauthorized if they come directly, where the connection ends instead', () =>
      proxied(async (servers) => {
        const guesses = await answers(ask(servers), 25, { client: '203.0.113.1' });
        assert.deepEqual(guesses, { unauthorized: 25 });
      }, []));
  });
}

test('a revoked key that is used through a trusted proxy counts as a guess, and a valid one does not', () =>
  proxied(async (servers) => {
    const asking = over.REST?.ask(servers);
    assert.ok(asking);
    const client = '203.0.113.1';
    assert.deepEqual(await answers(asking, 30, { client, key: 'revoked' }), {
      unauthorized: 20,
      service_unavailable: 10,
    });
    assert.deepEqual(await answers(asking, 100, { client: '203.0.113.2', key: 'full' }), { ok: 100 });
  }));

describe('the allowance for guesses', () => {
  test('is that of a /64 of IPv6, and comes back with time', async () => {
    const limits = new ConnectionLimits({ guesses: 2, guessesPerSecond: 1_000_000, allGuesses: 1_000 }, ['10.0.0.1']);
    const strict = new ConnectionLimits({ ...bounds, guesses: 2 }, ['10.0.0.1']);
    for (const each of [limits, strict]) for (let sent = 0; sent < 2; sent += 1) each.guessed('2001:db8::1');
    assert.equal(strict.mayGuess('2001:db8::2'), false);
    assert.equal(strict.mayGuess('2001:db8:0:1::1'), true);
    await eventually(() => assert.equal(limits.mayGuess('2001:db8::1'), true));
  });
});
