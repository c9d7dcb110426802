import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { sharedKeeper } from '../../src/sandbox/keeper.ts';
import { type PackageSet, unpackPackages } from '../../src/sandbox/packages.ts';
import { findInstalled } from '../../src/sandbox/programs.ts';
import { ready } from './eventually.ts';
import { temporaryFolder } from './folders.ts';
import { freePort } from './prometheus.ts';

const programs = { alertmanager: 'usr/bin/prometheus-alertmanager', amtool: 'usr/bin/amtool' } as const;

/** Debian's Alertmanager, some 11 MB, and the tool that checks its configuration. */
const alertmanagerPackages: PackageSet = {
  what: 'the Alertmanager',
  choose: (existing) => existing('prometheus-alertmanager').filter((name) => name === 'prometheus-alertmanager'),
  programs: Object.values(programs),
  advice: 'Install the Alertmanager (Debian, Ubuntu: sudo apt install prometheus-alertmanager).',
};

/** Where Debian's program looks for its templates, and the same folder of packages that are unpacked elsewhere. */
const share = 'usr/share/prometheus';
const workingFolder = '/proc/self/cwd';

interface Programs {
  readonly alertmanager: string;
  readonly amtool: string;
  /** The folder that the Alertmanager must be started in, if it matters. */
  readonly cwd?: string;
}

/** The installed programs, else the distribution's, unpacked next to the sandbox's data. */
async function findAlertmanager(): Promise<Programs> {
  const installed = findInstalled(['prometheus-alertmanager', 'alertmanager'])?.path;
  const tool = findInstalled(['amtool'])?.path;
  if (installed !== undefined && tool !== undefined) return { alertmanager: installed, amtool: tool };
  const folder = resolve(process.env.MARINA_DATA_DIR || '.local', 'alertmanager');
  await unpackPackages(folder, alertmanagerPackages);
  const copy = join(temporaryFolder(), 'alertmanager');
  sharedKeeper().removeAtEnd(dirname(copy));
  // Debian's program has the path of its templates in it. The copy's path is as long and leads to where it is started.
  const bytes = readFileSync(join(folder, programs.alertmanager)).toString('latin1');
  const path = workingFolder.padEnd(share.length + 1, '/');
  writeFileSync(copy, bytes.replaceAll(`/${share}`, path), { encoding: 'latin1', mode: 0o755 });
  return { alertmanager: copy, amtool: join(folder, programs.amtool), cwd: join(folder, share) };
}

/** Runs amtool on a configuration and returns its output. */
export async function checkConfig(file: string): Promise<string> {
  const { amtool } = await findAlertmanager();
  return execFileSync(amtool, ['check-config', file], { encoding: 'utf8' });
}

export type Labels = Readonly<Record<string, string>>;

/** An Alertmanager that runs with a configuration. */
export interface RunningAlertmanager {
  /** Posts alerts, and returns those that it does not mute. */
  unmuted(alerts: readonly Labels[]): Promise<Labels[]>;
  stop(): Promise<void>;
}

export async function startAlertmanager(file: string): Promise<RunningAlertmanager> {
  const { alertmanager, cwd } = await findAlertmanager();
  const folder = temporaryFolder();
  sharedKeeper().removeAtEnd(folder);
  const port = await freePort();
  const listen = ['--web.listen-address', `127.0.0.1:${port}`, '--cluster.listen-address='];
  const kept = await sharedKeeper().start({
    name: 'the Alertmanager',
    command: alertmanager,
    args: ['--config.file', resolve(file), '--storage.path', join(folder, 'data'), ...listen],
    logPath: join(folder, 'alertmanager.log'),
    ...(cwd === undefined ? {} : { cwd }),
  });
  const url = `http://127.0.0.1:${port}`;
  await ready(async () => {
    const answer = await fetch(`${url}/-/ready`);
    if (answer.status !== 200) throw new Error(`not ready: ${answer.status}`);
  }, 20_000);
  const read = async () => {
    const answer = await fetch(`${url}/api/v2/alerts`);
    return (await answer.json()) as { readonly labels: Labels; readonly status: { readonly state: string } }[];
  };
  return {
    async unmuted(alerts) {
      const answer = await fetch(`${url}/api/v2/alerts`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(alerts.map((labels) => ({ labels }))),
      });
      if (answer.status !== 200) throw new Error(`${answer.status} ${await answer.text()}`);
      const processed = await ready(async () => {
        const found = await read();
        const pending = found.filter(({ status }) => status.state === 'unprocessed');
        if (found.length < alerts.length || pending.length > 0) {
          throw new Error(`${found.length} of ${alerts.length} alerts, ${pending.length} unprocessed`);
        }
        return found;
      }, 30_000);
      return processed.filter(({ status }) => status.state === 'active').map(({ labels }) => labels);
    },
    stop: async () => {
      await kept.stop();
    },
  };
}
