import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import { create } from '@bufbuild/protobuf';
import { connectivityState, Server, ServerCredentials, status, type UntypedServiceImplementation } from '@grpc/grpc-js';
import { proveAccess } from '../../src/gateway/trading/broker/grpc-connection.ts';
import { ListStatesResponseSchema, Reference } from '../../src/gen/marina/broker/v1/reference_pb.ts';
import { createGrpcClient, type GrpcClient, untilConnected } from '../../src/kit/grpc-client.ts';
import { serviceDefinition } from '../../src/kit/grpc-service.ts';
import { eventually } from '../support/eventually.ts';

describe('a gRPC client that is closed', () => {
  const server = new Server();
  let address: string;
  before(async () => {
    const answer = (_call: unknown, done: (error: null, answer: object) => void) =>
      setTimeout(done, 20, null, create(ListStatesResponseSchema));
    const handlers = {
      ...Object.fromEntries(Reference.methods.map(({ localName }) => [localName, answer])),
      listLgas: (_call: unknown, done: (error: object) => void) => done({ code: status.NOT_FOUND, details: 'none' }),
      listInstruments: () => {},
    };
    server.addService(serviceDefinition(Reference), handlers as UntypedServiceImplementation);
    const port = await promisify(server.bindAsync.bind(server))('127.0.0.1:0', ServerCredentials.createInsecure());
    address = `127.0.0.1:${port}`;
  });
  after(() => server.forceShutdown());

  it('ends the calls that were begun before, those without a connection yet included', async () => {
    const client = createGrpcClient(Reference, address);
    const early = client.listStates({}, { timeoutMs: 5_000 });
    await promisify(client.grpcClient.waitForReady.bind(client.grpcClient))(Date.now() + 5_000);
    const late = client.listStates({}, { timeoutMs: 5_000 });
    client.close();
    await Promise.all([early, late]);
    await assert.rejects(async () => client.listStates({}, { timeoutMs: 5_000 }));
  });

  type Client = GrpcClient<typeof Reference>;
  const given = { timeoutMs: 60_000 };
  const ends: readonly (readonly [how: string, call: (client: Client) => Promise<unknown>])[] = [
    ['was answered', (client) => client.listStates({}, given)],
    ['failed', (client) => assert.rejects(client.listLgas({}, given), { code: status.NOT_FOUND })],
    ['was not answered in time', (client) => assert.rejects(client.listInstruments({}, { timeoutMs: 30 }))],
    [
      'was cancelled',
      async (client) => {
        const stop = new AbortController();
        const call = client.listInstruments({}, { ...given, signal: stop.signal });
        stop.abort();
        await assert.rejects(call, { code: status.CANCELLED });
      },
    ],
    [
      'could not be made',
      (client) => assert.rejects(async () => client.listStates({}, { ...given, metadata: 'none' as never })),
    ],
    [
      'was cancelled before it began',
      (client) => assert.rejects(client.listStates({}, { ...given, signal: AbortSignal.abort() })),
    ],
  ];
  for (const [how, call] of ends) {
    for (const count of [1, 2]) {
      it(`a client has closed its connection after ${count} calls of which each ${how}`, async () => {
        const client = createGrpcClient(Reference, address);
        for (let calls = 0; calls < count; calls += 1) await call(client);
        client.close();
        const state = () => client.grpcClient.getChannel().getConnectivityState(false);
        await eventually(() => assert.equal(state(), connectivityState.SHUTDOWN));
      });
    }

    it(`a client waits for another call after one that ${how}, and closes its connection then`, async () => {
      const client = createGrpcClient(Reference, address);
      const stop = new AbortController();
      const other = client.listInstruments({}, { ...given, signal: stop.signal });
      await call(client);
      client.close();
      const state = () => client.grpcClient.getChannel().getConnectivityState(false);
      assert.notEqual(state(), connectivityState.SHUTDOWN);
      stop.abort();
      await assert.rejects(other, { code: status.CANCELLED });
      await eventually(() => assert.equal(state(), connectivityState.SHUTDOWN));
    });
  }

  it('ends the waits for its connection, and stays closed', async () => {
    const { grpcClient, close } = createGrpcClient(Reference, '127.0.0.1:1');
    const state = () => grpcClient.getChannel().getConnectivityState(false);
    const waits = assert.rejects(untilConnected(grpcClient, Number.POSITIVE_INFINITY), /closed/);
    await eventually(() => assert.equal(state(), connectivityState.TRANSIENT_FAILURE));
    close();
    await waits;
    await assert.rejects(untilConnected(grpcClient, Number.POSITIVE_INFINITY), /closed/);
    assert.equal(state(), connectivityState.SHUTDOWN);
  });
});

describe('a gRPC client where the environment names a proxy', () => {
  const names = ['grpc_proxy', 'https_proxy', 'http_proxy'];
  const proxy = createServer((socket) => void socket.destroy());
  let asked = 0;
  before(async () => {
    proxy.on('connection', () => {
      asked += 1;
    });
    await once(proxy.listen(0, '127.0.0.1'), 'listening');
    for (const name of names) process.env[name] = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
  });
  after(() => {
    for (const name of names) delete process.env[name];
    proxy.close();
  });

  it('connects to its server all the same, to call it and to try a certificate', async () => {
    const server = new Server();
    const port = await promisify(server.bindAsync.bind(server))('127.0.0.1:0', ServerCredentials.createInsecure());
    const { grpcClient, close } = createGrpcClient(Reference, `localhost:${port}`);
    try {
      await untilConnected(grpcClient, Date.now() + 10_000);
      await proveAccess([`localhost:${port}`], { tls: undefined });
    } finally {
      close();
      server.forceShutdown();
    }
    assert.equal(asked, 0);
  });
});
