import assert from 'node:assert/strict';
import { after, afterEach, before, beforeEach, describe, it } from 'node:test';
import { statement } from '../../../../src/gateway/store/statement.ts';
import type { StoredOrder } from '../../../../src/gateway/trading/orders/table.ts';
import { keyRetention } from '../../../../src/gateway/trading/submission/key-retention.ts';
import { ArchiveRows } from '../../../support/archive.ts';
import { startWorker } from '../../../support/database.ts';
import { eventually } from '../../../support/eventually.ts';
import { openSettling, type Settling } from '../../../support/settling.ts';

const dayMs = 86_400_000;

describe('idempotency keys', () => {
  let settling: Settling;
  let partnerId: string;
  let stop: () => Promise<void> = async () => {};
  before(async () => {
    settling = await openSettling();
  });
  after(() => settling.close());
  beforeEach(async () => {
    settling.clock.moveTo(Date.now());
    partnerId = await settling.newPartner();
    await settling.database.write(statement('DELETE FROM orders'));
    await settling.database.write(statement('DELETE FROM positions'));
  });
  afterEach(() => stop());

  const store = (key: string, fields: Partial<StoredOrder> = {}) =>
    settling.storeOrder({ partnerId, state: 'filled', checkAt: null, idempotencyKey: key, ...fields });

  /** Runs the worker as one process does, until it is stopped. */
  function run(): void {
    const { database, clock } = settling;
    stop = startWorker(keyRetention(database, async () => clock.now(), 'test', settling.order));
  }

  async function keys(): Promise<string[]> {
    const rows = await settling.database.read(
      statement('SELECT idempotency_key FROM orders WHERE idempotency_key IS NOT NULL ORDER BY id'),
    );
    return rows.map(({ idempotency_key: key }) => String(key));
  }

  it('are kept 30 days to the millisecond, and then are free', async () => {
    await store('older');
    settling.clock.advanceBusiness(1);
    await store('just within');
    settling.clock.advanceBusiness(30 * dayMs);
    run();
    await eventually(async () => assert.ok(!(await keys()).includes('older'), 'a key of 30 days and 1 ms is kept'));
    assert.deepEqual(await keys(), ['just within']);
  });

  it('keys of more orders than one round passes are all free, the second time as the first', async () => {
    const count = 1_100;
    for (let at = 0; at < count; at += 1) await store(`key ${at}`);
    await store('resting', { state: 'pending' });
    settling.clock.advanceBusiness(31 * dayMs);
    run();
    await eventually(async () => {
      const left = await keys();
      assert.deepEqual(left, ['resting'], `${left.length - 1} of ${count} keys are left`);
    }, 20_000);
    await stop();
    await store('next');
    settling.clock.advanceBusiness(31 * dayMs);
    run();
    await eventually(async () => assert.deepEqual(await keys(), ['resting']));
  });

  it('keys that were kept because their order was not final go with the change that ends it', async () => {
    const order = await store('resting', { state: 'pending' });
    settling.clock.advanceBusiness(31 * dayMs);
    const cancel = (row: StoredOrder) => settling.order.begin(row).move('cancelled', 'The order was cancelled.');
    await settling.recorder.change(settling.order, partnerId, order.id, (row) =>
      settling.order.begin(row).step('report', 'x'),
    );
    assert.deepEqual(await keys(), ['resting'], 'the order is not final yet');
    await settling.recorder.change(settling.order, partnerId, order.id, cancel);
    assert.deepEqual(await keys(), []);
    const young = await store('young', { state: 'pending' });
    settling.clock.advanceBusiness(30 * dayMs);
    await settling.recorder.change(settling.order, partnerId, young.id, cancel);
    assert.deepEqual(await keys(), ['young'], 'a key is kept 30 days, though its order is final');
  });

  it("are kept by a process whose clock is 31 days ahead of the database's and that ends their order", async () => {
    const order = await store('young', { state: 'pending' });
    settling.clock.advance(31 * dayMs);
    await settling.recorder.change(settling.order, partnerId, order.id, (row) =>
      settling.order.begin(row).move('cancelled', 'The order was cancelled.'),
    );
    assert.deepEqual(await keys(), ['young']);
  });

  it('are free after 30 days for applications, allocations and orders alike, but for what is not final', async () => {
    const { database, clock, order, application, allocation } = settling;
    const rows = new ArchiveRows(database);
    const at = clock.now() - 31 * dayMs;
    const stored = [
      await rows.application(partnerId, 'opened', at),
      await rows.application(partnerId, 'submitted', at),
      await rows.allocation(partnerId, 'booked', at),
      await rows.allocation(partnerId, 'uncertain', at),
      await rows.order(partnerId, 'filled', at),
      await rows.order(partnerId, 'pending', at),
    ];
    const kinds = [application, allocation, order];
    for (const { table } of kinds) {
      await database.write(statement(`UPDATE ${table.name} SET idempotency_key = id WHERE partner_id = ?`, partnerId));
    }
    const workers = kinds.map((kind) => startWorker(keyRetention(database, async () => clock.now(), 'test', kind)));
    stop = async () => {
      await Promise.all(workers.map((stopWorker) => stopWorker()));
    };
    await eventually(async () => {
      const kept = await Promise.all(
        kinds.map(({ table }) =>
          database.read(
            statement(
              `SELECT idempotency_key FROM ${table.name} WHERE partner_id = ?
              AND idempotency_key IS NOT NULL`,
              partnerId,
            ),
          ),
        ),
      );
      assert.deepEqual(
        kept.flat().map(({ idempotency_key: key }) => String(key)),
        stored.filter((_, place) => place % 2 === 1).map(({ id }) => id),
      );
    });
  });
});
