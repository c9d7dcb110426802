import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { Metrics } from '../../src/gateway/edge/metrics.ts';
import { firingAt, judgeRings, ruleAlone, type Series } from '../support/alert-rules.ts';
import { promtool } from '../support/promtool.ts';

const root = join(import.meta.dirname, '../..');
const file = join(root, 'docs/alerts.yml');
const rules = readFileSync(file, 'utf8');
const alerts = [...rules.matchAll(/- alert: (\w+)[\s\S]*?runbook: (\S+)/g)].map(([rule, name = '', runbook = '']) => ({
  rule,
  name,
  runbook,
}));

/** A gateway that is well, and busy. */
const well: Series = {
  'up{job="marina",instance="a"}': '1x400',
  'marina_request_duration_seconds_count{operation="Orders.CreateOrder",status="201"}': '0+300x400',
  'marina_request_duration_seconds_count{operation="Orders.CreateOrder",status="503"}': '0+0x400',
  'marina_request_duration_seconds_bucket{operation="Orders.CreateOrder",le="0.1"}': '0+300x400',
  'marina_request_duration_seconds_bucket{operation="Orders.CreateOrder",le="5"}': '0+300x400',
  'marina_request_duration_seconds_bucket{operation="Orders.CreateOrder",le="+Inf"}': '0+300x400',
  'marina_request_refusals_total{operation="Orders.CreateOrder",code="order_not_sent"}': '0+1x400',
  'marina_upstream_call_duration_seconds_count{method="Orders.SubmitOrder",outcome="ok"}': '0+300x400',
  'marina_upstream_call_duration_seconds_count{method="Orders.SubmitOrder",outcome="deadline_exceeded"}': '0+1x400',
  'marina_unsettled_oldest_seconds{kind="order",state="sending"}': '1x400',
  'marina_unsettled_oldest_seconds{kind="order",state="uncertain"}': '20x400',
  'marina_contradictions_total{kind="order",partner="par_1",instance="a"}': '0x40 1x360',
  'marina_contradictions_open{kind="order",partner="other",instance="a"}': '0x400',
  'marina_false_refusals_total{kind="order",partner="par_1"}': '0x400',
  'marina_unclaimed_reports_total{kind="order"}': '0x400',
  'marina_database_went_back_total{kind="order"}': '0x400',
  'marina_report_streams{kind="order",instance="a"}': '1x400',
  'marina_report_streams{kind="order",instance="b"}': '0x400',
  'marina_report_delay_seconds_bucket{kind="order",le="1"}': '0+300x400',
  'marina_report_delay_seconds_bucket{kind="order",le="60"}': '0+300x400',
  'marina_report_delay_seconds_bucket{kind="order",le="+Inf"}': '0+300x400',
  'marina_outbox_oldest_seconds{consumer="feed"}': '0x400',
  'marina_stream_pending_messages{consumer="feed"}': '12x400',
  'marina_webhook_due_lag_seconds{instance="a"}': '2x400',
  'marina_webhook_undelivered_seconds{partner="par_1",by="failures"}': '301+0x400',
  'marina_database_connections{instance="a",state="limit"}': '16x400',
  'marina_database_connections{instance="a",state="in_use"}': '9x400',
  'marina_database_connections{instance="a",state="waiting"}': '0x400',
  'marina_database_clock_ahead_seconds{instance="a"}': '-0.2x400',
  'nodejs_eventloop_lag_p99_seconds{instance="a"}': '0.03x400',
  'marina_leases_taken{lease="relay"}': '1x400',
  'marina_outbox_events{consumer="webhooks"}': '3x400',
  'marina_removal_overdue_seconds{worker="feed-retention"}': '86000x400',
  'marina_uncaught_errors_total{outcome="survived"}': '0x400',
  'marina_nats_untrusted_total{kind="entry",reason="forged"}': '0x400',
  'marina_log_lines_dropped_total{instance="a"}': '0x400',
  marina_connections_refused_total: '0+1x400',
  'marina_credential_refusals_total{reason="missing"}': '0+20x400',
  'marina_credential_refusals_total{reason="forged"}': '0x400',
  'marina_limit_refusals_total{limit="requests_per_second"}': '0+100x400',
  'marina_documents_total{outcome="delivered"}': '0+5x400',
  'marina_documents_total{outcome="unclear"}': '0x400',
  'marina_trading_paused{instance="a"}': '0x400',
  'marina_bulk_cancel_idle_seconds{instance="a"}': '0x400',
  'marina_certificate_expires_seconds{link="broker"}': '700000-15x400',
  'marina_revocation_list_expires_seconds{link="operators"}': '86400-15x400',
  'marina_operator_token_expires_seconds{operator="ada"}': '700000-15x400',
  'marina_changed_files_refused{link="nats",instance="a"}': '0x400',
  'marina_reconciliation_breaks{kind="cash",instance="a"}': '0x400',
  'marina_reconciliation_overdue_seconds{instance="a"}': '86000x400',
};

