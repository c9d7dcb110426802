import assert from 'node:assert/strict';
import { once } from 'node:events';
import http2, { type ClientHttp2Session } from 'node:http2';
import net, { type AddressInfo } from 'node:net';
import { type TestContext, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { type handleUnaryCall, Server, ServerCredentials, status } from '@grpc/grpc-js';
import { ConnectionLimits } from '../../../../src/gateway/edge/bounds.ts';
import type { GrpcStatus } from '../../../../src/gateway/edge/grpc/arrival.ts';
import { guardServer } from '../../../../src/gateway/edge/grpc/listener.ts';

const upload = '/test.Files/Upload';
const other = '/test.Files/Other';

test('an upload on a new connection arrives whole, however long its key is looked up', async (t) => {
  const port = await serve(t, async () => {
    await delay(200);
    return undefined;
  });
  assert.equal(await call(connect(t, port), upload, 300_000), status.OK);
});

test('an upload that a limit refuses leaves the other calls of its connection alone', async (t) => {
  const port = await serve(t, async (path) =>
    path === upload ? { code: status.RESOURCE_EXHAUSTED, details: 'The rate is used up.' } : undefined,
  );
  const session = connect(t, port);
  const underWay = call(session, other, 100);
  const refused = await Promise.all([call(session, upload, 300_000), call(session, upload, 300_000)]);
  assert.deepEqual(refused, [status.RESOURCE_EXHAUSTED, status.RESOURCE_EXHAUSTED]);
  assert.equal(await underWay, status.OK);
});

test('an upload over a slow link arrives whole, though a ping is answered late behind it', async (t) => {
  const port = await serve(t, async () => undefined);
  const session = connect(t, await slowLink(t, port, { bytesPerSecond: 25_000, lagMs: 60 }));
  await once(session, 'remoteSettings');
  assert.equal(await call(session, upload, 80_000), status.OK);
});

/** Serves two methods on a port of its own. The one that is no upload takes half a second. */
async function serve(t: TestContext, decide: (path: string) => Promise<GrpcStatus | undefined>): Promise<number> {
  const server = new Server();
  const asIs = (bytes: Buffer) => bytes;
  const definition = (path: string) => ({
    ...({ path, requestStream: false, responseStream: false } as const),
    ...{ requestSerialize: asIs, requestDeserialize: asIs, responseSerialize: asIs, responseDeserialize: asIs },
  });
  const atOnce: handleUnaryCall<Buffer, Buffer> = (_call, respond) => respond(null, Buffer.alloc(1));
  const later: handleUnaryCall<Buffer, Buffer> = (call, respond) => void setTimeout(() => atOnce(call, respond), 500);
  server.addService({ upload: definition(upload), other: definition(other) }, { upload: atOnce, other: later });
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    );
  });
  const listener = guardServer(server, {
    methods: new Map([upload, other].map((path) => [path, { maxBytes: 1_000_000 }])),
    authorize: ({ path }) => decide(path),
    connections: new ConnectionLimits(),
    callsPerConnection: 100,
  });
  t.after(() => {
    listener.close();
    server.forceShutdown();
  });
  return port;
}

function connect(t: TestContext, port: number): ClientHttp2Session {
  const session = http2.connect(`http://127.0.0.1:${port}`);
  session.on('error', () => undefined);
  t.after(() => session.destroy());
  return session;
}

/** Makes a call with a message of a size. Resolves with its gRPC status; undefined when it ended without one. */
async function call(session: ClientHttp2Session, path: string, bytes: number): Promise<number | undefined> {
  const stream = session.request({ ':method': 'POST', ':path': path, 'content-type': 'application/grpc' });
  let answer: number | undefined;
  const read = (headers: http2.IncomingHttpHeaders) => {
    if (headers['grpc-status'] !== undefined) answer = Number(headers['grpc-status']);
  };
  stream
    .on('response', read)
    .on('trailers', read)
    .on('error', () => undefined)
    .resume();
  const message = Buffer.alloc(5 + bytes);
  message.writeUInt32BE(bytes, 1);
  stream.end(message);
  await new Promise<void>((resolve) => stream.once('close', () => resolve()));
  return answer;
}

/** A link to a port that carries so much a second from the client, and everything with a delay. */
async function slowLink(
  t: TestContext,
  port: number,
  { bytesPerSecond, lagMs }: { bytesPerSecond: number; lagMs: number },
): Promise<number> {
  const stepMs = 20;
  const link = net.createServer((client) => {
    const gateway = net.connect(port, '127.0.0.1');
    let held = Buffer.alloc(0);
    client.on('data', (bytes: Buffer) => {
      held = Buffer.concat([held, bytes]);
    });
    const timer = setInterval(() => {
      const some = held.subarray(0, (bytesPerSecond * stepMs) / 1_000);
      held = held.subarray(some.length);
      if (some.length > 0) setTimeout(() => gateway.write(some), lagMs);
    }, stepMs);
    gateway.on('data', (bytes) => setTimeout(() => client.write(bytes), lagMs));
    const end = () => {
      clearInterval(timer);
      gateway.destroy();
      client.destroy();
    };
    for (const socket of [client, gateway]) socket.on('error', end).on('close', end);
  });
  await new Promise<void>((resolve) => link.listen(0, '127.0.0.1', resolve));
  t.after(() => link.close());
  return (link.address() as AddressInfo).port;
}
