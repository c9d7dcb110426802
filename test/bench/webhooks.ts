import { firstSlots } from '../../src/gateway/delivery/webhooks/plan/endpoint-queue.ts';
import { type Statement, statement } from '../../src/gateway/store/statement.ts';
import type { Cluster, Partner } from '../support/cluster.ts';
import { eventually } from '../support/eventually.ts';
import type { Turns } from './run.ts';
import { type Endpoints, startEndpoints } from './support/endpoints.ts';
import { median, quantiles } from './support/load.ts';
import { cpuMs, residentMiB } from './support/processes.ts';
import { ms, type Row, ratio } from './support/report.ts';

const backlogPartners = 20;
/** How many deliveries a turn is, of ours and of the loop. */
const turnCount = 20_000;
const largeBacklog = 100_000;
/** So many that the slowest hundredth is more than chance. */
const changes = 500;
/** The first of a new process also load code, connect and compile. They have a row of their own. */
const firstChanges = 20;
const hangingPartners = 100;
const hangingEach = 20;

/** Webhooks: how long an event takes to a healthy endpoint, alone and together with others, and how fast a backlog drains. */
export async function benchWebhooks(cluster: Cluster, turns: Turns): Promise<Row[]> {
  const endpoints = await startEndpoints(cluster);
  try {
    return [...(await benchLatency(endpoints)), ...(await benchBacklog(cluster, endpoints, turns))];
  } finally {
    await endpoints.stop();
  }
}

async function benchLatency(endpoints: Endpoints): Promise<Row[]> {
  const { admin } = endpoints;
  const healthy = await endpoints.register('/healthy');
  const first = await latencies(endpoints, healthy, firstChanges);
  const alone = await latencies(endpoints, healthy);
  const hanging: Partner[] = [];
  for (let index = 0; index < hangingPartners; index += 1) hanging.push(await endpoints.register(`/hang/${index}`));
  for (const { id } of hanging) await endpoints.queue(id, hangingEach);
  await eventually(async () => {
    if ((await endpoints.ask()).hanging < hangingPartners * firstSlots) throw new Error('not all hang yet');
  }, 20_000);
  const together = await latencies(endpoints, healthy);
  for (const { id } of hanging) await admin.webhooks.pauseEndpoint({ partnerId: id }, admin.options);
  return [
    { what: 'commit to received by a healthy endpoint, median', figure: ms(alone.medianMs), bound: 'under 20 ms' },
    { what: 'commit to received by a healthy endpoint, p99', figure: ms(alone.p99Ms), bound: 'under 60 ms' },
    { what: `  the slowest of the first ${firstChanges} of a process`, figure: ms(first.mostMs) },
    {
      what: `  p99 together with ${hangingPartners} endpoints that hang`,
      figure: `${ms(together.p99Ms)}, ${(together.p99Ms / alone.p99Ms).toFixed(2)}× (median ${ms(together.medianMs)})`,
      bound: 'at most 1.3×',
    },
  ];
}

/** From the answer to an order, which comes right after its commit, until its first event is at the endpoint. */
async function latencies({ gateway, ask }: Endpoints, partner: Partner, count = changes) {
  await ask();
  const committed = new Map<string, number>();
  for (let index = 0; index < count; index += 1) {
    const { body } = await gateway.place(partner, { symbol: 'SIM-REST', quantity: 1 + index });
    committed.set(String(body.id), Date.now());
  }
  const arrived = new Map<string, number>();
  await eventually(async () => {
    for (const [id, at] of (await ask()).times) arrived.set(id, at);
    if (arrived.size < count) throw new Error(`${arrived.size} of ${count} events came`);
  }, 30_000);
  const times: number[] = [];
  let cursor = '';
  for (let left = true; left; ) {
    const path = `/v1/events?limit=100${cursor === '' ? '' : `&cursor=${cursor}`}`;
    const page = (await gateway.request('GET', path, { key: partner.key })).body;
    for (const event of page.data) {
      const from = committed.get(event.data.id);
      const to = arrived.get(event.id);
      if (from !== undefined && to !== undefined) times.push(Math.max(0, to - from));
    }
    cursor = encodeURIComponent(page.next_cursor);
    left = page.has_more;
  }
  if (times.length < count) throw new Error('the feed and the endpoint do not agree');
  return { ...quantiles(times), mostMs: Math.max(...times) };
}

