import { statement } from '../../src/gateway/store/statement.ts';
import type { Cluster, Partner } from '../support/cluster.ts';
import { eventually } from '../support/eventually.ts';
import type { Turns } from './run.ts';
import { load, median } from './support/load.ts';
import { type Row, ratio } from './support/report.ts';
import { RestCalls } from './support/rest-calls.ts';

const count = Number(process.env.BENCH_OLD_EVENTS ?? 600_000);
const partnerCount = 92;
const atOnce = 32;

/** How much slower creates are while a backlog of old events is removed, in turns, and how fast that goes. */
export async function benchRetention(cluster: Cluster, { rounds, durationMs }: Turns): Promise<Row[]> {
  const gateway = await cluster.startGateway();
  const partners = await Promise.all(Array.from({ length: partnerCount }, () => cluster.newPartner()));
  await allow(cluster, false);
  await fill(cluster, partners);
  const rest = new RestCalls(gateway.restPort, atOnce);
  let turn = 0;
  const place = async () => {
    const partner = partners[turn++ % partners.length];
    if (partner !== undefined) await rest.placeOrder(partner);
  };
  const perSecond = { with: [] as number[], without: [] as number[] };
  const medianMs = { with: [] as number[], without: [] as number[] };
  const removed: number[] = [];
  for (let round = -1; round < rounds; round += 1) {
    for (const side of ['without', 'with'] as const) {
      await allow(cluster, side === 'with');
      const [before, startedAt] = [await left(cluster), performance.now()];
      const result = await load(place, atOnce, durationMs);
      const gone = before - (await left(cluster));
      const seconds = (performance.now() - startedAt) / 1_000;
      if (side === 'without' && gone > 0) throw new Error('events were removed in a turn without it');
      if (round < 0) continue;
      perSecond[side].push(result.perSecond);
      medianMs[side].push(result.medianMs);
      if (side === 'with') removed.push(gone / seconds);
    }
  }
  await allow(cluster, true);
  const [before, startedAt] = [await left(cluster), performance.now()];
  await eventually(async () => {
    if ((await left(cluster)) > Math.max(0, before - 50_000)) throw new Error('the backlog stands still');
  }, 60_000);
  const idle = (before - (await left(cluster))) / ((performance.now() - startedAt) / 1_000);
  await rest.close();
  return [
    {
      what: `CreateOrder while ${count} old events go`,
      figure: ratio(perSecond.with, perSecond.without),
      bound: '≥ 0.91×',
    },
    {
      what: '  median of the duration',
      figure: `${median(medianMs.with).toFixed(1)} and ${median(medianMs.without).toFixed(1)} ms`,
    },
    { what: '  removed meanwhile', figure: `${median(removed).toFixed(0)} events a second`, bound: 'above 35' },
    { what: '  removed without other load', figure: `${idle.toFixed(0)} events a second` },
  ];
}

/** Lets the gateway remove events, or holds the lease for that in its place. */
async function allow(cluster: Cluster, isAllowed: boolean): Promise<void> {
  const { database } = cluster;
  clearInterval(holding);
  if (!isAllowed) {
    const hold = () =>
      database.write(
        statement(`UPDATE leases SET holder = 'bench', fence = fence + 1, expires_at = NOW(3) + INTERVAL 10 SECOND
          WHERE name = 'feed-retention'`),
      );
    if ((await hold()) === 0) {
      await database.write(
        statement(`INSERT INTO leases (name, holder, fence, expires_at)
          VALUES ('feed-retention', 'bench', 1, NOW(3) + INTERVAL 10 SECOND)`),
      );
    }
    holding = setInterval(() => void hold(), 2_000);
    // The holder before it notices within a second.
    await new Promise((resolve) => setTimeout(resolve, 2_500));
    return;
  }
  await database.write(statement(`UPDATE leases SET expires_at = NOW(3) WHERE name = 'feed-retention'`));
  const before = await left(cluster);
  await eventually(async () => {
    if ((await left(cluster)) === before) throw new Error('nothing is removed');
  }, 30_000);
}

let holding: NodeJS.Timeout | undefined;

async function left({ database }: Cluster): Promise<number> {
  const [row] = await database.read(statement("SELECT COUNT(*) AS count FROM feed_events WHERE id LIKE 'old%'"));
  return Number(row?.count);
}

/** Old events straight into the feed, with the partners mixed as they come. The versions are below those that come next. */
async function fill({ database }: Cluster, partners: readonly Partner[]): Promise<void> {
  const own = Math.ceil(count / partners.length);
  for (const { id } of partners)
    await database.write(statement('UPDATE partners SET version = ? WHERE id = ?', own, id));
  const body = JSON.stringify({ object: 'event', data: 'x'.repeat(600) });
  const start = Date.now() - 32 * 86_400_000;
  for (let from = 1; from <= own; from += 100) {
    const rows = partners.flatMap(({ id }, index) =>
      Array.from({ length: Math.min(100, own - from + 1) }, (_, at) => {
        const version = from + at;
        const occurredAt = new Date(start + (version * partners.length + index) * 100);
        return [id, version, `old${index}-${version}`, body, occurredAt, 'order', `ord_${index}_${version}`];
      }),
    );
    await database.write({
      sql: 'INSERT INTO feed_events (partner_id, version, id, body, occurred_at, object_kind, object_id) VALUES ?',
      values: [rows],
    });
  }
}
