import assert from 'node:assert/strict';
import { it } from 'node:test';
import { status } from '@grpc/grpc-js';
import { grpcWithdrawals } from '../../../../src/gateway/trading/broker/grpc-withdrawals.ts';
import { refuseCall, startRawBroker } from '../../../support/raw-broker.ts';

it('a broker without withdrawals is silent, unless it has sent reports of them before or fails in another way', async () => {
  const answers = { code: status.UNIMPLEMENTED };
  const broker = await startRawBroker((stream) => refuseCall(stream, answers.code));
  const withdrawals = grpcWithdrawals(broker.options);
  /** The first that a stream brings: a batch of reports, or the status with which it breaks. */
  const begin = async (afterNumber: bigint) => {
    const stop = new AbortController();
    const stream = withdrawals.streamWithdrawalReports(afterNumber, stop.signal)[Symbol.asyncIterator]();
    try {
      return (await stream.next()).value;
    } catch (error) {
      return (error as { code?: unknown }).code;
    } finally {
      stop.abort();
      await stream.return?.();
    }
  };
  try {
    assert.deepEqual(await begin(0n), []);
    assert.equal(await begin(1n), status.UNIMPLEMENTED);
    answers.code = status.PERMISSION_DENIED;
    assert.equal(await begin(0n), status.PERMISSION_DENIED);
  } finally {
    withdrawals.close();
    broker.stop();
  }
});
