import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Call } from '../../../src/gen/marina/simulator/v1/controls_pb.ts';
import { orderRequest, SimulatedBroker } from '../../support/simulated-broker.ts';

const received = { call: Call.SUBMIT_ORDER, receivedAtMs: 0, taken: false, requestId: '', traceParent: '' };

describe('a unit of work of the simulator', () => {
  it('an id of 64 characters is refused for good, and a longer one, which is never taken, is not stored', async () => {
    const broker = await SimulatedBroker.start();
    const refused = await broker.change({}, (unit) => {
      for (const length of [64, 65]) unit.refuse('x'.repeat(length));
      return [64, 65].map((length) => unit.isRefused('x'.repeat(length)));
    });
    assert.deepEqual(refused, [true, false]);
    assert.deepEqual(broker.database.rows('refused_submissions'), [{ client_id: 'x'.repeat(64) }]);
  });

  it('an overlong id and account of a message are stored as far as they fit', async () => {
    const broker = await SimulatedBroker.start();
    await broker.change({}, (unit) => {
      unit.message({ ...received, clientOrderId: 'i'.repeat(65), account: 'a'.repeat(65) });
      unit.message({ ...received, clientOrderId: 'j'.repeat(64), account: 'b'.repeat(64) });
    });
    const stored = broker.database.rows('received_messages').map((row) => [row.client_order_id, row.account]);
    assert.deepEqual(stored, [
      ['i'.repeat(64), 'a'.repeat(64)],
      ['j'.repeat(64), 'b'.repeat(64)],
    ]);
  });

  it('a message whose outcome is known later keeps its number', async () => {
    const broker = await SimulatedBroker.start();
    const message = { ...received, clientOrderId: 'ord_1', account: 'A1' };
    const number = await broker.change({}, (unit) => unit.message(message));
    await broker.change({}, (unit) => unit.message({ ...message, clientOrderId: 'ord_2' }));
    await broker.change({}, (unit) => unit.message({ ...message, taken: true }, number));
    const stored = broker.database.rows('received_messages').map((row) => [row.number, row.client_order_id, row.taken]);
    assert.deepEqual(stored, [
      [1, 'ord_1', 1],
      [2, 'ord_2', 0],
    ]);
  });

  it('an order is added once, and what is set is read again after a restart', async () => {
    const broker = await SimulatedBroker.start();
    await broker.change({}, (unit) => {
      unit.addOrder(orderRequest(), true);
      assert.throws(() => unit.addOrder(orderRequest(), true), /ord_1 taken twice/);
      unit.setClockOffset(7_000);
      unit.setCapabilities({ honoursNotAfter: false });
      unit.submitted('ord_1', Buffer.from('a'));
      unit.submitted('ord_2', Buffer.from('b'));
    });
    await broker.reload();
    const { world } = broker;
    assert.deepEqual([world.lastSequence, world.lastSubmission, world.clock.offsetMs], [1, 2, 7_000]);
    assert.deepEqual(world.capabilities, { honoursNotAfter: false, accountTransactions: true, accountStatus: true });
  });
});
