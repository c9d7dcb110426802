import assert from 'node:assert/strict';
import type { JsonObject } from '@bufbuild/protobuf';
import { status } from '@grpc/grpc-js';
import { eventually } from '../eventually.ts';
import { callTimeout } from '../gateway.ts';
import { fc } from '../properties.ts';
import type { ModelOrder, ModelStop, PartnerModel, StoppedAction } from './partner-model.ts';
import {
  ask,
  assertAnswer,
  boundMs,
  type Choice,
  type Command,
  operate,
  untilGauge,
  type Whole,
} from './surroundings.ts';

/** The targets of stops: the partner, one of its accounts, a symbol, or everything. */
const targets = ['partner', 'account 0', 'account 1', 'SIM-REST', 'SIM-FILL', 'everything'] as const;
const actionSets: readonly (readonly StoppedAction[])[] = [
  ['buy'],
  ['fund'],
  ['withdraw'],
  ['buy', 'fund'],
  ['sell'],
  ['apply'],
];
/** A stop of a symbol is of orders alone, and neither a symbol nor an account has applications. */
function mayBeOf(action: StoppedAction, target: string): boolean {
  if (target.startsWith('SIM-')) return action === 'buy' || action === 'sell';
  return action !== 'apply' || !target.startsWith('account');
}

function targetOf({ partner }: Whole, target: string): JsonObject {
  if (target === 'partner') return { partner_id: partner.id };
  if (target === 'everything') return { everything: true };
  const [, at] = /^account (\d)$/.exec(target) ?? [];
  return at === undefined ? { symbol: target } : { account: partner.accounts[Number(at)] ?? '' };
}

const isSame = (one: Omit<ModelStop, 'id'>, other: Omit<ModelStop, 'id'>) =>
  one.target === other.target && one.actions.join() === other.actions.join();

/** Stops some of what partners can start. The same stop again is the one that there is. */
function addStop(target: string, actions: readonly StoppedAction[]): Command {
  return {
    toString: () => `stop ${actions.join(' and ')} of ${target}`,
    check: () => actions.every((action) => mayBeOf(action, target)),
    run: async (model, whole) => {
      const before = whole.unclear();
      const wanted = actions.map((action) => `STOP_ACTION_${action.toUpperCase()}`);
      const { changed, stop } = await operate(whole, 'Trading.AddStop', {
        ...targetOf(whole, target),
        actions: wanted,
      });
      const there = model.stops.find((one) => isSame(one, { target, actions }));
      if (there !== undefined) {
        assert.deepEqual([changed, stop.id], [false, there.id], 'the same stop is returned');
        return;
      }
      assert.ok(changed || whole.unclear() > before, 'the stop is new');
      model.stops.push({ id: stop.id, target, actions });
    },
  };
}

/** Ends a stop. Others that forbid the same go on. */
function endStop([at = 0]: Choice): Command {
  return {
    toString: () => `end stop ${at}`,
    check: ({ stops }) => stops.length > 0,
    run: async (model, whole) => {
      const stop = model.stops[at % model.stops.length] as ModelStop;
      await operate(whole, 'Trading.EndStop', { id: stop.id });
      model.stops.splice(model.stops.indexOf(stop), 1);
      await untilStopsAreKnown(model, whole);
    },
  };
}

/** Ends all stops: those of a symbol, or of everything, would hold for the next sequence too. */
export async function endAllStops(model: PartnerModel, whole: Whole): Promise<void> {
  if (model.stops.length === 0) return;
  for (const { id } of model.stops) await operate(whole, 'Trading.EndStop', { id });
  model.stops.splice(0);
  await untilStopsAreKnown(model, whole);
}

function untilStopsAreKnown({ stops }: PartnerModel, whole: Whole): Promise<void> {
  return untilGauge(whole, 'marina_stops_open', stops.length);
}

