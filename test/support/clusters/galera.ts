import { cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { explain } from '../../../src/sandbox/advice.ts';
import { lastLines } from '../../../src/sandbox/exits.ts';
import { sharedKeeper } from '../../../src/sandbox/keeper.ts';
import { startMariaDb } from '../../../src/sandbox/mariadb.ts';
import { serverArguments } from '../../../src/sandbox/mariadb-data.ts';
import { galeraLibrary, galeraPackages } from '../../../src/sandbox/packages.ts';
import { freePort } from '../../../src/sandbox/ports.ts';
import { findUnpacked, type Program } from '../../../src/sandbox/programs.ts';
import { temporaryFolder } from '../folders.ts';
import { execute } from '../servers.ts';
import { type Machine, oneMachine, TestNetwork } from './network.ts';
import { type ServerCluster, ServerNode } from './server-node.ts';

interface Options {
  /** Further arguments of the servers. */
  readonly further?: readonly string[];
  /** Whether each node gets a machine of its own, if that can be. */
  readonly apart?: boolean;
}

/** Three MariaDB servers with Galera, each of which takes writes. */
export class GaleraCluster implements ServerCluster {
  readonly name = 'Galera';
  readonly takesWritesEverywhere = true;

  private constructor(
    readonly nodes: readonly [GaleraNode, GaleraNode, GaleraNode],
    private readonly network: TestNetwork | string,
  ) {}

  /** Starts one, or says why there can be none here. */
  static async start({ further = [], apart = false }: Options = {}): Promise<GaleraCluster | string> {
    let program: Program;
    try {
      program = await findUnpacked(['mariadbd'], { packages: galeraPackages });
    } catch (error) {
      return explain(error);
    }
    const folder = temporaryFolder();
    sharedKeeper().removeAtEnd(folder);
    const place = (index: number) => join(folder, `node${index + 1}`);
    const single = await startMariaDb({
      dataDir: place(0),
      server: 'mariadb',
      packages: galeraPackages,
      source: 'packages',
    });
    await makeAdministrator(single.url);
    await single.stop();
    const network = apart ? await TestNetwork.start(3) : 'all nodes are on this machine';
    const machines = typeof network === 'string' ? [0, 1, 2].map(() => oneMachine(network)) : network.machines;
    const places = await Promise.all(
      machines.map(async (machine) => ({ machine, group: await freePort(), transfer: await freePort() })),
    );
    const addresses = places.map(({ machine, group }) => `${machine.peers}:${group}`);
    const options = [`--wsrep-cluster-address=gcomm://${addresses.join(',')}`, ...further];
    const nodes: GaleraNode[] = [];
    for (const [index, { machine, ...ports }] of places.entries()) {
      const url = administratorUrl(single.url, machine, await freePort());
      nodes.push(new GaleraNode(machine, program, place(index), url, ports, options, join(folder, 'base')));
    }
    const cluster = new GaleraCluster(nodes as [GaleraNode, GaleraNode, GaleraNode], network);
    const [first, ...others] = cluster.nodes;
    // A node that has been in the cluster alone is copied, so that none needs to receive all data from another.
    await first.start({ isFirst: true });
    await first.stop();
    for (const copy of [...others.map((_, index) => join(place(index + 1), 'data')), join(folder, 'base')]) {
      cpSync(join(place(0), 'data'), copy, { recursive: true });
    }
    await first.start({ isFirst: true });
    for (const node of others) await node.start();
    return cluster;
  }

  get whyNoNetwork(): string | undefined {
    return typeof this.network === 'string' ? this.network : undefined;
  }

  async makeWriter(node: ServerNode, until: () => Promise<void>): Promise<void> {
    const others = this.nodes.filter((each) => each !== node && each.runs);
    for (const other of others) await other.execute('SET GLOBAL read_only = ON');
    await until();
    for (const other of others) await other.execute('SET GLOBAL read_only = OFF');
  }

  async isWriter(node: ServerNode): Promise<boolean> {
    const [found] = await node
      .ask(
        "SELECT table_schema AS name FROM information_schema.tables WHERE table_name = 'writer' ORDER BY create_time DESC",
      )
      .catch(() => []);
    if (found === undefined) return false;
    const [row] = await node.ask(`SELECT node FROM ${found.name}.writer`);
    return String(row?.node).endsWith(`:${node.port}`);
  }

  async startAll(): Promise<void> {
    await Promise.all(this.nodes.map((node) => node.kill()));
    const positions = await Promise.all(this.nodes.map((node) => node.position()));
    const numbers = positions.map((position) => Number(position.split(':').at(-1)));
    const first = this.nodes[numbers.indexOf(Math.max(...numbers))];
    await first?.start({ isFirst: true });
    for (const node of this.nodes) if (node !== first) await node.start();
  }

  async stop(): Promise<void> {
    await Promise.all(this.nodes.map((node) => node.kill()));
    if (typeof this.network !== 'string') await this.network.stop();
  }
}

/** Makes the administrator whom nodes let in from every machine. */
export async function makeAdministrator(serverUrl: string): Promise<void> {
  await execute(serverUrl, `CREATE USER 'root'@'%' IDENTIFIED BY '${new URL(serverUrl).password}'`);
  await execute(serverUrl, "GRANT ALL PRIVILEGES ON *.* TO 'root'@'%' WITH GRANT OPTION");
}

export function administratorUrl(serverUrl: string, { clients }: Machine, port: number): string {
  return Object.assign(new URL(serverUrl), { hostname: clients, port: String(port) }).href.replace(/\/$/, '');
}

/** One server of a Galera cluster. */
class GaleraNode extends ServerNode {
  protected readonly takesPart = 'Synced';

  constructor(
    machine: Machine,
    program: Program,
    folder: string,
    url: string,
    private readonly ports: { readonly group: number; readonly transfer: number },
    private readonly options: readonly string[],
    /** The data with which the cluster began. */
    private readonly base: string,
  ) {
    super(machine, program, folder, url);
  }

  async start({ isFirst = false }: { isFirst?: boolean } = {}): Promise<void> {
    const state = join(this.data, 'grastate.dat');
    if (isFirst && existsSync(state)) {
      writeFileSync(state, readFileSync(state, 'utf8').replace('safe_to_bootstrap: 0', 'safe_to_bootstrap: 1'));
    }
    writeTransferScript(join(this.folder, 'bin'));
    const position = this.wasKilled ? await this.position() : undefined;
    const { group, transfer } = this.ports;
    const { peers } = this.machine;
    const provider = [
      `gmcast.listen_addr=tcp://${peers}:${group}`,
      `ist.recv_addr=${peers}:${transfer}`,
      'gcache.size=64M',
      'evs.keepalive_period=PT0.5S',
      'evs.suspect_timeout=PT3S',
      'evs.inactive_timeout=PT6S',
      'evs.install_timeout=PT6S',
    ];
    await this.launch(
      [
        ...this.#arguments(),
        `--wsrep-provider-options=${provider.join(';')}`,
        `--wsrep-node-address=${peers}:${group}`,
        '--wsrep-slave-threads=4',
        ...(position === undefined ? [] : [`--wsrep-start-position=${position}`]),
        ...(isFirst ? ['--wsrep-new-cluster'] : []),
      ],
      { ...this.program.env, PATH: [join(this.folder, 'bin'), process.env.PATH].join(delimiter) },
    );
    await this.untilItTakesPart();
  }

  async state(): Promise<string> {
    const [row] = await this.ask("SHOW STATUS LIKE 'wsrep_local_state_comment'");
    return String(row?.Value);
  }

  wipe(): void {
    this.replaceData(this.base);
  }

  /** The last commit that its data have, while it does not run. */
  async position(): Promise<string> {
    const logPath = join(this.folder, 'recover.log');
    const args = [...this.#arguments(), '--wsrep-recover', '--skip-networking'];
    await sharedKeeper().run({ name: 'recovering', command: this.program.path, args, env: this.program.env, logPath });
    const position = /Recovered position: *(\S+)/.exec(readFileSync(logPath, 'utf8'))?.[1];
    if (position === undefined) throw new Error(`no position was recovered:\n${lastLines(logPath)}`);
    return position;
  }

  #arguments(): string[] {
    return [
      ...serverArguments(this.program, this.data),
      `--port=${this.port}`,
      `--bind-address=${this.machine.clients === '127.0.0.1' ? '127.0.0.1' : '0.0.0.0'}`,
      `--socket=${join(this.folder, 'sock')}`,
      `--pid-file=${join(this.folder, 'server.pid')}`,
      '--innodb-buffer-pool-size=64M',
      '--innodb-flush-log-at-trx-commit=2',
      '--innodb-doublewrite=OFF',
      '--innodb-autoinc-lock-mode=2',
      '--binlog-format=ROW',
      '--wsrep-on=ON',
      '--wsrep-sst-method=number',
      `--wsrep-provider=${join(this.program.base, '..', galeraLibrary)}`,
      ...this.options,
    ];
  }
}

/**
 * The program that a node runs when it joins. A joining node gets the writes that it misses from another one; this brings
 * the number of the last. Receiving all data again is not needed here, and fails.
 */
function writeTransferScript(folder: string): void {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'wsrep_sst_number'), transferScript, { mode: 0o755 });
}

const transferScript = `#!/bin/sh
while [ $# -gt 0 ]; do
  case "$1" in
    --role) role=$2; shift ;;
    --address) address=$2; shift ;;
    --datadir) data=$2; shift ;;
    --gtid) number=$2; shift ;;
    --bypass) bypass=1 ;;
    --mysqld-args) break ;;
  esac
  shift
done
if [ "$role" = joiner ]; then
  file=\${data%/}.number
  rm -f "$file"
  echo "ready 127.0.0.1:4444$file"
  tries=0
  while [ ! -s "$file" ] && [ $tries -lt 600 ]; do sleep 0.05; tries=$((tries + 1)); done
  cat "$file"
else
  [ -n "$bypass" ] || exit 1
  echo continue
  file=/\${address#*/}
  echo "$number" > "$file.new" && mv "$file.new" "$file"
  echo "done $number"
fi
`;
