import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { status } from '@grpc/grpc-js';
import {
  AccountStatus,
  CancelOrderRequestSchema,
  CancelOutcome,
  GetTradingContextRequestSchema,
  LookUpOrderRequestSchema,
  OrderType,
  ReportKind,
  Side,
  type SubmitOrderRequest,
  SubmitOrderRequestSchema,
  TimeInForce,
} from '../../../src/gen/marina/broker/v1/orders_pb.ts';
import { Call, WireFault } from '../../../src/gen/marina/simulator/v1/controls_pb.ts';
import { ordersService } from '../../../src/simulator/exchange/orders-service.ts';
import { unanswered } from '../../../src/simulator/wire/rpc.ts';
import { dayMs, SimulatedBroker, wednesday } from '../../support/simulated-broker.ts';
import { answered, refusalOf, simulatedServices, wireCall } from '../../support/simulated-services.ts';

const { ACCEPTED, CANCELLED } = ReportKind;

async function start() {
  const broker = await SimulatedBroker.start();
  await broker.change({}, (unit) => unit.setAccount('A1', AccountStatus.ACTIVE));
  const parts = simulatedServices(broker);
  const service = ordersService(parts);
  const submit = (changes: Partial<Record<keyof SubmitOrderRequest, unknown>> = {}, headers = {}) => {
    const request = {
      ...{ clientOrderId: 'ord_1', account: 'A1', symbol: 'SIM-REST', side: Side.BUY, type: OrderType.LIMIT },
      ...{ timeInForce: TimeInForce.DAY, quantity: 5n, priceKobo: 1_000n, note: Buffer.from('note'), ...changes },
    };
    return service.submitOrder(create(SubmitOrderRequestSchema, request as never), wireCall(headers));
  };
  const cancel = (id = 'ord_1') =>
    service.cancelOrder(create(CancelOrderRequestSchema, { clientOrderId: id }), wireCall());
  const lookUp = (id = 'ord_1', afterNumber = 0n) =>
    answered(service.lookUpOrder(create(LookUpOrderRequestSchema, { clientOrderId: id, afterNumber }), wireCall()));
  /** The recorded messages: the call, its account and whether it was taken. */
  const messages = () =>
    broker.database
      .rows('received_messages')
      .map((row) => `${Call[Number(row.call_kind)]} ${row.account} ${row.taken}`);
  const inject = (call: Call, wire: WireFault, account = '') =>
    parts.directives.addFault({ call, account, clientId: '', wire, delayMs: 0 }, 1);
  return { broker, ...parts, service, submit, cancel, lookUp, messages, inject };
}

