import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { status } from '@grpc/grpc-js';
import { grpcAllocations, grpcApplications } from '../../../../src/gateway/trading/broker/grpc-back-office.ts';
import { grpcOrders } from '../../../../src/gateway/trading/broker/grpc-orders.ts';
import { refuseCall, startRawBroker } from '../../../support/raw-broker.ts';

const origin = { partnerId: 'par_a', requestId: null, traceParent: null };
const note = Buffer.from('a note');
const about = { origin, note, id: 'x', account: 'A1' };

type Send = (what: unknown, notAfterMs: number) => Promise<{ readonly outcome: string }>;

/** Each call that sends something, and whether the status that says "too late" proves that it never left. */
const sends = {
  submitOrder: [grpcOrders, 'submitOrder', { ...about, symbol: 'S', side: 'buy', type: 'market', quantity: 1n }, true],
  submitApplication: [grpcApplications, 'submitApplication', { ...about, fields: {} }, true],
  submitAllocation: [grpcAllocations, 'submitAllocation', { ...about, amountKobo: 1n }, true],
  sendDocument: [
    grpcApplications,
    'sendDocument',
    { origin, applicationId: 'x', type: 'photo', mediaType: 'image/png', content: note },
    false,
  ],
} as const;

describe('a cancel that is about to be sent', () => {
  let asked = 0;
  let raw: Awaited<ReturnType<typeof startRawBroker>>;
  before(async () => {
    // It never answers.
    raw = await startRawBroker(() => {
      asked += 1;
    });
  });
  after(() => raw.stop());

  it('a cancel is not sent when its time is over, and is not waited for beyond it', async () => {
    const broker = grpcOrders(raw.options);
    try {
      const late = await broker.cancelOrder('ord_a', Date.now(), origin);
      assert.deepEqual(late, { outcome: 'unclear', evidence: 'its time had run out before it was sent' });
      assert.equal(asked, 0);
      const began = performance.now();
      assert.equal((await broker.cancelOrder('ord_a', Date.now() + 100, origin)).outcome, 'unclear');
      assert.ok(performance.now() - began < raw.options.submitTimeoutMs, 'it is not the time of all submissions');
    } finally {
      broker.close();
    }
  });
});

describe('a status that the broker refuses something with', () => {
  let refusedWith: number = status.UNKNOWN;
  let raw: Awaited<ReturnType<typeof startRawBroker>>;
  before(async () => {
    raw = await startRawBroker((stream) => refuseCall(stream, refusedWith));
  });
  after(() => raw.stop());

  for (const [name, [connect, method, what, tooLateProves]] of Object.entries(sends)) {
    it(`a status proves ${tooLateProves ? 'that it was too late only by FAILED_PRECONDITION' : 'nothing'} about ${name}`, async () => {
      const broker = connect(raw.options);
      const send = (broker as unknown as Record<string, Send>)[method];
      try {
        for (const [code, number] of Object.entries(status)) {
          if (typeof number !== 'number' || number === status.OK) continue;
          refusedWith = number;
          const sent = await send?.(what, Date.now() + 60_000);
          const isProof = tooLateProves && number === status.FAILED_PRECONDITION;
          assert.equal(sent?.outcome, isProof ? 'never-left' : 'unclear', code);
        }
      } finally {
        broker.close();
      }
    });
  }
});
