import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { JsonObject } from '@bufbuild/protobuf';
import type { ServiceError } from '@grpc/grpc-js';
import { lagosDay, lagosMidnight } from '../../../src/kit/clock.ts';
import { eventually } from '../eventually.ts';
import { callTimeout } from '../gateway.ts';
import { fc } from '../properties.ts';
import { advanceClock, timeOf } from './environment.ts';
import { agreed, type ModelOrder } from './partner-model.ts';
import { untilOrderIs } from './stops.ts';
import { boundMs, type Choice, type Command, operate, type Whole } from './surroundings.ts';

/** How often a report may come between a proposal and its approval: each is of a trade that was settled before. */
const maxBetween = 5;

/** Two operators settle an order that is open: again, if a report comes between. */
async function settleAs(whole: Whole, order: ModelOrder, outcome: JsonObject): Promise<void> {
  const before = whole.unclear();
  const settle = async (times = 0): Promise<{ changed: boolean }> => {
    const id = await whole.operators.propose(order.id, { order: outcome });
    try {
      return (await whole.operators.approve(id)) as { changed: boolean };
    } catch (error) {
      const isBetween = /changed after this was proposed: `last_report`/.test((error as ServiceError).details);
      if (!isBetween || times === maxBetween) throw error;
      await whole.operators.as('ada', 'Proposals.DeclineProposal', { id, reason: 'a report came meanwhile' });
      return settle(times + 1);
    }
  };
  const { changed } = await settle();
  assert.ok(changed || whole.unclear() > before, 'the settlement is applied');
  await untilOrderIs(whole, order);
}

/** An instant of business time, as operators state it. */
const instantOf = async (whole: Whole) => new Date(await timeOf(whole, 0)).toISOString();

/** Settles an open order as expired; the exchange says the same later, which changes nothing. */
function settleAsExpired([at = 0]: Choice): Command {
  return {
    toString: () => `settle order ${at} as expired`,
    check: ({ openOrders }) => openOrders.length > 0,
    run: async ({ openOrders }, whole) => {
      const order = openOrders[at % openOrders.length] as ModelOrder;
      order.state = 'expired';
      await settleAs(whole, order, { state: 'SETTLED_ORDER_STATE_EXPIRED', ended_at: await instantOf(whole) });
      await whole.controls.expireOrder({ clientOrderId: order.id }, callTimeout);
      await untilOrderIs(whole, order);
    },
  };
}

/** Enters a trade of an open order by evidence; the exchange reports it later, and it counts once. */
function settleTrade([at = 0, share = 0]: Choice): Command {
  return {
    toString: () => `settle a trade of order ${at}`,
    check: ({ openOrders }) => openOrders.length > 0,
    run: async ({ openOrders }, whole) => {
      const order = openOrders[at % openOrders.length] as ModelOrder;
      const quantity = 1 + (share % (order.body.quantity - order.filled));
      const price_kobo = order.body.price_kobo ?? agreed.quoteKobo;
      const traded = { quantity, price_kobo, at: await instantOf(whole), exchange_trade_id: randomUUID() };
      order.filled += quantity;
      const isFilled = order.filled === order.body.quantity;
      order.state = isFilled ? 'filled' : 'partially_filled';
      const state = isFilled ? 'SETTLED_ORDER_STATE_FILLED' : 'SETTLED_ORDER_STATE_OPEN';
      await settleAs(whole, order, { state, trades: [traded] });
      const report = { clientOrderId: order.id, quantity: BigInt(quantity), priceKobo: BigInt(price_kobo) };
      await whole.controls.fillOrder(report, callTimeout);
      await untilOrderIs(whole, order);
    },
  };
}

/** How long after midnight the broker has closed the day before, in milliseconds. */
const closedAfterMs = 1_800_000;

/** Compares the day before with the broker's statement: only what is uncertain here differs. */
function reconcileDay(): Command {
  return {
    toString: () => 'reconcile the day before',
    check: ({ day }) => day > 0,
    run: async (model, whole) => {
      const now = await timeOf(whole, 0);
      const sinceMidnightMs = now - lagosMidnight(now);
      if (sinceMidnightMs < closedAfterMs) {
        await advanceClock(whole, Math.ceil((closedAfterMs - sinceMidnightMs) / 1_000));
      }
      const day = lagosDay(lagosMidnight(now) - 1);
      const begun = await timeOf(whole, 0);
      await eventually(async () => {
        const { reconciliation } = await operate(whole, 'Diagnostics.ReconcileDay', { day });
        assert.equal(reconciliation.state, 'RECONCILIATION_STATE_COMPLETE', JSON.stringify(reconciliation));
        // The call goes on with one that began earlier, which may have compared what has changed since.
        assert.ok(Date.parse(reconciliation.started_at) >= begun, 'it began by itself');
      }, boundMs);
      const asked = { day, partner_id: whole.partner.id, open_only: true };
      const { breaks } = await whole.operators.as('ada', 'Diagnostics.ListReconciliationBreaks', asked);
      const uncertain = new Set(model.uncertainAllocations.map(({ id }) => id));
      const others = breaks.filter(
        (one: { is_unsettled: boolean; object_id: string }) => !(one.is_unsettled && uncertain.has(one.object_id)),
      );
      assert.deepEqual(others, [], 'the day is as in the statement of the broker');
    },
  };
}

const pick = fc.array(fc.nat(1_000), { minLength: 2, maxLength: 2 });

/** The commands by which operators compare the gateway with the broker, and settle what the broker says elsewhere. */
export const evidenceCommands = [pick.map(settleAsExpired), pick.map(settleTrade), fc.constant(reconcileDay())];
