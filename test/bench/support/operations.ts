import { Metadata } from '@grpc/grpc-js';
import { Orders } from '../../../src/gen/marina/gateway/v1/orders_pb.ts';
import { createGrpcClient } from '../../../src/kit/grpc-client.ts';
import type { GatewayProcess, Partner } from '../../support/cluster.ts';
import { goodFields } from '../../support/documents.ts';
import { notKept, RestCalls } from './rest-calls.ts';

/** A call that is measured, and how many are in progress at once. Any version of the gateway can serve it. */
export interface Operation {
  readonly name: string;
  readonly atOnce: number;
  readonly call: (client: BenchClient) => Promise<unknown>;
}

/** Who calls a gateway, and what there is to read. */
export interface BenchClient {
  readonly rest: RestCalls;
  readonly grpcGetOrder: () => Promise<unknown>;
  /** A partner that calls alone, and 32 that take turns. */
  readonly one: Partner;
  readonly many: readonly Partner[];
  /** Orders of the one, and cursors of its feed. */
  readonly orderIds: readonly string[];
  readonly cursors: readonly string[];
  next<Item>(list: readonly Item[]): Item;
}

/** The creates that move money. */
export const creates: readonly Operation[] = [
  { name: 'CreateOrder, 1 partner', atOnce: 5, call: ({ rest, one }) => rest.placeOrder(one) },
  { name: 'CreateOrder, 32 partners', atOnce: 32, call: ({ rest, many, next }) => rest.placeOrder(next(many)) },
  { name: 'CreateAllocation, 1 partner', atOnce: 5, call: ({ rest, one }) => rest.allocate(one) },
  { name: 'CreateAllocation, 32 partners', atOnce: 32, call: ({ rest, many, next }) => rest.allocate(next(many)) },
];

/** The other calls that partners make most. */
export const otherCalls: readonly Operation[] = [
  { name: 'CreateApplication, 1 partner', atOnce: 5, call: ({ rest, one }) => apply(rest, one) },
  { name: 'CreateApplication, 32 partners', atOnce: 32, call: ({ rest, many, next }) => apply(rest, next(many)) },
  {
    name: 'GetOrder over REST',
    atOnce: 32,
    call: ({ rest, one, orderIds, next }) => rest.get(one, `/v1/orders/${next(orderIds)}`),
  },
  { name: 'GetOrder over gRPC', atOnce: 32, call: ({ grpcGetOrder }) => grpcGetOrder() },
  { name: 'ListOrders', atOnce: 8, call: ({ rest, one }) => rest.get(one, '/v1/orders?limit=20') },
  { name: 'ListEvents, the first page', atOnce: 8, call: ({ rest, one }) => rest.get(one, '/v1/events?limit=20') },
  {
    name: 'a page of the feed',
    atOnce: 32,
    call: ({ rest, one, cursors, next }) => rest.get(one, `/v1/events?cursor=${next(cursors)}`),
  },
];

const ordersRead = 100;
const pagesOfFeed = 64;

/** Makes a client of a gateway, with orders of its own to read. */
export async function makeClient(
  { restPort, grpcPort }: Pick<GatewayProcess, 'restPort' | 'grpcPort'>,
  one: Partner,
  many: readonly Partner[],
): Promise<BenchClient> {
  const rest = new RestCalls(restPort, many.length);
  const orderIds: string[] = [];
  for (let count = 0; count < ordersRead; count += 1) {
    orderIds.push(JSON.parse(await rest.placeOrder(one, 1 + count)).id);
  }
  let turn = 0;
  const next = <Item>(list: readonly Item[]) => list[turn++ % list.length] as Item;
  return {
    rest,
    grpcGetOrder: getOrderOverGrpc(grpcPort, one, () => next(orderIds)),
    one,
    many,
    orderIds,
    cursors: await cursorsOfFeed(rest, one, pagesOfFeed),
    next,
  };
}

function apply(rest: RestCalls, partner: Partner): Promise<string> {
  return rest.create(partner, '/v1/applications', goodFields);
}

/** GetOrder over four connections. */
export function getOrderOverGrpc(port: number, { key }: Pick<Partner, 'key'>, nextId: () => string) {
  const metadata = new Metadata();
  metadata.set('authorization', `Bearer ${key}`);
  for (const [name, value] of Object.entries(notKept)) metadata.set(name, value);
  const clients = Array.from({ length: 4 }, () => createGrpcClient(Orders, `127.0.0.1:${port}`));
  let turn = 0;
  return async (): Promise<unknown> =>
    clients[turn++ % clients.length]?.getOrder({ id: nextId() }, { timeoutMs: 10_000, metadata });
}

/** Cursors from here and there, so that no two pages in progress are the same. */
export async function cursorsOfFeed(rest: RestCalls, partner: Partner, count: number): Promise<string[]> {
  const cursors: string[] = [];
  let at = '';
  while (cursors.length < count) {
    const { data, next_cursor } = JSON.parse(await rest.get(partner, `/v1/events?limit=1${at}`));
    at = `&cursor=${encodeURIComponent(next_cursor)}`;
    // The feed follows the commits after a moment.
    if (data.length > 0) cursors.push(encodeURIComponent(next_cursor));
  }
  return cursors;
}
