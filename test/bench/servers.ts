import { join } from 'node:path';
import { sharedKeeper } from '../../src/sandbox/keeper.ts';
import { startMariaDb } from '../../src/sandbox/servers.ts';
import type { Cluster } from '../support/cluster.ts';
import { temporaryFolder } from '../support/folders.ts';
import type { Turns } from './run.ts';
import { compareSites, createOrders, getOrders } from './support/compare-sites.ts';
import type { Row } from './support/report.ts';
import { startSite, withMemoryUpstream } from './support/setups.ts';

/** A gateway on MySQL against one on MariaDB, in turns: both sync each commit to the disk. */
export async function benchServers(_cluster: Cluster, turns: Turns): Promise<Row[]> {
  const folder = temporaryFolder();
  sharedKeeper().removeAtEnd(folder);
  const servers = await Promise.all(
    (['mysql', 'mariadb'] as const).map((server) => startMariaDb({ dataDir: join(folder, server), server })),
  );
  const [mysql, mariadb] = await Promise.all(
    servers.map(({ url }) => startSite(withMemoryUpstream, { databaseServerUrl: url })),
  );
  if (mysql === undefined || mariadb === undefined) throw new Error('two sites were started');
  const rows = await compareSites([mysql, mariadb], [...createOrders, getOrders], turns, 'MySQL against MariaDB');
  await Promise.all([mysql.stop(), mariadb.stop()]);
  await Promise.all(servers.map((server) => server.stop()));
  return rows;
}
