import assert from 'node:assert/strict';
import { connect } from 'nats';
import { statement } from '../../../../src/gateway/store/statement.ts';
import { adminClient } from '../../admin.ts';
import type { GatewayProcess } from '../../cluster.ts';
import { eventually } from '../../eventually.ts';
import { assertNothingInUse } from '../../metrics.ts';
import { counters, describeMomentsOf } from './scenario.ts';
import { WatchedCluster } from './watched-cluster.ts';

/** Work of a gateway, of which each moment is a place where it may be killed or fail. */
export interface Scenario<Case> {
  readonly name: string;
  readonly variables?: Record<string, string>;
  /** The names of the moments that have cases here, if others have theirs in another scenario; all but the removal of old rows by default. */
  readonly only?: RegExp;
  /** Of a label that comes again and again, so many have a case; 2 by default. */
  readonly maxOccurrences?: number;
  /** Whether a second gateway runs beside the one that is watched, and goes on when that one is killed or frozen. */
  readonly isBeside?: boolean;
  /** Makes partners and objects for one run. Its moments are not watched. If it ends the gateway, the next one's start is. */
  prepare(watched: WatchedCluster): Promise<Case>;
  /** Works as partners and operators do, who go on after any failure. */
  run(watched: WatchedCluster, one: Case): Promise<void>;
  /** Checks the promises when everything is at rest. */
  check(watched: WatchedCluster, gateway: GatewayProcess, one: Case): Promise<void>;
}

/** A gateway without a new moment for this time is at rest: positions are stored a quarter of a second after their reports. */
const quietMs = 400;
const restMs = 30_000;
/** A setting with which no gateway reaches NATS. */
export const natsAway = { MARINA_NATS_URL: 'nats://127.0.0.1:1' };
/** Old rows are removed each second, whether there are any or not. */
const usual = /^(?!commit delete webhook_)/;

/** Nothing is on its way either, and nothing contradicts. */
const none = [
  ...['marina_outbox_events', 'marina_stream_pending_messages', 'marina_unsettled'],
  ...['marina_contradictions_total', 'marina_false_refusals_total', 'marina_unclaimed_reports_total'],
].map((name) => [name] as const);

/** Runs the scenario of a gateway. */
export function describeMoments<Case>(scenario: Scenario<Case>): Promise<void> {
  return describeMomentsOf<WatchedCluster, Case>({
    only: usual,
    ...scenario,
    start: () => WatchedCluster.start(scenario.variables, scenario.isBeside),
    rest,
    async check(watched, one) {
      const gateway = await watched.gateway();
      await scenario.check(watched, gateway, one);
      await checkNothingInUse(gateway);
    },
  });
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
    const now = `${(await watched.gateway()).pid} ${moments.filter(({ label }) => label !== counters).length}`;
    if (now !== last) [last, since] = [now, performance.now()];
    assert.ok(performance.now() - since >= quietMs, 'the gateway still works');
  }, restMs);
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
  if (servers === natsAway.MARINA_NATS_URL) return;
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
