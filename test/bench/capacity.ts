import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Connection, createConnection, type RowDataPacket } from 'mysql2/promise';
import { sharedKeeper } from '../../src/sandbox/keeper.ts';
import { startMariaDb } from '../../src/sandbox/servers.ts';
import type { Cluster } from '../support/cluster.ts';
import type { Turns } from './run.ts';
import { load, median } from './support/load.ts';
import type { Row } from './support/report.ts';
import { RestCalls } from './support/rest-calls.ts';
import { startSite, withMemoryUpstream } from './support/setups.ts';
import { UsageWatch } from './support/usage.ts';

const partnerCount = 64;
const atOnce = 64;

/** Counters of the database server, by the server's names. */
const counters = {
  'rows written': ['Handler_write', 'Handler_update', 'Handler_delete'],
  'bytes of redo log': ['Innodb_os_log_written'],
  'syncs of the disk': ['Innodb_data_fsyncs', 'Innodb_os_log_fsyncs'],
} as const;

/**
 * Measures the cost of an order for each process and the disk, with one gateway and with two: capacity is planned by
 * it.
 */
export async function benchCapacity(_cluster: Cluster, { rounds, durationMs }: Turns, natsPid: number): Promise<Row[]> {
  // On the disk, each commit synced, as in production.
  const folder = mkdtempSync(join(tmpdir(), 'marina-capacity-'));
  sharedKeeper().removeAtEnd(folder);
  const database = await startMariaDb({ dataDir: folder });
  const connection = await createConnection({ uri: database.url });
  const watch = await UsageWatch.connect(database.url);
  const site = await startSite(withMemoryUpstream, { databaseServerUrl: database.url });
  const gateways = [await site.startGateway(), await site.startGateway()];
  const partners = await Promise.all(Array.from({ length: partnerCount }, () => site.cluster.newPartner()));
  const clients = gateways.map(({ restPort }) => new RestCalls(restPort, atOnce));
  const rows: Row[] = [];
  for (const used of [clients.slice(0, 1), clients]) {
    let turn = 0;
    const place = () => {
      const [client, partner] = [used[turn % used.length], partners[turn % partnerCount]];
      turn += 1;
      if (client === undefined || partner === undefined) throw new Error('there are clients and partners');
      return client.placeOrder(partner);
    };
    const processes = {
      ...Object.fromEntries(gateways.slice(0, used.length).map(({ pid }, index) => [`gateway ${index + 1}`, pid])),
      database: database.pid,
      NATS: natsPid,
      upstream: site.upstreamPid,
    };
    const found = new Map<string, number[]>();
    const add = (name: string, value: number) => found.set(name, [...(found.get(name) ?? []), value]);
    for (let round = -1; round < rounds; round += 1) {
      const before = await readCounters(connection);
      const { result, usage } = await watch.during(processes, () => load(place, atOnce, durationMs));
      const after = await readCounters(connection);
      if (round < 0) continue;
      add('orders a second', result.perSecond);
      for (const [name, ms] of Object.entries(usage.cpuMs))
        add(`µs of CPU of ${name}, an order`, (ms * 1_000) / result.count);
      for (const [name, value] of after) add(`${name}, an order`, (value - (before.get(name) ?? 0)) / result.count);
    }
    const many = used.length === 1 ? 'one gateway' : `${used.length} gateways`;
    for (const [name, values] of found) rows.push({ what: `${many}: ${name}`, figure: median(values).toFixed(1) });
  }
  await Promise.all(clients.map((client) => client.close()));
  await site.stop();
  await watch.close();
  await connection.end();
  await database.stop();
  return rows;
}

async function readCounters(connection: Connection): Promise<Map<string, number>> {
  const [rows] = await connection.query<RowDataPacket[]>('SHOW GLOBAL STATUS');
  const values = new Map(rows.map((row) => [String(row.Variable_name), Number(row.Value)]));
  return new Map(
    Object.entries(counters).map(([name, parts]) => [
      name,
      parts.reduce((sum, part) => sum + (values.get(part) ?? 0), 0),
    ]),
  );
}
