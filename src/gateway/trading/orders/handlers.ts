import { create } from '@bufbuild/protobuf';
import {
  CreateOrderRequestSchema,
  EstimateOrderRequestSchema,
  GetOrderHistoryResponseSchema,
  ListOrdersRequestSchema,
  ListOrdersResponseSchema,
  OrderEstimateSchema,
  OrderFeeSchema,
  type Orders,
} from '../../../gen/marina/gateway/v1/orders_pb.ts';
import type { Instrument } from '../../../gen/marina/gateway/v1/reference_pb.ts';
import type { HandlersOf } from '../../edge/call.ts';
import { ApiError } from '../../edge/errors.ts';
import type { Origin } from '../../edge/origin.ts';
import { accounts } from '../accounts/store.ts';
import type { BrokerOrders } from '../broker/broker.ts';
import { shownMessage, storedFields } from '../shown-message.ts';
import { type SubmissionHandlerParts, submissionHandlers } from '../submission/handlers.ts';
import type { Canceller } from './cancel.ts';
import type { OrderKind, TradingContexts, WantedOrder } from './kind.ts';
import { reasonByBand, reasonByList } from './placeable.ts';
import { estimatedTotalKobo, rejectSentences } from './rules.ts';
import { orderSteps, shownOrder, toOrderMessage, toStepMessage } from './table.ts';

interface OrderHandlerParts extends SubmissionHandlerParts {
  readonly broker: BrokerOrders;
  readonly canceller: Canceller;
  readonly kind: OrderKind;
  readonly contexts: TradingContexts;
  /** The exchange's list of instruments; undefined if it cannot be read soon. */
  readonly instruments: { listSoon(origin: Origin): Promise<readonly Instrument[] | undefined> };
}

/** The operations on orders. */
export function orderHandlers(parts: OrderHandlerParts): HandlersOf<typeof Orders> {
  const { database, canceller, kind } = parts;
  const of = submissionHandlers(
    parts,
    kind,
    [CreateOrderRequestSchema, ListOrdersRequestSchema, ListOrdersResponseSchema],
    shownOrder,
    toOrderMessage,
  );

  return {
    createOrder: of.create,
    listOrders: of.list,
    getOrder: of.get,

    async estimateOrder(request, { caller, origin }) {
      const wanted = storedFields(EstimateOrderRequestSchema, request) as Omit<
        WantedOrder,
        'timeInForce' | 'clientReference'
      >;
      const { account, symbol } = wanted;
      const [known] = await database.read(accounts.find({ partnerId: caller.partnerId, account }));
      if (known === undefined) throw new ApiError('unknown_account', { param: 'account' });
      const instrument = await parts.contexts.instrument(origin, account, symbol);
      refuse(reasonByBand(wanted, instrument));
      // Without the list nothing is certain of ticks and lots, and the estimate goes on.
      const listed = (await parts.instruments.listSoon(origin))?.find((each) => each.symbol === symbol);
      refuse(listed && reasonByList(wanted, listed));
      const estimate = await parts.broker.estimateOrder(wanted, origin);
      const { fees, totalKoboDecimal } = estimate;
      return shownMessage(OrderEstimateSchema, {
        ...wanted,
        ...estimate,
        fees: fees.map(({ name, amountKoboDecimal }) => create(OrderFeeSchema, { name, amountKoboDecimal })),
        totalKobo: estimatedTotalKobo(wanted.side, totalKoboDecimal),
      });
    },

    async cancelOrder({ id = '' }, call) {
      const [row] = await database.read(kind.table.find({ partnerId: call.caller.partnerId, id }));
      if (row === undefined) throw new ApiError('order_not_found');
      return toOrderMessage(await canceller.cancel(kind.table.all.read(row), call));
    },

    async getOrderHistory(request, call) {
      const page = await of.history(request, call, orderSteps.all);
      return create(GetOrderHistoryResponseSchema, { ...page, data: page.data.map(toStepMessage) });
    },
  };
}

/** Throws `order_rejected` for an order that was not stored or sent, because the exchange would reject it. */
function refuse(rejectReason: keyof typeof rejectSentences | undefined): void {
  if (rejectReason === undefined) return;
  const message = `The exchange would reject the order. ${rejectSentences[rejectReason]}`;
  throw new ApiError('order_rejected', { message, rejectReason });
}
