import { execFile } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readFileSync, realpathSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { sharedKeeper } from '../../src/sandbox/keeper.ts';
import { ready } from './eventually.ts';

const run = promisify(execFile);
const manager = ['/usr/lib/systemd/systemd', '/lib/systemd/systemd'].find(existsSync);
const namespaces = ['--pid', '--fork', '--mount', '--ipc', '--uts', '--cgroup', '--mount-proc', '--kill-child'];
/** Units that others depend on; those of this machine are not read. */
const targets = ['sysinit', 'basic', 'shutdown', 'network-online', 'multi-user'];

/** A systemd of a test's own, with its own units, processes and folders, on the network of this machine. */
export interface Systemd {
  systemctl(...args: string[]): Promise<string>;
  /** Runs a command where its services run. */
  inside(...command: string[]): Promise<string>;
  stop(): Promise<void>;
}

/** Why none can be started here; undefined: one can. */
export async function missingForSystemd(): Promise<string | undefined> {
  if (manager === undefined) return 'there is no systemd';
  if (process.getuid?.() !== 0) return 'systemd needs root to start services';
  const script =
    'mount -t cgroup2 cgroup2 /sys/fs/cgroup && mkdir /sys/fs/cgroup/marina-test && rmdir /sys/fs/cgroup/marina-test';
  return run('unshare', [...namespaces, 'sh', '-ec', script]).then(
    () => undefined,
    (error: Error) => `systemd gets no control groups of its own: ${error.message.split('\n')[1]}`,
  );
}

/** The files that a test puts onto the machine before systemd starts. */
export interface Machine {
  /** A folder for its files, not in memory. */
  readonly folder: string;
  readonly units: Readonly<Record<string, string>>;
  /** A user of services. */
  readonly user: string;
  /** Folders of this machine, by where they are to be. */
  readonly mounts: Readonly<Record<string, string>>;
  /** Files below /etc. */
  readonly files: Readonly<Record<string, string>>;
}

/** Starts systemd as the first process of a namespace. Of this machine it can change nothing but its own folders. */
export async function startSystemd({ folder, units, user, mounts, files }: Machine): Promise<Systemd> {
  for (const name of ['units', 'etc', 'etc.work', 'bin', 'bin.work']) mkdirSync(join(folder, name));
  for (const name of targets) writeFileSync(join(folder, 'units', `${name}.target`), '[Unit]\nDescription=Empty\n');
  for (const [name, text] of Object.entries(units)) writeFileSync(join(folder, 'units', name), text);
  for (const name of ['passwd', 'group']) {
    const line = name === 'passwd' ? `${user}:x:64242:64242::/nonexistent:/usr/sbin/nologin` : `${user}:x:64242:`;
    writeFileSync(join(folder, 'etc', name), `${readFileSync(`/etc/${name}`, 'utf8').trimEnd()}\n${line}\n`);
  }
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(join(folder, 'etc', name, '..'), { recursive: true });
    writeFileSync(join(folder, 'etc', name), text, { mode: 0o600 });
  }
  // Where the unit expects it.
  cpSync(realpathSync(process.execPath), join(folder, 'bin/node'));
  const overlay = (over: string, name: string) =>
    `mount -t overlay -o lowerdir=${over},upperdir=${folder}/${name},workdir=${folder}/${name}.work overlay ${over}`;
  const script = [
    `mkdir -p ${Object.keys(mounts)
      .map((place) => join(folder, 'root', place))
      .join(' ')}`,
    overlay('/etc', 'etc'),
    overlay('/usr/bin', 'bin'),
    'umount -R /sys/fs/cgroup 2>/dev/null || true',
    'mount -t cgroup2 cgroup2 /sys/fs/cgroup',
    'mount -t tmpfs tmpfs /run',
    'mkdir -p /run/units',
    `mount --bind ${folder}/units /run/units`,
    'mount -t tmpfs tmpfs /opt',
    ...Object.entries(mounts).flatMap(([place, source]) => [`mkdir -p ${place}`, `mount --bind ${source} ${place}`]),
    'mount -t tmpfs tmpfs /tmp',
    'mount -t tmpfs tmpfs /var/tmp',
    'mount -o remount,bind,ro /',
    `exec env -i container=marina-test SYSTEMD_UNIT_PATH=/run/units ${manager} --system --unit=multi-user.target --log-target=console --log-level=warning`,
  ].join('\n');
  const kept = await sharedKeeper().start({
    name: 'systemd',
    command: 'unshare',
    args: [...namespaces, 'sh', '-ec', script],
    logPath: join(folder, 'systemd.log'),
  });
  const first = await ready(() => {
    const [pid] = readFileSync(`/proc/${kept.pid}/task/${kept.pid}/children`, 'utf8').split(' ');
    if (!pid) throw new Error(readFileSync(kept.logPath, 'utf8'));
    return pid;
  }, 5_000);
  const inside: Systemd['inside'] = async (...command) => {
    const { stdout } = await run('nsenter', [
      '--target',
      first,
      '--mount',
      '--pid',
      '--cgroup',
      '--ipc',
      '--uts',
      ...command,
    ]);
    return stdout;
  };
  const systemctl: Systemd['systemctl'] = (...args) => inside('systemctl', ...args);
  await ready(() => systemctl('is-active', 'multi-user.target'), 10_000);
  return { systemctl, inside, stop: async () => void (await kept.kill()) };
}
