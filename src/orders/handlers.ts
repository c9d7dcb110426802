import { create } from '@bufbuild/protobuf';
import { findAccount } from '../accounts/store.ts';
import type { Call, Handler } from '../auth/call.ts';
import type { Broker } from '../broker/port.ts';
import type { Database } from '../db/database.ts';
import { RowReader } from '../db/row-reader.ts';
import {
  type CancelOrderRequest,
  type CreateOrderRequest,
  CreateOrderRequestSchema,
  type EstimateOrderRequest,
  type GetOrderHistoryRequest,
  type GetOrderHistoryResponse,
  GetOrderHistoryResponseSchema,
  type GetOrderRequest,
  type ListOrdersRequest,
  type ListOrdersResponse,
  ListOrdersResponseSchema,
  type Order,
  type OrderEstimate,
  OrderEstimateSchema,
} from '../gen/marina/gateway/v1/orders_pb.ts';
import { ApiError } from '../lib/errors.ts';
import { roundKoboDecimal } from '../lib/money.ts';
import type { Cursors } from '../lib/paging.ts';
import { toMilliseconds } from '../lib/timestamps.ts';
import { requestDigest } from '../submission/digest.ts';
import type { Submitter } from '../submission/submit.ts';
import type { Canceller } from './cancel.ts';
import type { OrderKind } from './kind.ts';
import { stateWords, toOrderMessage, toStepMessage, toWantedOrder } from './messages.ts';
import { findOrder, listOrders, listSteps, type StoredOrder, shown, toShownOrder, toStoredOrder } from './store.ts';
import type { TradingContexts } from './trading-context.ts';

export interface OrderHandlerParts {
  readonly database: Database;
  readonly broker: Broker;
  readonly submitter: Submitter;
  readonly canceller: Canceller;
  readonly kind: OrderKind;
  readonly contexts: TradingContexts;
  readonly cursors: Cursors;
  readonly digestKey: Buffer;
}

/** The operations on orders. */
export function orderHandlers(parts: OrderHandlerParts) {
  const { database, cursors } = parts;
  const shownOrders = new RowReader(database, 'orders', shown);

  const createOrder: Handler<CreateOrderRequest, Order> = async (request, call) => {
    const { row, replayed } = await parts.submitter.submit(parts.kind, {
      origin: call.origin,
      idempotencyKey: call.idempotencyKey ?? '',
      digest: requestDigest(parts.digestKey, CreateOrderRequestSchema, request),
      request,
      permission: call.permission,
      log: () => call.log,
    });
    call.reply.replayed = replayed;
    return toOrderMessage(row);
  };

  const estimateOrder: Handler<EstimateOrderRequest, OrderEstimate> = async (request, { caller, origin }) => {
    const wanted = toWantedOrder(request);
    const { account, symbol } = wanted;
    const [known] = await database.read(findAccount(caller.partnerId, account));
    if (known === undefined) throw new ApiError('unknown_account', { param: 'account' });
    await parts.contexts.instrument(origin, account, symbol);
    const estimate = await parts.broker.estimateOrder(wanted, origin);
    const { priceKobo: price, amountKobo, commissionKoboDecimal, statutoryFeesKoboDecimal } = estimate;
    const { otherFeesKoboDecimal, totalKoboDecimal, fees } = estimate;
    return create(OrderEstimateSchema, {
      account,
      symbol,
      side: request.side,
      quantity: wanted.quantity,
      type: request.type,
      priceKobo: price,
      amountKobo,
      commissionKoboDecimal,
      statutoryFeesKoboDecimal,
      otherFeesKoboDecimal,
      fees: fees.map(({ name, amountKoboDecimal }) => ({ name, amountKoboDecimal })),
      totalKoboDecimal,
      totalKobo: roundKoboDecimal(totalKoboDecimal, wanted.side === 'buy' ? 'up' : 'down'),
    });
  };

  const getOrder: Handler<GetOrderRequest, Order> = async ({ id }, { caller }) => {
    const row = await shownOrders.read(caller.partnerId, id ?? '');
    if (row === undefined) throw new ApiError('order_not_found');
    return toOrderMessage(toShownOrder(row));
  };

  const cancelOrder: Handler<CancelOrderRequest, Order> = async ({ id }, call) =>
    toOrderMessage(await parts.canceller.cancel(await find(id, call), call));

  const listOrders_: Handler<ListOrdersRequest, ListOrdersResponse> = async (request, { caller }) => {
    const { limit = 25, cursor } = request;
    const filters = {
      state: request.state === undefined ? undefined : stateWords.word(request.state),
      account: request.account,
      symbol: request.symbol,
      clientReference: request.clientReference,
      updatedSince: request.updatedSince === undefined ? undefined : toMilliseconds(request.updatedSince),
    };
    const issuedFor = ['orders', caller.partnerId, JSON.stringify(filters)];
    const before = cursor === undefined ? undefined : cursors.read(issuedFor, cursor);
    const rows = await database.read(listOrders(caller.partnerId, filters, before, limit + 1));
    const page = rows.slice(0, limit).map(toShownOrder);
    const hasMore = rows.length > limit;
    const last = page.at(-1);
    return create(ListOrdersResponseSchema, {
      hasMore,
      nextCursor: hasMore && last !== undefined ? cursors.issue(issuedFor, last.id) : undefined,
      data: page.map(toOrderMessage),
    });
  };

  const getOrderHistory: Handler<GetOrderHistoryRequest, GetOrderHistoryResponse> = async (request, call) => {
    const { limit = 25, cursor } = request;
    const { partnerId, id } = await find(request.id, call);
    const issuedFor = ['order-history', partnerId, id];
    const after = cursor === undefined ? 0 : Number(cursors.read(issuedFor, cursor));
    const rows = await database.read(listSteps(partnerId, id, after, limit + 1));
    const page = rows.slice(0, limit).map(toStepMessage);
    const hasMore = rows.length > limit;
    const last = page.at(-1);
    return create(GetOrderHistoryResponseSchema, {
      hasMore,
      nextCursor: hasMore && last !== undefined ? cursors.issue(issuedFor, last.sequence.toString()) : undefined,
      data: page,
    });
  };

  /** Another partner's order is found exactly as little, and as fast, as one that does not exist. */
  async function find(id: string | undefined, { caller }: Call): Promise<StoredOrder> {
    const [row] = await database.read(findOrder(caller.partnerId, id ?? ''));
    if (row === undefined) throw new ApiError('order_not_found');
    return toStoredOrder(row);
  }

  return { createOrder, estimateOrder, listOrders: listOrders_, getOrder, getOrderHistory, cancelOrder };
}
