import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { status } from '@grpc/grpc-js';
import { AccountStatus, ReportKind } from '../gen/marina/broker/v1/orders_pb.ts';
import {
  Call,
  type Controls,
  type DisturbReportsRequest,
  type ForceOutcomeRequest,
  type InjectFaultRequest,
  Outcome,
  StatedTime,
  WireFault,
} from '../gen/marina/simulator/v1/controls_pb.ts';
import { type BackOfficeControlsContext, backOfficeControls } from './back-office/controls.ts';
import {
  setDestinations,
  type WithdrawalControlsContext,
  withdrawalControls,
} from './back-office/withdrawal-controls.ts';
import { type ClearingControlsContext, clearingControls } from './clearing/controls.ts';
import { type Changed, end, fill } from './exchange/exchange.ts';
import { instrumentMessage, reportMessage } from './exchange/messages.ts';
import { type MarketControlsContext, marketControls } from './market/controls.ts';
import { changedInstrument } from './market/instrument-change.ts';
import { type Lies, lieControls } from './statements/lies.ts';
import { check, checkCount, checkPartner, maxDelayMs, maxTimes, text, whole } from './validation.ts';
import type { Disturbance } from './wire/disturbance.ts';
import { RpcError, type SimulatorHandlers } from './wire/rpc.ts';
import { maxAccounts, maxInstruments } from './world.ts';

const maxParts = 100;
const maxDisturbed = 100_000;
/** A hundred years: a clock further ahead is a mistake. */
const maxOffsetMs = 100 * 366 * 86_400_000;
const maxClockErrorMs = 366 * 86_400_000;

/** Streams that can be made to misbehave. */
interface Disturbable {
  disturb(disturbance: Disturbance): void;
  breakAll(): void;
}

/** The parts that the controls need. */
export interface ControlsContext
  extends BackOfficeControlsContext,
    WithdrawalControlsContext,
    ClearingControlsContext,
    MarketControlsContext {
  readonly streams: Disturbable & MarketControlsContext['streams'];
  readonly applicationStreams: Disturbable;
  readonly withdrawalStreams: Disturbable;
  readonly clockMoved: () => void;
  readonly lies: Lies;
}

