import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { insertRows } from '../../src/db/statement.ts';
import { makeAuthority } from '../../src/dev/certificates.ts';
import { sharedKeeper } from '../../src/dev/keeper.ts';
import { adminClient } from '../support/admin.ts';
import type { Cluster, GatewayProcess, Partner } from '../support/cluster.ts';
import { eventually } from '../support/eventually.ts';
import { temporaryFolder } from '../support/folders.ts';
import type { Turns } from './run.ts';
import { median, quantiles } from './support/load.ts';
import { residentMiB, startBaseline } from './support/processes.ts';
import { ms, type Row, ratio } from './support/report.ts';

const backlog = 100_000;
const backlogPartners = 20;
const loopCount = 20_000;
const loopAtOnce = 64;
const changes = 200;
const hangingPartners = 100;
const hangingEach = 20;

interface Said {
  readonly count: number;
  readonly firstAt: number;
  readonly lastAt: number;
  readonly times: readonly (readonly [id: string, atMs: number])[];
  readonly hanging: number;
}

/** Webhooks: how fast a backlog drains, and how long an event takes to a healthy endpoint, alone and beside others. */
export async function benchWebhooks(cluster: Cluster, { rounds }: Turns): Promise<Row[]> {
  const folder = temporaryFolder();
  sharedKeeper().removeAtEnd(folder);
  const authority = await makeAuthority('Bench');
  const { cert, key } = await authority.issue(['127.0.0.1']);
  const authorityFile = join(folder, 'authority.pem');
  writeFileSync(authorityFile, authority.cert);
  const endpoint = await startBaseline('webhook-endpoint', { BASELINE_CERT: cert, BASELINE_KEY: key });
  const url = `https://127.0.0.1:${endpoint.port}`;
  const gateway = await cluster.startGateway({
    MARINA_WEBHOOK_ALLOW_LOOPBACK: 'true',
    MARINA_WEBHOOK_CA_FILE: authorityFile,
  });
  const admin = adminClient(gateway.adminPort);
  let asked = 0;
  let answer: (Said & { ask?: number }) | undefined;
  endpoint.process.onMessage((message) => {
    answer = message as Said;
  });
  const ask = () => {
    asked += 1;
    endpoint.process.send({ ask: asked });
    return eventually(() => {
      if (answer?.ask !== asked) throw new Error('the endpoint does not say');
      return answer;
    });
  };
  const register = async (path: string): Promise<Partner> => {
    const partner = await cluster.newPartner();
    await admin.webhooks.registerEndpoint({ partnerId: partner.id, url: `${url}${path}` }, admin.options);
    return partner;
  };

  try {
    const healthy = await register('/healthy');
    const alone = await latencies(gateway, healthy, ask);

    const hanging: Partner[] = [];
    for (let index = 0; index < hangingPartners; index += 1) hanging.push(await register(`/hang/${index}`));
    for (const { id } of hanging) await queueEvents(cluster, id, hangingEach);
    await eventually(async () => {
      if ((await ask()).hanging < hangingPartners) throw new Error('not all hang yet');
    }, 20_000);
    const beside = await latencies(gateway, healthy, ask);
    for (const { id } of hanging) await admin.webhooks.pauseEndpoint({ partnerId: id }, admin.options);

    const partners: Partner[] = [];
    for (let index = 0; index < backlogPartners; index += 1) {
      const partner = await register(`/backlog/${index}`);
      await admin.webhooks.pauseEndpoint({ partnerId: partner.id }, admin.options);
      partners.push(partner);
    }
    for (const { id } of partners) await queueEvents(cluster, id, backlog / backlogPartners);
    await ask();
    const before = residentMiB(gateway.pid);
    let most = before;
    const watch = setInterval(() => {
      most = Math.max(most, residentMiB(gateway.pid));
    }, 100);
    await Promise.all(
      partners.map(({ id }) =>
        admin.webhooks.resumeEndpoint({ partnerId: id }, { ...admin.options, timeoutMs: 60_000 }),
      ),
    );
    let count = 0;
    let firstAt = Number.POSITIVE_INFINITY;
    let lastAt = 0;
    const end = performance.now() + 300_000;
    while (count < backlog && performance.now() < end) {
      await new Promise((resolve) => setTimeout(resolve, 500));
      const said = await ask();
      if (said.count === 0) continue;
      count += said.count;
      firstAt = Math.min(firstAt, said.firstAt);
      lastAt = said.lastAt;
    }
    clearInterval(watch);
    if (count < backlog) throw new Error(`only ${count} of ${backlog} came`);
    const ours = (count * 1_000) / (lastAt - firstAt);

    const loops: number[] = [];
    for (let round = 0; round < Math.min(rounds, 3); round += 1) {
      loops.push(await bareLoop(`${url}/loop`, authority.cert));
      await ask();
    }
    return [
      {
        what: 'deliveries of a backlog, each recorded, against a bare undici loop',
        figure: ratio(
          loops.map(() => ours),
          loops,
        ),
        bound: '≥ 0.5×',
      },
      { what: '  the bare loop alone', figure: `${median(loops).toFixed(0)} a second` },
      {
        what: `memory while ${backlog} due deliveries drain`,
        figure: `${(most - before).toFixed(0)} MiB more than ${before.toFixed(0)} MiB`,
        bound: 'at most 64 MiB more',
      },
      { what: 'commit to received by a healthy endpoint, median', figure: ms(alone.medianMs), bound: 'under 60 ms' },
      { what: 'commit to received by a healthy endpoint, p99', figure: ms(alone.p99Ms), bound: 'under 300 ms' },
      {
        what: `  p99 beside ${hangingPartners} endpoints that hang`,
        figure: `${ms(beside.p99Ms)}, ${(beside.p99Ms / alone.p99Ms).toFixed(2)}× (median ${ms(beside.medianMs)})`,
        bound: 'at most 1.3×',
      },
    ];
  } finally {
    admin.close();
    await endpoint.process.stop();
  }
}