/** Suspends the partner for a while, in which the exchange goes on and nothing is answered. */
function suspend([at = 0, share = 0]: Choice): Command {
  return {
    toString: () => `suspend the partner, trade order ${at}, and resume`,
    check: () => true,
    run: async (model, whole) => {
      const { id: partner_id } = whole.partner;
      const isRefused = (isIt: boolean) =>
        eventually(async () => {
          for (const replica of whole.replicas.keys()) {
            const answer = await ask(whole, replica, 'GET', '/v1/limits');
            assertAnswer(answer, isIt ? { status: 401, code: 'unauthorized' } : { status: 200 });
          }
        }, boundMs);
      await operate(whole, 'Partners.SuspendPartner', { partner_id });
      await isRefused(true);
      const { openOrders } = model;
      const order = openOrders[at % openOrders.length] as ModelOrder | undefined;
      if (order !== undefined) {
        const quantity = 1 + (share % (order.body.quantity - order.filled));
        await whole.controls.fillOrder({ clientOrderId: order.id, quantity: BigInt(quantity) }, callTimeout);
        order.filled += quantity;
        order.state = order.filled === order.body.quantity ? 'filled' : 'partially_filled';
      }
      await operate(whole, 'Partners.ResumePartner', { partner_id });
      await isRefused(false);
      if (order !== undefined) await untilOrderIs(whole, order);
    },
  };
}

/** Waits until a partner sees an order as the model has it. */
export function untilOrderIs(whole: Whole, { id, state, filled }: ModelOrder): Promise<void> {
  return eventually(async () => {
    const { body } = await ask(whole, 0, 'GET', `/v1/orders/${id}`);
    assert.deepEqual([body.state, body.filled_quantity], [state, filled], id);
  }, boundMs);
}

/** Has operators cancel the open orders of the partner, of an account, or in a symbol; too few are expected now and then. */
function cancelOpenOrders(of: 'partner' | 'account' | 'SIM-REST' | 'SIM-HALF', isTooFew: boolean): Command {
  return {
    toString: () => `cancel open orders of ${of}${isTooFew ? ', fewer than there are' : ''}`,
    check: () => true,
    run: async (model, whole) => {
      const { id, accounts } = whole.partner;
      const filters: JsonObject =
        of === 'account' ? { account: accounts[0] ?? '' } : { partner_id: id, symbol: of === 'partner' ? '' : of };
      const orders = model.openOrders.filter(({ body }) => of === 'partner' || of === 'account' || body.symbol === of);
      const call = 'Trading.CancelOpenOrders';
      if (isTooFew && orders.length > 1) {
        const few = { ...filters, at_most: orders.length - 1, reason: 'the model' };
        const { code } = await whole.operators.refused('ada', call, few);
        assert.equal(code, status.FAILED_PRECONDITION);
        return;
      }
      const before = whole.unclear();
      const { bulk_cancel } = await operate(whole, call, { ...filters, at_most: 1_000 });
      const isClear = whole.unclear() === before;
      if (isClear) assert.equal(Number(bulk_cancel?.matched ?? 0), orders.length, 'the orders that match');
      for (const order of orders) order.state = 'cancelled';
      if (bulk_cancel) await untilDone(whole, bulk_cancel.id, isClear ? orders.length : undefined);
      for (const order of orders) await untilOrderIs(whole, order);
    },
  };
}

/** Waits until a job has ended, with so many orders cancelled. */
function untilDone(whole: Whole, id: string, cancelled?: number): Promise<void> {
  return eventually(async () => {
    const { bulk_cancel: job } = await whole.operators.as('ada', 'Trading.GetBulkCancel', { id });
    assert.equal(job.state, 'BULK_CANCEL_STATE_DONE', 'the job has ended');
    if (cancelled !== undefined) assert.equal(Number(job.cancelled), cancelled, 'the orders that the job cancelled');
  }, boundMs);
}

const pick = fc.array(fc.nat(1_000), { minLength: 2, maxLength: 2 });

/** The commands by which operators stop what partners do. */
export const stopCommands = [
  ...[0, 1].map(() =>
    fc
      .tuple(fc.constantFrom(...targets), fc.constantFrom(...actionSets))
      .map(([target, actions]) => addStop(target, actions)),
  ),
  pick.map(endStop),
  pick.map(suspend),
  fc
    .tuple(
      fc.constantFrom('partner' as const, 'account' as const, 'SIM-REST' as const, 'SIM-HALF' as const),
      fc.boolean(),
    )
    .map(([of, isTooFew]) => cancelOpenOrders(of, isTooFew)),
];
