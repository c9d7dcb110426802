import { setTimeout as sleep } from 'node:timers/promises';

/** The members of orders, applications and allocations the demo looks at. */
export interface DemoObject {
  id: string;
  state: string;
  account: string | null;
  reason: string | null;
}

export interface DemoOrder extends DemoObject {
  quantity: number;
  filled_quantity: number;
}

export interface DemoEvent {
  id: string;
  type: string;
  version: number;
  data: DemoOrder;
}

export interface DemoLimits {
  day: string;
  orders_kobo_per_day: { limit: number; used: number; remaining: number };
  allocations_kobo_per_day: { limit: number; used: number; remaining: number };
  requests_per_second: { limit: number; burst: number };
}

export interface DemoNote {
  ticket: string;
  quantity: number;
  consideration_kobo: number;
  trade_date: string;
  transaction_date: string;
}

interface Body {
  readonly type: string;
  readonly content: string | Uint8Array<ArrayBuffer>;
}

/** Longer than an order whose answer is lost takes. */
const timeoutMs = 45_000;
const mostTries = 5;

export type Partner = ReturnType<typeof partnerClient>;

/** A partner's side of the REST API, written as a partner would: plain requests, an answer that is checked. */
export function partnerClient(restUrl: string, key: string) {
  async function call<T>(method: string, path: string, body?: Body, idempotencyKey?: string) {
    for (let tries = 1; ; tries += 1) {
      const response = await fetch(`${restUrl}${path}`, {
        method,
        headers: {
          authorization: `Bearer ${key}`,
          ...(idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey }),
          ...(body === undefined ? {} : { 'content-type': body.type }),
        },
        ...(body === undefined ? {} : { body: body.content }),
        signal: AbortSignal.timeout(timeoutMs),
      });
      const text = await response.text();
      if (response.status === 429 && tries < mostTries) {
        await sleep(Number(response.headers.get('retry-after') ?? 1) * 1000);
        continue;
      }
      if (!response.ok) throw new Error(`${method} ${path} was answered ${response.status}: ${text}`);
      const replayed = response.headers.get('idempotent-replayed') === 'true';
      return { status: response.status, replayed, body: JSON.parse(text) as T };
    }
  }

  return {
    get: async <T>(path: string): Promise<T> => (await call<T>('GET', path)).body,

    delete: <T>(path: string) => call<T>('DELETE', path),

    post: <T>(path: string, body: object, idempotencyKey?: string) =>
      call<T>('POST', path, { type: 'application/json', content: JSON.stringify(body) }, idempotencyKey),

    putPng: <T>(path: string, content: Uint8Array<ArrayBuffer>) => call<T>('PUT', path, { type: 'image/png', content }),

    /** The events from now on: each `next` waits a moment and answers with what has come. */
    async openFeed() {
      let cursor = '';
      async function read() {
        const query = cursor === '' ? '' : `&cursor=${encodeURIComponent(cursor)}`;
        const { body } = await call<{ data: DemoEvent[]; has_more: boolean; next_cursor: string }>(
          'GET',
          `/v1/events?limit=100${query}`,
        );
        cursor = body.next_cursor;
        return body;
      }
      for (let pages = 0; (await read()).has_more; pages += 1) {
        if (pages > 1_000) throw new Error('the feed does not end');
      }
      return async (): Promise<DemoEvent[]> => {
        await sleep(150);
        return (await read()).data;
      };
    },
  };
}