/** From the answer to an order, which comes right after its commit, until its first event is at the endpoint. */
async function latencies(gateway: GatewayProcess, partner: Partner, ask: () => Promise<Said>) {
  await ask();
  const committed = new Map<string, number>();
  for (let index = 0; index < changes; index += 1) {
    const { body } = await gateway.place(partner, { symbol: 'SIM-REST', quantity: 1 + index });
    committed.set(String(body.id), Date.now());
  }
  const arrived = new Map<string, number>();
  await eventually(async () => {
    for (const [id, at] of (await ask()).times) arrived.set(id, at);
    if (arrived.size < changes) throw new Error(`${arrived.size} of ${changes} events came`);
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
  if (times.length < changes) throw new Error('the feed and the endpoint do not agree');
  return quantiles(times);
}

/** Events that are due now, as if they had been taken from the outbox. */
async function queueEvents(cluster: Cluster, partnerId: string, count: number): Promise<void> {
  const now = new Date();
  for (let first = 1; first <= count; first += 1_000) {
    const versions = Array.from({ length: Math.min(1_000, count - first + 1) }, (_, index) => first + index);
    const ids = versions.map(() => `msg_${randomBytes(12).toString('hex')}`);
    const feed = versions.map((version, index) => [partnerId, version, ids[index] ?? '', bodyOf(), now]);
    const rows = versions.map((version, index) => {
      const id = ids[index] ?? '';
      return [partnerId, version, id, 'order.pending', now, now, now, 'waiting', 1];
    });
    await cluster.database.write(
      insertRows('feed_events', ['partner_id', 'version', 'id', 'body', 'occurred_at'], feed),
    );
    const columns = 'partner_id version event_id type occurred_at committed_at taken_at state queue'.split(' ');
    await cluster.database.write(insertRows('webhook_deliveries', columns, rows));
  }
}

/** As long as an order's event is. */
function bodyOf(): Buffer {
  return Buffer.from(JSON.stringify({ object: 'event', data: { object: 'order', text: 'x'.repeat(520) } }));
}

async function bareLoop(url: string, ca: string): Promise<number> {
  const { process: loop } = await startBaseline('webhook-loop', {
    BASELINE_URL: url,
    BASELINE_CA: ca,
    BASELINE_COUNT: String(loopCount),
    BASELINE_AT_ONCE: String(loopAtOnce),
    BASELINE_BODY: bodyOf().toString(),
  });
  let perSecond: number | undefined;
  loop.onMessage((message) => {
    perSecond = (message as { perSecond?: number }).perSecond ?? perSecond;
  });
  const result = await eventually(() => {
    if (perSecond === undefined) throw new Error('the loop does not end');
    return perSecond;
  }, 120_000);
  await loop.stop();
  return result;
}
