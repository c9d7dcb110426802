import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { status } from '@grpc/grpc-js';
import { eventually } from '../../../../support/eventually.ts';
import {
  callTimeout,
  operatorToken,
  startGateway,
  type TestGateway,
  type TestPartner,
} from '../../../../support/gateway.ts';
import { scrape } from '../../../../support/metrics.ts';
import type { Found } from '../../../../support/operator.ts';
import { operatorTokens, TwoOperators } from '../../../../support/two-operators.ts';

describe('an operator who acknowledges what is uncertain', () => {
  let gateway: TestGateway;
  let operators: TwoOperators;
  before(async () => {
    gateway = await startGateway({
      MARINA_SUBMIT_TIMEOUT_MS: '1000',
      MARINA_OPERATOR_TOKENS: operatorTokens(`tester:${operatorToken}`),
    });
    operators = await TwoOperators.connect(gateway.app.adminPort);
    // Not found proves nothing then: an order that was never taken stays uncertain.
    await gateway.controls.setCapabilities({ honoursNotAfter: false }, callTimeout);
  });
  after(async () => {
    operators.close();
    await gateway.stop(['exchange']);
  });

  const acknowledge = (object_id: string, hours: number, reason = 'the desk looks for it') =>
    operators.as('ada', 'Diagnostics.AcknowledgeUnsettled', { object_id, hours, reason });

  async function listed(partner: TestPartner, id: string): Promise<Found> {
    const { objects } = await operators.as('ada', 'Diagnostics.ListUnsettled', { partner_id: partner.id });
    return objects.find((each: Found) => each.id === id);
  }

  /** Waits until the metrics show so many acknowledged orders, and an age of the oldest that is above 0 or not. */
  const shows = (count: number, hasAge: boolean) =>
    eventually(async () => {
      const metrics = await scrape(gateway.app.opsPort);
      const labels = { kind: 'order', state: 'uncertain' };
      assert.equal(metrics.value('marina_unsettled_acknowledged', labels), count);
      assert.equal(metrics.value('marina_unsettled_oldest_seconds', labels) > 0, hasAge);
      assert.ok(metrics.value('marina_unsettled', labels) >= count, 'an acknowledged order is not counted');
    });

  it('is not called for it any more, while the gateway goes on asking and lists show who knows of it', async () => {
    const partner = await gateway.newPartner();
    const { body } = await gateway.place(partner, { symbol: 'SIM-RESET' });
    assert.equal(body.state, 'uncertain');
    await shows(0, true);
    const answer = await acknowledge(body.id, 24);
    assert.equal(answer.changed, true);
    const hoursLeft = (Date.parse(answer.ends_at) - Date.now()) / 3_600_000;
    assert.ok(hoursLeft > 23.9 && hoursLeft <= 24, `${hoursLeft} hours`);
    await shows(1, false);
    const before = await listed(partner, body.id);
    assert.deepEqual(
      [before.acknowledged_by, before.acknowledged_reason, before.acknowledged_until],
      ['ada', 'the desk looks for it', answer.ends_at],
    );
    await eventually(async () =>
      assert.ok((await listed(partner, body.id)).look_ups > before.look_ups, 'nobody asks any more'),
    );
    const { entries } = await operators.as('ada', 'Audit.ListEntries', { partner_id: partner.id });
    assert.equal(entries[0].action, 'Diagnostics.AcknowledgeUnsettled');
    assert.equal(entries[0].subject, body.id);

    await acknowledge(body.id, 1, 'it takes an hour');
    assert.equal((await listed(partner, body.id)).acknowledged_reason, 'it takes an hour');
    assert.equal((await acknowledge(body.id, 0)).changed, true);
    assert.equal((await acknowledge(body.id, 0)).changed, false, 'it was ended a second time');
    assert.equal((await listed(partner, body.id)).acknowledged_by, '');
    await shows(0, true);
    await operators.settle(body.id, { order: { state: 'SETTLED_ORDER_STATE_REFUSED' } });
  });

  it('is called again for one that another operator has not acknowledged, and when the time is over', async () => {
    const partner = await gateway.newPartner();
    const place = async () => (await gateway.place(partner, { symbol: 'SIM-RESET', quantity: 7 })).body.id as string;
    const first = await place();
    await acknowledge(first, 1);
    await shows(1, false);
    const other = await gateway.newPartner();
    const second = (await gateway.place(other, { symbol: 'SIM-RESET' })).body.id as string;
    await shows(1, true);
    await acknowledge(second, 1);
    await shows(2, false);
    await gateway.database.write({
      sql: 'UPDATE acknowledgements SET ends_at = ? WHERE object_id = ?',
      values: [new Date(Date.now() - 1), second],
    });
    await shows(1, true);
    assert.equal((await listed(other, second)).acknowledged_by, '', 'its time is over');
    for (const id of [first, second]) await operators.settle(id, { order: { state: 'SETTLED_ORDER_STATE_REFUSED' } });
  });

  it('is refused for what is settled, and for what does not exist', async () => {
    const partner = await gateway.newPartner();
    const { body } = await gateway.place(partner, { symbol: 'SIM-REST' });
    const settled = await operators.refused('ada', 'Diagnostics.AcknowledgeUnsettled', {
      object_id: body.id,
      hours: 1,
    });
    assert.equal(settled.code, status.FAILED_PRECONDITION);
    const none = { object_id: `ord_${'a'.repeat(20)}`, hours: 1 };
    assert.equal((await operators.refused('ada', 'Diagnostics.AcknowledgeUnsettled', none)).code, status.NOT_FOUND);
  });
});
