import { RejectReason, TimeInForce } from '../../gen/marina/broker/v1/orders_pb.ts';
import { Outcome } from '../../gen/marina/simulator/v1/controls_pb.ts';
import type { Behaviour } from '../magic.ts';
import type { OrderRequest, PlannedStep } from '../model.ts';

/** The small delays between the market's steps on an order. */
export interface FillDelay {
  readonly min: number;
  readonly max: number;
}

/** The steps of an accepted order with a set behaviour. */
export function plannedByBehaviour(
  order: OrderRequest,
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

/** The reason to reject an order with a set behaviour. A directive need not state one. */
export function rejectReasonOf(behaviour: Behaviour): RejectReason {
  return behaviour.rejectReason || RejectReason.REJECTED_BY_EXCHANGE;
}

/** An immediate order never rests: its unfilled part expires, and of an incomplete fill-or-kill all of it. */
function endIfImmediate(order: OrderRequest, steps: PlannedStep[]): PlannedStep[] {
  if (order.timeInForce === TimeInForce.FOK) return [{ kind: 'expire', afterMs: 0 }];
  return order.timeInForce === TimeInForce.IOC ? [...steps, { kind: 'expire', afterMs: 0 }] : steps;
}

/** Splits a quantity into parts of nearly equal size, none of them empty. */
function equalParts(quantity: number, parts: number): number[] {
  const count = Math.min(quantity, Math.max(1, parts));
  const size = Math.floor(quantity / count);
  return Array.from({ length: count }, (_, index) => (index < count - 1 ? size : quantity - size * (count - 1)));
}
