import { randomUUID } from 'node:crypto';
import type { adminClient } from '../../support/admin.ts';
import type { Partner } from '../../support/cluster.ts';
import { goodFields } from '../../support/documents.ts';
import type { RestCalls } from './rest-calls.ts';

/** Who calls a gateway with many orders, and what there is to read. */
export interface GrowthClient {
  readonly rest: RestCalls;
  readonly admin: ReturnType<typeof adminClient>;
  readonly grpcGetOrder: () => Promise<unknown>;
  /** The partner with two fifths of the orders. */
  readonly partner: Partner;
  /** Orders, pages of orders and pages of the feed, from everywhere in its tables. */
  readonly orderIds: readonly string[];
  readonly orderCursors: readonly string[];
  readonly feedCursors: readonly string[];
  next<Item>(list: readonly Item[]): Item;
}

export interface GrowthOperation {
  readonly name: string;
  readonly atOnce: number;
  readonly call: (client: GrowthClient) => Promise<unknown>;
}

/** The reads and creations that are measured, by a partner and by operators. */
export const growthOperations: readonly GrowthOperation[] = [
  { name: 'CreateOrder', atOnce: 5, call: ({ rest, partner }) => rest.placeOrder(partner) },
  { name: 'CreateAllocation', atOnce: 5, call: ({ rest, partner }) => rest.allocate(partner) },
  { name: 'CreateWithdrawal', atOnce: 5, call: ({ rest, partner }) => rest.withdraw(partner) },
  {
    name: 'CreateApplication',
    atOnce: 5,
    call: ({ rest, partner }) => rest.create(partner, '/v1/applications', goodFields),
  },
  get('GetOrder', 32, ({ next, orderIds }) => `/v1/orders/${next(orderIds)}`),
  { name: 'GetOrder over gRPC', atOnce: 32, call: ({ grpcGetOrder }) => grpcGetOrder() },
  get('GetOrderHistory', 8, ({ next, orderIds }) => `/v1/orders/${next(orderIds)}/history`),
  get('ListOrders', 8, () => '/v1/orders'),
  get('ListOrders, a page in the middle', 8, ({ next, orderCursors }) => `/v1/orders?cursor=${next(orderCursors)}`),
  get('ListOrders by account', 8, ({ partner }) => `/v1/orders?account=${partner.account}`),
  get('ListOrders by state', 8, () => '/v1/orders?state=filled'),
  get('ListOrders by state and symbol', 8, () => '/v1/orders?state=filled&symbol=S7'),
  get('ListOrders of the last minute', 8, () => `/v1/orders?updated_since=${aMinuteAgo()}`),
  get('ListOrders by a reference nobody used', 8, () => `/v1/orders?client_reference=${randomUUID()}`),
  get('ListEvents, pages from everywhere', 32, ({ next, feedCursors }) => `/v1/events?cursor=${next(feedCursors)}`),
  get('ListAccounts', 8, () => '/v1/accounts'),
  get('ListAllocations', 8, () => '/v1/allocations'),
  get('ListWithdrawals', 8, () => '/v1/withdrawals'),
  get('ListApplications', 8, () => '/v1/applications'),
  get('GetWallet', 32, () => '/v1/wallet'),
  get('ListTransfers', 8, () => '/v1/wallet/transfers'),
  {
    name: "operators' ListDeliveries",
    atOnce: 4,
    call: ({ admin, partner }) => admin.webhooks.listDeliveries({ partnerId: partner.id }, admin.options),
  },
  {
    name: "operators' ListDeliveries of an order",
    atOnce: 4,
    call: ({ admin, partner, next, orderIds }) =>
      admin.webhooks.listDeliveries({ partnerId: partner.id, objectId: next(orderIds) }, admin.options),
  },
  {
    name: "operators' GetTimeline",
    atOnce: 4,
    call: ({ admin, next, orderIds }) => admin.diagnostics.getTimeline({ id: next(orderIds) }, admin.options),
  },
];

function get(name: string, atOnce: number, path: (client: GrowthClient) => string): GrowthOperation {
  return { name, atOnce, call: (client) => client.rest.get(client.partner, path(client)) };
}

function aMinuteAgo(): string {
  return encodeURIComponent(new Date(Date.now() - 60_000).toISOString());
}
