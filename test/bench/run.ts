/**
 * Measures the gateway against bare programs that do the same work with nothing around it, in turns on the same servers,
 * and prints ratios: single absolute times say little on a shared machine. `BENCH_ROUNDS` and `BENCH_SECONDS` change how
 * long it takes; names of sections as arguments choose what is measured. With `AGAINST`, a commit, it measures this
 * version against that one instead, and arguments are words in the names of operations. Results are kept as JSON.
 */
import { join } from 'node:path';
import { serverVersion } from '../../src/sandbox/databases.ts';
import { sharedKeeper } from '../../src/sandbox/keeper.ts';
import { startMariaDb, startNats } from '../../src/sandbox/servers.ts';
import { Cluster } from '../support/cluster.ts';
import { temporaryFolder } from '../support/folders.ts';
import { benchAgainst } from './against.ts';
import { benchCapacity } from './capacity.ts';
import { benchClusters } from './clusters.ts';
import { benchCreates, benchFar } from './creates.ts';
import { benchDocuments } from './documents.ts';
import { benchFeed } from './feed.ts';
import { benchFix } from './fix.ts';
import { benchFixMessages } from './fix-messages.ts';
import { benchGrowth } from './growth.ts';
import { benchLedger } from './ledger.ts';
import { benchLimits } from './limits.ts';
import { benchReads } from './reads.ts';
import { benchRetention } from './retention.ts';
import { benchServers } from './servers.ts';
import { benchStart } from './start.ts';
import { printRows, type Row } from './support/report.ts';
import { keepResults } from './support/results.ts';
import { benchVariables } from './support/variables.ts';
import { benchWebhooks } from './webhooks.ts';
import { benchWithdrawals } from './withdrawals.ts';

/** How long each turn is, and how many there are. */
export interface Turns {
  readonly rounds: number;
  readonly durationMs: number;
}

const against = process.env.AGAINST ?? '';
// Many short rounds prove more about a small change than few long ones.
const turns: Turns = {
  rounds: Number(process.env.BENCH_ROUNDS ?? (against === '' ? 5 : 20)),
  durationMs: Number(process.env.BENCH_SECONDS ?? (against === '' ? 3 : 0.5)) * 1_000,
};

/** Measures, and returns rows or reports them as they come. */
type Section = (cluster: Cluster, turns: Turns, natsPid: number, report: Report) => Promise<Row[]>;
type Report = (section: string, rows: readonly Row[]) => void;

const sections: Record<string, Section> = {
  start: benchStart,
  reads: benchReads,
  limits: benchLimits,
  creates: benchCreates,
  far: benchFar,
  withdrawals: benchWithdrawals,
  ledger: benchLedger,
  feed: benchFeed,
  documents: benchDocuments,
  retention: benchRetention,
  webhooks: benchWebhooks,
  growth: benchGrowth,
  capacity: benchCapacity,
  clusters: benchClusters,
  servers: benchServers,
  fix: benchFix,
  'fix-messages': benchFixMessages,
};

const chosen = process.argv.slice(2);
for (const name of against === '' ? chosen : []) {
  if (!(name in sections)) throw new Error(`there is no section ${name}: ${Object.keys(sections).join(', ')}`);
}

const startedAt = new Date();
const folder = temporaryFolder();
sharedKeeper().removeAtEnd(folder);
const [mariadb, nats] = await Promise.all([
  startMariaDb({ dataDir: join(folder, 'mariadb') }),
  startNats({ dataDir: join(folder, 'nats') }),
]);
const database = await serverVersion(mariadb.url);
console.log(`The database server is ${database}.`);
process.env.MARINA_TEST_DATABASE_URL = mariadb.url;
process.env.MARINA_TEST_NATS_URL = nats.url;
try {
  const measured = against === '' ? await runSections() : await benchAgainst(against, nats, turns, chosen);
  const facts = { ...(against !== '' && { against }), ...turns, database };
  console.log(`\nkept in ${keepResults(startedAt, facts, measured)}`);
} finally {
  await Promise.all([mariadb.stop(), nats.stop()]);
}
process.exit(0);

async function runSections(): Promise<Record<string, readonly Row[]>> {
  const measured: Record<string, readonly Row[]> = {};
  const report: Report = (section, rows) => {
    printRows(section, rows);
    measured[section] = rows;
  };
  for (const [name, run] of Object.entries(sections)) {
    if (chosen.length > 0 && !chosen.includes(name)) continue;
    const cluster = await Cluster.start(benchVariables);
    try {
      const rows = await run(cluster, turns, nats.pid, report);
      if (rows.length > 0) report(name, rows);
    } finally {
      await cluster.stop();
    }
  }
  return measured;
}
