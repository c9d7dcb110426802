import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { ServerHttp2Stream } from 'node:http2';
import { type AddressInfo, createServer } from 'node:net';
import { it } from 'node:test';
import { status } from '@grpc/grpc-js';
import { type BrokerAccess, BrokerConnection } from '../../../../src/gateway/trading/broker/grpc-connection.ts';
import { Orders } from '../../../../src/gen/marina/broker/v1/orders_pb.ts';
import type { Live } from '../../../../src/kit/watched-files.ts';
import { eventually } from '../../../support/eventually.ts';
import { answerCall, refuseCall, startRawBroker } from '../../../support/raw-broker.ts';

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

it('calls that get no answer replace their connection once, and none is left open', async () => {
  const calls: ServerHttp2Stream[] = [];
  const broker = await startRawBroker((stream) => void calls.push(stream));
  const connection = new BrokerConnection(Orders, 'exchange', broker.options);
  const read = (timeoutMs: number) => connection.call('getCapabilities', {}, { timeoutMs });
  const unanswered = { code: status.DEADLINE_EXCEEDED };
  const answer = async (at: number) => {
    await eventually(() => assert.ok(calls[at] !== undefined));
    answerCall(calls[at] as ServerHttp2Stream, new Uint8Array());
  };
  try {
    const first = assert.rejects(read(200), unanswered);
    const second = assert.rejects(read(300), unanswered);
    await first;
    const third = read(5_000);
    await eventually(() => assert.equal(calls.length, 3));
    assert.equal(broker.open.size, 2, 'the third goes over another one');
    await second;
    const fourth = read(5_000);
    await Promise.all([answer(2), answer(3)]);
    await Promise.all([third, fourth]);
    await eventually(() => assert.equal(broker.open.size, 1, 'the one without answers is closed'));
  } finally {
    connection.close();
    broker.stop();
  }
  await eventually(() => assert.equal(broker.open.size, 0, 'nothing is connected after the end'));
});

it('an order is sent only while it has time, and is waited for no longer than it has', async () => {
  let calls = 0;
  const broker = await startRawBroker(() => {
    calls += 1;
  });
  const connection = (submitTimeoutMs: number) =>
    new BrokerConnection(Orders, 'exchange', { ...broker.options, submitTimeoutMs });
  const [patient, quick] = [connection(60_000), connection(100)];
  const send = (over: BrokerConnection<typeof Orders>, leftMs: number) =>
    over.send('submitOrder', {}, Date.now() + leftMs, {}, () => 'an answer');
  try {
    const late = await send(patient, 0);
    assert.deepEqual(late, { outcome: 'never-left', evidence: 'its time had run out before it was sent' });
    assert.equal(calls, 0);
    const unclear = { outcome: 'unclear', evidence: 'no answer: deadline exceeded' };
    const began = performance.now();
    assert.deepEqual(await Promise.all([send(patient, 200), send(quick, 60_000)]), [unclear, unclear]);
    assert.ok(performance.now() - began < 30_000);
    assert.equal(calls, 2);
  } finally {
    patient.close();
    quick.close();
    broker.stop();
  }
});
