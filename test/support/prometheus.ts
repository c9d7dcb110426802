import { writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { sharedKeeper } from '../../src/sandbox/keeper.ts';
import { ready } from './eventually.ts';
import { temporaryFolder } from './folders.ts';
import { findPrometheus } from './promtool.ts';

export interface Target {
  /** The value of the label `instance`. */
  readonly instance: string;
  readonly job: string;
  readonly port: number;
}

/** A series of an answer. */
export interface Answered {
  readonly labels: Readonly<Record<string, string>>;
  readonly points: readonly (readonly [atSeconds: number, value: number])[];
}

/** A Prometheus that scrapes some targets each second. */
export interface RunningPrometheus {
  /** The values in a period, each `stepSeconds`. Throws what Prometheus says of a query that is none. */
  range(expression: string, from: number, to: number, stepSeconds: number): Promise<Answered[]>;
  stop(): Promise<void>;
}

export async function startPrometheus(targets: readonly Target[]): Promise<RunningPrometheus> {
  const program = await findPrometheus();
  const folder = temporaryFolder();
  sharedKeeper().removeAtEnd(folder);
  const config = join(folder, 'prometheus.json');
  const scraped = [...new Set(targets.map(({ job }) => job))].map((name) => ({
    job_name: name,
    static_configs: targets
      .filter(({ job }) => job === name)
      .map(({ instance, port }) => ({ targets: [`127.0.0.1:${port}`], labels: { instance } })),
  }));
  // JSON is YAML.
  writeFileSync(config, JSON.stringify({ global: { scrape_interval: '1s' }, scrape_configs: scraped }));
  const port = await freePort();
  const kept = await sharedKeeper().start({
    name: 'Prometheus',
    command: program,
    args: [
      ...['--config.file', config, '--storage.tsdb.path', join(folder, 'data')],
      ...['--web.listen-address', `127.0.0.1:${port}`],
    ],
    logPath: join(folder, 'prometheus.log'),
  });
  const url = `http://127.0.0.1:${port}`;
  await ready(async () => {
    const answer = await fetch(`${url}/-/ready`);
    if (answer.status !== 200) throw new Error(`not ready: ${answer.status}`);
  }, 20_000);
  return {
    async range(query, start, end, step) {
      const parameters = { query, start: String(start), end: String(end), step: String(step) };
      const answer = await fetch(`${url}/api/v1/query_range?${new URLSearchParams(parameters)}`);
      const body = (await answer.json()) as Body;
      if (body.status !== 'success') throw new Error(`${query}: ${body.error}`);
      return body.data.result.map(({ metric, values }) => ({
        labels: metric,
        points: values
          .map(([at, text]): [number, number] => [at, Number(text)])
          .filter(([, number]) => Number.isFinite(number)),
      }));
    },
    stop: async () => {
      await kept.stop();
    },
  };
}

interface Body {
  readonly status: string;
  readonly error?: string;
  readonly data: {
    readonly result: readonly {
      readonly metric: Record<string, string>;
      readonly values: readonly (readonly [number, string])[];
    }[];
  };
}

/** A port that nobody listens on now. */
export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      const port = typeof address === 'object' && address !== null ? address.port : 0;
      server.close(() => resolve(port));
    });
  });
}
