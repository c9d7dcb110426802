import assert from 'node:assert/strict';
import { after, before, describe, it, mock } from 'node:test';
import { statement } from '../../../src/gateway/store/statement.ts';
import { eventually } from '../../support/eventually.ts';
import { startGateway, type TestGateway } from '../../support/gateway.ts';

const dayMs = 86_400_000;

describe('a gateway whose own clock is 40 days ahead for a while', () => {
  let gateway: TestGateway;
  before(async () => {
    gateway = await startGateway();
  });
  after(() => gateway.stop());

  it('forgets no Idempotency-Key and no event: a repeated request is not sent again', async () => {
    const partner = await gateway.newPartner();
    const key = 'placed before the clock jumped';
    const order = { symbol: 'SIM-FILL', quantity: 10 };
    const first = await gateway.place(partner, order, key);
    assert.equal(first.status, 201, first.text);
    const events = () => gateway.rest('GET', '/v1/events?limit=100', { key: partner.key });
    const count = await eventually(async () => {
      const { body } = await events();
      assert.equal(body.data.at(-1)?.data.state, 'filled', JSON.stringify(body));
      return body.data.length;
    });
    const { now } = Date;
    const jump = mock.method(Date, 'now', () => now.call(Date) + 40 * dayMs);
    try {
      await eventually(async () => {
        const [row] = await gateway.database.read(
          statement('SELECT idempotency_key FROM orders WHERE id = ?', first.body.id),
        );
        const isSaid = ['order-key-retention', 'feed-retention', 'webhook-retention'].every((worker) =>
          gateway.logged.some((line) => line.includes('nothing is removed') && line.includes(worker)),
        );
        assert.ok(row?.idempotency_key === null || isSaid, 'nothing was looked at yet');
      }, 20_000);
    } finally {
      jump.mock.restore();
    }
    const again = await gateway.place(partner, order, key);
    assert.equal(again.body.id, first.body.id, 'the order was sent twice');
    assert.equal((await events()).body.data.length, count, 'events are gone');
  });
});
