import assert from 'node:assert/strict';
import { after, before, it } from 'node:test';
import { Cluster, type GatewayProcess, type Partner } from '../cluster.ts';
import { eventually } from '../eventually.ts';
import { isInPart } from '../part.ts';
import { alone } from './alone.ts';
import type { Attack, Target } from './attacker.ts';
import { AttackerLink } from './attacker-link.ts';
import { HonestLoad, type MoreCalls } from './honest.ts';
import { inspected, settledMiB, watchMemory } from './memory.ts';
import { type Outcome, report } from './report.ts';

/** The settings that all attacks of a file share. */
export interface Attacked {
  /** The file whose functions the attacks are. */
  readonly attacks: URL;
  /** Settings of the gateway that is attacked. */
  readonly variables?: () => Record<string, string>;
  /** Calls that the honest partners make in addition to the usual ones. */
  readonly honest?: MoreCalls;
  /** Prepares each gateway: the result goes to each attack as `options.prepared`. */
  readonly prepare?: (cluster: Cluster, gateway: GatewayProcess, hostile: Partner) => Promise<unknown>;
}

export interface AttackOptions {
  readonly run: Attack;
  /** The options of the attack, to which `prepared` and `turn` (the number of this run of it) are added. */
  readonly options?: Record<string, unknown>;
  /** How long the attack lasts; it is at least as long as the calm before it. */
  readonly forMs?: number;
  /** How long after the attack the gateway may take to close all its connections; absent: it may keep them. */
  readonly closedWithinMs?: number;
  /** How much more memory the gateway may hold while it is attacked. */
  readonly peakMiB?: number;
  /** Looks at what the attack returned. */
  readonly check?: (result: never, seen: Seen) => void | Promise<void>;
}

/** The objects that the test may look at after an attack. */
export interface Seen {
  readonly cluster: Cluster;
  readonly gateway: GatewayProcess;
  readonly hostile: Partner;
  readonly prepared: unknown;
}

/** Times below this one are taken for this one: what a small time doubles by is chance, of two cores shared by many. */
const floorMs = 100;
const maxRatio = 2;
/**
 * How often calm and attack are measured before the attack counts as what made the calls slow. An attack is compared with
 * the slowest calm so far, because what else the machine does is in both.
 */
const rounds = 5;
/** The hostile partner's rate, in requests each second: 50 times the usual one. */
const hostileRate = 1_000;
const usualForMs = 2_500;
const usualPeakMiB = 150;
const maxGrowthMiB = 50;
const memoryWithinMs = 20_000;

/**
 * Starts a gateway process that two honest partners work with, for all attacks of a file, and returns what makes a test
 * of an attack. A test fails unless, while the attack goes on and after it:
 *
 * - the process lives, is ready, and logged no error that nobody caught;
 * - no honest call fails;
 * - the honest calls' 99th percentile in the time of the attack is at most twice that of an equally long calm before
 *   (`floorMs`: what is below counts as this much; the ratio alone may be measured again, because other processes share
 *   the cores);
 * - the memory is at most 50 MiB above that of the calm within 20 s, and never more than `peakMiB` above it;
 * - the gateway closed every connection of the attacker in the time the attack states.
 */
