import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import { create } from '@bufbuild/protobuf';
import { status } from '@grpc/grpc-js';
import {
  MoveEndpointResponseSchema,
  RegisterEndpointResponseSchema,
  RotateSecretResponseSchema,
  Webhooks,
} from '../../src/gen/marina/admin/v1/webhooks_pb.ts';
import { serviceDefinition } from '../../src/kit/grpc-service.ts';
import { earlierPort, type ReceiverPartner, registerReceiver } from '../../src/sandbox/receiver.ts';
import type { SandboxPartner } from '../../src/sandbox/sandbox-file.ts';
import { answering, type StandInCall, startStandIn } from '../support/grpc-stand-in.ts';

interface Asked {
  readonly partnerId: string;
  readonly url: string;
}
const seeded = (id: string) => ({ id, name: `Name of ${id}`, key: `key of ${id}`, accounts: ['C1'], account: 'C1' });
const kept = (id: string, secret?: string) =>
  ({ ...seeded(id), webhook_secret: secret, receiver_url: `https://127.0.0.1:4000/${id}` }) as SandboxPartner;

describe('the receiver of webhooks at a start of a sandbox', () => {
  const calls: StandInCall[] = [];
  /** The partners that have an endpoint, and what becomes of calls about each. */
  let endpoints = new Set<string>();
  let refused: Partial<Record<'move' | 'rotate', number>> = {};
  let server: Awaited<ReturnType<typeof startStandIn>>;
  const refuse = (code: number | undefined) => {
    if (code !== undefined) throw Object.assign(new Error('refused'), { code, details: 'refused' });
  };
  before(async () => {
    server = await startStandIn([
      [
        serviceDefinition(Webhooks),
        {
          moveEndpoint: answering('move', calls, ({ partnerId }: Asked) => {
            refuse(refused.move);
            if (!endpoints.has(partnerId)) refuse(status.NOT_FOUND);
            return create(MoveEndpointResponseSchema, {});
          }),
          registerEndpoint: answering('register', calls, ({ partnerId }: Asked) => {
            endpoints.add(partnerId);
            return create(RegisterEndpointResponseSchema, { secret: `registered ${partnerId}` });
          }),
          rotateSecret: answering('rotate', calls, ({ partnerId }: Asked) => {
            refuse(refused.rotate);
            return create(RotateSecretResponseSchema, { secret: `rotated ${partnerId}` });
          }),
        },
      ],
    ]);
  });
  after(() => server.stop());
  beforeEach(() => {
    calls.length = 0;
    endpoints = new Set();
    refused = {};
  });

  async function register(keptPartners: readonly SandboxPartner[], ...ids: string[]) {
    const introduced: ReceiverPartner[] = [];
    const partners = await registerReceiver({
      adminAddress: server.address,
      operatorToken: 'the token',
      receiverPort: 4_001,
      partners: ids.map(seeded),
      kept: keptPartners,
      introduce: (partner) => introduced.push(partner),
    });
    return { partners, introduced, names: calls.map(({ name }) => name) };
  }

  it('the first start registers each partner’s endpoint, and tells the receiver its secret', async () => {
    const { partners, introduced } = await register([], 'par_a', 'par_b');
    const urls = ['https://127.0.0.1:4001/par_a', 'https://127.0.0.1:4001/par_b'];
    assert.deepEqual(partners, [
      { ...seeded('par_a'), webhook_secret: 'registered par_a', receiver_url: urls[0] },
      { ...seeded('par_b'), webhook_secret: 'registered par_b', receiver_url: urls[1] },
    ]);
    assert.deepEqual(introduced, [
      { id: 'par_a', name: 'Name of par_a', secret: 'registered par_a' },
      { id: 'par_b', name: 'Name of par_b', secret: 'registered par_b' },
    ]);
    const registered = calls.filter(({ name }) => name === 'register');
    assert.deepEqual(
      registered.map(({ request }) => request.url),
      urls,
    );
    assert.ok(calls.every(({ token }) => token === 'Bearer the token'));
  });

  it('a further start moves the endpoints to the receiver’s port, and they keep the secret of their own partner', async () => {
    endpoints = new Set(['par_a', 'par_b']);
    const { partners, introduced, names } = await register(
      [kept('par_b', 'of b'), kept('par_a', 'of a')],
      'par_a',
      'par_b',
    );
    assert.deepEqual(names, ['move', 'move']);
    assert.deepEqual(
      partners.map(({ webhook_secret: secret, receiver_url: url }) => [secret, url]),
      [
        ['of a', 'https://127.0.0.1:4001/par_a'],
        ['of b', 'https://127.0.0.1:4001/par_b'],
      ],
    );
    assert.deepEqual(
      introduced.map(({ id, secret }) => [id, secret]),
      [
        ['par_a', 'of a'],
        ['par_b', 'of b'],
      ],
    );
  });

  it('a partner whose endpoint is gone gets a new one with a new secret, whatever was known', async () => {
    endpoints = new Set(['par_b']);
    const { partners } = await register([kept('par_a', 'of a'), kept('par_b', 'of b')], 'par_a', 'par_b');
    assert.deepEqual(
      partners.map(({ webhook_secret: secret }) => secret),
      ['registered par_a', 'of b'],
    );
  });

  it('a secret that was lost is rotated', async () => {
    endpoints = new Set(['par_a', 'par_b']);
    const { partners, introduced } = await register([kept('par_a')], 'par_a', 'par_b');
    for (const list of [partners.map(({ webhook_secret: secret }) => secret), introduced.map(({ secret }) => secret)])
      assert.deepEqual(list, ['rotated par_a', 'rotated par_b']);
  });

  it('a secret that was lost, and rotated a day ago, needs a new sandbox', async () => {
    endpoints = new Set(['par_a']);
    refused = { rotate: status.FAILED_PRECONDITION };
    await assert.rejects(register([], 'par_a'), /^Advice: The webhook secret of par_a was lost/);
  });

  it('any other error of a call ends the start', async () => {
    endpoints = new Set(['par_a']);
    refused = { rotate: status.UNAVAILABLE };
    await assert.rejects(register([], 'par_a'), { code: status.UNAVAILABLE });
    refused = { move: status.PERMISSION_DENIED };
    await assert.rejects(register([kept('par_a', 'of a')], 'par_a'), { code: status.PERMISSION_DENIED });
    assert.ok(!calls.some(({ name }) => name === 'register'));
  });

  it('the receiver gets the port that it had at the start before', () => {
    assert.equal(earlierPort([]), 0);
    assert.equal(earlierPort([kept('par_a'), { ...kept('par_b'), receiver_url: 'https://127.0.0.1:5/par_b' }]), 4_000);
    for (const url of [undefined, 'no URL'])
      assert.equal(earlierPort([{ ...kept('par_a'), receiver_url: url } as SandboxPartner]), 0);
  });
});
