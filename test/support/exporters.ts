import { join, resolve } from 'node:path';
import { sharedKeeper } from '../../src/sandbox/keeper.ts';
import { type PackageSet, unpackPackages } from '../../src/sandbox/packages.ts';
import { ready } from './eventually.ts';
import { temporaryFolder } from './folders.ts';
import { freePort } from './prometheus.ts';

const packages = ['prometheus-node-exporter', 'prometheus-mysqld-exporter'] as const;
const exporterPackages: PackageSet = {
  what: "Prometheus's exporters",
  choose: (existing) => packages.filter((name) => existing(name).includes(name)),
  programs: packages.map((name) => `usr/bin/${name}`),
  advice: `Install them (Debian, Ubuntu: sudo apt install ${packages.join(' ')}).`,
};

/** The ports of the exporters of Debian, of this machine and of a database server. They run until the test ends. */
export async function startExporters(databaseUrl: string): Promise<{ machine: number; database: number }> {
  const folder = resolve(process.env.MARINA_DATA_DIR || '.local', 'exporters');
  await unpackPackages(folder, exporterPackages);
  const { username, password, host } = new URL(databaseUrl);
  const source = `${decodeURIComponent(username)}:${decodeURIComponent(password)}@(${host})/`;
  const [machine, database] = [
    await start(join(folder, `usr/bin/${packages[0]}`), {}),
    await start(join(folder, `usr/bin/${packages[1]}`), { DATA_SOURCE_NAME: source }),
  ];
  return { machine, database };
}

async function start(program: string, env: Readonly<Record<string, string>>): Promise<number> {
  const port = await freePort();
  const folder = temporaryFolder();
  sharedKeeper().removeAtEnd(folder);
  await sharedKeeper().start({
    name: program,
    command: program,
    args: [`--web.listen-address=127.0.0.1:${port}`],
    env,
    logPath: join(folder, 'exporter.log'),
  });
  await ready(async () => {
    const answer = await fetch(`http://127.0.0.1:${port}/metrics`);
    if (answer.status !== 200) throw new Error(`not ready: ${answer.status}`);
  }, 20_000);
  return port;
}
