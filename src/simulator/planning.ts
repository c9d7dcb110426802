import { OrderType, RejectReason, Side, TimeInForce } from '../gen/marina/broker/v1/orders_pb.ts';
import { Outcome } from '../gen/marina/simulator/v1/controls_pb.ts';
import type { Behaviour } from './magic.ts';
import type { InstrumentState, PlannedStep, Submission } from './model.ts';
import { tickKobo } from './prices.ts';
import type { Random } from './random.ts';

/** The small delays between what the market does to an order. */
export interface FillDelay {
  readonly min: number;
  readonly max: number;
}

/** How often an immediate order finds all its shares on the other side. */
const fullDepthChance = 0.7;
const maxParts = 4;

/** What becomes of an accepted order that behaves in a set way. */
export function plannedByBehaviour(
  order: Submission,
  behaviour: Behaviour,
  priceKobo: number,
  delay: () => number,
): PlannedStep[] {
  const { quantity } = order;
  const afterMs = () => behaviour.delayMs ?? delay();
  const fills = (sizes: readonly number[]): PlannedStep[] =>
    sizes.map((size) => ({ kind: 'fill', afterMs: afterMs(), quantity: size, priceKobo }));
  switch (behaviour.outcome) {
    case Outcome.FILL:
      return fills(equalParts(quantity, behaviour.parts ?? 1));
    case Outcome.FILL_HALF:
      return endIfImmediate(order, fills(quantity < 2 ? [] : [Math.floor(quantity / 2)]));
    case Outcome.EXPIRE:
      return [{ kind: 'expire', afterMs: afterMs() }];
    case Outcome.ACCEPT_THEN_REJECT:
      return [{ kind: 'reject', afterMs: afterMs(), rejectReason: rejectReasonOf(behaviour) }];
    default:
      return endIfImmediate(order, []);
  }
}

/** What becomes of an accepted order by the market: it trades at the quoted price, or it waits away from it. */
export function plannedByMarket(
  order: Submission,
  instrument: InstrumentState,
  random: Random,
  delay: () => number,
): PlannedStep[] {
  const { quantity, timeInForce } = order;
  const immediate = timeInForce === TimeInForce.IOC || timeInForce === TimeInForce.FOK;
  if (!crosses(order, instrument.quoteKobo)) return endIfImmediate(order, []);
  const depth = !immediate || random.next() < fullDepthChance ? quantity : random.whole(0, quantity);
  const available = timeInForce === TimeInForce.FOK && depth < quantity ? 0 : depth;
  const steps: PlannedStep[] = randomParts(available, random).map((size) => ({
    kind: 'fill',
    afterMs: immediate ? 0 : delay(),
    quantity: size,
    priceKobo: tradePrice(order, instrument, random),
  }));
  return available < quantity ? endIfImmediate(order, steps) : steps;
}

/** Why an order with a set behaviour is rejected; a directive need not say. */
export function rejectReasonOf(behaviour: Behaviour): RejectReason {
  return behaviour.rejectReason || RejectReason.REJECTED_BY_EXCHANGE;
}

/** An immediate order never rests: what it cannot trade expires, and of a fill-or-kill all of it. */
function endIfImmediate(order: Submission, steps: PlannedStep[]): PlannedStep[] {
  if (order.timeInForce === TimeInForce.FOK) return [{ kind: 'expire', afterMs: 0 }];
  return order.timeInForce === TimeInForce.IOC ? [...steps, { kind: 'expire', afterMs: 0 }] : steps;
}

function crosses(order: Submission, quoteKobo: number): boolean {
  if (order.type === OrderType.MARKET || order.priceKobo === null) return true;
  return order.side === Side.BUY ? order.priceKobo >= quoteKobo : order.priceKobo <= quoteKobo;
}

/** A price within two ticks of the quoted one, never through the limit nor outside the day's band. */
function tradePrice(order: Submission, instrument: InstrumentState, random: Random): number {
  const { quoteKobo, lowerKobo, upperKobo } = instrument;
  const near = quoteKobo + random.whole(-2, 2) * tickKobo(quoteKobo);
  const lowest = order.side === Side.SELL ? Math.max(lowerKobo, order.priceKobo ?? lowerKobo) : lowerKobo;
  const highest = order.side === Side.BUY ? Math.min(upperKobo, order.priceKobo ?? upperKobo) : upperKobo;
  return near % tickKobo(near) === 0 && near >= lowest && near <= highest ? near : quoteKobo;
}

/** A quantity in so many parts of nearly the same size, none of them empty. */
function equalParts(quantity: number, parts: number): number[] {
  const count = Math.min(quantity, Math.max(1, parts));
  const size = Math.floor(quantity / count);
  return Array.from({ length: count }, (_, index) => (index < count - 1 ? size : quantity - size * (count - 1)));
}

/** A quantity in 1 to 4 parts of random sizes. */
function randomParts(quantity: number, random: Random): number[] {
  const sizes: number[] = [];
  let left = quantity;
  for (let more = random.whole(1, maxParts); more > 1 && left > 1; more -= 1) {
    const size = random.whole(1, left - 1);
    sizes.push(size);
    left -= size;
  }
  return left > 0 ? [...sizes, left] : sizes;
}
