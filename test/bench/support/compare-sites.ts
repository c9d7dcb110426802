import type { Partner } from '../../support/cluster.ts';
import type { Turns } from '../run.ts';
import { load } from './load.ts';
import { type Row, ratioRow } from './report.ts';
import { RestCalls } from './rest-calls.ts';
import type { Site } from './setups.ts';

/** A call made at both sites, and how many run at once. */
export interface SiteLoad {
  readonly what: string;
  readonly partners: number;
  readonly inProgress: number;
  /** Makes what the calls need, and returns the call. */
  readonly prepare: (client: RestCalls, partners: readonly Partner[]) => Promise<() => Promise<unknown>>;
}

/** Orders of one partner, and of many. */
export const createOrders: readonly SiteLoad[] = [1, 32].map((count) => ({
  what: `CreateOrder, ${count === 1 ? 'one partner' : `${count} partners`}`,
  partners: count,
  inProgress: count === 1 ? 5 : 32,
  prepare: async (client, partners) => {
    const next = inTurn(partners);
    return () => client.placeOrder(next());
  },
}));

/** Reads of a few orders of one partner. */
export const getOrders: SiteLoad = {
  what: 'GetOrder',
  partners: 1,
  inProgress: 32,
  prepare: async (client, partners) => {
    const [partner] = partners as [Partner];
    const placed = await Promise.all(Array.from({ length: 5 }, () => client.placeOrder(partner)));
    const next = inTurn(placed.map((text) => `/v1/orders/${JSON.parse(text).id}`));
    return () => client.get(partner, next());
  },
};

/** Compares a gateway at one site with a gateway at another, in turns, after a turn of each that does not count. */
export async function compareSites(
  sites: readonly [Site, Site],
  loads: readonly SiteLoad[],
  { rounds, durationMs }: Turns,
  name: string,
  bound?: string,
): Promise<Row[]> {
  const rows: Row[] = [];
  for (const { what, partners, inProgress, prepare } of loads) {
    const calls = await Promise.all(
      sites.map(async ({ cluster, startGateway }) => {
        const gateway = await startGateway();
        const client = new RestCalls(gateway.restPort, 32);
        const call = await prepare(
          client,
          await Promise.all(Array.from({ length: partners }, () => cluster.newPartner())),
        );
        return { call, close: () => client.close() };
      }),
    );
    const figures: [number[], number[]] = [[], []];
    for (let round = -1; round < rounds; round += 1) {
      for (const [index, { call }] of calls.entries()) {
        const { perSecond } = await load(call, inProgress, durationMs);
        if (round >= 0) figures[index]?.push(perSecond);
      }
    }
    await Promise.all(calls.map(({ close }) => close()));
    rows.push(ratioRow(`${name}: ${what}`, ...figures, bound));
  }
  return rows;
}

function inTurn<Item>(items: readonly Item[]): () => Item {
  let turn = 0;
  return () => items[turn++ % items.length] as Item;
}
