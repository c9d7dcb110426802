import { alertRules, type Series, stepSeconds } from '../alert-rules.ts';

/** A gateway's metrics at one moment, by series. */
export interface Sample {
  readonly atSeconds: number;
  readonly values: ReadonlyMap<string, number>;
}

/** Two moments before a fault, and two of its midst. */
export interface Observed {
  readonly well: readonly [Sample, Sample];
  /** Absent: nothing answers any more. */
  readonly faulty: readonly [Sample, Sample] | undefined;
  readonly brokeAtSeconds: number;
}

/** A metric that may be high at one moment and not at the next. */
const momentary = 'marina_database_connections';
const used = new Set(alertRules.flatMap(({ text }) => text.match(/\bmarina_\w+/g) ?? []));
used.delete(momentary);

/** Buckets that tell of the broker's clock. Others tell how busy the machine is that tests. */
const usedBuckets = /^marina_report_delay_seconds_bucket\b/;

/** The operations port's metrics that alerts use. */
export async function sample(opsPort: number): Promise<Sample> {
  const answer = await fetch(`http://127.0.0.1:${opsPort}/metrics`);
  const text = await answer.text();
  if (answer.status !== 200) throw new Error(`${answer.status} ${text}`);
  const isUsed = (name: string) => used.has(name) && (!name.endsWith('_bucket') || usedBuckets.test(name));
  const lines = text.split('\n').filter((line) => isUsed(/^\w+/.exec(line)?.[0] ?? ''));
  const values = lines.map((line): [string, number] => {
    const at = line.lastIndexOf(' ');
    return [line.slice(0, at), Number(line.slice(at + 1))];
  });
  return { atSeconds: performance.now() / 1_000, values: new Map(values) };
}

/** How many steps things go well, then ill, then well again. */
export const phases = { well: 24, faulty: 100, after: 60 } as const;

/**
 * What Prometheus would have stored, had the fault lasted for 25 minutes: counters go on as they did between two moments,
 * ages grow by a second each second, everything else stays. Series that vanished are stale. Then all is as before.
 */
export function timeline({ well, faulty, brokeAtSeconds }: Observed, instance = 'a:9464'): Series {
  const labelled = (name: string) => {
    const own = `instance="${instance}",job="marina"`;
    return name.endsWith('}') ? `${name.slice(0, -1)},${own}}` : `${name}{${own}}`;
  };
  const names = new Set([...well[1].values.keys(), ...(faulty?.[1].values.keys() ?? [])]);
  const series: Record<string, string> = {
    [labelled('up')]: [
      ...Array(phases.well).fill(1),
      ...Array(phases.faulty).fill(faulty === undefined ? 0 : 1),
      ...Array(phases.after).fill(1),
    ].join(' '),
  };
  for (const name of names) {
    const isCounter = /_(total|count|bucket|sum)(\{|$)/.test(name);
    const values: (number | undefined)[] = [];
    const add = (count: number, valueAt: (step: number) => number | undefined) => {
      for (let step = 1; step <= count; step += 1) values.push(valueAt(step));
    };
    const goesOn = ([first, last]: readonly [Sample, Sample], steps: number) => {
      const [before, now] = [first.values.get(name), last.values.get(name)];
      const perSecond = ((now ?? 0) - (before ?? 0)) / (last.atSeconds - first.atSeconds);
      if (isCounter) {
        const start = values.findLast((value) => value !== undefined) ?? 0;
        return add(steps, (step) => now && start + Math.max(0, perSecond) * step * stepSeconds);
      }
      const isAge = before !== undefined && perSecond > 0.8 && perSecond < 1.25;
      if (isAge) return add(steps, (step) => (now ?? 0) - last.atSeconds + brokeAtSeconds + step * stepSeconds);
      // A value that a metric had at one moment only is no state.
      const usual = well[1].values.get(name);
      return add(steps, () => (before === usual || now === usual ? usual : now));
    };
    goesOn(well, phases.well);
    if (faulty === undefined) values.push(...Array(phases.faulty).fill(undefined));
    else goesOn(faulty, phases.faulty);
    goesOn(well, phases.after);
    series[labelled(name)] = values
      .map((value, index) => value ?? (values[index - 1] === undefined ? '_' : 'stale'))
      .join(' ');
  }
  return series;
}
