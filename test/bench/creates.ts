import { randomUUID } from 'node:crypto';
import { Pool } from 'undici';
import { Cluster, type GatewayProcess, type Partner } from '../support/cluster.ts';
import type { Turns } from './run.ts';
import { type LoadResult, load } from './support/load.ts';
import { cpuMs, residentMiB, startBaseline } from './support/processes.ts';
import { type Row, ratio } from './support/report.ts';

/** CreateOrder against a bare script that does the same two commits and one upstream call. */
export async function benchCreates(cluster: Cluster, turns: Turns): Promise<Row[]> {
  const gateway = await cluster.startGateway();
  // The script has an exchange of its own, so that nobody but the script works on what it places.
  const bare = await Cluster.start();
  try {
    const one = await benchPartners('one partner, 5 under way', cluster, bare, gateway, 1, 5, turns);
    const many = await benchPartners('32 partners, 32 under way', cluster, bare, gateway, 32, 32, turns);
    const memory = `${residentMiB(gateway.pid).toFixed(0)} MiB`;
    return [...one, ...many, { what: 'resident memory after it', figure: memory, bound: 'under 250 MiB' }];
  } finally {
    await bare.stop();
  }
}

async function benchPartners(
  name: string,
  cluster: Cluster,
  bare: Cluster,
  gateway: GatewayProcess,
  partnerCount: number,
  atOnce: number,
  { rounds, durationMs }: Turns,
): Promise<Row[]> {
  const make = (where: Cluster) => Promise.all(Array.from({ length: partnerCount }, () => where.newPartner()));
  const [partners, barePartners] = [await make(cluster), await make(bare)];
  const script = await startBaseline('create-orders', {
    BASELINE_DATABASE_URL: bare.databaseUrl,
    BASELINE_BROKER: bare.gatewayVariables.MARINA_BROKER_ADDRESS ?? '',
    BASELINE_PARTNERS: barePartners.map(({ id, account }) => `${id}:${account}`).join(','),
  });
  const pool = new Pool(`http://127.0.0.1:${gateway.restPort}`, { connections: atOnce, pipelining: 1 });
  let turn = 0;
  const place = async () => {
    const { status, text } = await placeOne(pool, partners[turn++ % partners.length]);
    if (status !== 201) throw new Error(`${status} ${text}`);
  };
  const results: ((message: { result: LoadResult }) => void)[] = [];
  script.process.onMessage((message) => results.shift()?.(message as { result: LoadResult }));
  const ours: number[] = [];
  const theirs: number[] = [];
  const cpu: number[] = [];
  for (let round = -1; round < rounds; round += 1) {
    const before = cpuMs(gateway.pid);
    const left = await load(place, atOnce, durationMs);
    const usedUs = ((cpuMs(gateway.pid) - before) * 1_000) / left.count;
    const right = await new Promise<{ result: LoadResult }>((resolve) => {
      results.push(resolve);
      script.process.send({ atOnce, durationMs });
    });
    if (round < 0) continue;
    ours.push(left.perSecond);
    theirs.push(right.result.perSecond);
    cpu.push(usedUs);
  }
  await pool.close();
  await script.process.stop();
  const perOrder = cpu.reduce((sum, value) => sum + value, 0) / cpu.length;
  return [
    { what: `REST CreateOrder against a bare script, ${name}`, figure: ratio(ours, theirs), bound: '≥ 1.0×' },
    { what: '  CPU per order, its report and its event', figure: `${perOrder.toFixed(0)} µs` },
  ];
}

/** Places an order over REST. */
export async function placeOne(pool: Pool, partner: Partner | undefined) {
  const { statusCode, body } = await pool.request({
    path: '/v1/orders',
    method: 'POST',
    headers: {
      authorization: `Bearer ${partner?.key}`,
      'content-type': 'application/json',
      'idempotency-key': randomUUID(),
    },
    body: JSON.stringify({
      account: partner?.account,
      symbol: 'SIM-REST',
      side: 'buy',
      quantity: 100,
      type: 'limit',
      price_kobo: 1000,
    }),
  });
  return { status: statusCode, text: await body.text() };
}