describe('the order service of the simulated broker', () => {
  it('an order that is taken is answered with its first report, and kept with its note and its request', async () => {
    const { broker, submit } = await start();
    const answer = await submit({}, { 'x-request-id': 'req_1', traceparent: 'trace' });
    assert.ok(answer !== unanswered);
    assert.deepEqual(
      [answer.report?.kind, answer.report?.clientOrderId, answer.report?.number],
      [ACCEPTED, 'ord_1', 1n],
    );
    const [message] = broker.database.rows('received_messages');
    assert.deepEqual(
      [message?.call_kind, message?.client_order_id, message?.account, message?.taken, message?.request_id],
      [Call.SUBMIT_ORDER, 'ord_1', 'A1', 1, 'req_1'],
    );
    assert.deepEqual([message?.trace_parent, message?.received_at_ms], ['trace', wednesday]);
    assert.deepEqual(broker.database.rows('submissions'), [
      { number: 1, client_id: 'ord_1', note: Buffer.from('note') },
    ]);
  });

  it('a copy is refused, and recorded as not taken, without a note', async () => {
    const { broker, submit, messages } = await start();
    await submit();
    assert.equal((await refusalOf(() => submit()))?.code, status.ALREADY_EXISTS);
    assert.deepEqual(messages(), ['SUBMIT_ORDER A1 1', 'SUBMIT_ORDER A1 0']);
    assert.equal(broker.database.rows('submissions').length, 1);
  });

  it('an order that comes too late is refused for good, so that a later copy is not taken', async () => {
    const { broker, submit, messages } = await start();
    const late = { notAfter: timestampFromMs(wednesday - 1) };
    assert.equal((await refusalOf(() => submit(late)))?.code, status.FAILED_PRECONDITION);
    assert.equal((await refusalOf(() => submit()))?.code, status.ALREADY_EXISTS);
    assert.deepEqual(
      [broker.database.rows('orders').length, messages()],
      [0, ['SUBMIT_ORDER A1 0', 'SUBMIT_ORDER A1 0']],
    );
    assert.equal(
      await refusalOf(() => submit({ clientOrderId: 'ord_2', notAfter: timestampFromMs(wednesday) })),
      undefined,
    );
  });

  it('an order that makes no sense is recorded, and its id can still be used', async () => {
    const { submit, messages } = await start();
    assert.equal((await refusalOf(() => submit({ quantity: 0n })))?.code, status.INVALID_ARGUMENT);
    assert.deepEqual(messages(), ['SUBMIT_ORDER A1 0']);
    assert.equal(await refusalOf(() => submit()), undefined);
  });

  it('a fault decides whether the order is taken and what its caller hears', async () => {
    const {
      HANG,
      RESET_BEFORE,
      UNAVAILABLE_BEFORE,
      TOO_LATE,
      LOSE_ANSWER,
      RESET_AFTER,
      UNAVAILABLE_AFTER,
      LATE_ANSWER,
    } = WireFault;
    const cases: [WireFault, boolean, status | 'nothing' | 'answer', boolean?][] = [
      [HANG, false, 'nothing'],
      [RESET_BEFORE, false, 'nothing'],
      [UNAVAILABLE_BEFORE, false, status.UNAVAILABLE],
      [TOO_LATE, false, status.FAILED_PRECONDITION, true],
      [LOSE_ANSWER, true, 'nothing'],
      [RESET_AFTER, true, 'nothing'],
      [UNAVAILABLE_AFTER, true, status.UNAVAILABLE],
      [LATE_ANSWER, true, 'answer'],
      [WireFault.LATE_RECEIPT, true, 'answer'],
      [WireFault.UNSPECIFIED, true, 'answer'],
    ];
    for (const [fault, isTaken, heard, isRefused = false] of cases) {
      const { broker, submit, messages, inject, done } = await start();
      inject(Call.SUBMIT_ORDER, fault);
      const answer = await submit().catch((error: { code: status }) => error.code);
      const told = typeof answer === 'number' ? answer : answer === unanswered ? 'nothing' : 'answer';
      const name = WireFault[fault];
      assert.deepEqual([told, broker.database.rows('orders').length], [heard, isTaken ? 1 : 0], name);
      assert.deepEqual(messages(), [`SUBMIT_ORDER A1 ${isTaken ? 1 : 0}`], name);
      assert.equal(broker.database.rows('refused_submissions').length, isRefused ? 1 : 0, name);
      assert.deepEqual(done, name?.startsWith('RESET') ? ['reset peer'] : [], name);
    }
  });

  it('a magic symbol’s fault meets only this call where a partner is named, and no other symbol has one', async () => {
    const { submit, done } = await start();
    assert.equal((await refusalOf(() => submit({ symbol: 'SIM-RESET', partner: 'par_1' })))?.code, status.UNAVAILABLE);
    assert.deepEqual(done, []);
    assert.equal(await submit({ symbol: 'SIM-RESET', clientOrderId: 'ord_2' }), unanswered);
    assert.deepEqual(done, ['reset peer']);
    assert.equal(await submit({ symbol: 'SIM-LOST', clientOrderId: 'ord_3', partner: 'par_1' }), unanswered);
  });

  it('a cancel is answered with its report, also a second time, and a final order is too late', async () => {
    const { submit, cancel, messages, broker } = await start();
    assert.equal((await refusalOf(() => cancel()))?.code, status.NOT_FOUND);
    await submit();
    const first = await cancel();
    assert.ok(first !== unanswered);
    assert.deepEqual(
      [first.outcome, first.report?.kind, first.report?.number],
      [CancelOutcome.CANCELLED, CANCELLED, 2n],
    );
    await submit({ clientOrderId: 'ord_3' });
    await broker.change({ orders: ['ord_1'] }, (unit) => {
      const order = unit.order('ord_1');
      if (order !== undefined) unit.report(order, ReportKind.TRADE, { quantity: 1 });
    });
    assert.deepEqual(await cancel(), first);
    await submit({ clientOrderId: 'ord_2', symbol: 'SIM-FILL' });
    assert.deepEqual(await cancel('ord_2'), { outcome: CancelOutcome.TOO_LATE });
    assert.deepEqual(
      messages().filter((each) => each.startsWith('CANCEL')),
      [...['CANCEL_ORDER  0', 'CANCEL_ORDER A1 1', 'CANCEL_ORDER A1 1', 'CANCEL_ORDER A1 1']],
    );
  });

  it('a fault of an account’s cancels meets the order by its account, and is recorded', async () => {
    const { submit, cancel, messages, inject, broker } = await start();
    await submit();
    inject(Call.CANCEL_ORDER, WireFault.HANG, 'A2');
    inject(Call.CANCEL_ORDER, WireFault.HANG, 'A1');
    assert.equal(await cancel(), unanswered);
    assert.deepEqual([broker.database.rows('reports').length, messages().at(-1)], [1, 'CANCEL_ORDER A1 0']);
    assert.notEqual(await cancel(), unanswered);
  });

  it('a look-up has the reports behind a number, and the day until which the record is complete', async () => {
    const { submit, cancel, lookUp, messages, broker } = await start();
    await submit();
    await cancel();
    const [all, rest, unknown] = [await lookUp(), await lookUp('ord_1', 1n), await lookUp('ord_9')];
    assert.deepEqual(
      [all.found, all.reports?.map(({ kind }) => kind), all.hasMore],
      [true, [ACCEPTED, CANCELLED], false],
    );
    assert.deepEqual(
      rest.reports?.map(({ number }) => number),
      [2n],
    );
    assert.deepEqual([unknown.found, unknown.reports], [false, []]);
    const dayStart = Date.UTC(2026, 5, 30, 23);
    assert.deepEqual(all.completeUntil, timestampFromMs(dayStart));
    broker.world.clock.errorMs = dayMs;
    const later = await lookUp();
    assert.deepEqual(later.completeUntil, timestampFromMs(dayStart + dayMs));
    assert.deepEqual(messages().slice(2, 5), ['LOOK_UP_ORDER A1 1', 'LOOK_UP_ORDER A1 1', 'LOOK_UP_ORDER  1']);
    assert.equal((await refusalOf(() => lookUp('ord_1', -1n)))?.code, status.INVALID_ARGUMENT);
    assert.equal(messages().at(-1), 'LOOK_UP_ORDER A1 0');
  });

  it('each call meets only the faults of its order and its account, and may have an answer of nonsense', async () => {
    const { submit, cancel, lookUp, directives } = await start();
    await submit();
    const { UNAVAILABLE_BEFORE, NONSENSE } = WireFault;
    const fault = { wire: UNAVAILABLE_BEFORE, delayMs: 0 };
    const second = () => submit({ clientOrderId: 'ord_2' });
    for (const [call, ask, id] of [
      [Call.SUBMIT_ORDER, second, 'ord_2'],
      [Call.CANCEL_ORDER, () => cancel(), 'ord_1'],
      [Call.LOOK_UP_ORDER, () => lookUp(), 'ord_1'],
    ] as const) {
      for (const about of [
        { account: '', clientId: id },
        { account: 'A1', clientId: '' },
      ]) {
        directives.addFault({ ...fault, call, account: 'A2', clientId: '' }, 1);
        directives.addFault({ ...fault, call, account: '', clientId: 'ord_9' }, 1);
        directives.addFault({ ...fault, call, ...about }, 1);
        assert.equal((await refusalOf(ask))?.code, status.UNAVAILABLE, Call[call]);
        directives.clear();
      }
    }
    directives.addFault({ wire: NONSENSE, delayMs: 0, call: Call.LOOK_UP_ORDER, account: '', clientId: '' }, 1);
    assert.notEqual((await lookUp('ord_9')).found, false);
    assert.equal((await lookUp('ord_9')).found, false);
  });

  it('the trading context and the capabilities are the broker’s own', async () => {
    const { service, world, broker } = await start();
    const context = (account: string, symbol: string) =>
      service.getTradingContext(create(GetTradingContextRequestSchema, { account, symbol }), wireCall());
    const found = await context('A1', 'SIM-REST');
    assert.ok(found !== unanswered);
    assert.deepEqual(
      [found.accountStatus, found.instrument?.symbol, found.instrument?.upperPriceKobo],
      [AccountStatus.ACTIVE, 'SIM-REST', 1_100n],
    );
    assert.deepEqual(await context('A9', 'NONE'), {
      accountStatus: AccountStatus.NOT_AT_BROKER,
      instrument: undefined,
    });
    await broker.change({}, (unit) => unit.setCapabilities({ accountStatus: false }));
    const capabilities = await service.getCapabilities({} as never, wireCall());
    assert.deepEqual(capabilities, {
      ...{ honoursNotAfter: true, accountTransactions: true, accountStatus: false },
      withdrawalDestinations: [...world.withdrawals.destinations],
    });
  });
});
