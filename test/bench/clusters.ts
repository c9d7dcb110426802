import { join } from 'node:path';
import { sharedKeeper } from '../../src/sandbox/keeper.ts';
import { startMariaDb } from '../../src/sandbox/servers.ts';
import type { Cluster } from '../support/cluster.ts';
import { GaleraCluster } from '../support/clusters/galera.ts';
import { GroupCluster } from '../support/clusters/group-replication.ts';
import { temporaryFolder } from '../support/folders.ts';
import { frameRows } from './frames.ts';
import type { Turns } from './run.ts';
import { compareSites, createOrders } from './support/compare-sites.ts';
import type { Row } from './support/report.ts';
import { startSite, withMemoryUpstream } from './support/setups.ts';

const engines = [
  { server: 'mysql', cluster: GroupCluster, name: 'MySQL, a group of three against one server' },
  { server: 'mariadb', cluster: GaleraCluster, name: 'MariaDB, Galera with three nodes against one server' },
] as const;

/**
 * CreateOrder on a cluster of three nodes against one server of the same engine, in turns. Both leave the sync of each commit
 * to the system, as clusters do. All nodes are on this machine, so the others' work takes time from the writer's.
 */
export async function benchClusters(_cluster: Cluster, turns: Turns): Promise<Row[]> {
  const rows: Row[] = [];
  for (const { server, cluster, name } of engines) {
    const nodes = await cluster.start();
    if (typeof nodes === 'string') {
      rows.push({ what: name, figure: nodes });
      continue;
    }
    const folder = temporaryFolder();
    sharedKeeper().removeAtEnd(folder);
    const one = await startMariaDb({ dataDir: join(folder, 'one'), server, source: 'packages', disposable: true });
    const sites = await Promise.all([
      startSite(withMemoryUpstream, { databaseServerUrl: nodes.nodes[0].url }),
      startSite(withMemoryUpstream, { databaseServerUrl: one.url }),
    ]);
    rows.push(...(await compareSites(sites, createOrders, turns, name, '≥ 0.7×')));
    await Promise.all(sites.map((site) => site.stop()));
    rows.push(...(await frameRows(nodes.name, nodes.nodes[0].url, turns)));
    await Promise.all([nodes.stop(), one.stop()]);
  }
  return rows;
}
