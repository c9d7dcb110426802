import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { connect } from 'nats';
import type { CrashPoint } from '../../../src/gateway/store/crash.ts';
import { statement } from '../../../src/gateway/store/statement.ts';
import { Cluster, type GatewayProcess, type Partner } from '../cluster.ts';
import { eventually } from '../eventually.ts';
import { inPart } from '../part.ts';
import { patient } from '../patience.ts';
import { WebhookReceiver } from '../webhook-receiver.ts';
import { checkArrivals, type Endpoint, registerEndpoints } from './arrivals.ts';
import { checkEverything } from './checker.ts';

/** Where a process is killed while it places an order, and whether the order is stored by then. */
const createPoints: readonly { point: CrashPoint; isStored: boolean }[] = [
  { point: 'order.before-store', isStored: false },
  { point: 'order.stored', isStored: true },
  { point: 'order.sent', isStored: true },
  { point: 'order.recorded', isStored: true },
];

const cancelPoints: readonly CrashPoint[] = ['cancel.before-store', 'cancel.stored', 'cancel.sent', 'cancel.recorded'];

/** Points of background work that orders which fill in parts pass. */
const backgroundPoints: readonly CrashPoint[] = [
  'order-report.before-apply',
  'order-report.applied',
  'order-report.position-moved',
  'relay.before-publish',
  'relay.published',
  'consumer.before-acknowledge',
  'consumer.acknowledged',
];

/** Points passed when there is an endpoint to send to. */
const deliveryPoints: readonly CrashPoint[] = [
  'delivery.claimed',
  'delivery.before-send',
  'delivery.sent',
  'delivery.recorded',
];

/** Points passed only while NATS cannot be reached. */
const withoutNatsPoints: readonly CrashPoint[] = ['relay.handed-over'];

/** Points the reconciler passes when an order's outcome is unclear. */
const reconcilePoints: readonly CrashPoint[] = ['order-reconcile.looked-up', 'order-reconcile.recorded'];

/** All points these cases kill a process at. */
export const killedAt: readonly CrashPoint[] = [
  ...createPoints.map(({ point }) => point),
  ...cancelPoints,
  ...backgroundPoints,
  ...withoutNatsPoints,
  ...deliveryPoints,
  ...reconcilePoints,
];

