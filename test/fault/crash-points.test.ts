import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import { statement } from '../../src/db/statement.ts';
import type { CrashPoint } from '../../src/lib/crash.ts';
import { Cluster, type Partner } from '../support/cluster.ts';
import { checkEverything } from './support/checker.ts';

/** Where a process is killed while it places an order, and whether the order is stored by then. */
const createPoints: readonly { point: CrashPoint; isStored: boolean }[] = [
  { point: 'order.before-store', isStored: false },
  { point: 'order.stored', isStored: true },
  { point: 'order.sent', isStored: true },
  { point: 'order.recorded', isStored: true },
];

const cancelPoints: readonly CrashPoint[] = ['cancel.before-store', 'cancel.stored', 'cancel.sent', 'cancel.recorded'];

/** Points of background work: an order that fills in parts passes them all. */
const backgroundPoints: readonly CrashPoint[] = [
  'report.before-apply',
  'report.applied',
  'report.position-moved',
  'relay.before-publish',
  'relay.published',
  'relay.handed-over',
  'feed.before-sign',
  'feed.signed',
];

/** Points the reconciler passes when an order's outcome is unclear. */
const reconcilePoints: readonly CrashPoint[] = ['reconcile.looked-up', 'reconcile.recorded'];

describe('a gateway killed at any point', () => {
  let cluster: Cluster;
  let partners: Partner[] = [];
  before(async () => {
    cluster = await Cluster.start();
    partners = [await cluster.newPartner()];
  });
  after(() => cluster.stop());

  async function partner(): Promise<Partner> {
    const made = await cluster.newPartner();
    partners.push(made);
    return made;
  }

  async function ordersOf({ id }: Partner): Promise<string[]> {
    const rows = await cluster.database.read(statement('SELECT id FROM orders WHERE partner_id = ?', id));
    return rows.map((row) => String(row.id));
  }

  for (const { point, isStored } of createPoints) {
    it(`at ${point}: the same key leads to one order, sent at most once`, async () => {
      const owner = await partner();
      const key = randomUUID();
      const dying = await cluster.startGateway({ MARINA_CRASH_POINT: point });
      const lost = await dying.place(owner, { symbol: 'SIM-PARTS' }, key);
      assert.equal(lost.status, undefined, 'the process died before it answered');
      await dying.exited;
      const stored = await ordersOf(owner);
      assert.equal(stored.length, isStored ? 1 : 0);

      const gateway = await cluster.startGateway();
      const again = await gateway.place(owner, { symbol: 'SIM-PARTS' }, key);
      assert.equal(again.status, isStored ? 200 : 201, JSON.stringify(again.body));
      if (isStored) assert.equal(again.body.id, stored[0]);
      await checkEverything(cluster, gateway, partners);
      assert.equal((await ordersOf(owner)).length, 1);
      await gateway.stop();
    });
  }

  for (const point of cancelPoints) {
    it(`at ${point}: the cancel can be sent again, and the order ends cancelled`, async () => {
      const owner = await partner();
      const dying = await cluster.startGateway({ MARINA_CRASH_POINT: point });
      const placed = await dying.place(owner, { symbol: 'SIM-REST' });
      assert.equal(placed.status, 201, JSON.stringify(placed.body));
      const lost = await dying.request('DELETE', `/v1/orders/${placed.body.id}`, { key: owner.key });
      assert.equal(lost.status, undefined, 'the process died before it answered');
      await dying.exited;

      const gateway = await cluster.startGateway();
      for (let tries = 0; ; tries += 1) {
        const again = await gateway.request('DELETE', `/v1/orders/${placed.body.id}`, { key: owner.key });
        if (again.status === 200) {
          assert.equal(again.body.state, 'cancelled');
          break;
        }
        // While the killed process's cancel may still be on its way, none is sent; its time is short.
        assert.equal(again.body.error.code, 'cancel_unconfirmed', JSON.stringify(again.body));
        assert.ok(tries < 200, 'the cancel goes through in the end');
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
      await checkEverything(cluster, gateway, partners);
      await gateway.stop();
    });
  }

  for (const point of backgroundPoints) {
    it(`at ${point}: every fill is applied once and told once`, async () => {
      const owner = await partner();
      const dying = await cluster.startGateway({ MARINA_CRASH_POINT: point });
      await dying.place(owner, { symbol: 'SIM-PARTS' });
      await dying.exited;
      const gateway = await cluster.startGateway();
      await checkEverything(cluster, gateway, partners);
      await gateway.stop();
    });
  }

  for (const point of reconcilePoints) {
    it(`at ${point}: an unclear order is settled by the next process`, async () => {
      const owner = await partner();
      const dying = await cluster.startGateway({ MARINA_CRASH_POINT: point });
      const placed = await dying.place(owner, { symbol: 'SIM-HANG' });
      assert.ok(placed.status === 201 || placed.status === undefined);
      await dying.exited;
      const gateway = await cluster.startGateway();
      await checkEverything(cluster, gateway, partners);
      await gateway.stop();
    });
  }
});