/** The series that make each alert fire, on top of a gateway that is well. */
const rings: Readonly<Record<string, Series>> = {
  MarinaDown: { 'up{job="marina",instance="a"}': '1x4 0x400' },
  MarinaDatabaseUnreachable: { 'marina_part_trouble_seconds{part="database",instance="a"}': '0+15x400' },
  MarinaDatabaseDiskFull: { 'marina_part_trouble_seconds{part="database-disk",instance="a"}': '0+15x400' },
  MarinaDatabaseTakesNoWrites: { 'marina_part_trouble_seconds{part="database-writes",instance="a"}': '0+15x400' },
  MarinaBrokerUnreachable: { 'marina_part_trouble_seconds{part="broker",instance="a"}': '0+15x400' },
  MarinaBrokerErrors: {
    'marina_upstream_call_duration_seconds_count{method="Orders.SubmitOrder",outcome="deadline_exceeded"}': '0+200x400',
  },
  MarinaUnsettled: { 'marina_unsettled_oldest_seconds{kind="order",state="uncertain"}': '0+15x400' },
  MarinaWithdrawalsWait: { marina_withdrawals_held_oldest_seconds: '43300+15x400' },
  MarinaContradiction: { 'marina_contradictions_open{kind="order",partner="par_2",instance="a"}': '_x20 1x380' },
  MarinaFalseRefusal: { 'marina_false_refusals_total{kind="order",partner="par_2"}': '_x20 1x380' },
  MarinaUnclaimedReport: { 'marina_unclaimed_reports_total{kind="order"}': '_x20 1x380' },
  MarinaDatabaseWentBack: { 'marina_database_went_back_total{kind="order"}': '_x20 1x380' },
  MarinaBrokerClockApart: { 'marina_part_trouble_seconds{part="broker-clock",instance="a"}': '0+15x400' },
  MarinaAuditAtFault: { 'marina_audit_faulty_batches{instance="a"}': '0x20 1x380' },
  MarinaLedgerAtFault: { 'marina_faulty_ledgers{partner="par_1",instance="a"}': '_x20 1x380' },
  MarinaBrokerDisagrees: { 'marina_reconciliation_breaks{kind="order_state",instance="a"}': '0x20 2x380' },
  MarinaReconciliationLate: { 'marina_reconciliation_overdue_seconds{instance="a"}': '90000+15x400' },
  MarinaReportsStuck: { 'marina_part_trouble_seconds{part="order-reports",instance="a"}': '0+15x400' },
  MarinaObjectsStuck: { 'marina_objects_stuck{partner="par_1",instance="a"}': '1x400' },
  MarinaLostObjectsHeld: { 'marina_part_trouble_seconds{part="lost orders",instance="a"}': '0+15x400' },
  MarinaStartWaits: { 'marina_part_trouble_seconds{part="start",instance="a"}': '0+15x400' },
  MarinaReportsUnfollowed: { 'marina_report_streams{kind="order",instance="a"}': '1x20 0x380' },
  MarinaReportsLate: { 'marina_report_delay_seconds_bucket{kind="order",le="1"}': '0x400' },
  MarinaEventsLate: { 'marina_outbox_oldest_seconds{consumer="feed"}': '0+15x400' },
  MarinaStreamBacklog: { 'marina_stream_pending_messages{consumer="feed"}': '9000x400' },
  MarinaWebhooksLate: { 'marina_webhook_due_lag_seconds{instance="a"}': '0+15x400' },
  MarinaWebhooksFail: Object.fromEntries(
    Array.from({ length: 10 }, (_, index) => [
      `marina_webhook_undelivered_seconds{partner="par_${index}",by="failures"}`,
      '301x400',
    ]),
  ),
  MarinaWebhookFails: { 'marina_webhook_undelivered_seconds{partner="par_1",by="failures"}': '301+15x400' },
  MarinaWebhookUndelivered: { 'marina_webhook_undelivered_seconds{partner="par_2",by="operator"}': '21301+15x400' },
  MarinaEventsExpired: { 'marina_webhook_expired_events_total{partner="par_2"}': '_x20 7x380' },
  MarinaErrors: {
    'marina_request_duration_seconds_count{operation="Orders.CreateOrder",status="503"}': '0+30x400',
  },
  MarinaInternalErrors: {
    'marina_request_refusals_total{operation="Orders.CreateOrder",code="internal_error"}': '_x20 1x380',
  },
  MarinaSlow: { 'marina_request_duration_seconds_bucket{operation="Orders.CreateOrder",le="0.1"}': '0x400' },
  MarinaDatabaseBusy: {
    'marina_database_connections{instance="a",state="in_use"}': '16x400',
    'marina_database_connections{instance="a",state="waiting"}': '7x400',
  },
  MarinaEventLoopSlow: { 'nodejs_eventloop_lag_p99_seconds{instance="a"}': '0.4x400' },
  MarinaWorkerFails: { 'marina_part_trouble_seconds{part="worker relay",instance="a"}': '0+15x400' },
  MarinaLeaseFree: { 'marina_leases_taken{lease="relay"}': '1x12' },
  MarinaRemovalBehind: { 'marina_removal_overdue_seconds{worker="feed-retention"}': '172000+60x400' },
  MarinaNatsUnreachable: { 'marina_part_trouble_seconds{part="nats",instance="a"}': '0+15x400' },
  MarinaEventsStuck: { 'marina_events_stuck{partner="par_1",instance="a"}': '1x400' },
  MarinaJetStreamFails: { 'marina_part_trouble_seconds{part="jetstream",instance="a"}': '0+15x400' },
  MarinaNatsUntrusted: { 'marina_nats_untrusted_total{kind="entry",reason="forged"}': '0+0x20 1x40' },
  MarinaLimitsNotShared: { 'marina_part_trouble_seconds{part="limits",instance="a"}': '0+15x400' },
  MarinaClockApart: { 'marina_database_clock_ahead_seconds{instance="a"}': '-1.6x400' },
  MarinaCertificateExpires: { 'marina_certificate_expires_seconds{link="broker"}': '604830-15x400' },
  MarinaRevocationListEnds: { 'marina_revocation_list_expires_seconds{link="operators"}': '3630-15x400' },
  MarinaOperatorTokenExpires: { 'marina_operator_token_expires_seconds{operator="ada"}': '604830-15x400' },
  MarinaChangedFilesRefused: { 'marina_changed_files_refused{link="nats",instance="a"}': '1x400' },
  MarinaUncaughtError: { 'marina_uncaught_errors_total{outcome="survived"}': '0x20 1x380' },
  MarinaLogStuck: { 'marina_part_trouble_seconds{part="log",instance="a"}': '0+15x400' },
  MarinaLogLinesDropped: { 'marina_log_lines_dropped_total{instance="a"}': '0x20 7x380' },
  MarinaConnectionsRefused: { marina_connections_refused_total: '0+20x400' },
  MarinaCredentialsRefused: { 'marina_credential_refusals_total{reason="forged"}': '0+20x400' },
  MarinaDocumentsUnconfirmed: {
    'marina_documents_total{outcome="unclear"}': '0+5x400',
    'marina_documents_total{outcome="delivered"}': '0+1x400',
  },
  MarinaBulkCancelStuck: { 'marina_bulk_cancel_idle_seconds{instance="a"}': '0+15x400' },
  MarinaTradingPaused: { 'marina_trading_paused{instance="a"}': '1x400' },
  MarinaLargeCredit: { 'marina_large_credits_total{instance="a"}': '0x20 1x380' },
  MarinaLargeCorrection: { 'marina_large_corrections_total{instance="a"}': '0x20 1x380' },
  MarinaProposalsWait: { 'marina_open_proposals_oldest_seconds{instance="a"}': '432000+15x400' },
};

