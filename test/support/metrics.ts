import assert from 'node:assert/strict';
import { patient } from './patience.ts';

/** A gateway's metrics for Prometheus at one moment. */
export interface Scrape {
  readonly text: string;
  /** The value of a series; the sum of all that have the given labels. 0 when there is none. */
  value(name: string, labels?: Record<string, string>): number;
  /** Whether there is a series with the given labels. */
  has(name: string, labels?: Record<string, string>): boolean;
  /** Every value each label has, by label. */
  readonly labels: ReadonlyMap<string, ReadonlySet<string>>;
}

interface Series {
  readonly name: string;
  readonly labels: ReadonlyMap<string, string>;
  readonly value: number;
}

/** Reads the metrics of a gateway by its operations port. */
export async function scrape(opsPort: number): Promise<Scrape> {
  const response = await fetch(`http://127.0.0.1:${opsPort}/metrics`, { signal: AbortSignal.timeout(patient(5_000)) });
  const text = await response.text();
  if (response.status !== 200) throw new Error(`${response.status} ${text}`);
  const series = text.split('\n').flatMap(parse);
  const matching = (name: string, labels: Record<string, string> = {}) =>
    series.filter(
      (each) =>
        each.name === name && Object.entries(labels).every(([label, value]) => each.labels.get(label) === value),
    );
  const labels = new Map<string, Set<string>>();
  for (const each of series) {
    for (const [label, value] of each.labels) {
      const values = labels.get(label) ?? new Set();
      labels.set(label, values.add(value));
    }
  }
  return {
    text,
    value: (name, wanted) => matching(name, wanted).reduce((sum, { value }) => sum + value, 0),
    has: (name, wanted) => matching(name, wanted).length > 0,
    labels,
  };
}

/** Gauges of what a process uses. Each is back at 0 when nothing is under way. */
const gaugesOfUse: readonly Gauge[] = [
  ['marina_requests_under_way'],
  ['marina_limit_slots_used'],
  ['marina_open_streams'],
  ['marina_files_in_memory'],
  ['marina_images'],
  ['marina_broker_reads'],
  ['marina_partner_queue_waiting'],
  ['marina_database_connections', { state: 'in_use' }],
  ['marina_database_connections', { state: 'waiting' }],
];

type Gauge = readonly [name: string, labels?: Record<string, string>];

/** Checks that a gateway uses nothing, and that further figures of it are 0. A figure that it does not have is no 0. */
export async function assertNothingInUse(opsPort: number, further: readonly Gauge[] = []): Promise<void> {
  const { text, value } = await scrape(opsPort);
  for (const [name, labels] of [...gaugesOfUse, ...further]) {
    assert.ok(text.includes(`# TYPE ${name} `), `there is no ${name}`);
    assert.equal(value(name, labels), 0, `${name} ${JSON.stringify(labels ?? {})}`);
  }
}

function parse(line: string): Series[] {
  const found = /^(\w+)(?:\{(.*)\})? (\S+)$/.exec(line);
  if (found === null) return [];
  const [, name = '', labels = '', value] = found;
  const pairs = [...labels.matchAll(/(\w+)="([^"]*)"/g)].map(([, label = '', text = '']) => [label, text] as const);
  return [{ name, labels: new Map(pairs), value: Number(value) }];
}
