import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { FixMetrics } from '../../src/fix-adapter/metrics.ts';
import { createOpsServer } from '../../src/fix-adapter/ops-server.ts';
import { Metrics } from '../../src/gateway/edge/metrics.ts';
import { statement } from '../../src/gateway/store/statement.ts';
import { Call, StatementLie, WireFault } from '../../src/gen/marina/simulator/v1/controls_pb.ts';
import { daysBefore, lagosDay } from '../../src/kit/clock.ts';
import { adminClient } from '../support/admin.ts';
import { machineRules } from '../support/alert-rules.ts';
import { type DrawnPanel, drawDashboard } from '../support/dashboard-picture.ts';
import { type Dashboard, dashboards, dashboardsFolder, filled, legend, namesIn } from '../support/dashboards.ts';
import { goodFields, overRest } from '../support/documents.ts';
import { eventually } from '../support/eventually.ts';
import { startExporters } from '../support/exporters.ts';
import { callTimeout, startGateway, type TestGateway, type TestPartner } from '../support/gateway.ts';
import { noisePng } from '../support/images.ts';
import { type RunningPrometheus, startPrometheus } from '../support/prometheus.ts';
import { WebhookReceiver } from '../support/webhook-receiver.ts';

const isRecording = process.env.MARINA_TEST_RECORD === 'true';
/** How long the gateway works: for pictures longer, so that lines have a form. */
const workedMs = isRecording ? 120_000 : 12_000;
const rateInterval = isRecording ? '10s' : '8s';

/** Panels that show something only in trouble that this test does not make, with the trouble. */
const onlyInTrouble: Readonly<Record<string, string>> = {
  'Parts in trouble, for how long': 'no part of the gateway was in trouble',
  Contradictions: 'the broker contradicted no state',
  'False refusals': 'the broker had nothing that was refused',
  'Events that expired': 'no event was too old to be sent',
  'Trouble with the database': 'the database was there and took writes',
  'Trouble with NATS': 'NATS was there',
  'Failing workers': 'no worker failed',
  'Its events expired': 'no event was too old to be sent',
  'Contradictions about its objects': 'the broker contradicted no state',
  'False refusals of its objects': 'the broker had nothing that was refused',
  'Its rows are damaged': 'no rows were damaged',
  'Its ledger is at fault': 'every ledger added up',
  'Troubles of the session': 'the session had no trouble',
  Findings: 'the exchange said nothing impossible',
  'Rare faults': 'nothing of it happened',
};

const jobOf = ({ name }: Dashboard) => (name === 'fix' ? 'marina-fix' : 'marina');

/** The metrics of the exporters, with their labels. That they have them is shown by a panel of each. */
const ofExporters: readonly [string, readonly string[]][] = [
  ['node_cpu_seconds_total', ['cpu', 'mode']],
  ['node_filesystem_avail_bytes', ['device', 'fstype', 'mountpoint']],
  ['node_filesystem_size_bytes', ['device', 'fstype', 'mountpoint']],
  ['node_memory_MemAvailable_bytes', []],
  ['node_memory_MemTotal_bytes', []],
  ['mysql_global_status_threads_connected', []],
  ['mysql_global_variables_max_connections', []],
];

/** The labels that Prometheus adds to each series, and to buckets of a histogram. */
const addedLabels = ['job', 'instance', 'le'];

