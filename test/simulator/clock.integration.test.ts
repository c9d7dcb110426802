import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { timestampMs } from '@bufbuild/protobuf/wkt';
import { status } from '@grpc/grpc-js';
import { ReportKind, TimeInForce } from '../../src/gen/marina/broker/v1/orders_pb.ts';
import {
  StatementSection,
  Statements,
  StatementWithdrawalState,
} from '../../src/gen/marina/broker/v1/statements_pb.ts';
import { WithdrawalDestination, WithdrawalReportKind } from '../../src/gen/marina/broker/v1/withdrawals_pb.ts';
import { WithdrawalOutcome } from '../../src/gen/marina/simulator/v1/controls_pb.ts';
import { lagosDay, nextLagosMidnight } from '../../src/kit/clock.ts';
import { createGrpcClient } from '../../src/kit/grpc-client.ts';
import {
  account,
  connect,
  exchangeOrder,
  fails,
  messagesOf,
  newOrder,
  newWithdrawal,
  reportsOf,
  soon,
  startTestSimulator,
  untilReports,
} from './fixture.ts';

const { ACCEPTED, CANCELLED, EXPIRED, TRADE } = ReportKind;
const simulator = await startTestSimulator({ min: 50, max: 60 });

describe("the exchange's clock", () => {
  it('moves forward only, ends day orders at the end of the Lagos day and survives a restart', async () => {
    const { orders, controls } = simulator;
    const [day, partly, filled, cancelled] = [
      newOrder(),
      newOrder({ symbol: 'SIM-HALF' }),
      newOrder({ symbol: 'SIM-FILL' }),
      newOrder(),
    ];
    const lasting = newOrder({ timeInForce: TimeInForce.GTC });
    for (const order of [day, partly, filled, cancelled, lasting]) await orders.submitOrder(order, soon);
    await untilReports(simulator, partly.clientOrderId, [ACCEPTED, TRADE]);
    await orders.cancelOrder(cancelled, soon);

    const untilMidnight = nextLagosMidnight(Date.now()) - Date.now();
    const { now } = await controls.setClock({ offsetMs: BigInt(untilMidnight + 1_000) }, soon);
    assert.ok(now !== undefined && timestampMs(now) > Date.now());
    const reports = await untilReports(simulator, day.clientOrderId, [ACCEPTED, EXPIRED]);
    const expiredAt = reports[1]?.at;
    assert.ok(expiredAt !== undefined && lagosDay(timestampMs(expiredAt)) > lagosDay(Date.now()));
    await untilReports(simulator, partly.clientOrderId, [ACCEPTED, TRADE, EXPIRED]);
    await untilReports(simulator, filled.clientOrderId, [ACCEPTED, TRADE]);
    await untilReports(simulator, cancelled.clientOrderId, [ACCEPTED, CANCELLED]);
    assert.equal((await exchangeOrder(simulator, lasting.clientOrderId))?.endedBy, ReportKind.UNSPECIFIED);

    const again = await controls.setClock({ offsetMs: 0n }, soon);
    assert.ok(again.now !== undefined && timestampMs(again.now) > Date.now() + untilMidnight);
    await assert.rejects(controls.setClock({ offsetMs: -1n }, soon), fails(status.INVALID_ARGUMENT));

    await controls.setCapabilities({ honoursNotAfter: false }, soon);
    const restarted = await simulator.restart();
    const later = await restarted.controls.setClock({ offsetMs: 0n }, soon);
    assert.ok(later.now !== undefined && timestampMs(later.now) > Date.now() + untilMidnight);
    assert.equal((await restarted.orders.getCapabilities({}, soon)).honoursNotAfter, false);
    assert.deepEqual(await reportsOf(restarted, day.clientOrderId), reports);

    const next = newOrder();
    await restarted.orders.submitOrder(next, soon);
    const [message] = await messagesOf(restarted, next.clientOrderId);
    assert.ok(message?.receivedAt !== undefined && timestampMs(message.receivedAt) <= Date.now());
  });

  it('the statement of a day has each withdrawal as it was when the day ended', async () => {
    const { withdrawals, controls } = connect(simulator.port);
    const statements = createGrpcClient(Statements, `127.0.0.1:${simulator.port}`);
    after(() => statements.close());
    await controls.forceWithdrawal({ account, outcome: WithdrawalOutcome.HOLD }, soon);
    const withdrawal = newWithdrawal(1n, WithdrawalDestination.BANK_ACCOUNT, account);
    await withdrawals.submitWithdrawal(withdrawal, soon);
    const { clientWithdrawalId } = withdrawal;
    const { now } = await controls.setClock({ offsetMs: 0n }, soon);
    assert.ok(now !== undefined);
    const day = lagosDay(timestampMs(now));
    const stateOn = async (asked: string) => {
      const section = StatementSection.WITHDRAWALS;
      const page = await statements.getStatement({ day: asked, section, limit: 1_000 }, soon);
      const stated = page.withdrawals.find((each) => each.clientWithdrawalId === clientWithdrawalId);
      return stated && StatementWithdrawalState[stated.state];
    };
    assert.equal(await stateOn(day), 'ACCEPTED');
    const toTomorrow = nextLagosMidnight(timestampMs(now)) - Date.now() + 1_000;
    await controls.setClock({ offsetMs: BigInt(toTomorrow) }, soon);
    await controls.decideWithdrawal({ clientWithdrawalId, kind: WithdrawalReportKind.PAID }, soon);
    const tomorrow = lagosDay(Date.now() + toTomorrow);
    assert.deepEqual([await stateOn(day), await stateOn(tomorrow)], ['ACCEPTED', 'PAID']);
  });
});
