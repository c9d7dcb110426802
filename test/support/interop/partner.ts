import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { GatewayProcess, Partner } from '../cluster.ts';
import { eventually } from '../eventually.ts';

/** An order as a partner sees it. */
export interface PartnerView {
  readonly id: string;
  readonly state: string;
  readonly filled: bigint;
  readonly average: string | null;
}

/** An order that a partner placed. Its id is not known while no answer came. */
export interface Placed {
  readonly key: string;
  readonly body: Record<string, unknown>;
  readonly id: string;
}

/** A partner at work over REST. The gateway may be another process each time. */
export class PartnerSide {
  readonly gateway: () => GatewayProcess;
  readonly partner: Partner;

  constructor(gateway: () => GatewayProcess, partner: Partner) {
    this.gateway = gateway;
    this.partner = partner;
  }

  /** Places an order, with the same key again until there is an answer that names the order. */
  async place(order: Record<string, unknown>, boundMs = 30_000): Promise<Placed> {
    const key = randomUUID();
    const body = { symbol: 'SIM-REST', ...order };
    const id = await eventually(async () => {
      const answer = await this.gateway().place(this.partner, body, key);
      const found = answer.body?.id ?? answer.headers?.get('location')?.split('/').at(-1);
      assert.ok(typeof found === 'string', `the order was answered ${answer.status} ${JSON.stringify(answer.body)}`);
      return found;
    }, boundMs);
    return { key, body, id };
  }

  async cancel(id: string): Promise<number | undefined> {
    return (await this.gateway().request('DELETE', `/v1/orders/${id}`, { key: this.partner.key })).status;
  }

  async view(id: string): Promise<PartnerView> {
    const { status, body } = await this.gateway().request('GET', `/v1/orders/${id}`, { key: this.partner.key });
    assert.equal(status, 200, `the order ${id} cannot be read: ${status}`);
    const { state, filled_quantity: filled, average_fill_price_kobo_decimal: average } = body;
    return { id, state, filled: BigInt(filled), average };
  }

  /** The steps of an order's history, as sentences. */
  async history(id: string): Promise<string[]> {
    const path = `/v1/orders/${id}/history?limit=100`;
    const { body } = await this.gateway().request('GET', path, { key: this.partner.key });
    return (body?.data ?? []).map((step: Record<string, unknown>) => `${step.state}: ${step.detail}`);
  }

  /** The last event of each order in the feed. */
  async lastEvents(): Promise<Map<string, PartnerView>> {
    const last = new Map<string, PartnerView>();
    for (let cursor = ''; ; ) {
      const path = `/v1/events?limit=100${cursor === '' ? '' : `&cursor=${encodeURIComponent(cursor)}`}`;
      const { status, body } = await this.gateway().request('GET', path, { key: this.partner.key });
      assert.equal(status, 200, `the feed cannot be read: ${status}`);
      for (const { data } of body.data) {
        if (data?.object !== 'order') continue;
        const { id, state, filled_quantity: filled, average_fill_price_kobo_decimal: average } = data;
        last.set(id, { id, state, filled: BigInt(filled), average });
      }
      if (body.has_more !== true) return last;
      cursor = body.next_cursor;
    }
  }
}
