import { IdMaker } from '../../src/gateway/edge/ids.ts';
import { audit } from '../../src/gateway/operators/calls/audit.ts';
import { creditAction, paymentEntry } from '../../src/gateway/operators/calls/credit-audit.ts';
import { walkLedger } from '../../src/gateway/operators/calls/ledger.ts';
import { sharedFact } from '../../src/gateway/store/facts.ts';
import type { Statement } from '../../src/gateway/store/statement.ts';
import { transfer, wallet } from '../../src/gateway/trading/wallet/store.ts';
import type { Cluster, Partner } from '../support/cluster.ts';
import { walletSeals } from '../support/ledger.ts';
import type { Turns } from './run.ts';
import { load } from './support/load.ts';
import { type Row, ratioRow } from './support/report.ts';
import { RestCalls } from './support/rest-calls.ts';

const smallLedger = 1_000;
const largeLedger = Number(process.env.BENCH_ENTRIES ?? 1_000_000);
const fundsKobo = 10n ** 15n;

async function newPartners(cluster: Cluster, count: number): Promise<Partner[]> {
  const partners = await Promise.all(Array.from({ length: count }, () => cluster.newPartner()));
  for (const partner of partners) await cluster.fund(partner, fundsKobo);
  return partners;
}

/** A wallet's reads and creates with a short and with a long ledger, in turns, and a walk of a ledger. */
export async function benchLedger(cluster: Cluster, { rounds, durationMs }: Turns): Promise<Row[]> {
  const gateway = await cluster.startGateway();
  const rest = new RestCalls(gateway.restPort, 32);
  const sides = await Promise.all(
    [smallLedger, largeLedger].map(async (entries) => {
      const [partner] = await newPartners(cluster, 1);
      if (partner === undefined) throw new Error('there is a partner');
      await fill(cluster, partner, entries);
      return callsOf(rest, partner);
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
    rows.push(ratioRow(what, longFigures, shortFigures, '≥ 0.83×'));
  }
  await rest.close();
  return [...rows, await benchWalk(cluster)];
}

async function callsOf(rest: RestCalls, partner: Partner) {
  const get = (path: string) => rest.get(partner, path);
  let cursor = '';
  for (let page = 0; page < 5; page += 1) {
    const { next_cursor } = JSON.parse(await get(`/v1/wallet/transfers?limit=100${cursor}`));
    cursor = `&cursor=${next_cursor}`;
  }
  return [
    { name: 'GetWallet', atOnce: 32, call: () => get('/v1/wallet') },
    { name: 'ListTransfers', atOnce: 32, call: () => get('/v1/wallet/transfers') },
    { name: 'ListTransfers, deep', atOnce: 32, call: () => get(`/v1/wallet/transfers?limit=25${cursor}`) },
    { name: 'CreateAllocation', atOnce: 5, call: () => rest.allocate(partner) },
  ];
}

/** Makes entries, of payments: one is as long to read as any other. */
async function fill({ database }: Cluster, { id: partnerId }: Partner, entries: number): Promise<void> {
  const ids = new IdMaker(Date);
  const batch = 1_000;
  const seals = walletSeals();
  for (let made = 0; made < entries; made += batch) {
    await database.inPartnerTransaction(partnerId, {
      touches: [],
      fact: sharedFact(wallet(partnerId, seals)),
      decide: (_, partner) => {
        const writes: Statement[] = [];
        for (let count = 0; count < Math.min(batch, entries - made); count += 1) {
          const id = ids.object('wtr');
          const payment = { type: 'credit', amountKobo: 1_000n, allocation: null, account: null } as const;
          const paid = { ...payment, id, bankReference: id, createdAt: Date.now() };
          transfer(partner, paid, seals);
          const by = { operator: 'bench', action: creditAction };
          writes.push(audit(by, paid.createdAt, paymentEntry({ ...paid, partnerId })));
        }
        return { writes, result: undefined };
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