export function underAttack({ attacks, variables, honest, prepare }: Attacked) {
  let cluster: Cluster;
  let link: AttackerLink;
  let hostile: Partner;
  let partners: readonly Partner[];
  let field: Field | undefined;
  let attackCount = 0;

  before(async () => {
    cluster = await Cluster.start({
      ...inspected,
      MARINA_READ_TIMEOUT_MS: '5000',
      MARINA_SUBMIT_TIMEOUT_MS: '10000',
      ...variables?.(),
    });
    link = await AttackerLink.start(attacks, cluster.folder);
    partners = [await cluster.newPartner(), await cluster.newPartner()];
    hostile = await cluster.newPartner({ requestsPerSecond: hostileRate });
  });
  after(async () => {
    field?.load.close();
    await link?.stop();
    await cluster?.stop();
  });

  /** A gateway that no attack has harmed: another one where the last attack's test failed. */
  async function standing(): Promise<Field> {
    if (field !== undefined && !field.isHarmed) return field;
    field?.load.close();
    await field?.gateway.kill();
    const gateway = await cluster.startGateway();
    const load = await HonestLoad.start(gateway, partners, honest);
    // A process that has just begun grows for a while by itself.
    await load.measure(1_000);
    const prepared = await prepare?.(cluster, gateway, hostile);
    const begun: Field = { gateway, load, prepared, isHarmed: false, isOver: false };
    void gateway.exited.then(() => {
      begun.isOver = true;
    });
    field = begun;
    return begun;
  }

  async function round(title: string, options: AttackOptions, turn: number, calmP99Ms: number): Promise<Outcome> {
    const { run, forMs = usualForMs, closedWithinMs = 0, peakMiB = usualPeakMiB } = options;
    const attacked = await standing();
    const { gateway, load, prepared } = attacked;
    // Harmed until all has been looked at and is well.
    attacked.isHarmed = true;
    const { calm, calmMiB, mostMiB, logged, attack, under } = await alone(async () => {
      const calm = await load.measure(forMs);
      assert.deepEqual(calm.failures, [], 'an honest call failed before the attack');
      const calmMiB = await settledMiB(gateway.pid, gateway.logPath, 0, 0);
      const maxMiB = watchMemory(gateway.pid);
      const logged = gateway.logged().length;
      const attack = link.run({
        attack: run.name,
        options: { ...options.options, prepared, turn },
        target: targetOf(gateway),
        forMs,
        closedWithinMs,
      });
      return { calm, calmMiB, mostMiB: maxMiB, logged, attack, under: await load.measure(forMs) };
    });
    const later = await load.measure(0, attack.acted);
    const failures = [...under.failures, ...later.failures];
    const { connections, result } = await attack.done;
    assert.equal(attacked.isOver, false, `the process ended: ${JSON.stringify(gateway.logged().slice(-3))}`);
    const heldMiB = await settledMiB(gateway.pid, gateway.logPath, calmMiB + maxGrowthMiB, memoryWithinMs);
    const peak = mostMiB() - calmMiB;
    const outcome = {
      calm: { ...calm, p99Ms: Math.max(calm.p99Ms, calmP99Ms) },
      attacked: under,
      ratio: Math.max(under.p99Ms, floorMs) / Math.max(calm.p99Ms, calmP99Ms, floorMs),
      grownMiB: heldMiB - calmMiB,
      peakMiB: peak,
      connections,
      closedWithinMs: options.closedWithinMs,
    };
    report(attacks, title, outcome);
    assertNothingUncaught(gateway, logged);
    assert.deepEqual(failures.slice(0, 3), [], `${failures.length} honest calls failed`);
    await eventually(async () => {
      const ready = await fetch(`http://127.0.0.1:${gateway.opsPort}/readyz`);
      assert.equal(ready.status, 200, await ready.text());
    });
    assert.ok(outcome.grownMiB <= maxGrowthMiB, `it holds ${heldMiB} MiB after the attack, ${calmMiB} before`);
    assert.ok(peak <= peakMiB, `it took ${Math.round(peak)} MiB more during the attack; ${peakMiB} is the bound`);
    if (options.closedWithinMs !== undefined) {
      assert.equal(connections.open, 0, `${connections.open} connections stayed open for ${closedWithinMs} ms`);
    }
    await options.check?.(result as never, { cluster, gateway, hostile, prepared });
    attacked.isHarmed = false;
    return outcome;
  }

  function targetOf({ restPort, grpcPort, adminPort, opsPort }: GatewayProcess): Target {
    return { restPort, grpcPort, adminPort, opsPort, key: hostile.key, account: hostile.account };
  }

  return (title: string, options: AttackOptions): void => {
    attackCount += 1;
    if (!isInPart(attackCount - 1)) return;
    it(title, async () => {
      const times: string[] = [];
      let calmP99Ms = 0;
      for (let turn = 0; turn < rounds; turn += 1) {
        const { calm, attacked, ratio } = await round(title, options, turn, calmP99Ms);
        if (ratio <= maxRatio) return;
        calmP99Ms = calm.p99Ms;
        times.push(`${Math.round(calm.p99Ms)} ms became ${Math.round(attacked.p99Ms)} ms`);
      }
      assert.fail(`the honest p99 more than doubled each time: ${times.join(', ')}`);
    });
  };
}

/** A gateway process with its honest partners. */
interface Field {
  readonly gateway: GatewayProcess;
  readonly load: HonestLoad;
  readonly prepared: unknown;
  /** An attack began whose end was not yet found to be well. */
  isHarmed: boolean;
  /** The process has ended. */
  isOver: boolean;
}

function assertNothingUncaught(gateway: GatewayProcess, logged: number): void {
  const uncaught = gateway
    .logged()
    .slice(logged)
    .filter(({ level, msg }) => level === 'fatal' || /uncaught|unhandled/i.test(msg));
  assert.deepEqual(uncaught, [], 'an error that nobody caught');
}
