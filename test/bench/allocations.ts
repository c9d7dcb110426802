import { randomUUID } from 'node:crypto';
import { Pool } from 'undici';
import { walkLedger } from '../../src/admin/ledger.ts';
import { sharing } from '../../src/db/facts.ts';
import { IdMaker } from '../../src/lib/ids.ts';
import { transfer, wallet } from '../../src/wallet/store.ts';
import { Cluster, type GatewayProcess, type Partner } from '../support/cluster.ts';
import type { Turns } from './run.ts';
import { type LoadResult, load } from './support/load.ts';
import { startBaseline } from './support/processes.ts';
import { type Row, ratio } from './support/report.ts';

const smallLedger = 1_000;
const largeLedger = Number(process.env.BENCH_ENTRIES ?? 1_000_000);
const fundsKobo = 10n ** 15n;

/** CreateAllocation against a bare script, and a wallet's pages with a short and a long ledger. */
export async function benchAllocations(cluster: Cluster, turns: Turns): Promise<Row[]> {
  const gateway = await cluster.startGateway();
  // The script has a broker of its own, so that nobody but the script works on what it sends.
  const bare = await Cluster.start();
  try {
    const one = await benchCreates('one partner, 5 under way', cluster, bare, gateway, 1, 5, turns);
    const many = await benchCreates('32 partners, 32 under way', cluster, bare, gateway, 32, 32, turns);
    return [...one, ...many, ...(await benchLedger(cluster, gateway, turns))];
  } finally {
    await bare.stop();
  }
}

async function benchCreates(
  name: string,
  cluster: Cluster,
  bare: Cluster,
  gateway: GatewayProcess,
  partnerCount: number,
  atOnce: number,
  { rounds, durationMs }: Turns,
): Promise<Row[]> {
  const [partners, barePartners] = [await newPartners(cluster, partnerCount), await newPartners(bare, partnerCount)];
  const script = await startBaseline('create-allocations', {
    BASELINE_DATABASE_URL: bare.databaseUrl,
    BASELINE_BROKER: bare.gatewayVariables.MARINA_BROKER_ADDRESS ?? '',
    BASELINE_PARTNERS: barePartners.map(({ id, account }) => `${id}:${account}`).join(','),
  });
  const pool = new Pool(`http://127.0.0.1:${gateway.restPort}`, { connections: atOnce, pipelining: 1 });
  let turn = 0;
  const allocate = () => allocateOne(pool, partners[turn++ % partners.length]);
  const results: ((message: { result: LoadResult }) => void)[] = [];
  script.process.onMessage((message) => results.shift()?.(message as { result: LoadResult }));
  const [ours, theirs]: [number[], number[]] = [[], []];
  for (let round = -1; round < rounds; round += 1) {
    const left = await load(allocate, atOnce, durationMs);
    const right = await new Promise<{ result: LoadResult }>((resolve) => {
      results.push(resolve);
      script.process.send({ atOnce, durationMs });
    });
    if (round < 0) continue;
    ours.push(left.perSecond);
    theirs.push(right.result.perSecond);
  }
  await pool.close();
  await script.process.stop();
  const what = `REST CreateAllocation against a bare script, ${name}`;
  return [{ what, figure: ratio(ours, theirs), bound: '≥ 0.8×' }];
}

async function newPartners(cluster: Cluster, count: number): Promise<Partner[]> {
  const partners = await Promise.all(Array.from({ length: count }, () => cluster.newPartner()));
  for (const partner of partners) await cluster.fund(partner, fundsKobo);
  return partners;
}

async function allocateOne(pool: Pool, partner: Partner | undefined): Promise<void> {
  const { statusCode, body } = await pool.request({
    path: '/v1/allocations',
    method: 'POST',
    headers: {
      authorization: `Bearer ${partner?.key}`,
      'content-type': 'application/json',
      'idempotency-key': randomUUID(),
    },
    body: JSON.stringify({ account: partner?.account, amount_kobo: 1_000 }),
  });
  const text = await body.text();
  if (statusCode !== 201) throw new Error(`${statusCode} ${text}`);
}

