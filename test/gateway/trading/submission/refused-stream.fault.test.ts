import assert from 'node:assert/strict';
import { constants, createServer, type Http2Server } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { grpcOrders } from '../../../../src/gateway/trading/broker/grpc-orders.ts';
import { Orders } from '../../../../src/gen/marina/broker/v1/orders_pb.ts';
import { createGrpcClient } from '../../../../src/kit/grpc-client.ts';

const order = {
  id: 'ord_22222222222222222222',
  account: 'A1',
  symbol: 'SIM-REST',
  side: 'buy',
  quantity: 100n,
  type: 'limit',
  timeInForce: 'day',
  priceKobo: 1000n,
  origin: { partnerId: 'par_1', requestId: null, traceParent: null },
  note: Buffer.alloc(0),
} as const;

/**
 * An exchange that takes every order it reads and then refuses its stream, as a proxy in front of it might. HTTP/2 says
 * such a stream was not processed, so a gRPC client may send it again by itself; here that would be a second order.
 */
describe('an exchange that takes an order and refuses its stream', () => {
  let server: Http2Server;
  let address: string;
  let taken = 0;
  before(async () => {
    server = createServer();
    server.on('stream', (stream) => {
      stream.on('error', () => undefined);
      stream.once('data', () => {
        taken += 1;
        stream.close(constants.NGHTTP2_REFUSED_STREAM);
      });
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    address = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  after(() => server.close());

  it('sees the order once from the gateway, which calls the outcome unclear', async () => {
    taken = 0;
    const broker = grpcOrders({ address, submitTimeoutMs: 2_000, readTimeoutMs: 2_000 });
    const sent = await broker.submitOrder(order, Date.now() + 2_000);
    assert.equal(sent.outcome, 'unclear');
    assert.equal(taken, 1);
    broker.close();
  });

  it('sees one cancel from the gateway, which calls the outcome unclear', async () => {
    taken = 0;
    const broker = grpcOrders({ address, submitTimeoutMs: 2_000, readTimeoutMs: 2_000 });
    assert.equal((await broker.cancelOrder(order.id, Date.now() + 2_000, order.origin)).outcome, 'unclear');
    assert.equal(taken, 1);
    broker.close();
  });

  it("sees it more than once from a client with grpc-js's own retries on, so this test can fail", async () => {
    taken = 0;
    const client = createGrpcClient(Orders, address, { 'grpc.enable_retries': 1 });
    await assert.rejects(client.submitOrder({ clientOrderId: order.id }, { timeoutMs: 2_000 }));
    assert.ok(taken > 1, `taken ${taken} times`);
    client.close();
  });
});
