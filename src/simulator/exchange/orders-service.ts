import type { MessageInitShape } from '@bufbuild/protobuf';
import { status } from '@grpc/grpc-js';
import {
  type CancelOrderRequest,
  type CancelOrderResponseSchema,
  CancelOutcome,
  type EstimateOrderResponseSchema,
  type GetTradingContextRequest,
  type GetTradingContextResponseSchema,
  type LookUpOrderRequest,
  type LookUpOrderResponseSchema,
  type Orders,
  ReportKind,
  type SubmitOrderRequest,
  type SubmitOrderResponseSchema,
} from '../../gen/marina/broker/v1/orders_pb.ts';
import { Call } from '../../gen/marina/simulator/v1/controls_pb.ts';
import { magicOf } from '../magic.ts';
import type { OrderReport } from '../model.ts';
import type { SimulatorWriter } from '../store/writer.ts';
import { instantMs, isWhole, submissionFrom, whole } from '../validation.ts';
import { carrySubmission, completeUntil, receipt, unrecorded } from '../wire/legs.ts';
import { RpcError, type SimulatorHandlers, type WireCall } from '../wire/rpc.ts';
import type { Wire } from '../wire/wire.ts';
import type { World } from '../world.ts';
import { estimate } from './estimate.ts';
import { type ExchangeSettings, end, submit } from './exchange.ts';
import { instrumentMessage, reportMessage } from './messages.ts';
import type { Nonsense } from './nonsense.ts';
import type { Records } from './records.ts';

export interface OrdersContext {
  readonly world: World;
  readonly writer: SimulatorWriter;
  readonly records: Records;
  readonly wire: Wire;
  readonly exchange: ExchangeSettings;
  readonly nonsense: Nonsense;
}

/** The broker's order service without its stream. Each call passes the faults first. */
export function ordersService(context: OrdersContext): SimulatorHandlers<typeof Orders> {
  const { world, wire, nonsense } = context;
  return {
    getCapabilities: async () => ({
      ...world.capabilities,
      withdrawalDestinations: [...world.withdrawals.destinations],
    }),
    getTradingContext: (request, call) =>
      wire.carry<MessageInitShape<typeof GetTradingContextResponseSchema>>(call, {
        ...unrecorded(Call.GET_TRADING_CONTEXT, request.account),
        take: async () => tradingContext(world, request),
        nonsense: nonsense.tradingContext,
      }),
    estimateOrder: (request, call) =>
      wire.carry<MessageInitShape<typeof EstimateOrderResponseSchema>>(call, {
        ...unrecorded(Call.ESTIMATE_ORDER, request.account),
        take: async () => estimate(world, request),
        nonsense: nonsense.estimate,
      }),
    submitOrder: (request, call) => submitOrder(context, request, call),
    lookUpOrder: (request, call) => lookUpOrder(context, request, call),
    cancelOrder: (request, call) => cancelOrder(context, request, call),
  };
}

function submitOrder(context: OrdersContext, request: SubmitOrderRequest, call: WireCall) {
  const { clientOrderId: id, account, symbol, partner = '' } = request;
  const { wire, wireDelayMs: delayMs = 0 } = magicOf(symbol) ?? {};
  // Who names no partner is not a gateway, and has a connection of its own.
  const magicFault = wire === undefined ? undefined : { wire, delayMs, partner, meetsCallOnly: partner !== '' };
  return carrySubmission(context, call, {
    ...{ call: Call.SUBMIT_ORDER, kind: 'order', id, account, request, needs: { orders: [id] } },
    magicFault,
    check: submissionFrom,
    submit: (unit, submission) => submit(unit, submission, instantMs(request.notAfter), context.exchange),
    answer: (report): MessageInitShape<typeof SubmitOrderResponseSchema> => ({ report: reportMessage(report) }),
    nonsense: context.nonsense.submit,
  });
}

function cancelOrder(context: OrdersContext, request: CancelOrderRequest, call: WireCall) {
  const { writer, wire, records, world, nonsense } = context;
  const id = request.clientOrderId;
  const received = receipt(world, Call.CANCEL_ORDER, id, call);
  return wire.carry<MessageInitShape<typeof CancelOrderResponseSchema>>(call, {
    call: Call.CANCEL_ORDER,
    clientId: id,
    account: () => records.accountOf(id),
    record: () => writer.run([id], (unit) => received(unit, unit.order(id)?.account ?? '', false)),
    take: async (recorded) => {
      const result = await writer.run([id], (unit) => {
        const order = unit.order(id);
        received(unit, order?.account ?? '', order !== undefined, recorded);
        const endedBy = order?.endedBy;
        return { endedBy, changed: end(unit, id, ReportKind.CANCELLED) };
      });
      if (result.changed.outcome === 'unknown') throw new RpcError(status.NOT_FOUND, 'The broker has no such order.');
      if (result.changed.outcome === 'reported') return cancelled(result.changed.report);
      const earlier = result.endedBy === ReportKind.CANCELLED ? await records.cancellationOf(id) : undefined;
      return earlier === undefined ? { outcome: CancelOutcome.TOO_LATE } : cancelled(earlier);
    },
    nonsense: nonsense.cancel,
  });
}

function lookUpOrder(context: OrdersContext, request: LookUpOrderRequest, call: WireCall) {
  const { writer, wire, records, world, nonsense } = context;
  const id = request.clientOrderId;
  const received = receipt(world, Call.LOOK_UP_ORDER, id, call);
  const record = (taken: boolean, number?: number) =>
    writer.run([id], (unit) => received(unit, unit.order(id)?.account ?? '', taken, number));
  return wire.carry<MessageInitShape<typeof LookUpOrderResponseSchema>>(call, {
    call: Call.LOOK_UP_ORDER,
    clientId: id,
    account: () => records.accountOf(id),
    record: () => record(false),
    take: async (recorded) => {
      const valid = isWhole(request.afterNumber);
      // Through the writer first, so that earlier submissions are in the table.
      await record(valid, recorded);
      const afterNumber = whole(request.afterNumber, 'after_number');
      const { found, records: reports, hasMore } = await records.reportsOf(id, afterNumber);
      return { found, reports: reports.map(reportMessage), hasMore, completeUntil: completeUntil(world) };
    },
    nonsense: nonsense.lookUp,
  });
}

function tradingContext(world: World, request: GetTradingContextRequest) {
  const instrument = world.instrument(request.symbol);
  return {
    accountStatus: world.accountStatus(request.account),
    instrument: instrument === undefined ? undefined : instrumentMessage(instrument),
  };
}

function cancelled(report: OrderReport) {
  return { outcome: CancelOutcome.CANCELLED, report: reportMessage(report) };
}
