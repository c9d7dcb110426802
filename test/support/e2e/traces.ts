import assert from 'node:assert/strict';
import { statement } from '../../../src/gateway/store/statement.ts';
import { Call } from '../../../src/gen/marina/simulator/v1/controls_pb.ts';
import { callTimeout, type TestGateway, type TestPartner } from '../gateway.ts';

/** The traces of a partner's requests: rows of its own, and messages to the exchange about its accounts. */
export interface Traces {
  readonly orders: number;
  readonly usage: number;
  readonly events: number;
  readonly version: number;
  readonly sent: number;
}

export const noTraces: Traces = { orders: 0, usage: 0, events: 0, version: 0, sent: 0 };

export async function tracesOf({ database, controls }: TestGateway, partner: TestPartner): Promise<Traces> {
  const { id, accounts } = partner;
  const counted = statement(
    `SELECT (SELECT COUNT(*) FROM orders WHERE partner_id = ?) AS orders,
      (SELECT COUNT(*) FROM usage_days WHERE partner_id = ?) AS \`usage\`,
      (SELECT COUNT(*) FROM feed_events WHERE partner_id = ?) AS events,
      (SELECT version FROM partners WHERE id = ?) AS version`,
    ...Array.from({ length: 4 }, () => id),
  );
  const [row = {}] = await database.read(counted);
  const rows = { orders: Number(row.orders), usage: Number(row.usage) };
  let sent = 0;
  for (let afterNumber = 0n, hasMore = true; hasMore; ) {
    const page = await controls.listMessages({ afterNumber }, callTimeout);
    const acting = page.messages.filter(({ call }) => call === Call.SUBMIT_ORDER || call === Call.CANCEL_ORDER);
    sent += acting.filter(({ account }) => accounts.includes(account)).length;
    afterNumber = page.messages.at(-1)?.number ?? afterNumber;
    hasMore = page.hasMore;
  }
  return { ...rows, events: Number(row.events), version: Number(row.version), sent };
}

/** Asserts that nothing of a partner was stored and nothing sent, and that a good order of it is still taken. */
export async function assertUntouched(gateway: TestGateway, partner: TestPartner, idempotencyKey?: string) {
  assert.deepEqual(await tracesOf(gateway, partner), noTraces);
  const placed = await gateway.place(partner, { symbol: 'SIM-REST' }, idempotencyKey);
  assert.equal(placed.status, 201, placed.text);
  assert.equal(placed.body.state, 'pending');
  assert.equal(placed.headers.get('idempotent-replayed'), null);
  assert.equal((await tracesOf(gateway, partner)).sent, 1);
}