async function benchBacklog(cluster: Cluster, endpoints: Endpoints, { rounds }: Turns): Promise<Row[]> {
  const partners = await registerBacklog(endpoints);
  // The large one comes first, while the process has not yet grown by others.
  const large = await drain(cluster, endpoints, partners, largeBacklog);
  const ours: Drained[] = [];
  const theirs: { perSecond: number; cpuUs: number }[] = [];
  for (let round = 0; round < rounds; round += 1) {
    ours.push(await drain(cluster, endpoints, partners, turnCount));
    theirs.push(await endpoints.loop(turnCount));
    await endpoints.ask();
  }
  const cpu = (turns: readonly { cpuUs: number }[]) => `${median(turns.map(({ cpuUs }) => cpuUs)).toFixed(0)} µs`;
  return [
    {
      what: `deliveries of ${turnCount} due at ${backlogPartners} endpoints, each recorded, against a bare undici loop`,
      figure: ratio(
        ours.map(({ perSecond }) => perSecond),
        theirs.map(({ perSecond }) => perSecond),
      ),
      bound: '≥ 0.8×',
    },
    { what: '  CPU of the gateway per delivery, and of the loop', figure: `${cpu(ours)} against ${cpu(theirs)}` },
    {
      what: `${largeBacklog} due deliveries`,
      figure: `${large.perSecond.toFixed(0)} a second`,
    },
    {
      what: '  memory while they drain',
      figure: `${(large.mostMiB - large.beforeMiB).toFixed(0)} MiB more than ${large.beforeMiB.toFixed(0)} MiB`,
      bound: 'at most 64 MiB more',
    },
  ];
}

/** The partners whose deliveries gather. */
export async function registerBacklog(endpoints: Endpoints): Promise<Partner[]> {
  const partners: Partner[] = [];
  for (let index = 0; index < backlogPartners; index += 1) partners.push(await endpoints.register(`/backlog/${index}`));
  return partners;
}

export interface Drained {
  readonly perSecond: number;
  readonly cpuUs: number;
  readonly beforeMiB: number;
  readonly mostMiB: number;
}

/** Lets a backlog gather while its endpoints are paused, and drains it: from the first arrival until all is recorded. */
export async function drain(
  cluster: Cluster,
  { gateway, admin, queue, ask, whenCame }: Endpoints,
  partners: readonly Partner[],
  count: number,
): Promise<Drained> {
  const options = { ...admin.options, timeoutMs: 60_000 };
  for (const { id } of partners) await admin.webhooks.pauseEndpoint({ partnerId: id }, options);
  for (const { id } of partners) await queue(id, count / partners.length);
  await ask();
  const allCame = whenCame(count);
  const beforeMiB = residentMiB(gateway.pid);
  const beforeCpuMs = cpuMs(gateway.pid);
  let mostMiB = beforeMiB;
  const watch = setInterval(() => {
    mostMiB = Math.max(mostMiB, residentMiB(gateway.pid));
  }, 50);
  try {
    await Promise.all(partners.map(({ id }) => admin.webhooks.resumeEndpoint({ partnerId: id }, options)));
    await allCame;
    const recordedAt = await eventually(async () => {
      const [[left] = []] = await cluster.database.readAll([findLeft(partners)]);
      if (left !== undefined) throw new Error('not all is recorded');
      return Date.now();
    }, 300_000);
    const arrived = await ask();
    if (arrived.count < count) throw new Error(`only ${arrived.count} of ${count} came`);
    const cpuUs = ((cpuMs(gateway.pid) - beforeCpuMs) * 1_000) / count;
    return { perSecond: (count * 1_000) / (recordedAt - arrived.firstAt), cpuUs, beforeMiB, mostMiB };
  } finally {
    clearInterval(watch);
  }
}

function findLeft(partners: readonly Partner[]): Statement {
  const ids = partners.map(({ id }) => id);
  return statement('SELECT version FROM webhook_deliveries WHERE partner_id IN (?) AND queue = 1 LIMIT 1', ids);
}
