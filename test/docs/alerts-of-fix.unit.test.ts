import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { FixMetrics } from '../../src/fix-adapter/metrics.ts';
import { judgeRings, type Series } from '../support/alert-rules.ts';

const file = join(import.meta.dirname, '../../docs/fix-alerts.yml');
const page = readFileSync(join(import.meta.dirname, '../../docs/FIX.md'), 'utf8');
const rules = readFileSync(file, 'utf8');
const names = [...rules.matchAll(/- alert: (\w+)/g)].map(([, name = '']) => name);

/** An adapter that is well, and one that waits for its place. */
const well: Series = {
  'marina_fix_active{instance="a"}': '1x100',
  'marina_fix_active{instance="b"}': '0x100',
  'marina_fix_session_expected{instance="a"}': '1x100',
  'marina_fix_session_up{instance="a"}': '1x100',
  'marina_fix_session_logged_out{instance="a"}': '0x100',
  'marina_fix_messages_dropped_total{instance="a"}': '0x100',
  'marina_fix_drop_copy_expected{instance="a"}': '1x100',
  'marina_fix_drop_copy_expected{instance="b"}': '0x100',
  'marina_fix_drop_copy_up{instance="a"}': '1x100',
  'marina_fix_drop_copy_up{instance="b"}': '0x100',
  'marina_fix_oldest_order_in_doubt_seconds{instance="a"}': '3x100',
  'marina_fix_orders_unasked{instance="a"}': '0x100',
  'marina_fix_session_troubles_total{what="number_too_high"}': '0+1x100',
  'marina_fix_session_troubles_total{what="logon_refused"}': '0x100',
  'marina_fix_session_troubles_total{what="logon_stopped"}': '0x100',
  'marina_fix_session_troubles_total{what="too_long"}': '0x100',
  'marina_fix_template_values_missing_total{instance="a"}': '0x100',
  'marina_fix_findings_total{what="unknown_order"}': '0x100',
  'marina_fix_findings_open{instance="a"}': '0x100',
  'marina_fix_restored{instance="a"}': '0x100',
};

/** The cause that each alert fires for. */
const rings: Readonly<Record<string, Series>> = {
  MarinaFixNoAdapter: { 'marina_fix_active{instance="a"}': '0x100' },
  MarinaFixSessionDown: { 'marina_fix_session_up{instance="a"}': '0x100' },
  MarinaFixLoggedOut: {
    'marina_fix_session_up{instance="a"}': '0x100',
    'marina_fix_session_logged_out{instance="a"}': '1x100',
  },
  MarinaFixMessagesDropped: { 'marina_fix_messages_dropped_total{instance="a"}': '0+1x100' },
  MarinaFixDropCopyDown: { 'marina_fix_drop_copy_up{instance="a"}': '0x100' },
  MarinaFixSessionRefused: { 'marina_fix_session_troubles_total{what="logon_refused"}': '0+1x100' },
  MarinaFixLogonStopped: { 'marina_fix_session_troubles_total{what="logon_stopped"}': '0+1x100' },
  MarinaFixMessageTooLong: { 'marina_fix_session_troubles_total{what="too_long"}': '0+1x100' },
  MarinaFixTemplateValueMissing: { 'marina_fix_template_values_missing_total{instance="a"}': '0+1x100' },
  MarinaFixOrdersInDoubt: { 'marina_fix_oldest_order_in_doubt_seconds{instance="a"}': '0+15x100' },
  MarinaFixOrdersUnasked: { 'marina_fix_orders_unasked{instance="a"}': '2x100' },
  MarinaFixFinding: { 'marina_fix_findings_total{what="unknown_order"}': '0+1x100' },
  MarinaFixFindingsOpen: { 'marina_fix_findings_open{instance="a"}': '3x100' },
  MarinaFixRestored: { 'marina_fix_restored{instance="a"}': '1x100' },
};

describe('the alerts of docs/fix-alerts.yml', () => {
  it('are silent about an adapter that is well, and each rings for what it is about', async () => {
    assert.deepEqual(Object.keys(rings).sort(), [...names].sort(), 'each is tried');
    const { agrees, said } = await judgeRings(file, well, rings, () => '20m');
    assert.ok(agrees, said);
  });

  it('name metrics that there are, and have a row each on the page', () => {
    const known = new FixMetrics().registry.getMetricsAsArray().map(({ name }) => name);
    for (const [metric] of rules.matchAll(/\bmarina_fix_\w+/g)) assert.ok(known.includes(metric), metric);
    for (const name of names) assert.ok(page.includes(`| \`${name}\` |`), name);
    for (const name of known.filter((each) => each.startsWith('marina_')))
      assert.ok(page.includes(`\`${name}\``), name);
  });
});
