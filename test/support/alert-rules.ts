import { execFile } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { sharedKeeper } from '../../src/sandbox/keeper.ts';
import type { Labels } from './alertmanager.ts';
import { temporaryFolder } from './folders.ts';
import { findPromtool } from './promtool.ts';

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

/** Series by their names and labels, with values each quarter of a minute, as promtool writes them. */
export type Series = Readonly<Record<string, string>>;

export const stepSeconds = 15;

/** The alerts that fire at each of some steps, by what Prometheus makes of the rules and of series. */
export async function firingAt(
  series: Series,
  steps: readonly number[],
  files: readonly string[] = ruleFiles,
): Promise<Labels[][]> {
  const promtool = await findPromtool();
  const folder = temporaryFolder();
  sharedKeeper().removeAtEnd(folder);
  const path = join(folder, 'causes.test.json');
  const test = {
    rule_files: files,
    evaluation_interval: `${stepSeconds}s`,
    tests: [
      {
        interval: `${stepSeconds}s`,
        input_series: Object.entries(series).map(([name, values]) => ({ series: name, values })),
        promql_expr_test: steps.map((step) => ({
          expr: 'ALERTS{alertstate="firing"} or vector(1)',
          eval_time: `${step * stepSeconds}s`,
          // Nothing is expected, so promtool fails and says what it got.
          exp_samples: [],
        })),
      },
    ],
  };
  writeFileSync(path, JSON.stringify(test));
  const failed = await promisify(execFile)(promtool, ['test', 'rules', path], { maxBuffer: 100_000_000 }).then(
    () => assertFails(),
    (error: unknown) => error as { stdout?: string; stderr?: string },
  );
  const output = `${failed.stdout}\n${failed.stderr}`;
  const found = [...output.matchAll(/time: (\w+),\s+exp:\s*nil\s+got:(.*)/g)];
  if (found.length !== steps.length) throw new Error(`promtool says something else:\n${output.slice(0, 4_000)}`);
  const byTime = new Map(found.map(([, time = '', got = '']) => [secondsOf(time), got]));
  return steps.map((step) => labelsIn(byTime.get(step * stepSeconds) ?? ''));
}

function assertFails(): never {
  throw new Error('promtool did not fail');
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
