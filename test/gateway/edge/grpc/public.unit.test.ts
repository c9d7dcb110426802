import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect as connectHttp2 } from 'node:http2';
import { connect } from 'node:net';
import { after, before, test } from 'node:test';
import { create, toBinary } from '@bufbuild/protobuf';
import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire';
import { Client, credentials, status } from '@grpc/grpc-js';
import { ConnectionLimits } from '../../../../src/gateway/edge/bounds.ts';
import {
  Health,
  HealthCheckRequestSchema,
  HealthCheckResponse_ServingStatus,
} from '../../../../src/gen/grpc/health/v1/health_pb.ts';
import { Events } from '../../../../src/gen/marina/gateway/v1/events_pb.ts';
import { GetOrderRequestSchema, Orders } from '../../../../src/gen/marina/gateway/v1/orders_pb.ts';
import { grpcMethod } from '../../../../src/kit/grpc-service.ts';
import { eventually } from '../../../support/eventually.ts';
import {
  callFields,
  type Frame,
  flag,
  frame,
  frameType,
  grpcMessage,
  Http2Wire,
} from '../../../support/hostile/http2-wire.ts';
import { openServers, orderId, type Servers, withServers } from '../fixture.ts';

let servers: Servers;
before(async () => {
  servers = await openServers();
});
after(() => servers.close());

const field = (number: number, type: WireType) => new BinaryWriter().tag(number, type);

/** Asks for the health of a service. */
function healthOf(port: number, service: string): Promise<string> {
  const client = new Client(`127.0.0.1:${port}`, credentials.createInsecure(), { 'grpc.use_local_subchannel_pool': 1 });
  const check = grpcMethod(Health.method.check);
  return new Promise((resolve) => {
    client.makeUnaryRequest(
      check.path,
      check.requestSerialize,
      check.responseDeserialize,
      create(HealthCheckRequestSchema, { service }),
      (error, answer) => {
        client.close();
        if (error !== null) resolve(status[error.code] ?? '');
        else resolve(HealthCheckResponse_ServingStatus[answer?.status ?? 0] ?? '');
      },
    );
  });
}

test('health tells of every service, and that the server is about to close', async () => {
  const names = ['', 'marina.gateway.v1.Orders', 'marina.gateway.v1.Events'];
  await withServers({}, async ({ grpc, grpcPort }) => {
    for (const name of names) assert.equal(await healthOf(grpcPort, name), 'SERVING', name);
    assert.equal(await healthOf(grpcPort, 'other'), 'NOT_FOUND');
    grpc.drain();
    for (const name of names) assert.equal(await healthOf(grpcPort, name), 'NOT_SERVING', name);
  });
});

test('a call that crosses the server sending its client away is answered, or its client can tell that it was not begun', async () => {
  await withServers({}, async ({ grpc, grpcPort, recorded }) => {
    for (const isSentBefore of Array.from({ length: 20 }, (_, time) => time % 2 === 0)) {
      const socket = connect(grpcPort, '127.0.0.1');
      await once(socket, 'connect');
      try {
        const wire = new Http2Wire(socket);
        const frames: Frame[] = [];
        wire.onFrame = (each) => frames.push(each);
        const seen = (type: number, stream: number) =>
          frames.find((each) => each.type === type && each.stream === stream);
        const call = async (path: string, message: Uint8Array) => {
          const stream = await wire.open(callFields(path, { authorization: 'Bearer full' }));
          await wire.write(frame(frameType.data, flag.endStream, stream, grpcMessage(message)));
          return stream;
        };
        // An open call, without which the connection would be closed.
        const watch = await call('/grpc.health.v1.Health/Watch', Buffer.alloc(0));
        await eventually(() => assert.ok(seen(frameType.data, watch), 'the watch has not begun'));
        const before = recorded.length;
        const message = toBinary(GetOrderRequestSchema, create(GetOrderRequestSchema, { id: orderId }));
        const calling = isSentBefore ? call('/marina.gateway.v1.Orders/GetOrder', message) : undefined;
        grpc.drain();
        if (!isSentBefore) await eventually(() => assert.ok(seen(frameType.goaway, 0), 'the client is not sent away'));
        const late = await (calling ?? call('/marina.gateway.v1.Orders/GetOrder', message));
        await wire.write(frame(frameType.ping, 0, 0, Buffer.alloc(8, 7)));
        await eventually(() => {
          const answer = frames.find(
            ({ type, flags, payload }) => type === frameType.ping && flags === 1 && payload[0] === 7,
          );
          assert.ok(answer, 'the connection is not read');
          assert.ok(seen(frameType.goaway, 0), 'the client is not sent away');
        });
        const last = seen(frameType.goaway, 0)?.payload.readUInt32BE(0) ?? 0;
        if (last >= late) await eventually(() => assert.ok(seen(frameType.data, late), 'the call is not answered'));
        assert.equal(recorded.length - before, seen(frameType.data, late) === undefined ? 0 : 1);
      } finally {
        socket.destroy();
      }
    }
  });
});