/** When the alerts are looked at: late enough for what each waits for. */
const usually = '12m';
const later: Readonly<Record<string, string>> = {
  MarinaRemovalBehind: '40m',
  MarinaWebhookFails: '20m',
  MarinaTradingPaused: '70m',
};

describe('the alerts of docs/alerts.yml', () => {
  it('are rules Prometheus takes', async () => {
    const { agrees, said } = await promtool('check', 'rules', file);
    assert.ok(agrees, said);
    assert.match(said, new RegExp(`SUCCESS: ${alerts.length} rules`));
  });

  it('are silent about a gateway that is well, and each rings for what it is about', async () => {
    assert.deepEqual(Object.keys(rings).sort(), alerts.map(({ name }) => name).sort(), 'each is tried');
    const { agrees, said } = await judgeRings(file, well, rings, (name = '') => later[name] ?? usually);
    assert.ok(agrees, said);
  });

  it('name the partner', async () => {
    for (const [name, partner] of [
      ['MarinaWebhookUndelivered', 'par_2'],
      ['MarinaEventsExpired', 'par_2'],
      ['MarinaObjectsStuck', 'par_1'],
      ['MarinaFalseRefusal', 'par_2'],
      ['MarinaContradiction', 'par_2'],
    ] as const) {
      const [firing = []] = await firingAt({ ...well, ...rings[name] }, [48], [ruleAlone(file, name)]);
      assert.deepEqual(
        firing.filter(({ alertname }) => alertname === name).map((labels) => labels.partner),
        [partner],
        name,
      );
    }
  });

  it('ring for a contradiction while one is open, once for all replicas, and for an hour at a replica of the version before', async () => {
    const open = (instance: string) =>
      `marina_contradictions_open{kind="order",partner="par_2",instance="${instance}"}`;
    const counted = (instance: string) =>
      `marina_contradictions_total{kind="order",partner="par_2",instance="${instance}"}`;
    const always = (instance: string) => ({
      [`marina_contradictions_open{kind="order",partner="other",instance="${instance}"}`]: '0x1400',
    });
    const rule = ruleAlone(file, 'MarinaContradiction');
    const ringing = async (series: Series, steps: readonly number[]) => {
      const firing = await firingAt(series, steps, [rule]);
      return firing.map((alerts) => alerts.filter(({ alertname }) => alertname === 'MarinaContradiction').length);
    };
    // It was counted by replica a at step 20, and is settled at step 900, hours later.
    const both = { [open('a')]: '_x20 1x880 _x500', [open('b')]: '_x20 1x880 _x500', ...always('a'), ...always('b') };
    assert.deepEqual(await ringing({ ...both, [counted('a')]: '_x20 1x1380' }, [10, 30, 890, 930]), [0, 1, 1, 0]);
    // It is acknowledged within the hour.
    const soon = { [open('a')]: '_x20 1x40 _x1340', ...always('a') };
    assert.deepEqual(await ringing({ ...soon, [counted('a')]: '_x20 1x1380' }, [30, 90]), [1, 0]);
    // Replica b is of the version before.
    const older = { ...always('a'), [counted('b')]: '_x20 1x1380' };
    assert.deepEqual(await ringing(older, [10, 30, 250, 300]), [0, 1, 1, 0]);
  });

  it('say nothing of leases and no gateway while the database is away, and ring if there is no target at all', async () => {
    const without = Object.fromEntries(Object.entries(well).filter(([name]) => !name.startsWith('marina_outbox')));
    const away = { ...without, 'marina_leases_taken{lease="relay"}': '1x12' };
    const [firing = []] = await firingAt(away, [48], [file]);
    assert.deepEqual(firing, []);
    const [none = []] = await firingAt({ marina_connections_refused_total: '0x60' }, [48], [file]);
    assert.deepEqual(
      none.map(({ alertname }) => alertname),
      ['MarinaDown'],
    );
  });

  it('name metrics there are', () => {
    const known = new Set(new Metrics().registry.getMetricsAsArray().map(({ name }) => name));
    for (const { rule, name } of alerts) {
      for (const [metric] of rule.matchAll(/\b(?:marina|nodejs)_\w+/g)) {
        assert.ok(known.has(metric) || known.has(metric.replace(/_(count|bucket|sum)$/, '')), `${name}: ${metric}`);
      }
    }
  });

  it('have a heading each on the on-call page: what the alert means, what to run, what to expect', () => {
    const page = readFileSync(join(root, 'docs/operations/on-call.md'), 'utf8');
    const sections = new Map(
      page
        .split(/^##+ /m)
        .map((section): [string, string] => [/^\w*/.exec(section)?.[0] ?? '', section])
        .filter(([title]) => title.startsWith('Marina')),
    );
    assert.deepEqual([...sections.keys()].sort(), alerts.map(({ name }) => name).sort());
    for (const { name, rule, runbook } of alerts) {
      assert.equal(runbook, `docs/operations/on-call.md#${name.toLowerCase()}`);
      const section = sections.get(name) ?? '';
      for (const part of ['Means', 'Run', 'Expect']) assert.ok(section.includes(`**${part}:**`), `${name}: ${part}`);
      assert.match(section, /```sh\n/, `${name} has something to paste`);
      const metrics = [...rule.matchAll(/\b(?:marina|nodejs)_\w+?(?=_(?:count|bucket|sum)\b|\b)/g)].map(
        ([metric]) => metric,
      );
      for (const metric of metrics) assert.ok(section.includes(`\`${metric}\``), `${name}: ${metric}`);
    }
  });
});
