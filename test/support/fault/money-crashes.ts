import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import type { CrashPoint } from '../../../src/gateway/store/crash.ts';
import { statement } from '../../../src/gateway/store/statement.ts';
import { type Answer, Cluster, type GatewayProcess, type Partner } from '../cluster.ts';
import { inPart } from '../part.ts';
import { patient } from '../patience.ts';
import { checkMoney } from './money.ts';

/** A request that makes the simulated broker book or pay, reject, or lose its answer. */
type Body = Readonly<Record<string, string | number>>;

/** A point, and the outcome of the object in whose course the process is killed there. */
interface CrashCase {
  readonly point: CrashPoint;
  readonly outcome: string;
  readonly body: Body;
}

/** A kind of object that moves money, and where a process is killed in its course. */
interface MoneyKind {
  readonly name: 'allocation' | 'withdrawal';
  readonly make: (gateway: GatewayProcess, partner: Partner, body: Body, key?: string) => Promise<Answer>;
  /** While it is made. */
  readonly createCases: readonly CrashCase[];
  /** While reports, or the reconciler, settle it. */
  readonly settleCases: readonly CrashCase[];
}

function casesOf(
  bodies: Readonly<Record<string, Body>>,
  points: readonly (readonly [point: CrashPoint, ...outcomes: string[]])[],
): CrashCase[] {
  return points.flatMap(([point, ...outcomes]) =>
    outcomes.map((outcome) => ({ point, outcome, body: bodies[outcome] ?? assert.fail(outcome) })),
  );
}

const allocationBodies = {
  booked: { amount_kobo: 40_000 },
  rejected: { amount_kobo: 999_002 },
  lost: { amount_kobo: 999_006 },
  'rejected and lost': { amount_kobo: 999_007 },
  hanging: { amount_kobo: 999_005 },
};

export const allocations: MoneyKind = {
  name: 'allocation',
  make: (gateway, partner, body, key) => gateway.allocate(partner, body, key),
  createCases: casesOf(allocationBodies, [
    ['allocation.before-store', 'booked'],
    ['allocation.stored', 'booked'],
    ['allocation.sent', 'booked', 'rejected', 'lost'],
    ['allocation.recorded', 'booked', 'rejected'],
  ]),
  settleCases: casesOf(allocationBodies, [
    ['allocation-reconcile.looked-up', 'lost', 'hanging'],
    ['allocation-reconcile.recorded', 'rejected and lost', 'hanging'],
  ]),
};

const withdrawalBodies = {
  paid: { amount_kobo: 40_000 },
  'paid later': { amount_kobo: 998_002 },
  'paid to the bank': { amount_kobo: 40_000, destination: 'bank_account' },
  rejected: { amount_kobo: 998_003 },
  'rejected later': { amount_kobo: 998_009, destination: 'bank_account' },
  lost: { amount_kobo: 998_016 },
  hanging: { amount_kobo: 998_012 },
};

export const withdrawals: MoneyKind = {
  name: 'withdrawal',
  make: (gateway, partner, body, key) => gateway.withdraw(partner, body, key),
  createCases: casesOf(withdrawalBodies, [
    ['withdrawal.before-store', 'paid'],
    ['withdrawal.stored', 'paid'],
    ['withdrawal.sent', 'paid', 'paid to the bank', 'rejected', 'lost'],
    ['withdrawal.recorded', 'paid', 'paid to the bank', 'rejected'],
  ]),
  settleCases: casesOf(withdrawalBodies, [
    ['withdrawal-reconcile.looked-up', 'hanging'],
    ['withdrawal-reconcile.recorded', 'hanging'],
    ['withdrawal-report.before-apply', 'paid later', 'lost'],
    ['withdrawal-report.applied', 'paid later', 'rejected later', 'lost'],
    ['withdrawal-report.position-moved', 'paid later', 'paid to the bank'],
  ]),
};

/** All points at which the cases of a kind kill a process. */
export function killedAt({ createCases, settleCases }: MoneyKind): CrashPoint[] {
  return [...new Set([...createCases, ...settleCases].map(({ point }) => point))].sort();
}

const funds = 10_000_000n;

/** Kills a gateway at each point of a kind, alone or while a second one works, and checks every kobo. */
export function describeMoneyCrashes(kind: MoneyKind, name: string, hasPeer: boolean): void {
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
      const query = statement(`SELECT id FROM ${kind.name}s WHERE partner_id = ?`, id);
      return (await cluster.database.read(query)).map((row) => String(row.id));
    }

    for (const { point, outcome, body } of inPart(kind.createCases)) {
      it(`at ${point}, ${outcome}: the same key leads to one ${kind.name}, its money moves once, it is sent at most once`, async () => {
        const owner = await newPartner();
        const key = randomUUID();
        const dying = await startDying(point);
        const lost = await kind.make(dying, owner, body, key);
        assert.equal(lost.status, undefined, 'the process died before it answered');
        const gateway = await nextAfter(dying, point);
        const isStored = !point.endsWith('.before-store');
        const before = await stored(owner);
        assert.equal(before.length, isStored ? 1 : 0);
        const again = await kind.make(gateway, owner, body, key);
        const id = again.body.id ?? again.headers?.get('location')?.split('/').at(-1);
        if (isStored) assert.equal(id, before[0]);
        assert.deepEqual(await stored(owner), [id]);
        await check(gateway);
      });
    }

    for (const { point, outcome, body } of inPart(kind.settleCases)) {
      it(`at ${point}, ${outcome}: the next process settles the ${kind.name}, and its money moves once`, async () => {
        const owner = await newPartner();
        const dying = await startDying(point);
        const made = await kind.make(dying, owner, body);
        assert.ok(made.status === 201 || made.status === undefined, JSON.stringify(made.body));
        await check(await nextAfter(dying, point));
      });
    }
  });
}
