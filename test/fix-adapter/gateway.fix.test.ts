import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import { eventually } from '../support/eventually.ts';
import { createFixDatabase, TestAdapter } from '../support/fix/adapter.ts';
import { Exchange } from '../support/fix/exchange.ts';
import { startGateway, type TestGateway, type TestPartner } from '../support/gateway.ts';
import type { TestDatabase } from '../support/servers.ts';

describe('a gateway whose broker is the FIX adapter', () => {
  let database: TestDatabase;
  let exchange: Exchange;
  let fix: TestAdapter;
  let gateway: TestGateway;
  let partner: TestPartner;
  before(async () => {
    database = await createFixDatabase();
    exchange = await Exchange.start();
    gateway = await startGateway(
      {},
      {
        prepare: async (variables) => {
          fix = await TestAdapter.start({
            MARINA_FIX_DATABASE_URL: database.url,
            MARINA_FIX_ADDRESS: `127.0.0.1:${exchange.port}`,
            MARINA_FIX_ORDER_FIELDS: '5001={partner}',
            MARINA_FIX_BACK_OFFICE_ADDRESS: variables.MARINA_SIMULATOR_ADDRESS ?? '',
          });
          await fix.active();
          variables.MARINA_BROKER_ADDRESS = `127.0.0.1:${fix.port}`;
        },
      },
    );
    partner = await gateway.newPartner();
  });
  beforeEach(() => eventually(() => assert.ok(fix.adapter.isUp), 20_000));
  after(async () => {
    await gateway.stop();
    await fix.stop();
    await exchange.close();
    await database.drop();
  });

  const rest = (quantity = 10) => ({ symbol: 'SIM-REST', type: 'limit', price_kobo: 10_000, quantity });
  const shown = async (id: string) => (await gateway.rest('GET', `/v1/orders/${id}`, { key: partner.key })).body;

  it('states the partner of an order to the adapter', async () => {
    const { body } = await gateway.place(partner, rest(9));
    assert.equal(exchange.book.get(body.id)?.order.get(5001), partner.id);
  });

  it('places, fills and shows an order', async () => {
    const { status, body } = await gateway.place(partner, rest(10));
    assert.equal(status, 201, JSON.stringify(body));
    assert.equal(body.state, 'pending');
    exchange.fill(body.id, 4, '100.00');
    exchange.fill(body.id, 6, '99.50');
    const filled = await eventually(async () => {
      const found = await shown(body.id);
      assert.equal(found.state, 'filled');
      return found;
    });
    assert.equal(filled.filled_quantity, 10);
  });

  it('tells why the exchange rejects an order', async () => {
    exchange.treat = () => 'reject';
    const { status, body } = await gateway.place(partner, rest(11));
    exchange.treat = () => 'accept';
    assert.equal(status, 422);
    assert.equal(body.error.code, 'order_rejected');
  });

  it('cancels an order', async () => {
    const { body } = await gateway.place(partner, rest(12));
    const { status } = await gateway.rest('DELETE', `/v1/orders/${body.id}`, { key: partner.key });
    assert.ok(status < 300, String(status));
    await eventually(async () => assert.equal((await shown(body.id)).state, 'cancelled'));
  });

  it('says order_not_sent while there is no session', async () => {
    exchange.answersLogon = false;
    exchange.cut();
    await eventually(() => assert.equal(fix.adapter.isUp, false));
    const { status, body } = await gateway.place(partner, rest(13));
    assert.equal(status, 503);
    assert.equal(body.error.code, 'order_not_sent');
    exchange.answersLogon = true;
    exchange.cut();
  });

  it('settles an order whose answer was lost, by itself', async () => {
    exchange.treat = () => 'lose';
    const { status, body } = await gateway.place(partner, rest(14));
    exchange.treat = () => 'accept';
    assert.equal(status, 201);
    exchange.fill(body.id, 14, '100.00', exchange.isConnected);
    await eventually(async () => assert.notEqual((await shown(body.id)).state, 'uncertain'), 40_000);
    assert.equal(exchange.arrivals.get(body.id), 1);
  });

  it('reaches the back office through it', async () => {
    await gateway.fund(partner, 100_000n);
    const { status, body } = await gateway.allocate(partner, { account: partner.account, amount_kobo: 5_000 });
    assert.equal(status, 201, JSON.stringify(body));
    const balance = await gateway.rest('GET', `/v1/accounts/${partner.account}/balance`, { key: partner.key });
    assert.equal(balance.status, 200);
    const { submissions } = await fix.submissions.listSubmissions(
      { afterNumber: 0n, limit: 1_000 },
      { timeoutMs: 5_000 },
    );
    assert.ok(
      submissions.some(({ clientId }) => clientId === body.id),
      'allocations are in the list',
    );
    assert.ok(
      submissions.some(({ clientId }) => clientId.startsWith('ord_')),
      'and orders',
    );
    assert.deepEqual(
      submissions.map(({ number }) => number),
      submissions.map((_, at) => BigInt(at + 1)),
    );
    assert.ok(submissions.every(({ note }) => note.length > 0));
  });
});