test('a health check of a name that is no text is NOT_FOUND, and ends nothing', async () => {
  const { code } = await callRaw(
    servers.grpcPort,
    '/grpc.health.v1.Health/Check',
    Buffer.from([0x0a, 3, 0xed, 0xa0, 0x80]),
  );
  assert.ok([status.NOT_FOUND, status.INTERNAL].includes(code), String(code));
  assert.equal(await healthOf(servers.grpcPort, ''), 'SERVING');
});

test('half-sent health checks of one client of a proxy leave room for another, and for the proxy itself', async () => {
  const connectionLimits = new ConnectionLimits({}, ['127.0.0.1']);
  await withServers({ pipeline: { connectionLimits } }, async (own) => {
    const session = connectHttp2(`http://127.0.0.1:${own.grpcPort}`);
    const path = '/grpc.health.v1.Health/Check';
    const open = (forwardedFor?: string) =>
      session.request({
        ':method': 'POST',
        ':path': path,
        'content-type': 'application/grpc',
        te: 'trailers',
        ...(forwardedFor && { 'x-forwarded-for': forwardedFor }),
      });
    const statusOf = (stream: ReturnType<typeof open>) =>
      new Promise<number>((resolve) => {
        stream.once('response', (headers) => {
          if (headers['grpc-status'] !== undefined) resolve(Number(headers['grpc-status']));
        });
        stream.once('trailers', (trailers) => resolve(Number(trailers['grpc-status'])));
        stream.resume();
      });
    for (let count = 0; count < 32; count += 1) open('203.0.113.9').on('error', () => {});
    const refused = open('203.0.113.9');
    const [another, proxy] = [open('203.0.113.10'), open()];
    for (const each of [refused, another, proxy]) each.end(Buffer.alloc(5));
    assert.equal(await statusOf(refused), status.RESOURCE_EXHAUSTED);
    assert.equal(await statusOf(another), status.OK);
    assert.equal(await statusOf(proxy), status.OK);
    session.destroy();
  });
});

/** Calls a method with the bytes of a message. */
function callRaw(port: number, path: string, bytes: Buffer): Promise<{ code: status }> {
  const client = new Client(`127.0.0.1:${port}`, credentials.createInsecure(), { 'grpc.use_local_subchannel_pool': 1 });
  const asIs = (each: Buffer) => each;
  return new Promise((resolve) => {
    client.makeUnaryRequest(path, asIs, asIs, bytes, (error) => {
      client.close();
      resolve({ code: error?.code ?? status.OK });
    });
  });
}

test('reflection lists the services', async () => {
  const client = new Client(`127.0.0.1:${servers.grpcPort}`, credentials.createInsecure());
  const call = client.makeBidiStreamRequest(
    '/grpc.reflection.v1.ServerReflection/ServerReflectionInfo',
    (bytes: Buffer) => bytes,
    (bytes: Buffer) => bytes,
  );
  call.write(Buffer.from(field(7, WireType.LengthDelimited).string('').finish()));
  const answer = await new Promise<Buffer>((resolve) => call.once('data', resolve));
  call.end();
  client.close();
  for (const { typeName } of [Orders, Events] as { typeName: string }[]) assert.ok(answer.includes(typeName));
});

const publicPaths = [
  '/grpc.health.v1.Health/Check',
  '/grpc.health.v1.Health/List',
  '/grpc.health.v1.Health/Watch',
  '/grpc.reflection.v1.ServerReflection/ServerReflectionInfo',
  '/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo',
];
const publicBytes = 64 * 1_024;

for (const path of publicPaths) {
  const openCall = (port: number) => {
    const session = connectHttp2(`http://127.0.0.1:${port}`);
    const stream = session.request({ ':method': 'POST', ':path': path, 'content-type': 'application/grpc' });
    stream.on('error', () => {});
    return { session, stream: stream.resume() };
  };

  for (const [size, ends] of [
    [publicBytes + 1, 'unread, before its client has sent it'],
    [4_294_967_295, 'unread, before its client has sent it'],
    [publicBytes - 2, 'once it is whole, because its prefix counts too'],
  ] as const) {
    test(`${path} refuses a message of ${size} bytes with a status ${ends}`, async () => {
      const { session, stream } = openCall(servers.grpcPort);
      const head = Buffer.alloc(5);
      head.writeUInt32BE(size, 1);
      stream.write(head);
      if (size < publicBytes) stream.end(Buffer.alloc(size));
      const [headers] = await once(stream, 'response');
      session.destroy();
      assert.equal(headers['grpc-status'], String(status.RESOURCE_EXHAUSTED));
      assert.equal(headers['grpc-message'], encodeURI('The message is too large.'));
    });
  }

  test(`${path} refuses a message whose prefix says that it is compressed, and names the encoding to use`, async () => {
    const { session, stream } = openCall(servers.grpcPort);
    stream.end(Buffer.from([1, 0, 0, 0, 3, 1, 2, 3]));
    const [headers] = await once(stream, 'response');
    session.destroy();
    assert.equal(headers['grpc-status'], String(status.UNIMPLEMENTED));
    assert.equal(headers['grpc-accept-encoding'], 'identity');
  });
}
