import { randomUUID } from 'node:crypto';
import type { Attacker } from '../attacker.ts';
import { many } from './crowd.ts';
import { Endings } from './grpc-client.ts';
import { HttpClient } from './http-client.ts';

export interface FairnessOptions {
  /** A partner with the usual limits. */
  readonly prepared: { readonly usualKey: string; readonly usualAccount: string };
}

/** A partner with the usual limits asks a hundred times as much as was agreed. */
export function aboveItsRate(attacker: Attacker, { prepared }: FairnessOptions) {
  const headers = { authorization: `Bearer ${prepared.usualKey}` };
  return ask(attacker, 20, () => ({ path: '/v1/orders?limit=100', headers }));
}

/** A partner places more orders at once than may be under way. */
export function ordersAtOnce(attacker: Attacker, { prepared }: FairnessOptions) {
  return ask(attacker, 20, (at) => ({
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
  return ask(attacker, 40, () => ({ path: `/v1/accounts/${account}/balance`, headers }));
}

async function ask(
  attacker: Attacker,
  atOnce: number,
  make: (at: number) => Parameters<HttpClient['send']>[0],
): Promise<Record<string, number>> {
  const endings = new Endings();
  const client = new HttpClient(attacker, atOnce);
  let at = 0;
  const lane = async () => {
    while (attacker.isOn) endings.add(await client.send(make(at++)));
  };
  await Promise.all(many(atOnce, lane));
  client.close();
  return endings.counts;
}
