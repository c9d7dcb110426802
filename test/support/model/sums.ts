import assert from 'node:assert/strict';
import { eventually } from '../eventually.ts';
import type { PartnerModel } from './partner-model.ts';
import { ask, boundMs, type Whole } from './surroundings.ts';

/** Compares limits and wallet with the sums of the model. */
export async function assertSums(model: PartnerModel, whole: Whole, replica: number): Promise<void> {
  const { body: limits } = await ask(whole, replica, 'GET', '/v1/limits');
  assert.deepEqual(
    [limits.orders_kobo_per_day.used, limits.allocations_kobo_per_day.used],
    [model.usedByOrders(), model.usedByAllocations()],
    'what the limits say is used',
  );
  // The replicas count together, and hear of the end of a request a moment after its answer.
  await eventually(async () => {
    const { body } = await ask(whole, replica, 'GET', '/v1/limits');
    assert.equal(body.requests_under_way.used, 0, 'requests are under way');
  }, boundMs);
  const { body: wallet } = await ask(whole, replica, 'GET', '/v1/wallet');
  assert.deepEqual(
    [wallet.available_kobo, wallet.reserved_kobo, wallet.posted_kobo, wallet.withdrawn_kobo],
    [model.availableKobo(), model.reservedKobo(), model.postedKobo(), model.withdrawnKobo()],
    'what the wallet has',
  );
}
