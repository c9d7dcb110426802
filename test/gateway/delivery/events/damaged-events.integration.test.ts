import assert from 'node:assert/strict';
import { after, before, it } from 'node:test';
import { newEndpoint } from '../../../../src/gateway/delivery/webhooks/plan/endpoint-store.ts';
import { endpoints } from '../../../../src/gateway/delivery/webhooks/table.ts';
import { statement } from '../../../../src/gateway/store/statement.ts';
import { eventually } from '../../../support/eventually.ts';
import { callTimeout, startGateway, type TestGateway, type TestPartner } from '../../../support/gateway.ts';
import { insertRows } from '../../../support/insert-rows.ts';

let gateway: TestGateway;
before(async () => {
  gateway = await startGateway();
});
after(() => gateway.stop());

async function newPartner(): Promise<TestPartner> {
  const partner = await gateway.newPartner();
  const made = {
    partnerId: partner.id,
    url: 'https://localhost:1/',
    secret: Buffer.alloc(8),
    registeredAt: Date.now(),
  };
  await gateway.database.write(endpoints.insert(newEndpoint({ ...made, afterVersion: 0n })));
  return partner;
}

async function troubles(): Promise<{ part: string; reason: string }[]> {
  const response = await fetch(`http://127.0.0.1:${gateway.app.opsPort}/readyz`);
  return ((await response.json()) as { degraded: { part: string; reason: string }[] }).degraded;
}

it('a delivery of another event in the place of one holds up its partner alone, and an operator hears of it', async () => {
  const [damaged, other] = [await newPartner(), await newPartner()];
  const at = new Date();
  const columns = 'partner_id version event_id type occurred_at committed_at taken_at state queue'.split(' ');
  const row = [damaged.id, 1, 'msg_of_a_torn_transaction', 'order.pending', at, at, at, 'waiting', 1];
  await gateway.database.write(insertRows('webhook_deliveries', columns, [row]));
  for (const partner of [damaged, other]) {
    assert.equal((await gateway.place(partner, { symbol: 'SIM-REST', quantity: 1 })).status, 201);
  }
  await eventually(async () => {
    const [trouble] = (await troubles()).filter(({ part }) => part === 'events');
    assert.equal(trouble?.reason, `events cannot be consumed, of ${damaged.id}`);
  });
  // Both while the other's events rest, and when they are tried again.
  for (const quantity of [2, 3]) {
    assert.equal((await gateway.place(other, { symbol: 'SIM-REST', quantity })).status, 201);
    await eventually(async () => {
      const waiting = statement('SELECT version FROM outbox WHERE partner_id = ?', other.id);
      assert.deepEqual(await gateway.database.read(waiting), [], "the other's events are consumed");
    });
  }
  await gateway.database.write(statement('DELETE FROM webhook_deliveries WHERE partner_id = ?', damaged.id));
  await eventually(async () => assert.deepEqual(await troubles(), []), 15_000);
  const waiting = statement('SELECT version FROM outbox WHERE partner_id = ?', damaged.id);
  assert.deepEqual(await gateway.database.read(waiting), []);
});

it('an event that is queued already and not acknowledged, as a torn transaction left it, is acknowledged and queued once', async () => {
  const partner = await newPartner();
  const at = new Date();
  const columns = 'partner_id version event_id type occurred_at committed_at taken_at state queue'.split(' ');
  // A place taken keeps the event in the outbox; then it turns out to be its own.
  const row = [partner.id, 1, 'msg_in_its_place', 'order.pending', at, at, at, 'waiting', 1];
  await gateway.database.write(insertRows('webhook_deliveries', columns, [row]));
  assert.equal((await gateway.place(partner, { symbol: 'SIM-REST', quantity: 1 })).status, 201);
  await eventually(async () => assert.equal((await troubles())[0]?.part, 'events'));
  await gateway.database.write(
    statement(
      `UPDATE webhook_deliveries d JOIN outbox o ON o.partner_id = d.partner_id AND o.version = d.version
       SET d.event_id = o.id WHERE d.partner_id = ?`,
      partner.id,
    ),
  );
  await eventually(async () => {
    const waiting = statement('SELECT version FROM outbox WHERE partner_id = ?', partner.id);
    assert.deepEqual(await gateway.database.read(waiting), [], 'it is acknowledged');
  }, 15_000);
  const queued = await gateway.database.read(
    statement('SELECT version FROM webhook_deliveries WHERE partner_id = ?', partner.id),
  );
  assert.equal(queued.length, 1);
  await eventually(async () => assert.deepEqual(await troubles(), []));
});

it('an event in the place of the next one stops changes of its partner alone, and reports of others are applied', async () => {
  const [damaged, other] = [await gateway.newPartner(), await gateway.newPartner()];
  const placed = await gateway.place(damaged, { symbol: 'SIM-REST', quantity: 5 });
  assert.equal(placed.status, 201, placed.text);
  const [row] = await gateway.database.read(statement('SELECT version FROM partners WHERE id = ?', damaged.id));
  const next = Number(row?.version) + 1;
  const columns = 'partner_id version id type occurred_at body'.split(' ');
  const event = [damaged.id, next, 'msg_of_a_torn_transaction', 'order.pending', new Date(), Buffer.from('{}')];
  await gateway.database.write(insertRows('feed_events', columns, [event]));
  // The exchange trades it, and the report cannot be applied.
  await trade(placed.body.id, 5);
  await eventually(async () => {
    const [trouble] = (await troubles()).filter(({ part }) => part === 'objects');
    assert.equal(trouble?.reason, `objects cannot be changed, of ${damaged.id}`);
  });
  for (const quantity of [6, 7]) {
    const { body } = await gateway.place(other, { symbol: 'SIM-REST', quantity });
    await trade(body.id, quantity);
    await eventually(async () =>
      assert.equal(await stateOf(other, body.id), 'filled', "the other's report is applied"),
    );
  }
  assert.equal(await stateOf(damaged, placed.body.id), 'pending');
  await gateway.database.write(
    statement('DELETE FROM feed_events WHERE partner_id = ? AND version = ?', damaged.id, next),
  );
  await eventually(async () => assert.equal(await stateOf(damaged, placed.body.id), 'filled'), 60_000);
});

async function trade(clientOrderId: string, quantity: number): Promise<void> {
  await gateway.controls.fillOrder({ clientOrderId, quantity: BigInt(quantity) }, callTimeout);
}

async function stateOf(partner: TestPartner, id: string): Promise<string> {
  return (await gateway.rest('GET', `/v1/orders/${id}`, { key: partner.key })).body.state;
}
