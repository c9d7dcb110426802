import { setTimeout as sleep } from 'node:timers/promises';
import type { Cluster } from '../support/cluster.ts';
import type { Turns } from './run.ts';
import { compareInTurns, compareUsage } from './support/compare.ts';
import { growthOperations } from './support/growth-operations.ts';
import { drawGrowth, type Growth } from './support/growth-picture.ts';
import { type GrowthSide, startGrowthSide, startLargeServer } from './support/growth-side.ts';
import type { Row } from './support/report.ts';
import { UsageWatch } from './support/usage.ts';

const small = 10_000;
const large = Number(process.env.BENCH_ORDERS ?? 1_000_000);
/** How long gateways that nobody calls are watched. */
const idleMs = 3_000;
const oldEvents = 1_500;

/**
 * Whether calls and background jobs stay as cheap when tables grow: two gateways, each with tables of its own on the same
 * server, one with few orders and one with many, in turns.
 */
export async function benchGrowth(
  _cluster: Cluster,
  turns: Turns,
  natsPid: number,
  report: (section: string, rows: readonly Row[]) => void,
): Promise<Row[]> {
  const database = await startLargeServer(large);
  const watch = await UsageWatch.connect(database.url);
  const few = await startGrowthSide(database, natsPid, small);
  const many = await startGrowthSide(database, natsPid, large);
  const grown: Growth[] = [];
  const add = async (name: string, measure: () => Promise<Row[]>) => {
    const rows = await measure().catch((error): Row[] => [{ what: 'failed', figure: String(error).slice(0, 150) }]);
    report(`${name}, ${large} orders against ${small}`, rows);
    grown.push({ name, rows });
  };
  try {
    // Shorter turns than of other sections: there are many of them.
    const shorter = { rounds: turns.rounds, durationMs: turns.durationMs / 3 };
    for (const { name, atOnce, call } of growthOperations) {
      const sideOf = ({ client, processes }: GrowthSide) => ({ call: () => call(client), processes });
      await add(name, () => compareInTurns(atOnce, sideOf(many), sideOf(few), shorter, watch));
    }
    await add('background jobs, a second without calls', () =>
      compareUsage([many, few], turns.rounds, idleMs / 1_000, watch, async (side) => {
        // The other's jobs would count too.
        const other = side === many ? few : many;
        other.gateway.freeze();
        await sleep(idleMs).finally(() => other.gateway.thaw());
      }),
    );
    await add('removal of an old event', () =>
      compareUsage([many, few], turns.rounds, oldEvents, watch, (side) => side.removeEvents(oldEvents)),
    );
    console.log(`\ndrawn in ${drawGrowth(grown, large, small)}`);
  } finally {
    await watch.close();
    await few.stop();
    await many.stop();
    await database.stop();
  }
  return [];
}
