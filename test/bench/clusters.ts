import { join } from 'node:path';
import { sharedKeeper } from '../../src/dev/keeper.ts';
import { startMariaDb } from '../../src/dev/servers.ts';
import { GaleraCluster } from '../cluster/support/galera.ts';
import { GroupCluster } from '../cluster/support/group-replication.ts';
import type { Cluster } from '../support/cluster.ts';
import { temporaryFolder } from '../support/folders.ts';
import { frameRow } from './frames.ts';
import type { Turns } from './run.ts';
import { load } from './support/load.ts';
import { type Row, ratioRow } from './support/report.ts';
import { RestCalls } from './support/rest-calls.ts';
import { startSite, withMemoryUpstream } from './support/setups.ts';

const engines = [
  { server: 'mysql', cluster: GroupCluster, name: 'MySQL, a group of three against one server' },
  { server: 'mariadb', cluster: GaleraCluster, name: 'MariaDB, Galera with three nodes against one server' },
] as const;

/**
 * CreateOrder on a cluster of three nodes against one server of the same engine, in turns. Both leave the sync of each commit
 * to the system, as clusters do. All nodes are on this machine, so the others' work takes time from the writer's.
 */
export async function benchClusters(_cluster: Cluster, { rounds, durationMs }: Turns): Promise<Row[]> {
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
    const urls = [nodes.nodes[0].url, one.url];
    const sites = await Promise.all(
      urls.map((databaseServerUrl) => startSite(withMemoryUpstream, { databaseServerUrl })),
    );
    for (const count of [1, 32]) {
      const calls = await Promise.all(
        sites.map(async ({ cluster, startGateway }) => {
          const client = new RestCalls((await startGateway()).restPort, 32);
          const partners = await Promise.all(Array.from({ length: count }, () => cluster.newPartner()));
          let turn = 0;
          const place = () => {
            turn += 1;
            return client.placeOrder(partners[turn % count] as (typeof partners)[number]);
          };
          return { place, close: () => client.close() };
        }),
      );
      const figures: number[][] = [[], []];
      for (let round = -1; round < rounds; round += 1) {
        for (const [index, { place }] of calls.entries()) {
          const { perSecond } = await load(place, count === 1 ? 5 : 32, durationMs);
          if (round >= 0) figures[index]?.push(perSecond);
        }
      }
      await Promise.all(calls.map(({ close }) => close()));
      const what = `${name}: CreateOrder, ${count === 1 ? 'one partner' : `${count} partners`}`;
      rows.push(ratioRow(what, figures[0] ?? [], figures[1] ?? [], '≥ 0.7×'));
    }
    await Promise.all(sites.map((site) => site.stop()));
    rows.push(await frameRow(nodes.name, nodes.nodes[0].url, rounds, durationMs));
    await Promise.all([nodes.stop(), one.stop()]);
  }
  return rows;
}
