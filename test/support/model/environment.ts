import assert from 'node:assert/strict';
import { status } from '@grpc/grpc-js';
import { lagosDay, nextLagosMidnight } from '../../../src/kit/clock.ts';
import { codeOf } from '../../../src/kit/grpc-client.ts';
import { eventually } from '../eventually.ts';
import { callTimeout } from '../gateway.ts';
import { fc } from '../properties.ts';
import { callGuarded } from './four-eyes.ts';
import type { PartnerModel } from './partner-model.ts';
import { settlePurchases } from './sells.ts';
import { ask, boundMs, type Command, operate, untilGauge, type Whole } from './surroundings.ts';
import { untilDelivered } from './webhooks.ts';

export const dayMs = 86_400_000;

/** Pauses trading for everybody, or ends the pause. */
export async function setPause(whole: Whole, isPaused: boolean): Promise<void> {
  await operate(whole, isPaused ? 'Trading.PauseTrading' : 'Trading.ResumeTrading');
  // A pause holds everywhere at once. The other replica may refuse for a moment longer.
  if (!isPaused) await untilGauge(whole, 'marina_trading_paused', 0);
}

/** Pauses trading, or ends the pause. */
function pause(isPaused: boolean): Command {
  return {
    toString: () => (isPaused ? 'pause' : 'resume'),
    check: (model) => model.isPaused !== isPaused,
    run: async (model, whole) => {
      await setPause(whole, isPaused);
      model.isPaused = isPaused;
    },
  };
}

/** The business time of a replica, in milliseconds. */
export async function timeOf(whole: Whole, replica: number): Promise<number> {
  const { body } = await ask(whole, replica, 'GET', '/v1/sandbox/clock');
  return Date.parse(body.now);
}

/** Moves business time. A simulated broker that does not answer in time is told again, as the error asks for. */
export async function advanceClock(whole: Whole, bySeconds: number): Promise<void> {
  let by = `${bySeconds}s`;
  await eventually(async () => {
    try {
      await operate(whole, 'Clock.AdvanceClock', { by });
    } catch (error) {
      if (codeOf(error) !== status.UNAVAILABLE) throw error;
      by = '0s';
      assert.fail('the simulated broker has not heard of it');
    }
  }, boundMs);
}

/** Whether days may pass: more than a month would remove events from the feed. */
export const mayPassDays = ({ day, isEndpointPaused }: Readonly<PartnerModel>) => day < 3 && !isEndpointPaused;

/** Lets one midnight in Lagos pass or several: the limits are fresh, and all that is open stays so. */
export async function passDays(model: PartnerModel, whole: Whole, untilOf: (now: number) => number): Promise<void> {
  // An event that waits for longer than a day is given up.
  await untilDelivered(model, whole);
  const now = await timeOf(whole, 0);
  const until = untilOf(now);
  await advanceClock(whole, Math.ceil((until - now) / 1_000) + 1);
  // The replicas follow within half a second.
  for (const replica of whole.replicas.keys()) {
    await eventually(async () => assert.ok((await timeOf(whole, replica)) >= until), boundMs);
  }
  await settlePurchases(model, whole);
  // Without a clear answer the clock is advanced again.
  model.day += (Date.parse(lagosDay(await timeOf(whole, 0))) - Date.parse(lagosDay(now))) / dayMs;
}

/** Lets a midnight in Lagos pass. */
function passMidnight(): Command {
  return {
    toString: () => 'pass midnight',
    check: mayPassDays,
    run: (model, whole) => passDays(model, whole, nextLagosMidnight),
  };
}

/** Changes the limit of orders a day, also to less than is used. A higher one needs a second operator. */
function limitOrders(kobo: number): Command {
  return {
    toString: () => `limit orders to ${kobo}`,
    check: () => true,
    run: async (model, whole) => {
      const limits = { orders_kobo_per_day: String(kobo) };
      const request = { partner_id: whole.partner.id, limits };
      const second = { isSecondNeeded: kobo > model.ordersLimitKobo, isDeclined: false };
      await callGuarded(whole, 'Partners.SetLimits', request, second);
      model.ordersLimitKobo = kobo;
    },
  };
}

/** Ends one replica and starts another one. */
function restart(): Command {
  return { toString: () => 'restart a replica', check: () => true, run: (_, whole) => whole.restart() };
}

/** Repeats, swaps and leaves out reports, or breaks their stream: partners see nothing of it. */
function disturb(withdrawals: boolean, repeat: number, swap: number, omit: number, breakStreams: boolean): Command {
  const whose = withdrawals ? 'withdrawals' : 'orders';
  return {
    toString: () => `disturb reports of ${whose} (${repeat}, ${swap}, ${omit}, ${breakStreams})`,
    check: () => true,
    run: async (_, { controls }) => {
      await controls.disturbReports({ withdrawals, repeat, swap, omit, breakStreams }, callTimeout);
    },
  };
}

/** Commands about all partners, and about the gateway itself. */
export const environmentCommands = [
  fc.boolean().map(pause),
  fc.constant(passMidnight()),
  fc.constant(restart()),
  fc.integer({ min: 50_000, max: 400_000 }).map(limitOrders),
  fc
    .tuple(fc.boolean(), fc.nat(2), fc.nat(2), fc.nat(1), fc.boolean())
    .map(([withdrawals, repeated, swap, omit, broken]) => disturb(withdrawals, repeated, swap, omit, broken)),
];
