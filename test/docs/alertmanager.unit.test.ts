import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { alertmanagerFile, alertRules } from '../support/alert-rules.ts';
import { checkConfig } from '../support/alertmanager.ts';

const config = readFileSync(alertmanagerFile, 'utf8');
const rules = config
  .slice(config.indexOf('inhibit_rules:'))
  .split(/^ {2}- (?=source_matchers:)/m)
  .slice(1);

// fault/alert-causes.test.ts shows the alerts that remain of each cause.
describe('docs/alertmanager.yml', () => {
  it('is a configuration that the Alertmanager takes', async () => {
    const said = await checkConfig(alertmanagerFile);
    assert.match(said, /SUCCESS/);
    assert.match(said, new RegExp(`- ${rules.length} inhibit rules`));
  });

  it('names alerts that exist', () => {
    const known = new Set(alertRules.map(({ name }) => name));
    const named = config.match(/\b(?:Marina|Machine|Database)[A-Z]\w+/g) ?? [];
    assert.ok(named.length > 50);
    assert.deepEqual(
      named.filter((name) => !known.has(name)),
      [],
    );
  });

  it('mutes nothing of another installation', () => {
    for (const rule of rules) assert.match(rule, /equal: \[environment\b/, rule);
  });

  it('names only alerts that fire on for a while, to mute those that look back', () => {
    const lookBack = /\[5m\]/;
    for (const rule of rules) {
      const [sources = '', targets = ''] = rule.split('target_matchers:');
      const of = (text: string) => alertRules.filter(({ name }) => new RegExp(`\\b${name}\\b`).test(text));
      const muted = of(targets).filter(({ text }) => lookBack.test(text));
      if (muted.length === 0) continue;
      for (const { name, text } of of(sources)) {
        const minutes = Number(/^ {8}keep_firing_for: (\d+)m$/m.exec(text)?.[1] ?? 0);
        const later = Math.max(...muted.map((one) => Number(/keep_firing_for: (\d+)m/.exec(one.text)?.[1] ?? 0)));
        assert.ok(minutes > 5 + later || (minutes > 5 && later === 0), `${name} fires on for ${minutes} m`);
      }
    }
  });
});

describe('each alert', () => {
  it('says whom it is for and what its cause is', () => {
    for (const { name, severity, cause } of alertRules) {
      assert.ok(['page', 'warn'].includes(severity), `${name}: ${severity}`);
      assert.match(cause, /^[a-z]+$/, name);
    }
  });

  it('names the partner if its metric does', () => {
    for (const { name, text } of alertRules.filter((rule) => /by \([^)]*\bpartner\b/.test(rule.text))) {
      if (name !== 'MarinaWebhooksFail') assert.match(text, /summary: .*\{\{ \$labels\.partner \}\}/, name);
    }
  });
});
