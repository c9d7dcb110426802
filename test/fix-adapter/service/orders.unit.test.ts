/** The broker's calls about orders, over orders, a record and a back office that the test holds. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Metadata, status } from '@grpc/grpc-js';
import { saidNothing } from '../../../src/fix-adapter/orders/reject-reasons.ts';
import { ordersService, reportMessage } from '../../../src/fix-adapter/service/orders.ts';
import { RpcError } from '../../../src/fix-adapter/service/rpc.ts';
import type { FixReport } from '../../../src/fix-adapter/store/table.ts';
import { CancelOutcome, RejectReason, ReportKind } from '../../../src/gen/marina/broker/v1/orders_pb.ts';

const now = 1_000_000;
const deadlineMs = now + 5_000;
const report: FixReport = {
  ...{ number: 3n, orderId: 'ord_a', exchangeOrderId: 'X1', kind: 'accepted', at: 7_000, quantity: null },
  ...{ priceKobo: null, rejectReason: null, execId: null, counted: null, ...saidNothing },
};

function begin() {
  const metadata = new Metadata();
  const seen: { call: string; timeoutMs: number; metadata: Metadata | undefined }[] = [];
  const submitted: (bigint | null)[] = [];
  const desk = {
    seen,
    submitted,
    metadata,
    /** The highest price that the back office states for a symbol; an error: it does not answer. */
    price: undefined as bigint | Error | undefined,
    settled: 'found' as 'found' | 'absent' | RpcError,
    cancelled: undefined as FixReport | undefined,
    read: [] as (readonly [string, bigint])[],
  };
  const note = (call: string, { timeoutMs, metadata }: { timeoutMs: number; metadata?: Metadata }) =>
    void seen.push({ call, timeoutMs, metadata });
  const backOffice = {
    getCapabilities: async (_: object, options: { timeoutMs: number }) => {
      note('getCapabilities', options);
      return {
        honoursNotAfter: true,
        accountTransactions: true,
        accountStatus: false,
        withdrawalDestinations: true,
        brokerTime: 'x',
      };
    },
    getTradingContext: async (_: object, options: { timeoutMs: number }) => {
      note('getTradingContext', options);
      if (desk.price instanceof Error) throw desk.price;
      return { instrument: desk.price === undefined ? undefined : { upperPriceKobo: desk.price } };
    },
    estimateOrder: async (_: object, options: { timeoutMs: number }) => {
      note('estimateOrder', options);
      throw Object.assign(new Error('no'), { code: status.NOT_FOUND, details: 'no such symbol' });
    },
  };
  const trading = {
    submit: async (_: object, __: number, referenceKobo: bigint | null) => {
      submitted.push(referenceKobo);
      return report;
    },
    settle: async () => {
      if (desk.settled instanceof RpcError) throw desk.settled;
      return desk.settled;
    },
    cancel: async () => desk.cancelled,
  };
  const store = {
    reportsOf: async (id: string, after: bigint) => {
      desk.read.push([id, after]);
      return { reports: [report], hasMore: true };
    },
  };
  const service = ordersService({ trading, store, backOffice, now: () => now } as never);
  const context = { deadlineMs, call: { metadata } } as never;
  return { desk, service, context };
}

