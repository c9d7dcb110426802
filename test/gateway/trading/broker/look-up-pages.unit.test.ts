import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { grpcOrders } from '../../../../src/gateway/trading/broker/grpc-orders.ts';
import {
  LookUpOrderRequestSchema,
  LookUpOrderResponseSchema,
  ReportKind,
  ReportSchema,
} from '../../../../src/gen/marina/broker/v1/orders_pb.ts';
import { answerCall, startRawBroker } from '../../../support/raw-broker.ts';

const origin = { partnerId: 'par_a', requestId: null, traceParent: null };
const orderId = 'ord_a';

describe('a look-up of an order with several pages of reports', () => {
  let [numbers, pageSize, asked]: [number[], number, number] = [[], 1, 0];
  let raw: Awaited<ReturnType<typeof startRawBroker>>;
  let broker: ReturnType<typeof grpcOrders>;
  before(async () => {
    raw = await startRawBroker((stream) => {
      stream.once('data', (bytes: Buffer) => {
        asked += 1;
        const { afterNumber } = fromBinary(LookUpOrderRequestSchema, bytes.subarray(5));
        const later = numbers.filter((number) => number > afterNumber);
        const reports = later
          .slice(0, pageSize)
          .map((number) =>
            create(ReportSchema, { clientOrderId: orderId, number: BigInt(number), kind: ReportKind.ACCEPTED }),
          );
        const answer = create(LookUpOrderResponseSchema, { found: true, reports, hasMore: later.length > pageSize });
        answerCall(stream, toBinary(LookUpOrderResponseSchema, answer));
      });
    });
    broker = grpcOrders(raw.options);
  });
  beforeEach(() => {
    asked = 0;
  });
  after(() => {
    broker.close();
    raw.stop();
  });

  async function lookUp(afterNumber: number): Promise<number[]> {
    const found = await broker.lookUpOrder(orderId, BigInt(afterNumber), origin);
    assert.ok(found.found);
    return found.answer.map(({ number }) => Number(number));
  }

  it('returns each report once and in order, whatever the size of the pages and the first number', async () => {
    // The broker numbers the reports of all orders together, so those of one order have gaps.
    numbers = [2, 3, 7, 20, 21, 40];
    for (pageSize = 1; pageSize <= numbers.length + 1; pageSize += 1) {
      for (const afterNumber of [0, ...numbers]) {
        const expected = numbers.filter((number) => number > afterNumber);
        assert.deepEqual(await lookUp(afterNumber), expected, `pages of ${pageSize} after ${afterNumber}`);
      }
    }
  });

  it('fails if there are more than 100 pages, rather than to return some of the reports', async () => {
    pageSize = 1;
    numbers = Array.from({ length: 100 }, (_, at) => at + 1);
    assert.deepEqual([await lookUp(0), asked], [numbers, 100]);
    numbers.push(101);
    await assert.rejects(lookUp(0), { code: 'exchange_error' });
  });
});