describe('the dashboards of docs/dashboards', () => {
  let gateway: TestGateway;
  let receiver: WebhookReceiver;
  let fix: Server;
  let prometheus: RunningPrometheus;
  let period: [number, number];
  before(async () => {
    receiver = await WebhookReceiver.start();
    gateway = await startGateway(receiver.variables);
    fix = await startFixPort();
    const exporters = await startExporters(gateway.databaseUrl);
    prometheus = await startPrometheus([
      { job: 'marina', instance: 'gateway-1:9464', port: gateway.app.opsPort },
      { job: 'marina-fix', instance: 'fix-1:9465', port: (fix.address() as AddressInfo).port },
      { job: 'machines', instance: 'db-1:9100', port: exporters.machine },
      { job: 'machines', instance: 'db-1:9104', port: exporters.database },
    ]);
    const from = Date.now() / 1_000;
    await work(gateway, receiver);
    period = [from, Date.now() / 1_000];
  });
  after(async () => {
    await prometheus.stop();
    await new Promise((resolve) => fix.close(resolve));
    await gateway.stop();
    await receiver.close();
  });

  const panels = dashboards.flatMap((dashboard) => dashboard.panels.map((panel) => ({ dashboard, panel })));

  it('ask only for metrics and labels that there are', () => {
    const known = new Map<string, readonly string[]>([['up', []], ...ofExporters]);
    for (const { registry } of [new Metrics(), new FixMetrics()]) {
      for (const metric of registry.getMetricsAsArray()) {
        const { name, labelNames = [] } = metric as unknown as { name: string; labelNames?: string[] };
        for (const suffix of ['', '_count', '_bucket', '_sum']) known.set(`${name}${suffix}`, labelNames);
      }
    }
    for (const { dashboard, panel } of panels) {
      for (const query of panel.targets) {
        const where = `${dashboard.name}, ${panel.title}: ${query.expr}`;
        const { metrics, labels } = namesIn(query.expr);
        assert.ok(metrics.length > 0, where);
        const labelsOf = metrics.flatMap((metric) => known.get(metric) ?? assert.fail(`${metric} in ${where}`));
        const shown = [...query.legendFormat.matchAll(/\{\{(\w+)\}\}/g)].map(([, label = '']) => label);
        for (const label of [...labels, ...shown]) {
          assert.ok([...labelsOf, ...addedLabels].includes(label), `${label} in ${where}`);
        }
        for (const label of shown) assert.ok(labels.includes(label), `the query groups by ${label}: ${where}`);
      }
    }
  });

  it('show something of a gateway that works, but for what is seen only in trouble', async () => {
    const empty: string[] = [];
    for (const { dashboard, panel } of panels) {
      for (const query of panel.targets) {
        const found = await prometheus.range(filled(query, jobOf(dashboard), rateInterval), ...period, 1);
        if (!found.some(({ points }) => points.length > 0)) empty.push(panel.title);
      }
    }
    assert.deepEqual(
      [...new Set(empty)].filter((title) => !(title in onlyInTrouble)),
      [],
      'these show nothing',
    );
    const titles = new Set(panels.map(({ panel: { title } }) => title));
    assert.deepEqual(
      Object.keys(onlyInTrouble).filter((title) => !titles.has(title)),
      [],
      'there is no such panel',
    );
  });

  it('the sample alerts of machines name metrics that their exporters have', async () => {
    const metrics = new Set(
      readFileSync(machineRules, 'utf8')
        .replaceAll(/^ *#.*$/gm, '')
        .match(/\b(?:node|mysql)_\w+/g),
    );
    for (const metric of metrics) {
      const found = await prometheus.range(`${metric}{job="machines"}`, ...period, 1);
      assert.ok(
        found.some(({ points }) => points.length > 0),
        metric,
      );
    }
  });

  it('are drawn with all their panels', async () => {
    for (const dashboard of dashboards) {
      const picture = await draw(dashboard);
      assert.equal(picture.match(/class="panel"/g)?.length, dashboard.panels.length);
      const lines = picture.match(/<path class="line /g)?.length ?? 0;
      assert.ok(lines > 0, dashboard.name);
      if (isRecording) writeFileSync(join(dashboardsFolder, `${dashboard.name}.svg`), picture);
    }
  });

  async function draw(dashboard: Dashboard): Promise<string> {
    const drawn: DrawnPanel[] = [];
    for (const panel of dashboard.panels) {
      const found = await Promise.all(
        panel.targets.map(async (query) => {
          const series = await prometheus.range(filled(query, jobOf(dashboard), rateInterval), ...period, 2);
          return series.map(({ labels, points }) => ({ name: legend(query, labels), points }));
        }),
      );
      const lines = found.flat().filter(({ points }) => points.length > 0);
      drawn.push({ panel, lines, emptyBecause: onlyInTrouble[panel.title] });
    }
    return drawDashboard(dashboard, drawn, period);
  }
});

/** Partners do most of what they can, and a few things go wrong. */
async function work(gateway: TestGateway, receiver: WebhookReceiver): Promise<void> {
  const admin = adminClient(gateway.app.adminPort);
  const end = Date.now() + workedMs;
  const [busy, refusing, hasty] = [
    await gateway.newPartner(),
    await gateway.newPartner(),
    await gateway.newPartner({ limits: { requestsPerSecond: 1, requestsBurst: 1 } }),
  ];
  receiver.reply('/gone', () => 404);
  for (const [{ id: partnerId }, path] of [
    [busy, '/hooks'],
    [refusing, '/gone'],
  ] as const) {
    await admin.webhooks.registerEndpoint({ partnerId, url: receiver.url(path) }, admin.options);
  }
  await gateway.fund(busy, 1_000_000_000n);
  assert.equal((await gateway.place(refusing, { symbol: 'SIM-FILL' })).status, 201);
  await eventually(() => assert.ok(receiver.at('/gone').length > 0));
  await admin.clock.advanceClock({ by: { seconds: 600n, nanos: 0 } }, admin.options);
  admin.close();
  const documents = sendDocuments(gateway, busy);
  const compared = compareDays(gateway, busy);
  const under = new Set<Promise<unknown>>();
  const start = (call: Promise<unknown>) => {
    const ended: Promise<unknown> = call.finally(() => under.delete(ended));
    under.add(ended);
  };
  const failFrom = end - workedMs * 0.6;
  let fails = false;
  for (let quantity = 1; Date.now() < end; quantity += 1) {
    if (!fails && Date.now() > failFrom) {
      fails = true;
      const fault = { call: Call.SUBMIT_ORDER, fault: WireFault.UNAVAILABLE_BEFORE };
      await gateway.controls.injectFault({ ...fault, times: workedMs / 1_500 }, callTimeout);
    }
    const symbol = ['SIM-REST', 'SIM-FILL', 'SIM-PARTS'][quantity % 3];
    start(gateway.place(busy, { symbol, quantity }));
    start(gateway.rest('GET', '/v1/orders', { key: busy.key }));
    if (quantity % 3 === 0) start(gateway.rest('GET', `/v1/accounts/${busy.account}/balance`, { key: busy.key }));
    if (quantity % 5 === 0) start(gateway.rest('GET', `/v1/orders/ord_${'a'.repeat(20)}`, { key: busy.key }));
    if (quantity % 5 === 0) start(gateway.rest('GET', '/v1/orders', { key: hasty.key }));
    if (quantity % 7 === 0) start(gateway.rest('GET', '/v1/orders'));
    if (quantity % 9 === 0) start(gateway.allocate(busy, { amount_kobo: 1_000 }));
    // A partner's load is not even.
    await delay(80 + 60 * Math.sin(quantity / 15));
  }
  await Promise.all(under);
  await documents;
  await compared;
}

/** The gateway was there yesterday: that day is compared, differs, and is compared again. The present day is not closed. */
async function compareDays(gateway: TestGateway, { account }: TestPartner): Promise<void> {
  const admin = adminClient(gateway.app.adminPort);
  const { now } = await admin.diagnostics.getStatus({}, admin.options);
  const today = lagosDay(Number(now?.seconds) * 1_000);
  const yesterday = daysBefore(today, 1);
  const earlier = new Date(Date.parse(yesterday));
  await gateway.database.write(statement('UPDATE partners SET created_at = ?', earlier));
  const reconcile = (day: string) => admin.diagnostics.reconcileDay({ day, reason: 'a test' }, admin.options);
  await reconcile(yesterday);
  await delay(workedMs / 3);
  for (const lie of [StatementLie.ORDER_EXTRA, StatementLie.CASH]) {
    const about = { day: yesterday, account, symbol: 'SIM-REST' };
    await gateway.controls.lieInStatements({ lie, ...about }, callTimeout);
  }
  await reconcile(yesterday);
  await reconcile(today);
  admin.close();
}

async function sendDocuments(gateway: TestGateway, partner: TestPartner): Promise<void> {
  const file = await noisePng();
  const send = overRest(gateway.app.restPort);
  for (let count = 0; count < workedMs / 4_000; count += 1) {
    const applied = await gateway.rest('POST', '/v1/applications', {
      key: partner.key,
      idempotencyKey: randomUUID(),
      body: goodFields,
    });
    assert.equal(applied.status, 201, applied.text);
    await send({ key: partner.key, id: applied.body.id, type: 'photo', file });
    await delay(3_000);
  }
}

/** The operations port of an adapter that is well and answers orders. The adapter itself is tested in test/fix-adapter. */
async function startFixPort(): Promise<Server> {
  const metrics = new FixMetrics();
  metrics.isActive.set(1);
  metrics.isUp.set(1);
  metrics.isInHours.set(1);
  metrics.inDoubt.set(0);
  metrics.oldestInDoubt.set(0);
  const refresh = async () => {
    for (let order = 0; order < 10; order += 1) metrics.orders.observe({ code: 'OK' }, 0.01 + 0.03 * Math.random());
    metrics.open.set(40 + Math.round(10 * Math.random()));
  };
  const server = createOpsServer({ reasons: () => [], refresh, metrics });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return server;
}
