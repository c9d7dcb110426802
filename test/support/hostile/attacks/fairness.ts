import { randomUUID } from 'node:crypto';
import type { Attacker } from '../attacker.ts';
import { many, paced } from './crowd.ts';
import { Endings } from './grpc-client.ts';
import { HttpClient, type HttpRequest } from './http-client.ts';

export interface FairnessOptions {
  /** A partner with the usual limits. */
  readonly prepared: { readonly usualKey: string; readonly usualAccount: string };
}

/** A partner with the usual limits asks 50 times as much as was agreed. */
export function aboveItsRate(attacker: Attacker, { prepared }: FairnessOptions) {
  const headers = { authorization: `Bearer ${prepared.usualKey}` };
  return ask(attacker, 1_000, () => ({ path: '/v1/orders?limit=100', headers }));
}

/** A partner places more orders at once than may be under way. */
export function ordersAtOnce(attacker: Attacker, { prepared }: FairnessOptions) {
  return ask(attacker, 500, (at) => ({
    method: 'POST',
    path: '/v1/orders',
    headers: {
      authorization: `Bearer ${prepared.usualKey}`,
      'content-type': 'application/json',
      'idempotency-key': randomUUID(),
    },
    body: JSON.stringify({
      account: prepared.usualAccount,
      symbol: 'SIM-REST',
      side: 'buy',
      quantity: (at % 1_000) + 1,
      type: 'limit',
      price_kobo: 1_000,
    }),
  }));
}

/** A partner reads 40 balances at once, again and again, as its rate allows. */
export function balancesAtOnce(attacker: Attacker) {
  const { key, account } = attacker.target;
  const headers = { authorization: `Bearer ${key}` };
  return burst(attacker, 40, () => ({ path: `/v1/accounts/${account}/balance`, headers }));
}

type Make = (at: number) => HttpRequest;

/** Makes so many requests a second, and counts the answers. */
async function ask(attacker: Attacker, perSecond: number, make: Make): Promise<Record<string, number>> {
  const endings = new Endings();
  const client = new HttpClient(attacker, 40);
  await paced(attacker, perSecond, async (at) => endings.add(await client.send(make(at))));
  client.close();
  return endings.counts;
}

/** Makes so many requests at once, and as many again when all were answered. */
async function burst(attacker: Attacker, atOnce: number, make: Make): Promise<Record<string, number>> {
  const endings = new Endings();
  const client = new HttpClient(attacker, atOnce);
  while (attacker.isOn) {
    for (const ending of await Promise.all(many(atOnce, (at) => client.send(make(at))))) endings.add(ending);
  }
  client.close();
  return endings.counts;
}
