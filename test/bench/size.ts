import { randomUUID } from 'node:crypto';
import { Pool } from 'undici';
import { statement } from '../../src/db/statement.ts';
import { IdMaker } from '../../src/lib/ids.ts';
import { Cluster, type Partner } from '../support/cluster.ts';
import type { Turns } from './run.ts';
import { bothCpu, loadProcess } from './support/cpu.ts';
import { type Row, ratio } from './support/report.ts';
import { benchVariables } from './support/variables.ts';

const small = 10_000;
const large = Number(process.env.BENCH_ORDERS ?? 1_000_000);

/**
 * Whether reads and creates stay as fast when the tables grow: two gateways, each with tables of its own on the same
 * server, the one with few orders and the other with many, in turns.
 */
export async function benchSize(cluster: Cluster, { rounds, durationMs }: Turns): Promise<Row[]> {
  const second = await Cluster.start(benchVariables);
  try {
    const sides = [await prepare(second, small), await prepare(cluster, large)] as const;
    const rows: Row[] = [];
    for (const [index, { name, atOnce }] of sides[1].calls.entries()) {
      const figures = sides.map(() => ({ perSecond: [] as number[], cpuUs: [] as number[] }));
      for (let round = -1; round < rounds; round += 1) {
        for (const [side, { pid, calls }] of sides.entries()) {
          const call = calls[index]?.call ?? (() => Promise.reject(new Error('both make the same calls')));
          const { perSecond, cpuUs } = await loadProcess(pid, call, atOnce, durationMs);
          if (round < 0) continue;
          figures[side]?.perSecond.push(perSecond);
          figures[side]?.cpuUs.push(cpuUs);
        }
      }
      const [few, many] = figures;
      if (few === undefined || many === undefined) throw new Error('there are two sides');
      const what = `${name}: ${large} orders against ${small}, throughput`;
      rows.push({ what, figure: ratio(many.perSecond, few.perSecond), bound: '≥ 0.83×' });
      rows.push({ what: "  the gateway's CPU per call", figure: bothCpu(many.cpuUs, few.cpuUs) });
    }
    await Promise.all(sides.map(({ http }) => http.close()));
    return rows;
  } finally {
    await second.stop();
  }
}

async function prepare(cluster: Cluster, orders: number) {
  const gateway = await cluster.startGateway();
  const partner = await cluster.newPartner();
  await fill(cluster, partner, orders);
  const http = new Pool(`http://127.0.0.1:${gateway.restPort}`, { connections: 32, pipelining: 1 });
  return { pid: gateway.pid, http, calls: await callsOf(http, partner, cluster) };
}

async function callsOf(http: Pool, partner: Partner, cluster: Cluster) {
  const rows = await cluster.database.read(
    statement('SELECT id FROM orders WHERE partner_id = ? ORDER BY RAND() LIMIT 1000', partner.id),
  );
  const ids = rows.map((row) => String(row.id));
  let turn = 0;
  const headers = { authorization: `Bearer ${partner.key}` };
  const get = async (path: string) => {
    const { statusCode, body } = await http.request({ path, method: 'GET', headers });
    const text = await body.text();
    if (statusCode !== 200) throw new Error(`${statusCode} ${text}`);
  };
  const create = async () => {
    const { statusCode, body } = await http.request({
      path: '/v1/orders',
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json', 'idempotency-key': randomUUID() },
      body: JSON.stringify({
        account: partner.account,
        symbol: 'SIM-REST',
        side: 'buy',
        quantity: 100,
        type: 'limit',
        price_kobo: 1000,
      }),
    });
    const text = await body.text();
    if (statusCode !== 201) throw new Error(`${statusCode} ${text}`);
  };
  return [
    { name: 'GetOrder', atOnce: 32, call: () => get(`/v1/orders/${ids[turn++ % ids.length]}`) },
    { name: 'ListOrders', atOnce: 32, call: () => get('/v1/orders') },
    { name: 'ListOrders by account', atOnce: 32, call: () => get(`/v1/orders?account=${partner.account}`) },
    { name: 'ListOrders by state', atOnce: 32, call: () => get('/v1/orders?state=filled') },
    { name: 'CreateOrder', atOnce: 5, call: create },
  ];
}

/** Rows straight into the table, by doubling: what they are does not matter, only that they are there. */
async function fill(cluster: Cluster, partner: Partner, total: number): Promise<void> {
  // Ids of another day, in the order they would have been made.
  let madeAt = Date.UTC(2026, 0, 2, 10);
  const ids = new IdMaker({ now: () => madeAt });
  const batch = 5_000;
  for (let from = 0; from < total; from += batch) {
    const values = Array.from({ length: Math.min(batch, total - from) }, () => {
      madeAt += 1;
      return `('${partner.id}','${ids.object('ord')}')`;
    });
    await cluster.database.write(
      statement(
        `INSERT INTO orders (partner_id, id, state, account, symbol, side, type, time_in_force, quantity, price_kobo,
          filled_quantity, filled_value_kobo, created_at, updated_at, counted_day, counted_price_kobo, request_digest,
          first_answer, steps, not_after)
        SELECT partner_id, id, 'filled', ?, 'SIM-REST', 'buy', 'limit', 'day', 100, 1000, 100, 100000,
          '2026-01-02 10:00:00', '2026-01-02 10:00:00', '2026-01-02', 1000, REPEAT('x', 32), 'object', 1,
          '2026-01-02 10:00:10' FROM (SELECT '' AS partner_id, '' AS id WHERE FALSE UNION ALL VALUES ${values.join(',')}) AS made`,
        partner.account,
      ),
    );
  }
  await cluster.database.write(statement('ANALYZE TABLE orders'));
}
