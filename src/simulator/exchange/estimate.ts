import type { MessageInitShape } from '@bufbuild/protobuf';
import { status } from '@grpc/grpc-js';
import type { EstimateOrderRequest, EstimateOrderResponseSchema, Side } from '../../gen/marina/broker/v1/orders_pb.ts';
import { lagosDay } from '../../kit/clock.ts';
import { chargesOn } from '../clearing/charges.ts';
import { magicOf } from '../magic.ts';
import { opposite } from '../market/book.ts';
import { makerPrice } from '../market/order-flow.ts';
import type { InstrumentState } from '../model.ts';
import { check, isSide, limitPriceOf, positive } from '../validation.ts';
import { RpcError } from '../wire/rpc.ts';
import type { World } from '../world.ts';

const maxAmountKobo = 2n ** 63n - 1n;

/** The cost or proceeds of an order today, at its limit or else at the market maker's price. */
export function estimate(
  world: World,
  request: EstimateOrderRequest,
): MessageInitShape<typeof EstimateOrderResponseSchema> {
  const instrument = world.instrument(request.symbol);
  if (instrument === undefined) throw new RpcError(status.NOT_FOUND, 'The exchange does not know the symbol.');
  check(isSide(request.side), 'side');
  const limitPrice = limitPriceOf(request);
  const quantity = positive(request.quantity, 'quantity');
  const price = limitPrice ?? expectedPrice(instrument, request.side);
  const amountKobo = BigInt(quantity) * BigInt(price);
  check(amountKobo <= maxAmountKobo, 'quantity');
  const charges = chargesOn(amountKobo, request.side, lagosDay(world.clock.now()));
  return {
    priceKobo: BigInt(price),
    amountKobo,
    commissionKoboDecimal: charges.commission,
    statutoryFeesKoboDecimal: charges.statutory,
    otherFeesKoboDecimal: charges.other,
    fees: [...charges.fees],
    totalKoboDecimal: charges.total,
  };
}

function expectedPrice(instrument: InstrumentState, side: Side): number {
  const isMagic = magicOf(instrument.symbol) !== undefined;
  return (isMagic ? undefined : makerPrice(instrument, opposite(side))) ?? instrument.quoteKobo;
}
