import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import type { CrashPoint } from '../../../src/gateway/store/crash.ts';
import { statement } from '../../../src/gateway/store/statement.ts';
import { Cluster, type GatewayProcess, type Partner } from '../cluster.ts';
import { inPart } from '../part.ts';
import { patient } from '../patience.ts';
import { checkMoney } from './money.ts';

/** The amounts that make the simulated broker book, reject or lose an allocation. */
const amounts = { booked: 40_000, rejected: 999_002, lost: 999_006, 'rejected and lost': 999_007, hanging: 999_005 };

type Outcome = keyof typeof amounts;

interface CrashCase {
  readonly point: CrashPoint;
  readonly outcome: Outcome;
}

/** Where a process is killed while it allocates. */
const createCases: readonly CrashCase[] = [
  { point: 'allocation.before-store', outcome: 'booked' },
  { point: 'allocation.stored', outcome: 'booked' },
  { point: 'allocation.sent', outcome: 'booked' },
  { point: 'allocation.sent', outcome: 'rejected' },
  { point: 'allocation.sent', outcome: 'lost' },
  { point: 'allocation.recorded', outcome: 'booked' },
  { point: 'allocation.recorded', outcome: 'rejected' },
];

/** Where it is killed while the reconciler settles an allocation whose outcome is unclear. */
const reconcileCases: readonly CrashCase[] = [
  { point: 'allocation-reconcile.looked-up', outcome: 'lost' },
  { point: 'allocation-reconcile.looked-up', outcome: 'hanging' },
  { point: 'allocation-reconcile.recorded', outcome: 'rejected and lost' },
  { point: 'allocation-reconcile.recorded', outcome: 'hanging' },
];

/** All points these cases kill a process at. */
export const killedAt: readonly CrashPoint[] = [
  ...new Set([...createCases, ...reconcileCases].map(({ point }) => point)),
];

const funds = 10_000_000n;

/** Kills a gateway at each point, alone or while a second one works, and checks every kobo. */
export function describeAllocationCrashes(name: string, hasPeer: boolean): void {
  describe(name, () => {
    let cluster: Cluster;
    let peer: GatewayProcess | undefined;
    const partners: Partner[] = [];
    before(async () => {
      cluster = await Cluster.start();
    });
    after(() => cluster.stop());

    async function newPartner(): Promise<Partner> {
      const made = await cluster.newPartner();
      await cluster.fund(made, funds);
      partners.push(made);
      return made;
    }

    async function startDying(point: CrashPoint): Promise<GatewayProcess> {
      await peer?.stop();
      const dying = await cluster.startGateway({ MARINA_CRASH_POINT: point });
      if (hasPeer) await cluster.holdsLeases(dying);
      peer = hasPeer ? await cluster.startGateway() : undefined;
      return dying;
    }

    async function nextAfter(dying: GatewayProcess, point: CrashPoint): Promise<GatewayProcess> {
      const died = await Promise.race([dying.exited.then(() => true), delay(patient(20_000), false)]);
      assert.ok(died, `the point ${point} was passed`);
      return peer ?? cluster.startGateway();
    }

    async function check(gateway: GatewayProcess): Promise<void> {
      await checkMoney(cluster, gateway, partners);
      if (gateway !== peer) await gateway.stop();
    }

    async function stored({ id }: Partner): Promise<string[]> {
      const rows = await cluster.database.read(statement('SELECT id FROM allocations WHERE partner_id = ?', id));
      return rows.map((row) => String(row.id));
    }

    for (const { point, outcome } of inPart(createCases)) {
      it(`at ${point}, ${outcome}: the same key leads to one allocation, one reserve, at most one send`, async () => {
        const owner = await newPartner();
        const key = randomUUID();
        const body = { amount_kobo: amounts[outcome] };
        const dying = await startDying(point);
        const lost = await dying.allocate(owner, body, key);
        assert.equal(lost.status, undefined, 'the process died before it answered');
        const gateway = await nextAfter(dying, point);
        const isStored = point !== 'allocation.before-store';
        const before = await stored(owner);
        assert.equal(before.length, isStored ? 1 : 0);
        const again = await gateway.allocate(owner, body, key);
        const id = again.body.id ?? again.headers?.get('location')?.split('/').at(-1);
        if (isStored) assert.equal(id, before[0]);
        assert.deepEqual(await stored(owner), [id]);
        await check(gateway);
      });
    }

    for (const { point, outcome } of inPart(reconcileCases)) {
      it(`at ${point}, ${outcome}: an unclear allocation is settled by the next process, its money once`, async () => {
        const owner = await newPartner();
        const dying = await startDying(point);
        const made = await dying.allocate(owner, { amount_kobo: amounts[outcome] });
        assert.ok(made.status === 201 || made.status === undefined);
        await check(await nextAfter(dying, point));
      });
    }
  });
}