/** The same reads and creates with a short and with a long ledger, in turns. */
async function benchLedger(cluster: Cluster, gateway: GatewayProcess, { rounds, durationMs }: Turns): Promise<Row[]> {
  const pool = new Pool(`http://127.0.0.1:${gateway.restPort}`, { connections: 32, pipelining: 1 });
  const sides = await Promise.all(
    [smallLedger, largeLedger].map(async (entries) => {
      const [partner] = await newPartners(cluster, 1);
      if (partner === undefined) throw new Error('there is a partner');
      await fill(cluster, partner, entries);
      return callsOf(pool, partner);
    }),
  );
  const [short = [], long = []] = sides;
  const rows: Row[] = [];
  for (const [index, { name, atOnce, call }] of long.entries()) {
    const other = short[index];
    const [longFigures, shortFigures]: [number[], number[]] = [[], []];
    for (let round = -1; round < rounds; round += 1) {
      const right = other && (await load(other.call, atOnce, durationMs));
      const left = await load(call, atOnce, durationMs);
      if (round < 0 || right === undefined) continue;
      longFigures.push(left.perSecond);
      shortFigures.push(right.perSecond);
    }
    const what = `${name}: ${largeLedger} entries against ${smallLedger}, throughput`;
    rows.push({ what, figure: ratio(longFigures, shortFigures), bound: '≥ 0.83×' });
  }
  await pool.close();
  return [...rows, await benchWalk(cluster)];
}

async function callsOf(pool: Pool, partner: Partner) {
  const get = async (path: string) => {
    const headers = { authorization: `Bearer ${partner.key}` };
    const { statusCode, body } = await pool.request({ path, method: 'GET', headers });
    const text = await body.text();
    if (statusCode !== 200) throw new Error(`${statusCode} ${text}`);
    return text;
  };
  let cursor = '';
  for (let page = 0; page < 5; page += 1) {
    const { next_cursor } = JSON.parse(await get(`/v1/wallet/transfers?limit=100${cursor}`));
    cursor = `&cursor=${next_cursor}`;
  }
  return [
    { name: 'GetWallet', atOnce: 32, call: () => get('/v1/wallet') },
    { name: 'ListTransfers', atOnce: 32, call: () => get('/v1/wallet/transfers') },
    { name: 'ListTransfers, deep', atOnce: 32, call: () => get(`/v1/wallet/transfers?limit=25${cursor}`) },
    { name: 'CreateAllocation', atOnce: 5, call: () => allocateOne(pool, partner) },
  ];
}

/** Makes entries, of payments: one is as long to read as any other. */
async function fill({ database }: Cluster, { id: partnerId }: Partner, entries: number): Promise<void> {
  const ids = new IdMaker(Date);
  const batch = 1_000;
  for (let made = 0; made < entries; made += batch) {
    await database.inPartner(partnerId, {
      touches: [],
      fact: sharing(wallet(partnerId)),
      decide: (_, partner) => {
        for (let count = 0; count < Math.min(batch, entries - made); count += 1) {
          const id = ids.object('wtr');
          const payment = { type: 'credit', amountKobo: 1_000n, allocation: null, account: null } as const;
          transfer(partner, { ...payment, id, bankReference: id, createdAt: Date.now() });
        }
        return { writes: [], result: undefined };
      },
    });
  }
}

/** How long the proof of a ledger takes. */
async function benchWalk(cluster: Cluster): Promise<Row> {
  const [partner] = await newPartners(cluster, 1);
  if (partner === undefined) throw new Error('there is a partner');
  const entries = 50_000;
  await fill(cluster, partner, entries);
  const startedAt = performance.now();
  const walk = await walkLedger(cluster.database, partner.id, 0n);
  const tookMs = performance.now() - startedAt;
  const figure = `${((tookMs / Number(walk?.entries ?? 0)) * 1_000).toFixed(1)} µs an entry`;
  return { what: `VerifyLedger, a walk of ${entries} entries`, figure };
}
