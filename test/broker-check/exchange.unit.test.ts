import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { create } from '@bufbuild/protobuf';
import { status } from '@grpc/grpc-js';
import { exchange, shown } from '../../src/broker-check/exchange.ts';
import {
  LookUpOrderResponseSchema,
  Orders,
  SubmitOrderRequestSchema,
  SubmitOrderResponseSchema,
} from '../../src/gen/marina/broker/v1/orders_pb.ts';

const method = Orders.method.submitOrder;
const request = { clientOrderId: 'ord_1', quantity: 5n };

describe('a recorded call', () => {
  it('an answer is kept with its request, and its times enclose the call', async () => {
    const before = Date.now();
    const answer = create(SubmitOrderResponseSchema, { report: { clientOrderId: 'ord_1' } });
    const outcome = await exchange(method, async () => answer, request, {} as never);
    assert.equal(outcome.answer, answer);
    const { tookMs, ...kept } = outcome.exchange;
    assert.deepEqual(kept, {
      ...{ call: 'Orders.SubmitOrder', request: { clientOrderId: 'ord_1', quantity: '5' }, status: 'OK' },
      answer: { report: { clientOrderId: 'ord_1' } },
    });
    assert.equal(outcome.code, status.OK);
    assert.ok(
      tookMs >= 0 && before <= outcome.sentAt && outcome.sentAt <= outcome.endedAt && outcome.endedAt <= Date.now(),
    );
  });

  it('a call that fails has its status and details, and never throws', async () => {
    const failing = async (error: unknown) => {
      const {
        exchange: kept,
        answer,
        code,
      } = await exchange(method, () => Promise.reject(error), request, {} as never);
      assert.equal(answer, undefined);
      assert.equal('answer' in kept, false);
      return [code, kept.status, kept.details];
    };
    const refused = Object.assign(new Error('7 x'), { code: status.ALREADY_EXISTS, details: 'taken' });
    assert.deepEqual(await failing(refused), [status.ALREADY_EXISTS, 'ALREADY_EXISTS', 'taken']);
    assert.deepEqual(await failing(new Error('no line')), [status.UNKNOWN, 'UNKNOWN', 'no line']);
    assert.deepEqual(await failing(Object.assign(new Error('odd'), { code: 99 })), [99, '99', 'odd']);
    const thrown = await exchange(
      method,
      () => {
        throw new Error('at once');
      },
      request,
      {} as never,
    );
    assert.equal(thrown.exchange.details, 'at once');
  });

  it('long texts and lists are cut for people, at every depth', () => {
    const note = (length: number) =>
      shown(SubmitOrderRequestSchema, create(SubmitOrderRequestSchema, { account: 'x'.repeat(length) }));
    assert.deepEqual(note(120), { account: 'x'.repeat(120) });
    assert.deepEqual(note(121), { account: `${'x'.repeat(120)}… (121 characters)` });
    const list = (count: number) => {
      const reports = Array.from({ length: count }, () => ({ clientOrderId: 'y'.repeat(121) }));
      return shown(LookUpOrderResponseSchema, create(LookUpOrderResponseSchema, { reports })) as { reports: unknown[] };
    };
    const cut = { clientOrderId: `${'y'.repeat(120)}… (121 characters)` };
    assert.deepEqual(
      list(12).reports,
      Array.from({ length: 12 }, () => cut),
    );
    assert.deepEqual(list(13).reports, [...Array.from({ length: 12 }, () => cut), '… (13 in all)']);
  });
});
