import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { connect } from 'nats';
import { statement } from '../../../../src/gateway/store/statement.ts';
import { adminClient } from '../../admin.ts';
import type { GatewayProcess } from '../../cluster.ts';
import { eventually } from '../../eventually.ts';
import { assertNothingInUse } from '../../metrics.ts';
import { inPart } from '../../part.ts';
import { casesOf, nameOf } from './endings.ts';
import type { Armed, Moment } from './inside/watch.ts';
import { WatchedCluster } from './watched-cluster.ts';

/** Work of a gateway, of which each moment is a place where it may be killed or fail. */
export interface Scenario<Case> {
  readonly name: string;
  readonly variables?: Record<string, string>;
  /** The names of the moments that have cases here, if others have theirs in another scenario. */
  readonly only?: RegExp;
  /** Makes partners and objects for one run. Its moments are not watched. If it ends the gateway, the next one's start is. */
  prepare(watched: WatchedCluster): Promise<Case>;
  /** Works as partners and operators do, who go on after any failure. */
  run(watched: WatchedCluster, one: Case): Promise<void>;
  /** Checks the promises when everything is at rest. */
  check(watched: WatchedCluster, gateway: GatewayProcess, one: Case): Promise<void>;
}

/** Of a label that comes again and again, the first ones have a case. Counters of limits are written from time to time. */
const maxOccurrences = 2;
const counters = 'counters';
/** How often a case is run at most until its moment comes. */
const maxRuns = 6;
/** A gateway without a new moment for this time is at rest: positions are stored a quarter of a second after their reports. */
const quietMs = 400;
const restMs = 30_000;

/** Nothing is on its way either, and nothing contradicts. */
const none = [
  ...['marina_outbox_events', 'marina_stream_pending_messages', 'marina_unsettled'],
  ...['marina_contradictions_total', 'marina_false_refusals_total', 'marina_unclaimed_reports_total'],
].map((name) => [name] as const);

/** Runs a scenario once and records its moments; then once for each of them and each way in which it can end. */
export async function describeMoments<Case>(scenario: Scenario<Case>): Promise<void> {
  let watched = await WatchedCluster.start(scenario.variables);
  const moments = await record(watched, scenario);
  const cases = casesOf(moments);
  describe(`${scenario.name}, at each moment`, () => {
    let isSpoiled = false;
    after(() => watched.stop());

    it('the scenario has moments of which a case is made', (t) => {
      for (const moment of moments) t.diagnostic(nameOf(moment));
      assert.ok(moments.length > 0);
    });

    for (const { moment, ending } of inPart(cases)) {
      it(`${nameOf(moment)}, ${ending.says}: every promise holds`, async (t) => {
        // A case that failed may have left objects behind, which would fail this one too.
        if (isSpoiled) {
          await watched.stop();
          watched = await WatchedCluster.start(scenario.variables);
        }
        isSpoiled = true;
        const armed = { ...moment, fate: ending.fate, times: ending.times };
        let hasMet = await runCase(watched, scenario, armed);
        for (let runs = 1; !hasMet && moment.occurrence === 1 && runs < maxRuns; runs += 1) {
          // After a failure of the case before, a gateway may still rest: it publishes nothing for two seconds. And some moments
          // come in most runs only, such as the commit of an answer that a report was faster than.
          await watched.restart();
          hasMet = await runCase(watched, scenario, armed);
        }
        isSpoiled = false;
        if (hasMet) return;
        // Batches differ from run to run, so a later moment of a label may fall together with an earlier one.
        assert.notEqual(moment.occurrence, 1, 'the moment did not come');
        t.diagnostic('the moment did not come in this run');
      });
    }
  });
}

/** The moments of a run to which nothing happens. A second run shows which of them come each time. */
async function record<Case>(watched: WatchedCluster, scenario: Scenario<Case>): Promise<readonly Moment[]> {
  const runs: (readonly Moment[])[] = [];
  for (let count = 0; count < 2; count += 1) {
    const one = await scenario.prepare(watched);
    await watched.begin();
    await scenario.run(watched, one);
    await rest(watched);
    runs.push((await watched.seen()).moments);
    await scenario.check(watched, await watched.gateway(), one);
  }
  const [first = [], second = []] = runs;
  const again = new Set(second.map(nameOf));
  const hasCase = ({ label, occurrence }: Moment) => occurrence <= (label === counters ? 1 : maxOccurrences);
  const { only = /^/ } = scenario;
  return first.filter((moment) => hasCase(moment) && again.has(nameOf(moment)) && only.test(nameOf(moment)));
}

