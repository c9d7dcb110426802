import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { status } from '@grpc/grpc-js';
import { AccountStatus, CancelOutcome, ReportKind } from '../../src/gen/marina/broker/v1/orders_pb.ts';
import { Call, WireFault } from '../../src/gen/marina/simulator/v1/controls_pb.ts';
import { eventually } from '../support/eventually.ts';
import {
  account,
  connect,
  deadlineFor,
  exchangeOrder,
  fails,
  messagesOf,
  newOrder,
  soon,
  startTestSimulator,
  type TestOrder,
  untilReports,
} from './fixture.ts';

const simulator = await startTestSimulator();
const { orders, controls } = simulator;
const brief = { timeoutMs: 300 };

/** Lets the next call meet a fault. */
function inject(call: Call, fault: WireFault, delayMs = 0, times = 1, forAccount = account) {
  return controls.injectFault({ call, fault, delayMs, times, account: forAccount }, soon);
}

/** Whether the record says an order's first message was taken, and whether the exchange has the order. */
async function takenAndHeld({ clientOrderId }: TestOrder): Promise<readonly [boolean | undefined, boolean]> {
  const [message] = await messagesOf(simulator, clientOrderId);
  return [message?.taken, (await exchangeOrder(simulator, clientOrderId)) !== undefined];
}

describe('a fault on the wire of a submission', () => {
  const cases: readonly (readonly [WireFault, string, status, taken: boolean])[] = [
    [WireFault.HANG, 'SIM-HANG', status.DEADLINE_EXCEEDED, false],
    [WireFault.LOSE_ANSWER, 'SIM-LOST', status.DEADLINE_EXCEEDED, true],
    [WireFault.RESET_BEFORE, 'SIM-RESET', status.UNAVAILABLE, false],
    [WireFault.RESET_AFTER, 'SIM-RESETAFTER', status.UNAVAILABLE, true],
    [WireFault.LATE_ANSWER, 'SIM-LATE', status.DEADLINE_EXCEEDED, true],
  ];
  for (const [fault, magic, code, taken] of cases) {
    it(`${WireFault[fault]}: the call fails, and the record says that it was ${taken ? '' : 'not '}taken`, async () => {
      const injected = newOrder();
      await inject(Call.SUBMIT_ORDER, fault, 60_000);
      await assert.rejects(orders.submitOrder(injected, deadlineFor(code)), fails(code));
      assert.deepEqual(await takenAndHeld(injected), [taken, taken]);
      const symbol = newOrder({ symbol: magic });
      await assert.rejects(orders.submitOrder(symbol, deadlineFor(code)), fails(code));
      assert.deepEqual(await takenAndHeld(symbol), [taken, taken]);
      assert.equal((await orders.submitOrder(newOrder(), soon)).report?.kind, ReportKind.ACCEPTED);
    });
  }

  it('UNAVAILABLE before and after tells the same and is taken or not', async () => {
    for (const [fault, taken] of [
      [WireFault.UNAVAILABLE_BEFORE, false],
      [WireFault.UNAVAILABLE_AFTER, true],
    ] as const) {
      const order = newOrder();
      await inject(Call.SUBMIT_ORDER, fault);
      await assert.rejects(orders.submitOrder(order, soon), fails(status.UNAVAILABLE));
      assert.deepEqual(await takenAndHeld(order), [taken, taken]);
    }
  });

  it('a reset is one of the connection, seen as such by the caller and by others on it only', async () => {
    const other = connect(simulator.port);
    const [sharing, apart] = [newOrder({ symbol: 'SIM-HANG' }), newOrder({ symbol: 'SIM-HANG' })];
    const shared = assert.rejects(orders.submitOrder(sharing, soon), fails(status.UNAVAILABLE));
    const separate = assert.rejects(other.orders.submitOrder(apart, { timeoutMs: 1_500 }), (error: unknown) =>
      fails(status.DEADLINE_EXCEEDED)(error),
    );
    await eventually(async () => {
      for (const order of [sharing, apart]) assert.equal((await messagesOf(simulator, order.clientOrderId)).length, 1);
    });
    await assert.rejects(orders.submitOrder(newOrder({ symbol: 'SIM-RESET' }), soon), /ECONNRESET/);
    await shared;
    await separate;
  });

  it('a lost answer that fills in parts is filled all the same', async () => {
    const order = newOrder({ symbol: 'SIM-LOSTFILL' });
    await assert.rejects(orders.submitOrder(order, brief), fails(status.DEADLINE_EXCEEDED));
    const { ACCEPTED, TRADE } = ReportKind;
    await untilReports(simulator, order.clientOrderId, [ACCEPTED, TRADE, TRADE, TRADE]);
  });

  it('a late answer comes, later', async () => {
    await inject(Call.SUBMIT_ORDER, WireFault.LATE_ANSWER, 200);
    const started = performance.now();
    assert.equal((await orders.submitOrder(newOrder(), soon)).report?.kind, ReportKind.ACCEPTED);
    assert.ok(performance.now() - started >= 195);
  });

  it('a late receipt is looked at late: taken even when nobody waits, refused when not_after has passed', async () => {
    const unfenced = newOrder();
    await inject(Call.SUBMIT_ORDER, WireFault.LATE_RECEIPT, 400);
    await assert.rejects(orders.submitOrder(unfenced, brief), fails(status.DEADLINE_EXCEEDED));
    assert.deepEqual(await takenAndHeld(unfenced), [false, false]);
    await eventually(async () => assert.deepEqual(await takenAndHeld(unfenced), [true, true]));
    assert.equal((await exchangeOrder(simulator, unfenced.clientOrderId))?.timesReceived, 1);

    const fenced = newOrder({ notAfter: timestampFromMs(Date.now() + 100) });
    await inject(Call.SUBMIT_ORDER, WireFault.LATE_RECEIPT, 200);
    await assert.rejects(orders.submitOrder(fenced, soon), fails(status.FAILED_PRECONDITION));
    assert.deepEqual(await takenAndHeld(fenced), [false, false]);
  });

  it('nonsense is by turns a report of another order and none', async () => {
    await inject(Call.SUBMIT_ORDER, WireFault.NONSENSE, 0, 2);
    const [foreign, missing] = [newOrder(), newOrder()];
    const { report } = await orders.submitOrder(foreign, soon);
    assert.ok(report !== undefined && report.clientOrderId !== foreign.clientOrderId);
    assert.equal((await orders.submitOrder(missing, soon)).report, undefined);
    for (const order of [foreign, missing]) assert.deepEqual(await takenAndHeld(order), [true, true]);
  });
});

