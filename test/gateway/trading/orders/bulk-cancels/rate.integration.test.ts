import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { BulkCancelState } from '../../../../../src/gen/marina/admin/v1/trading_pb.ts';
import { adminClient } from '../../../../support/admin.ts';
import { eventually } from '../../../../support/eventually.ts';
import { startGateway, type TestGateway } from '../../../../support/gateway.ts';

const perSecond = 20;

describe('the cancels of a job', () => {
  let gateway: TestGateway;
  let admin: ReturnType<typeof adminClient>;
  before(async () => {
    gateway = await startGateway({ MARINA_BULK_CANCELS_PER_SECOND: String(perSecond) });
    admin = adminClient(gateway.app.adminPort);
  });
  after(async () => {
    admin.close();
    await gateway.stop();
  });

  it('come to the broker no faster than they may', async () => {
    const partners = [await gateway.newPartner(), await gateway.newPartner()];
    for (let count = 0; count < 30; count += 1) {
      const placed = await gateway.place(partners[count % 2] as never, { symbol: 'SIM-REST' });
      assert.equal(placed.status, 201, placed.text);
    }
    const startedAt = performance.now();
    const request = { symbol: 'SIM-REST', atMost: 30, reason: 'a test' };
    const { bulkCancel } = await admin.trading.cancelOpenOrders(request, admin.options);
    await eventually(async () => {
      const found = await admin.trading.getBulkCancel({ id: bulkCancel?.id ?? '' }, admin.options);
      assert.equal(found.bulkCancel?.state, BulkCancelState.DONE);
      assert.equal(found.bulkCancel?.cancelled, 30n);
    }, 20_000);
    // The first is sent at once, each of the others its share of a second after the one before.
    const leastMs = (29 * 1_000) / perSecond;
    const tookMs = performance.now() - startedAt;
    assert.ok(tookMs >= leastMs, `30 cancels in ${Math.round(tookMs)} ms, which is less than ${leastMs}`);
  });
});
