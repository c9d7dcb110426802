import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { sharedKeeper } from '../../src/sandbox/keeper.ts';
import type { Labels } from './alertmanager.ts';
import { temporaryFolder } from './folders.ts';
import { type Judgement, testRules } from './promtool.ts';

const docs = join(import.meta.dirname, '../../docs');

export const gatewayRules = join(docs, 'alerts.yml');
export const fixRules = join(docs, 'fix-alerts.yml');
export const machineRules = join(docs, 'alerts-of-the-machine.yml');
const ruleFiles = [gatewayRules, fixRules, machineRules];
export const alertmanagerFile = join(docs, 'alertmanager.yml');

export interface AlertRule {
  readonly name: string;
  readonly severity: string;
  readonly cause: string;
  readonly text: string;
}

/** The alerts of all files. */
export const alertRules: readonly AlertRule[] = ruleFiles.flatMap((file) =>
  readFileSync(file, 'utf8')
    .split(/^ {6}- (?=alert: )/m)
    .slice(1)
    .map((text) => ({
      name: /^alert: (\w+)/.exec(text)?.[1] ?? '',
      severity: /^ {8}labels: \{severity: (\w+), cause: \w+\}$/m.exec(text)?.[1] ?? '',
      cause: /^ {8}labels: \{severity: \w+, cause: (\w+)\}$/m.exec(text)?.[1] ?? '',
      text,
    })),
);

/**
 * Writes a file with one alert of a file, which fires as it does among the others, because no alert looks at another. To
 * judge it takes a fiftieth of the time.
 */
export function ruleAlone(file: string, name: string): string {
  const [head = '', ...rules] = readFileSync(file, 'utf8').split(/^(?= {6}- alert: )/m);
  const found = rules.filter((rule) => rule.startsWith(`      - alert: ${name}\n`));
  if (found.length !== 1) throw new Error(`${file} has ${found.length} alerts ${name}`);
  if (rules.some((rule) => rule.includes('ALERTS'))) throw new Error(`An alert of ${file} looks at others`);
  const folder = temporaryFolder();
  sharedKeeper().removeAtEnd(folder);
  const path = join(folder, `${name}.yml`);
  writeFileSync(path, `${head}${found}`);
  return path;
}

/** Series by their names and labels, with the value of each step, as promtool writes them. */
export type Series = Readonly<Record<string, string>>;

/** Prometheus reads metrics so often, and judges the rules. */
export const stepSeconds = 15;

/**
 * Judges whether no alert of a file rings while all is well, and each does by its own series. `at` is the time of each, such as `12m`;
 * the silence is judged at that of no name.
 */
export function judgeRings(
  file: string,
  well: Series,
  rings: Readonly<Record<string, Series>>,
  at: (name?: string) => string,
): Promise<Judgement> {
  const trial = (
    rules: string,
    series: Series,
    expectation: { eval_time: string; expr: string; exp_samples: object[] },
  ) => ({
    rule_files: [rules],
    evaluation_interval: `${stepSeconds}s`,
    tests: [
      {
        interval: `${stepSeconds}s`,
        input_series: Object.entries({ ...well, ...series }).map(([labels, values]) => ({ series: labels, values })),
        promql_expr_test: [expectation],
      },
    ],
  });
  const firing = (name: string) => `sum(ALERTS{alertname="${name}",alertstate="firing"}) > bool 0`;
  return testRules(
    trial(file, {}, { eval_time: at(), expr: 'count(ALERTS{alertstate="firing"})', exp_samples: [] }),
    ...Object.entries(rings).map(([name, series]) => {
      const samples = [{ labels: '{}', value: 1 }];
      return trial(ruleAlone(file, name), series, { eval_time: at(name), expr: firing(name), exp_samples: samples });
    }),
  );
}

/** The alerts that fire at each of some steps, by what Prometheus makes of the rules and of series. */
export async function firingAt(
  series: Series,
  steps: readonly number[],
  files: readonly string[] = ruleFiles,
  secondsApart = stepSeconds,
): Promise<Labels[][]> {
  const { agrees, said } = await testRules({
    rule_files: files,
    evaluation_interval: `${secondsApart}s`,
    tests: [
      {
        interval: `${secondsApart}s`,
        input_series: Object.entries(series).map(([name, values]) => ({ series: name, values })),
        promql_expr_test: steps.map((step) => ({
          expr: 'ALERTS{alertstate="firing"} or vector(1)',
          eval_time: `${step * secondsApart}s`,
          // Nothing is expected, so promtool fails and says what it got.
          exp_samples: [],
        })),
      },
    ],
  });
  if (agrees) throw new Error('promtool found what nobody expects');
  const found = [...said.matchAll(/time: (\w+),\s+exp:\s*nil\s+got:(.*)/g)];
  if (found.length !== steps.length) throw new Error(`promtool says something else:\n${said.slice(0, 4_000)}`);
  const byTime = new Map(found.map(([, time = '', got = '']) => [secondsOf(time), got]));
  return steps.map((step) => labelsIn(byTime.get(step * secondsApart) ?? ''));
}

/** Of Go's durations, as in 1h5m30s. */
function secondsOf(duration: string): number {
  const units: Record<string, number> = { h: 3_600, m: 60, s: 1 };
  return [...duration.matchAll(/(\d+)([hms])/g)].reduce(
    (sum, [, n, unit = '']) => sum + Number(n) * (units[unit] ?? 0),
    0,
  );
}

function labelsIn(got: string): Labels[] {
  return [...got.matchAll(/\{([^{}]*__name__="ALERTS"[^{}]*)\}/g)].map(([, inner = '']) => {
    const pairs = [...inner.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)];
    const labels = pairs.map(([, name = '', value = '']): [string, string] => [name, value]);
    return Object.fromEntries(labels.filter(([name]) => name !== '__name__' && name !== 'alertstate'));
  });
}