describe('a fault of another call', () => {
  it('meets only the account it was asked for, also by its order', async () => {
    await controls.setAccount({ account: 'OTHER', status: AccountStatus.ACTIVE }, soon);
    const [mine, others] = [newOrder(), newOrder({ account: 'OTHER' })];
    await orders.submitOrder(mine, soon);
    await orders.submitOrder(others, soon);
    await inject(Call.LOOK_UP_ORDER, WireFault.UNAVAILABLE_BEFORE, 0, 1, 'OTHER');
    await inject(Call.CANCEL_ORDER, WireFault.UNAVAILABLE_AFTER, 0, 1, 'OTHER');
    assert.equal((await orders.lookUpOrder(mine, soon)).found, true);
    await assert.rejects(orders.lookUpOrder(others, soon), fails(status.UNAVAILABLE));
    assert.equal((await orders.cancelOrder(mine, soon)).outcome, CancelOutcome.CANCELLED);
    await assert.rejects(orders.cancelOrder(others, soon), fails(status.UNAVAILABLE));
    assert.equal((await exchangeOrder(simulator, others.clientOrderId))?.endedBy, ReportKind.CANCELLED);
    const messages = await messagesOf(simulator, others.clientOrderId);
    assert.deepEqual(
      messages.map((message) => [message.call, message.taken, message.account]),
      [
        [Call.SUBMIT_ORDER, true, 'OTHER'],
        [Call.LOOK_UP_ORDER, false, 'OTHER'],
        [Call.CANCEL_ORDER, true, 'OTHER'],
      ],
    );
  });

  it('makes nonsense of every call it can meet, and is gone when cleared', async () => {
    const order = newOrder();
    await orders.submitOrder(order, soon);
    const estimated = { ...order, timeInForce: undefined };
    for (const call of [Call.CANCEL_ORDER, Call.LOOK_UP_ORDER, Call.GET_TRADING_CONTEXT, Call.ESTIMATE_ORDER]) {
      await inject(call, WireFault.NONSENSE);
    }
    assert.equal((await orders.lookUpOrder(order, soon)).reports[0]?.clientOrderId, 'nobody-sent-this');
    assert.equal((await orders.cancelOrder(order, soon)).outcome, CancelOutcome.UNSPECIFIED);
    assert.equal((await orders.getTradingContext(order, soon)).accountStatus, AccountStatus.UNSPECIFIED);
    const { account: of, symbol, side, quantity, type, priceKobo } = estimated;
    const estimate = { account: of, symbol, side, quantity, type, priceKobo };
    assert.equal((await orders.estimateOrder(estimate, soon)).totalKoboDecimal, 'many');
    await inject(Call.GET_TRADING_CONTEXT, WireFault.HANG);
    await controls.clearDirectives({}, soon);
    assert.equal((await orders.getTradingContext(order, soon)).accountStatus, AccountStatus.ACTIVE);
    assert.equal((await orders.estimateOrder(estimate, soon)).amountKobo, 10_000n);
  });

  it('is removed for one account, or for one object, and others stay', async () => {
    const order = newOrder();
    const { accountStatus: usual } = await orders.getTradingContext(order, soon);
    const isSpoiled = async () => (await orders.getTradingContext(order, soon)).accountStatus !== usual;
    await inject(Call.GET_TRADING_CONTEXT, WireFault.NONSENSE);
    await controls.clearDirectives({ account: 'ANOTHER' }, soon);
    assert.equal(await isSpoiled(), true);
    await inject(Call.GET_TRADING_CONTEXT, WireFault.NONSENSE);
    await controls.clearDirectives({ clientId: 'ord_another' }, soon);
    assert.equal(await isSpoiled(), true);
    await inject(Call.GET_TRADING_CONTEXT, WireFault.NONSENSE);
    await controls.clearDirectives({ account: order.account }, soon);
    assert.equal(await isSpoiled(), false);
  });

  it('is refused when it makes no sense itself', async () => {
    await assert.rejects(inject(Call.UNSPECIFIED, WireFault.HANG), fails(status.INVALID_ARGUMENT));
    await assert.rejects(inject(Call.SUBMIT_ORDER, 99 as WireFault), fails(status.INVALID_ARGUMENT));
    await assert.rejects(inject(Call.SUBMIT_ORDER, WireFault.HANG, -1), fails(status.INVALID_ARGUMENT));
  });
});
