import { setTimeout as sleep } from 'node:timers/promises';

/** The members of an order the demo looks at. */
export interface DemoOrder {
  id: string;
  state: string;
  quantity: number;
  filled_quantity: number;
  average_fill_price_kobo_decimal: string | null;
}

export interface DemoEvent {
  id: string;
  type: string;
  version: number;
  data: DemoOrder;
}

export type Partner = ReturnType<typeof partnerClient>;

/** A partner's side of the REST API, written as a partner would: plain requests, an answer that is checked. */
export function partnerClient(restUrl: string, key: string) {
  async function call(method: string, path: string, body?: object, headers: Record<string, string> = {}) {
    const response = await fetch(`${restUrl}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${key}`,
        ...headers,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(15_000),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path} was answered ${response.status}: ${text}`);
    return { response, json: JSON.parse(text) as unknown };
  }

  return {
    async placeOrder(order: object, idempotencyKey: string) {
      const { response, json } = await call('POST', '/v1/orders', order, { 'idempotency-key': idempotencyKey });
      const replayed = response.headers.get('idempotent-replayed') === 'true';
      return { status: response.status, replayed, order: json as DemoOrder };
    },

    async getOrder(id: string): Promise<DemoOrder> {
      return (await call('GET', `/v1/orders/${id}`)).json as DemoOrder;
    },

    async cancelOrder(id: string): Promise<DemoOrder> {
      return (await call('DELETE', `/v1/orders/${id}`)).json as DemoOrder;
    },

    /** The events from now on: each `next` waits a moment and answers with what has come. */
    async openFeed() {
      let cursor = '';
      async function read() {
        const query = cursor === '' ? '' : `&cursor=${encodeURIComponent(cursor)}`;
        const page = (await call('GET', `/v1/events?limit=100${query}`)).json as {
          data: DemoEvent[];
          has_more: boolean;
          next_cursor: string;
        };
        cursor = page.next_cursor;
        return page;
      }
      for (let pages = 0; (await read()).has_more; pages += 1) {
        if (pages > 1_000) throw new Error('the feed does not end');
      }
      const seen: string[] = [];
      return {
        /** The ids of all events that came. */
        seen: seen as readonly string[],
        async next(): Promise<DemoEvent[]> {
          await sleep(150);
          const { data } = await read();
          seen.push(...data.map(({ id }) => id));
          return data;
        },
      };
    },
  };
}
