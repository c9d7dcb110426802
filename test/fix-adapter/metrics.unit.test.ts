import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { FixMetrics } from '../../src/fix-adapter/metrics.ts';
import { sessionTroubles } from '../../src/fix-adapter/session/types.ts';
import { findingKinds } from '../../src/fix-adapter/store/table.ts';

const alerts = readFileSync(new URL('../../docs/fix-alerts.yml', import.meta.url), 'utf8');

describe('the counters of the FIX adapter whose increase rings', () => {
  it('have each of their series at 0 from the start, so that the first count is an increase', async () => {
    const text = await new FixMetrics().registry.metrics();
    for (const what of findingKinds) assert.ok(text.includes(`marina_fix_findings_total{what="${what}"} 0\n`), what);
    for (const what of sessionTroubles) {
      assert.ok(text.includes(`marina_fix_session_troubles_total{what="${what}"} 0\n`), what);
    }
    const counters = new Set([...alerts.matchAll(/increase\((\w+)/g)].map(([, name]) => name));
    assert.ok(counters.size >= 4);
    for (const name of counters) assert.match(text, new RegExp(`^${name}(\\{.*\\})? 0$`, 'm'), name);
  });

  it('have the troubles that alerts name', () => {
    const named = [...alerts.matchAll(/what=~?"([\w|]+)"/g)].flatMap(([, names = '']) => names.split('|'));
    assert.ok(named.length >= 3);
    for (const name of named) assert.ok((sessionTroubles as readonly string[]).includes(name), name);
  });
});
