import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { dashboards, filled, type Query } from '../support/dashboards.ts';
import { testRules } from '../support/promtool.ts';

/** The panels that count what is rare: those of counters over an hour. */
const counting = dashboards.flatMap(({ name, panels }) =>
  panels.flatMap(({ title, targets }) =>
    targets.filter(({ expr }) => expr.includes('increase(')).map((query) => ({ where: `${name}: ${title}`, query })),
  ),
);

/** Two hours and a half, in steps of a quarter of a minute. */
const steps = 600;

/** A counter that an expression names, with the labels that it asks for. */
function seriesOf({ expr }: Query, instance: string) {
  const [, metric = '', matchers = ''] = /(\w+)\{([^}]*)\}/.exec(expr) ?? [];
  const [, by = ''] = /sum by \(([^)]*)\)/.exec(expr) ?? [];
  const asked = [...matchers.matchAll(/(\w+)="([^"]*)"/g)].map(([, name = '', value = '']) => [name, value] as const);
  const grouped = by.split(',').map((name) => [name.trim(), name.trim() === 'instance' ? instance : 'x'] as const);
  const labels = new Map([...grouped, ['job', 'marina'], ['instance', instance], ...asked]);
  const text = (pairs: Iterable<readonly [string, string]>) =>
    `{${[...pairs].map(([name, value]) => `${name}="${value}"`).join(',')}}`;
  return { series: `${metric}${text(labels)}`, result: text(grouped) };
}

describe('the panels of rare things', () => {
  it('show the very first one, of each replica, and nothing of what was before the hour', async () => {
    assert.ok(counting.length > 12, `${counting.length} panels`);
    const tests = counting.map(({ where, query }) => {
      const [first, second] = [seriesOf(query, 'a'), seriesOf(query, 'b')];
      const apart = first.result !== second.result;
      const hides = / > 0$/.test(query.expr);
      // Replica a counted three long ago. Replica b counts its first 15 minutes before the end.
      const expected = [
        ...(apart && !hides ? [{ labels: first.result, value: 0 }] : []),
        { labels: second.result, value: 1 },
      ];
      return {
        name: where,
        interval: '15s',
        input_series: [
          { series: first.series, values: `3x${steps}` },
          { series: second.series, values: `_x${steps - 60} 1x60` },
        ],
        promql_expr_test: [{ expr: filled(query, 'marina', '1m'), eval_time: `${steps * 15}s`, exp_samples: expected }],
      };
    });
    const { agrees, said } = await testRules({ rule_files: [], evaluation_interval: '15s', tests });
    assert.ok(agrees, said);
  });
});
