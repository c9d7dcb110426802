import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { it } from 'node:test';
import { status } from '@grpc/grpc-js';
import { type BrokerAccess, BrokerConnection } from '../../../../src/gateway/trading/broker/grpc-connection.ts';
import { Orders } from '../../../../src/gen/marina/broker/v1/orders_pb.ts';
import type { Live } from '../../../../src/kit/watched-files.ts';
import { eventually } from '../../../support/eventually.ts';
import { refuseCall, startRawBroker } from '../../../support/raw-broker.ts';

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  await once(server.close(), 'close');
  return port;
}

it('an order that waits for the broker while certificates change twice is sent, over the one connection that is left', async () => {
  const listeners: (() => void)[] = [];
  const access: Live<BrokerAccess> = {
    current: { tls: undefined },
    onChange: (listener) => void listeners.push(() => listener(access.current)),
  };
  const port = await freePort();
  const options = { address: `127.0.0.1:${port}`, access, submitTimeoutMs: 5_000, readTimeoutMs: 5_000 };
  const connection = new BrokerConnection(Orders, 'exchange', options);
  const sent = connection.send('submitOrder', {}, Date.now() + 60_000, {}, () => 'an answer');
  for (let change = 0; change < 2; change += 1) {
    await new Promise(setImmediate);
    for (const listener of listeners) listener();
  }
  const broker = await startRawBroker((stream) => refuseCall(stream, status.UNIMPLEMENTED), port);
  try {
    assert.deepEqual(await sent, { outcome: 'unclear', evidence: 'no answer: unimplemented' });
    await eventually(() => assert.equal(broker.open.size, 1));
  } finally {
    connection.close();
    broker.stop();
  }
  await eventually(() => assert.equal(broker.open.size, 0, 'nothing is connected after the end'));
});