describe('the calls of the FIX adapter about orders', () => {
  it('a market order is held against the last price that the back office stated for its symbol, and asks for it if there is none', async () => {
    const { desk, service, context } = begin();
    const submit = (symbol: string, priceKobo?: bigint) =>
      service.submitOrder({ account: 'NG-1', symbol, priceKobo } as never, context);
    await submit('MTNN', 100n);
    assert.deepEqual([desk.submitted, desk.seen], [[null], []], 'a limit order has its limit');
    desk.price = new Error('away');
    await submit('MTNN');
    desk.price = 0n;
    await submit('MTNN');
    desk.price = 250n;
    await submit('MTNN');
    desk.price = 300n;
    await submit('MTNN');
    assert.deepEqual(desk.submitted, [null, null, null, 250n, 250n]);
    assert.deepEqual(
      desk.seen.map(({ timeoutMs }) => timeoutMs),
      [1_000, 1_000, 1_000],
      'it waits a second for it',
    );
    await service.getTradingContext({ symbol: 'MTNN' } as never, context);
    await submit('MTNN');
    await submit('GTCO');
    await submit('MTNN', 90n);
    assert.deepEqual(desk.submitted.slice(5), [300n, 300n, 300n], 'each symbol has its own');
    await service.submitOrder({ symbol: 'ZENITH' } as never, { deadlineMs: now + 400 } as never);
    assert.equal(desk.seen.at(-1)?.timeoutMs, 400, 'and never longer than the call has');
  });

  it('calls that FIX does not have are passed on with what is left of their time, and answered as the back office answers', async () => {
    const { desk, service, context } = begin();
    assert.deepEqual(await service.getCapabilities({} as never, context), {
      ...{ honoursNotAfter: true, accountTransactions: true, accountStatus: false, withdrawalDestinations: true },
    });
    await assert.rejects(service.estimateOrder({} as never, context), (error: unknown) => {
      return error instanceof RpcError && error.code === status.NOT_FOUND && error.message === 'no such symbol';
    });
    desk.price = new Error('it is away');
    await assert.rejects(
      service.getTradingContext({} as never, { deadlineMs: now - 5, call: { metadata: desk.metadata } } as never),
      {
        code: status.UNAVAILABLE,
      },
    );
    assert.deepEqual(
      desk.seen.map(({ call, timeoutMs, metadata }) => [call, timeoutMs, metadata === desk.metadata]),
      [
        ['getCapabilities', 5_000, true],
        ['estimateOrder', 5_000, true],
        ['getTradingContext', 1, true],
      ],
    );
  });

  it('a look-up answers with the reports above its number, only of an order that the exchange has', async () => {
    const { desk, service, context } = begin();
    const lookUp = (afterNumber: bigint) =>
      service.lookUpOrder({ clientOrderId: 'ord_a', afterNumber } as never, context);
    const found = await lookUp(2n);
    assert.deepEqual([found.found, found.hasMore, found.reports?.length, desk.read], [true, true, 1, [['ord_a', 2n]]]);
    await assert.rejects(lookUp(-1n), { code: status.INVALID_ARGUMENT });
    desk.settled = 'absent';
    assert.deepEqual(await lookUp(0n), { found: false });
    desk.settled = new RpcError(status.UNAVAILABLE, 'the exchange did not answer');
    await assert.rejects(lookUp(0n), { code: status.UNAVAILABLE });
    assert.equal(desk.read.length, 1);
  });

  it('a cancel answers with its report, or that it was too late', async () => {
    const { desk, service, context } = begin();
    const cancel = () => service.cancelOrder({ clientOrderId: 'ord_a' } as never, context);
    assert.deepEqual(await cancel(), { outcome: CancelOutcome.TOO_LATE });
    desk.cancelled = { ...report, kind: 'cancelled' };
    const { outcome, report: answered } = await cancel();
    assert.deepEqual([outcome, answered?.kind], [CancelOutcome.CANCELLED, ReportKind.CANCELLED]);
  });

  it('a report has the reason that it was stored with, and a reason of a later version is the usual one', () => {
    for (const [rejectReason, expected] of [
      [null, RejectReason.UNSPECIFIED],
      ['market_closed', RejectReason.MARKET_CLOSED],
      ['of_a_later_version', RejectReason.REJECTED_BY_EXCHANGE],
    ] as const) {
      assert.equal(reportMessage({ ...report, kind: 'rejected', rejectReason }).rejectReason, expected);
    }
    const { at, quantity, priceKobo } = reportMessage({ ...report, at: null, quantity: 5n, priceKobo: 250n });
    assert.deepEqual([at, quantity, priceKobo], [undefined, 5n, 250n]);
    const none = reportMessage(report);
    assert.deepEqual([none.at?.seconds, none.quantity, none.priceKobo], [7n, 0n, 0n]);
  });
});
