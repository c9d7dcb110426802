import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type ClientHttp2Session, type ClientHttp2Stream, connect as connectHttp2, constants } from 'node:http2';
import { after, before, describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { create, toBinary } from '@bufbuild/protobuf';
import { Client, credentials, type ServiceError } from '@grpc/grpc-js';
import { GetBalanceRequestSchema } from '../../../../src/gen/marina/gateway/v1/accounts_pb.ts';
import { Call, WireFault } from '../../../../src/gen/marina/simulator/v1/controls_pb.ts';
import { callTimeout, startGateway, type TestGateway, type TestPartner } from '../../../support/gateway.ts';
import { grpcMessage } from '../../../support/hostile/http2-wire.ts';

describe('a partner with many gRPC clients', { concurrency: true }, () => {
  let gateway: TestGateway;
  let partner: TestPartner;
  before(async () => {
    // A call that was taken back waits for the broker's answer on, for this long.
    gateway = await startGateway({ MARINA_RECORDS_TIMEOUT_MS: '3000' });
    partner = await gateway.newPartner();
  });
  after(() => gateway.stop());

  it('a partner whose 100 replicas are behind one address can watch health from each of them', async () => {
    await gateway.rest('GET', '/v1/limits', { key: partner.key });
    const clients = Array.from(
      { length: 100 },
      () =>
        new Client(`127.0.0.1:${gateway.app.grpcPort}`, credentials.createInsecure(), {
          'grpc.use_local_subchannel_pool': 1,
        }),
    );
    const asIs = (bytes: Buffer) => bytes;
    const outcomes = await Promise.all(
      clients.map((client) => {
        const watch = client.makeServerStreamRequest('/grpc.health.v1.Health/Watch', asIs, asIs, Buffer.alloc(0));
        return new Promise<string>((resolve) => {
          watch.once('data', () => resolve('watches'));
          watch.once('error', (error: ServiceError) => resolve(error.details));
        });
      }),
    );
    for (const client of clients) client.close();
    assert.deepEqual([...new Set(outcomes)], ['watches']);
  });

  it('a partner that takes back hundreds of calls which wait for the broker keeps its connection', async () => {
    const eager = await gateway.newPartner({ limits: { requestsPerSecond: 2_000, requestsBurst: 2_000 } });
    await gateway.controls.injectFault({ call: Call.GET_BALANCE, fault: WireFault.HANG, times: 2 }, callTimeout);
    const session = connectHttp2(`http://127.0.0.1:${gateway.app.grpcPort}`);
    const watching = await watchEvents(session, eager.key);
    const [account = ''] = eager.accounts;
    const message = grpcMessage(toBinary(GetBalanceRequestSchema, create(GetBalanceRequestSchema, { account })));
    for (let call = 0; call < 450 && !session.closed; call += 1) {
      const path = '/marina.gateway.v1.Accounts/GetBalance';
      const waiting = session.request({ ...grpcHead(path), authorization: `Bearer ${eager.key}` });
      waiting.on('error', () => undefined).end(message);
      setTimeout(() => waiting.close(constants.NGHTTP2_CANCEL), 100);
      if (call % 5 === 0) await delay(10);
    }
    await delay(500);
    assert.equal(session.closed, false, 'the connection was ended');
    assert.equal(watching.closed, false, 'the stream of events was ended');
    session.destroy();
  });
});

/** Opens a stream of events, and waits until it is open. */
async function watchEvents(session: ClientHttp2Session, key: string): Promise<ClientHttp2Stream> {
  session.on('error', () => undefined);
  const stream = session.request({
    ...grpcHead('/marina.gateway.v1.Events/WatchEvents'),
    authorization: `Bearer ${key}`,
  });
  stream.on('error', () => undefined).resume();
  stream.end(grpcMessage(new Uint8Array()));
  await once(stream, 'response');
  return stream;
}

function grpcHead(path: string) {
  return { ':method': 'POST', ':path': path, 'content-type': 'application/grpc', te: 'trailers' };
}
