/**
 * Measures the gateway against bare programs that do the same work with nothing around it, in turns on the same servers,
 * and prints ratios: single absolute times say little on a shared machine. `BENCH_ROUNDS` (5) and `BENCH_SECONDS` (3)
 * change how long it takes; names of sections as arguments choose what is measured.
 */
import { join } from 'node:path';
import { sharedKeeper } from '../../src/dev/keeper.ts';
import { startMariaDb, startNats } from '../../src/dev/servers.ts';
import { Cluster } from '../support/cluster.ts';
import { temporaryFolder } from '../support/folders.ts';
import { benchAllocations } from './allocations.ts';
import { benchCreates } from './creates.ts';
import { benchDocuments } from './documents.ts';
import { benchFeed } from './feed.ts';
import { benchLimits } from './limits.ts';
import { benchReads } from './reads.ts';
import { benchRetention } from './retention.ts';
import { benchSize } from './size.ts';
import { benchStart } from './start.ts';
import { printRows, type Row } from './support/report.ts';
import { benchVariables } from './support/variables.ts';
import { benchWebhooks } from './webhooks.ts';

/** How long each turn is, and how many there are. */
export interface Turns {
  readonly rounds: number;
  readonly durationMs: number;
}

const turns: Turns = {
  rounds: Number(process.env.BENCH_ROUNDS ?? 5),
  durationMs: Number(process.env.BENCH_SECONDS ?? 3) * 1_000,
};

const sections: Record<string, (cluster: Cluster, turns: Turns) => Promise<Row[]>> = {
  start: benchStart,
  reads: benchReads,
  limits: benchLimits,
  creates: benchCreates,
  allocations: benchAllocations,
  feed: benchFeed,
  documents: benchDocuments,
  retention: benchRetention,
  size: benchSize,
  webhooks: benchWebhooks,
};

const chosen = process.argv.slice(2);
for (const name of chosen) {
  if (!(name in sections)) throw new Error(`there is no section ${name}: ${Object.keys(sections).join(', ')}`);
}

const folder = temporaryFolder();
sharedKeeper().removeAtEnd(folder);
const [mariadb, nats] = await Promise.all([
  startMariaDb({ dataDir: join(folder, 'mariadb') }),
  startNats({ dataDir: join(folder, 'nats') }),
]);
process.env.MARINA_TEST_DATABASE_URL = mariadb.url;
process.env.MARINA_TEST_NATS_URL = nats.url;
try {
  for (const [name, run] of Object.entries(sections)) {
    if (chosen.length > 0 && !chosen.includes(name)) continue;
    const cluster = await Cluster.start(benchVariables);
    try {
      printRows(name, await run(cluster, turns));
    } finally {
      await cluster.stop();
    }
  }
} finally {
  await Promise.all([mariadb.stop(), nats.stop()]);
}
process.exit(0);