/** Kills a gateway at each point, alone or while a second one works, and checks what is left. */
export function describeCrashes(name: string, hasPeer: boolean): void {
  describe(name, () => {
    let cluster: Cluster;
    let receiver: WebhookReceiver;
    let peer: GatewayProcess | undefined;
    const partners: Partner[] = [];
    before(async () => {
      receiver = await WebhookReceiver.start();
      cluster = await Cluster.start(receiver.variables);
    });
    after(async () => {
      await cluster.stop();
      await receiver.close();
    });

    async function newPartner(): Promise<Partner> {
      const made = await cluster.newPartner();
      partners.push(made);
      return made;
    }

    async function ordersOf({ id }: Partner): Promise<string[]> {
      const rows = await cluster.database.read(statement('SELECT id FROM orders WHERE partner_id = ?', id));
      return rows.map((row) => String(row.id));
    }

    /** Starts a process that dies at a point. It has the leases by the time its peer, if there is one, is up. */
    async function startDying(point: CrashPoint, variables: Record<string, string> = {}): Promise<GatewayProcess> {
      await peer?.stop();
      const dying = await cluster.startGateway({ MARINA_CRASH_POINT: point, ...variables });
      if (hasPeer) await cluster.holdsLeases(dying);
      peer = hasPeer ? await cluster.startGateway() : undefined;
      return dying;
    }

    /**
     * Gives it work until it dies of it. With a peer, each event and each endpoint comes to one or the other: there is more
     * until some has come to the one that dies.
     */
    async function untilDead(dying: GatewayProcess, work: () => Promise<void>): Promise<void> {
      for (let round = 0; round < (hasPeer ? 6 : 1); round += 1) {
        await work();
        if (await Promise.race([dying.exited.then(() => true), delay(2_500, false)])) return;
      }
    }

    /** Waits until it is dead, and returns the process that goes on: the peer, or one started now. */
    async function nextAfter(dying: GatewayProcess, point: CrashPoint): Promise<GatewayProcess> {
      const died = await Promise.race([dying.exited.then(() => true), delay(patient(20_000), false)]);
      assert.ok(died, `the point ${point} was passed`);
      return peer ?? cluster.startGateway();
    }

    /** A message that NATS would deliver again would kill the next process before it is ready. */
    async function untilNothingIsQueued(): Promise<void> {
      const { MARINA_NATS_URL: servers, MARINA_NATS_PREFIX: prefix } = cluster.gatewayVariables;
      const connection = await connect({ servers });
      try {
        const { consumers } = await connection.jetstreamManager();
        await eventually(async () => {
          for (const { name, num_pending, num_ack_pending } of await consumers.list(`${prefix}EVENTS`).next()) {
            assert.deepEqual([name, num_pending, num_ack_pending], [name, 0, 0]);
          }
        });
      } finally {
        await connection.close();
      }
    }

    async function check(gateway: GatewayProcess): Promise<void> {
      await checkEverything(cluster, gateway, partners);
      await untilNothingIsQueued();
      if (gateway !== peer) await gateway.stop();
    }

    for (const { point, isStored } of inPart(createPoints)) {
      it(`at ${point}: the same key leads to one order, sent at most once`, async () => {
        const owner = await newPartner();
        const key = randomUUID();
        const dying = await startDying(point);
        const lost = await dying.place(owner, { symbol: 'SIM-PARTS' }, key);
        assert.equal(lost.status, undefined, 'the process died before it answered');
        const gateway = await nextAfter(dying, point);
        const stored = await ordersOf(owner);
        assert.equal(stored.length, isStored ? 1 : 0);
        const again = await gateway.place(owner, { symbol: 'SIM-PARTS' }, key);
        assert.equal(again.status, isStored ? 200 : 201, JSON.stringify(again.body));
        if (isStored) assert.equal(again.body.id, stored[0]);
        await check(gateway);
        assert.equal((await ordersOf(owner)).length, 1);
      });
    }

    for (const point of inPart(cancelPoints)) {
      it(`at ${point}: the cancel can be sent again, and the order ends cancelled`, async () => {
        const owner = await newPartner();
        const dying = await startDying(point);
        const placed = await dying.place(owner, { symbol: 'SIM-REST' });
        assert.equal(placed.status, 201, JSON.stringify(placed.body));
        const path = `/v1/orders/${placed.body.id}`;
        const lost = await dying.request('DELETE', path, { key: owner.key });
        assert.equal(lost.status, undefined, 'the process died before it answered');
        const gateway = await nextAfter(dying, point);
        for (let tries = 0; ; tries += 1) {
          const again = await gateway.request('DELETE', path, { key: owner.key });
          if (again.status === 200) {
            assert.equal(again.body.state, 'cancelled');
            break;
          }
          // While the killed process's cancel may still be on its way, none is sent; its time is short.
          assert.equal(again.body.error.code, 'cancel_unconfirmed', JSON.stringify(again.body));
          assert.ok(tries < 200, 'the cancel goes through in the end');
          await delay(50);
        }
        await check(gateway);
      });
    }

    for (const point of inPart([...backgroundPoints, ...withoutNatsPoints])) {
      it(`at ${point}: every fill is applied once and told once`, async () => {
        const owner = await newPartner();
        const variables: Record<string, string> = withoutNatsPoints.includes(point)
          ? { MARINA_NATS_URL: 'nats://127.0.0.1:1' }
          : {};
        const dying = await startDying(point, variables);
        const placed: Promise<unknown>[] = [];
        await untilDead(dying, async () => {
          for (let count = 0; count < (hasPeer ? 6 : 1); count += 1) {
            placed.push(dying.place(owner, { symbol: 'SIM-PARTS', quantity: 100 + placed.length }));
          }
        });
        const gateway = await nextAfter(dying, point);
        await Promise.all(placed);
        await check(gateway);
      });
    }

    for (const point of inPart(deliveryPoints)) {
      it(`at ${point}: every event arrives at its endpoint, signed`, async () => {
        const dying = await startDying(point);
        const endpoints: Endpoint[] = [];
        const placed: Promise<unknown>[] = [];
        await untilDead(dying, async () => {
          const owners = await Promise.all(Array.from({ length: hasPeer ? 8 : 1 }, newPartner));
          endpoints.push(...(await registerEndpoints(peer ?? dying, receiver, owners)));
          placed.push(...owners.map((owner) => dying.place(owner, { symbol: 'SIM-PARTS' })));
        });
        const gateway = await nextAfter(dying, point);
        await Promise.all(placed);
        await checkArrivals(cluster.database, receiver, endpoints);
        await check(gateway);
      });
    }

    for (const point of inPart(reconcilePoints)) {
      it(`at ${point}: an unclear order is settled by the next process`, async () => {
        const owner = await newPartner();
        const dying = await startDying(point);
        const placed = await dying.place(owner, { symbol: 'SIM-HANG' });
        assert.ok(placed.status === 201 || placed.status === undefined);
        await check(await nextAfter(dying, point));
      });
    }
  });
}
