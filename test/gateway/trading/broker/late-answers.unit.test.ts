import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type ServerHttp2Stream } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { create, toBinary } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { BrokerConnection } from '../../../../src/gateway/trading/broker/grpc-connection.ts';
import { LookUpOrderResponseSchema, Orders } from '../../../../src/gen/marina/broker/v1/orders_pb.ts';

const statedAt = Date.UTC(2026, 0, 5, 12);
const tookMs = 200;

/** A broker that does not have any order, and says so some time after it looked. */
async function startSlowBroker() {
  const server = createServer();
  const record = toBinary(
    LookUpOrderResponseSchema,
    create(LookUpOrderResponseSchema, { found: false, brokerTime: timestampFromMs(statedAt) }),
  );
  const head = Buffer.alloc(5);
  head.writeUInt32BE(record.length, 1);
  server.on('stream', async (stream: ServerHttp2Stream) => {
    await delay(tookMs);
    stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true });
    stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }));
    stream.end(Buffer.concat([head, record]));
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return { port: (server.address() as AddressInfo).port, stop: () => server.close() };
}

it('a record without the order proves it for the time at which it was asked for, however late its answer comes', async () => {
  const broker = await startSlowBroker();
  const connection = new BrokerConnection(Orders, 'exchange', {
    address: `127.0.0.1:${broker.port}`,
    access: { current: { tls: undefined }, onChange: () => undefined },
    ...{ submitTimeoutMs: 5_000, readTimeoutMs: 5_000 },
  });
  try {
    const request = { clientOrderId: 'ord_x', afterNumber: 0n };
    const looked = await connection.lookUp('lookUpOrder', request, {}, ({ found }) => (found ? true : undefined));
    assert.ok(!looked.found);
    assert.equal(looked.completeUntil, undefined);
    // Timers may fire a millisecond early.
    assert.ok(Number(looked.brokerTime) <= statedAt - tookMs + 2, `${looked.brokerTime} is as late as the answer`);
    assert.ok(Number(looked.brokerTime) > statedAt - 5_000);
  } finally {
    connection.close();
    broker.stop();
  }
});
