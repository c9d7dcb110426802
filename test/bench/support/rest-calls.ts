import { randomUUID } from 'node:crypto';
import { Pool } from 'undici';
import type { Partner } from '../../support/cluster.ts';

/** A sandbox keeps requests to show them, and a live gateway does not. With this header it does the same. */
export const notKept = { 'marina-unlogged': 'true', 'marina-unlisted': 'true' };

type Caller = Pick<Partner, 'key' | 'account'>;

/** Calls of a gateway's REST API over connections that stay open. An answer other than the expected one throws. */
export class RestCalls {
  readonly #pool: Pool;

  constructor(restPort: number, connections: number) {
    this.#pool = new Pool(`http://127.0.0.1:${restPort}`, { connections, pipelining: 1 });
  }

  async get({ key }: Caller, path: string): Promise<string> {
    const headers = { ...notKept, authorization: `Bearer ${key}` };
    return expectStatus(200, await this.#pool.request({ path, method: 'GET', headers }));
  }

  placeOrder(partner: Caller, quantity = 100): Promise<string> {
    const { account } = partner;
    const order = { account, symbol: 'SIM-REST', side: 'buy', quantity, type: 'limit', price_kobo: 1000 };
    return this.create(partner, '/v1/orders', order);
  }

  allocate(partner: Caller): Promise<string> {
    return this.create(partner, '/v1/allocations', { account: partner.account, amount_kobo: 1_000 });
  }

  withdraw(partner: Caller): Promise<string> {
    const { account } = partner;
    return this.create(partner, '/v1/withdrawals', { account, amount_kobo: 1_000, destination: 'wallet' });
  }

  async create({ key }: Caller, path: string, body: object): Promise<string> {
    const headers = {
      ...notKept,
      authorization: `Bearer ${key}`,
      'content-type': 'application/json',
      'idempotency-key': randomUUID(),
    };
    return expectStatus(201, await this.#pool.request({ path, method: 'POST', headers, body: JSON.stringify(body) }));
  }

  close(): Promise<void> {
    return this.#pool.close();
  }
}

async function expectStatus(expected: number, answer: Awaited<ReturnType<Pool['request']>>): Promise<string> {
  const text = await answer.body.text();
  if (answer.statusCode !== expected) throw new Error(`${answer.statusCode} ${text}`);
  return text;
}