/** Returns whether the moment came. */
async function runCase<Case>(watched: WatchedCluster, scenario: Scenario<Case>, armed: Armed): Promise<boolean> {
  const one = await scenario.prepare(watched);
  await watched.begin(armed);
  await scenario.run(watched, one);
  await rest(watched);
  const { met } = await watched.seen();
  const gateway = await watched.gateway();
  const hasMet = watched.hasDied || met > 0;
  await watched.begin();
  // One of two failures in a row may have been left, and it may have come until now.
  if (armed.times > 1) await rest(watched);
  await scenario.check(watched, gateway, one);
  await checkNothingInUse(gateway);
  return hasMet;
}

/** Waits until nothing is on its way, and the gateway has had no moment for a while. Retries of webhooks are brought near. */
export async function rest(watched: WatchedCluster): Promise<void> {
  let [last, since] = ['', performance.now()];
  await eventually(async () => {
    await bringNear(watched, await watched.gateway());
    const { database } = watched.cluster;
    for (const [what, query] of [
      ['events', 'SELECT partner_id, version FROM outbox'],
      ['deliveries', 'SELECT partner_id, version, state, due_at FROM webhook_deliveries WHERE queue IS NOT NULL'],
      ['orders', `SELECT id, state FROM orders WHERE state IN ('sending', 'uncertain')`],
      ['allocations', `SELECT id, state FROM allocations WHERE state IN ('sending', 'uncertain')`],
      ['applications', `SELECT id, state FROM applications WHERE state IN ('sending', 'uncertain')`],
      ['withdrawals', `SELECT id, state FROM withdrawals WHERE state IN ('sending', 'uncertain', 'processing')`],
    ] as const) {
      assert.deepEqual(await database.read(statement(query)), [], `${what} are on their way`);
    }
    await assertNothingQueued(watched);
    const { moments } = await watched.seen();
    const now = `${(await watched.gateway()).pid} ${moments.filter(isOfWork).length}`;
    if (now !== last) [last, since] = [now, performance.now()];
    assert.ok(performance.now() - since >= quietMs, 'the gateway still works');
  }, restMs);
}

/** Counters are written without work too. */
function isOfWork({ label }: Moment): boolean {
  return label !== counters;
}

/** Moves the business time to the next retry of a webhook. */
async function bringNear({ cluster }: WatchedCluster, { adminPort }: GatewayProcess): Promise<void> {
  const [waiting] = await cluster.database.read(
    statement("SELECT MIN(due_at) AS due FROM webhook_deliveries WHERE state = 'waiting' AND due_at IS NOT NULL"),
  );
  if (!(waiting?.due instanceof Date)) return;
  const admin = adminClient(adminPort);
  try {
    const { now } = await admin.diagnostics.getStatus({}, admin.options);
    const aheadMs = waiting.due.getTime() - Number(now?.seconds) * 1_000;
    if (aheadMs > 0) {
      await admin.clock.advanceClock(
        { by: { seconds: BigInt(Math.ceil(aheadMs / 1_000) + 1), nanos: 0 } },
        admin.options,
      );
    }
  } finally {
    admin.close();
  }
}

/** NATS has no event that a gateway has not acknowledged. */
async function assertNothingQueued({ cluster }: WatchedCluster): Promise<void> {
  const { MARINA_NATS_URL: servers, MARINA_NATS_PREFIX: prefix } = cluster.gatewayVariables;
  const connection = await connect({ servers });
  try {
    const { consumers } = await connection.jetstreamManager();
    for (const { name, num_pending, num_ack_pending } of await consumers.list(`${prefix}EVENTS`).next()) {
      assert.deepEqual([name, num_pending, num_ack_pending], [name, 0, 0], 'NATS has unacknowledged events');
    }
  } finally {
    await connection.close();
  }
}

async function checkNothingInUse({ opsPort, logPath, logged }: GatewayProcess): Promise<void> {
  await eventually(() => assertNothingInUse(opsPort, none));
  assert.deepEqual(
    logged().filter(({ level }) => level === 'fatal'),
    [],
    logPath,
  );
}
