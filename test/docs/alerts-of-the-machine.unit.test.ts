import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { type AlertRule, alertRules, firingAt, machineRules, type Series } from '../support/alert-rules.ts';
import { promtool } from '../support/promtool.ts';

const rules: readonly AlertRule[] = alertRules.filter(({ name }) => /^(Machine|Database)/.test(name));
const page = readFileSync('docs/operations/machines.md', 'utf8');
const gib = 1_073_741_824;

const avail = (mount: string, type = 'ext4') =>
  `node_filesystem_avail_bytes{instance="db:9100",mountpoint="${mount}",fstype="${type}"}`;
const size = (mount: string, type = 'ext4') =>
  `node_filesystem_size_bytes{instance="db:9100",mountpoint="${mount}",fstype="${type}"}`;

/** Values are so far apart. No rule waits for less, and the longest of them looks back for six hours. */
const minute = 60;

/** A machine and a database server that are well. */
const well: Series = {
  'up{job="node",instance="db:9100"}': '1x500',
  'up{job="mysqld",instance="db:9104"}': '1x500',
  [size('/')]: `${100 * gib}x500`,
  [avail('/')]: `${40 * gib}x500`,
  // A disk that is almost empty, and takes a backup.
  [size('/backup')]: `${1000 * gib}x500`,
  [avail('/backup')]: `${900 * gib}-${gib}x500`,
  [size('/run', 'tmpfs')]: `${gib}x500`,
  [avail('/run', 'tmpfs')]: '0x500',
  'node_memory_MemAvailable_bytes{instance="db:9100"}': `${gib}x500`,
  'node_memory_MemTotal_bytes{instance="db:9100"}': `${8 * gib}x500`,
  'node_timex_sync_status{instance="db:9100"}': '1x500',
  'mysql_up{instance="db:9104"}': '1x500',
  'mysql_global_status_threads_connected{instance="db:9104"}': '80x500',
  'mysql_global_variables_max_connections{instance="db:9104"}': '151x500',
};

/** The series that make each alert ring. */
const rings: Readonly<Record<string, Series>> = {
  MachineUnseen: { 'up{job="node",instance="db:9100"}': '0x500' },
  MachineDiskFills: { [avail('/')]: `${19 * gib}x500` },
  MachineDiskFull: { [avail('/')]: `${19 * gib}x25 ${4.9 * gib}x475` },
  MachineDiskFillsSoon: { [avail('/')]: `${49 * gib}-${gib / 100}x500` },
  MachineMemoryShort: { 'node_memory_MemAvailable_bytes{instance="db:9100"}': `${0.3 * gib}x500` },
  MachineClockFree: { 'node_timex_sync_status{instance="db:9100"}': '0x500' },
  DatabaseDown: { 'mysql_up{instance="db:9104"}': '0x500' },
  DatabaseConnectionsShort: { 'mysql_global_status_threads_connected{instance="db:9104"}': '140x500' },
};
/** Seven hours and a half. */
const step = 450;

describe('the sample alerts for machines and databases', () => {
  it('Prometheus takes the sample alerts for machines', async () => {
    const { agrees, said } = await promtool('check', 'rules', machineRules);
    assert.ok(agrees, said);
    assert.match(said, new RegExp(`SUCCESS: ${rules.length} rules`));
  });

  it('the sample alerts say nothing of a machine that is well', async () => {
    assert.deepEqual(await firingAt(well, [step], [machineRules], minute), [[]]);
  });

  for (const { name } of rules) {
    it(`ring as ${name}`, async () => {
      const [firing = []] = await firingAt({ ...well, ...rings[name] }, [step], [machineRules], minute);
      const names = firing.map(({ alertname }) => alertname);
      assert.ok(names.includes(name), `rings: ${names.join(', ')}`);
      const others = names.filter((other) => other !== name);
      // A disk that is used to 95 % is used to 80 % too. The Alertmanager mutes that warning.
      assert.deepEqual(others, name === 'MachineDiskFull' ? ['MachineDiskFills'] : []);
    });
  }

  it('say that nobody sees the machines if Prometheus has no figures of any, or only of some', async () => {
    const without = (name: RegExp) => Object.fromEntries(Object.entries(well).filter(([series]) => !name.test(series)));
    for (const name of [/^node_filesystem_avail_bytes/, /^mysql_up/, /./]) {
      const [firing = []] = await firingAt(
        { 'up{job="marina"}': '1x500', ...without(name) },
        [step],
        [machineRules],
        minute,
      );
      const unseen = firing.map(({ alertname }) => alertname);
      assert.ok(unseen.length > 0 && unseen.every((each) => each === 'MachineUnseen'), `${name}: ${unseen.join(', ')}`);
    }
  });

  it('each sample alert has a heading on its page: what it means, what to run, what to expect', () => {
    const sections = new Map(
      page.split(/^### /m).map((section): [string, string] => [/^\w*/.exec(section)?.[0] ?? '', section]),
    );
    for (const { name, text } of rules) {
      const section = sections.get(name) ?? '';
      for (const part of ['Means', 'Run', 'Expect']) assert.ok(section.includes(`**${part}:**`), `${name}: ${part}`);
      assert.ok(text.includes(`runbook: docs/operations/machines.md#${name.toLowerCase()}`), name);
      for (const [metric] of text.matchAll(/\b(?:node|mysql)_\w+/g))
        assert.ok(section.includes(`\`${metric}\``), metric);
    }
  });
});