/** The controls. Each is one change through the writer, or a change of state that is only in memory on purpose. */
export function controlsService(context: ControlsContext): SimulatorHandlers<typeof Controls> {
  const { world, writer, records, directives } = context;
  return {
    ...backOfficeControls(context),
    ...withdrawalControls(context),
    ...clearingControls(context),
    ...marketControls(context),
    ...lieControls(world, context.lies),
    setClock: async ({ offsetMs }) => {
      const offset = whole(offsetMs, 'offset_ms');
      check(offset <= maxOffsetMs, 'offset_ms');
      await writer.run([], (unit) => unit.setClockOffset(offset));
      context.clockMoved();
      return { now: timestampFromMs(world.clock.now()) };
    },
    setClockError: async ({ errorMs, stated }) => {
      check(Math.abs(Number(errorMs)) <= maxClockErrorMs, 'error_ms');
      check(stated in StatedTime, 'stated');
      Object.assign(world.clock, { errorMs: Number(errorMs), stated });
      return {};
    },
    forceOutcome: async (request) => {
      checkDirective(request);
      check(request.outcome in Outcome, 'outcome');
      checkCount(request.parts, maxParts, 'parts');
      const { outcome, rejectReason, delayMs } = request;
      const behaviour = { outcome, rejectReason, parts: Math.max(1, request.parts), delayMs };
      const { account, symbol, times, partner } = request;
      directives.addOutcome({ account, symbol, behaviour }, times, partner);
      return {};
    },
    injectFault: async (request) => {
      checkDirective(request);
      check(request.call !== Call.UNSPECIFIED && request.call in Call, 'call');
      check(request.fault in WireFault, 'fault');
      const { call, account, clientId, fault: wire, delayMs, times, partner } = request;
      directives.addFault({ call, account, clientId, wire, delayMs }, times, partner);
      return {};
    },
    clearDirectives: async ({ account, clientId }) => {
      directives.clear({ account, clientId });
      if (account === '' && clientId === '') context.lies.clear();
      return {};
    },
    fillOrder: async (request) => {
      const id = request.clientOrderId;
      const quantity = whole(request.quantity, 'quantity');
      const priceKobo = whole(request.priceKobo, 'price_kobo');
      return reported(await writer.run([id], (unit) => fill(unit, id, quantity, priceKobo)));
    },
    expireOrder: async ({ clientOrderId: id }) =>
      reported(await writer.run([id], (unit) => end(unit, id, ReportKind.EXPIRED))),
    rejectOrder: async ({ clientOrderId: id, rejectReason }) =>
      reported(await writer.run([id], (unit) => end(unit, id, ReportKind.REJECTED, rejectReason))),
    disturbReports: async (request) => {
      checkDisturbance(request);
      const { repeat, swap, omit } = request;
      check(!(request.applications && request.withdrawals), 'withdrawals');
      const others = request.applications ? context.applicationStreams : context.streams;
      const streams = request.withdrawals ? context.withdrawalStreams : others;
      if (repeat + swap + omit > 0) streams.disturb({ repeat, swap, omit });
      if (request.breakStreams) streams.breakAll();
      return {};
    },
    setAccount: async ({ account, status: accountStatus }) => {
      text(account, 'account', 64);
      check(accountStatus !== AccountStatus.UNSPECIFIED && accountStatus in AccountStatus, 'status');
      checkRoom(world.accounts, account, maxAccounts);
      await writer.run([], (unit) => unit.setAccount(account, accountStatus));
      return {};
    },
    setInstrument: async (request) => {
      const symbol = text(request.instrument?.symbol ?? '', 'instrument.symbol', 32);
      checkRoom(world.instruments, symbol, maxInstruments);
      await writer.run([], (unit) => unit.setInstrument(changedInstrument(unit.world, request)));
      return {};
    },
    setCapabilities: async ({ honoursNotAfter, accountTransactions, accountStatus, ...request }) => {
      const changed = {
        honoursNotAfter,
        ...(accountTransactions === undefined ? {} : { accountTransactions }),
        ...(accountStatus === undefined ? {} : { accountStatus }),
      };
      await writer.run([], (unit) => {
        unit.setCapabilities(changed);
        setDestinations(unit, request);
      });
      // A broker that takes none has no stream of them.
      if (world.withdrawals.destinations.length === 0) context.withdrawalStreams.breakAll();
      return {};
    },
    listMessages: async (request) => {
      const { messages, hasMore } = await records.messages(
        whole(request.afterNumber, 'after_number'),
        request.clientOrderId,
      );
      return { messages, hasMore };
    },
    listExchangeOrders: async (request) => {
      const { orders, hasMore } = await records.orders(
        whole(request.afterSequence, 'after_sequence'),
        request.clientOrderId,
      );
      return { orders, hasMore };
    },
    listInstruments: async () => {
      const instruments = [...world.instruments.values()].sort((one, other) => one.position - other.position);
      const now = world.clock.now();
      return { instruments: instruments.map((each) => instrumentMessage(world.instrument(each.symbol, now) ?? each)) };
    },
  };
}

const refusals: Readonly<Record<Exclude<Changed['outcome'], 'reported'>, readonly [status, string]>> = {
  unknown: [status.NOT_FOUND, 'The exchange has no such order.'],
  final: [status.FAILED_PRECONDITION, 'The order is final.'],
  too_many: [status.INVALID_ARGUMENT, 'More than is left of the order.'],
  through_limit: [status.INVALID_ARGUMENT, 'The price is through the limit of the order.'],
  no_price: [status.INVALID_ARGUMENT, 'The order has no price of its own; one must be given.'],
};

function reported(changed: Changed) {
  if (changed.outcome !== 'reported') throw new RpcError(...refusals[changed.outcome]);
  return { report: reportMessage(changed.report) };
}

function checkDirective(request: ForceOutcomeRequest | InjectFaultRequest): void {
  checkCount(request.times, maxTimes, 'times');
  checkCount(request.delayMs, maxDelayMs, 'delay_ms');
  checkPartner(request);
}

function checkDisturbance({ repeat, swap, omit }: DisturbReportsRequest): void {
  checkCount(repeat, maxDisturbed, 'repeat');
  checkCount(swap, maxDisturbed, 'swap');
  checkCount(omit, maxDisturbed, 'omit');
}

function checkRoom(held: ReadonlyMap<string, unknown>, key: string, max: number): void {
  if (held.size >= max && !held.has(key))
    throw new RpcError(status.RESOURCE_EXHAUSTED, `No more than ${max} are kept.`);
}
