import { createPool, type RowDataPacket } from 'mysql2/promise';
import type { Cluster } from '../support/cluster.ts';
import type { Turns } from './run.ts';
import { bothCpu, loadProcess } from './support/cpu.ts';
import { load, quantiles } from './support/load.ts';
import { cursorsOfFeed } from './support/operations.ts';
import { startBaseline } from './support/processes.ts';
import { ms, type Row, ratio } from './support/report.ts';
import { RestCalls } from './support/rest-calls.ts';

const atOnce = 32;
const changes = 200;
/** Pages from so many places of the feed are read. */
const pages = 64;

/** A page of the feed against the same rows by bare SQL, and how long a change takes to be readable. */
export async function benchFeed(cluster: Cluster, { rounds, durationMs }: Turns): Promise<Row[]> {
  const gateway = await cluster.startGateway();
  const partner = await cluster.newPartner();
  const http = new RestCalls(gateway.restPort, atOnce);
  const page = (query = '') => http.get(partner, `/v1/events${query}`);

  const latencies: number[] = [];
  let cursor = JSON.parse(await page()).next_cursor as string;
  for (let count = 0; count < changes; count += 1) {
    // From the answer, which comes right after the commit.
    await gateway.place(partner, { symbol: 'SIM-REST', quantity: 1 + count });
    const committedAt = performance.now();
    for (;;) {
      const { data, next_cursor } = JSON.parse(await page(`?cursor=${cursor}`));
      cursor = next_cursor;
      if (data.length > 0) break;
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    latencies.push(performance.now() - committedAt);
  }

  // Pages from here and there, so that no two of those under way are the same.
  const cursors = await cursorsOfFeed(http, partner, pages);
  let turn = 0;
  const sql = createPool({ uri: cluster.databaseUrl, connectionLimit: atOnce, timezone: 'Z' });
  const bare = async () => {
    const [rows] = await sql.execute<RowDataPacket[]>(
      'SELECT version, body FROM feed_events WHERE partner_id = ? AND version > ? ORDER BY version LIMIT 26',
      [partner.id, String(1 + (turn++ % pages))],
    );
    if (rows.length !== 26) throw new Error('a page is missing');
  };
  const server = await startBaseline('rest-feed', {
    BASELINE_DATABASE_URL: cluster.databaseUrl,
    BASELINE_PARTNER: partner.id,
  });
  const bareHttp = new RestCalls(server.port, atOnce);
  const bareServer = () => bareHttp.get(partner, `/v1/events?cursor=${1 + (turn++ % pages)}`);
  const somePage = () => page(`?cursor=${cursors[turn++ % pages]}`);
  const ours: number[] = [];
  const served: number[] = [];
  const inProcess: number[] = [];
  const [oursCpu, servedCpu]: [number[], number[]] = [[], []];
  for (let round = -1; round < rounds; round += 1) {
    const left = await loadProcess(gateway.pid, somePage, atOnce, durationMs);
    const right = await loadProcess(server.process.pid, bareServer, atOnce, durationMs);
    const alone = await load(bare, atOnce, durationMs);
    if (round < 0) continue;
    ours.push(left.perSecond);
    served.push(right.perSecond);
    oursCpu.push(left.cpuUs);
    servedCpu.push(right.cpuUs);
    inProcess.push(alone.perSecond);
  }
  await Promise.all([sql.end(), bareHttp.close(), server.process.stop()]);
  await http.close();
  const { medianMs, p99Ms } = quantiles(latencies);
  return [
    {
      what: 'feed page of 25 over REST against bare node:http with the same SQL',
      figure: ratio(ours, served),
      bound: '≥ 0.9×',
    },
    { what: '  CPU per page, ours / bare', figure: bothCpu(oursCpu, servedCpu) },
    { what: '  the same against the SQL alone, in the load itself, without a server', figure: ratio(ours, inProcess) },
    { what: '  the bare server against the SQL alone: what HTTP itself costs', figure: ratio(served, inProcess) },
    { what: 'commit to readable in the feed, median', figure: ms(medianMs), bound: 'under 50 ms' },
    { what: 'commit to readable in the feed, p99', figure: ms(p99Ms), bound: 'under 250 ms' },
  ];
}
