import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

export const dashboardsFolder = join(import.meta.dirname, '../../docs/dashboards');

export interface Query {
  readonly refId: string;
  readonly expr: string;
  readonly legendFormat: string;
}

export interface Panel {
  readonly id: number;
  readonly type: string;
  readonly title: string;
  readonly description: string;
  readonly datasource: { readonly type: string; readonly uid: string };
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  readonly fieldConfig: { readonly defaults: { readonly unit: string } };
  readonly targets: readonly Query[];
}

export interface Dashboard {
  /** The name of its file, without `.json`. */
  readonly name: string;
  readonly uid: string;
  readonly title: string;
  readonly description: string;
  readonly schemaVersion: number;
  readonly templating: { readonly list: readonly { readonly name: string; readonly type: string }[] };
  readonly panels: readonly Panel[];
}

export const dashboards: readonly Dashboard[] = readdirSync(dashboardsFolder)
  .filter((file) => file.endsWith('.json'))
  .sort()
  .map((file) => ({
    ...(JSON.parse(readFileSync(join(dashboardsFolder, file), 'utf8')) as Omit<Dashboard, 'name'>),
    name: file.replace(/\.json$/, ''),
  }));

/** A query as Grafana would send it, with a job and all partners chosen. */
export function filled({ expr }: Query, job: string, rateInterval: string): string {
  return expr
    .replaceAll('$__rate_interval', rateInterval)
    .replaceAll('"$job"', `"${job}"`)
    .replaceAll('"$machines"', '"machines"')
    .replaceAll('"$partner"', '".*"');
}

/** The metrics and the labels that a query names. */
export function namesIn(expr: string): { readonly metrics: string[]; readonly labels: string[] } {
  const bare = expr.replaceAll(/"[^"]*"/g, '""').replaceAll(/\[[^\]]*\]/g, '');
  const groups = [...bare.matchAll(/\b(?:by|without|on|ignoring) \(([^)]*)\)/g)].flatMap(([, list = '']) =>
    list.split(','),
  );
  const matchers = [...bare.matchAll(/\{([^}]*)\}/g)].flatMap(([, list = '']) =>
    list.split(',').map((matcher) => matcher.split(/[=!]/)[0] ?? ''),
  );
  return {
    metrics: [...new Set([...bare.matchAll(/(\w+)\{/g)].map(([, name = '']) => name))],
    labels: [...new Set([...groups, ...matchers].map((label) => label.trim()).filter(Boolean))],
  };
}

/** Returns the legend of a series. */
export function legend({ legendFormat }: Query, labels: Readonly<Record<string, string>>): string {
  return legendFormat.replaceAll(/\{\{(\w+)\}\}/g, (_, label: string) => labels[label] ?? '');
}
