import assert from 'node:assert/strict';
import { it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { create, toBinary } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { BrokerConnection } from '../../../../src/gateway/trading/broker/grpc-connection.ts';
import { LookUpOrderResponseSchema, Orders } from '../../../../src/gen/marina/broker/v1/orders_pb.ts';
import { answerCall, startRawBroker } from '../../../support/raw-broker.ts';

const statedAt = Date.UTC(2026, 0, 5, 12);
const tookMs = 200;

/** A broker that does not have any order, and says so some time after it looked. */
function startSlowBroker() {
  const brokerTime = timestampFromMs(statedAt);
  const record = create(LookUpOrderResponseSchema, { found: false, brokerTime });
  return startRawBroker(async (stream) => {
    await delay(tookMs);
    answerCall(stream, toBinary(LookUpOrderResponseSchema, record));
  });
}

it('a record without the order proves it for the time at which it was asked for, however late its answer comes', async () => {
  const broker = await startSlowBroker();
  const connection = new BrokerConnection(Orders, 'exchange', broker.options);
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
