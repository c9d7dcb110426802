import { cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { createConnection, type RowDataPacket } from 'mysql2/promise';
import { explain } from '../../src/dev/advice.ts';
import { lastLines } from '../../src/dev/exits.ts';
import { type KeptProcess, sharedKeeper } from '../../src/dev/keeper.ts';
import { startMariaDb } from '../../src/dev/mariadb.ts';
import { serverArguments } from '../../src/dev/mariadb-data.ts';
import { galeraLibrary, galeraPackages } from '../../src/dev/packages.ts';
import { freePort } from '../../src/dev/ports.ts';
import { findUnpacked, type Program } from '../../src/dev/programs.ts';
import { ready } from './eventually.ts';
import { temporaryFolder } from './folders.ts';

const readyWithinMs = 60_000;

/** Three MariaDB servers with the same data on 127.0.0.1, each of which takes writes. They end with this process. */
export class GaleraCluster {
  private constructor(readonly nodes: readonly GaleraNode[]) {}

  /** Starts one, or says why there can be none here. */
  static async start(further: readonly string[] = []): Promise<GaleraCluster | string> {
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
    await single.stop();
    const ports = await Promise.all(
      [1, 2, 3].map(async () => ({ group: await freePort(), transfer: await freePort() })),
    );
    const addresses = ports.map(({ group }) => `127.0.0.1:${group}`);
    const options = [`--wsrep-cluster-address=gcomm://${addresses.join(',')}`, ...further];
    const nodes: GaleraNode[] = [];
    for (const [index, { group, transfer }] of ports.entries()) {
      const port = await freePort();
      const url = Object.assign(new URL(single.url), { port: String(port) }).href.replace(/\/$/, '');
      nodes.push(new GaleraNode(program, place(index), { port, group, transfer }, url, options));
    }
    const [first, ...others] = nodes as [GaleraNode, ...GaleraNode[]];
    // A node that has been in the cluster alone is copied, so that none needs to receive all data from another.
    await first.start({ isFirst: true });
    await first.stop();
    for (const index of others.keys()) {
      cpSync(join(place(0), 'data'), join(place(index + 1), 'data'), { recursive: true });
    }
    await first.start({ isFirst: true });
    for (const node of others) await node.start();
    return new GaleraCluster(nodes);
  }

  /** Ends it as a crash would. */
  async stop(): Promise<void> {
    await Promise.all(this.nodes.map((node) => node.kill()));
  }
}

/** One server of a cluster. */
export class GaleraNode {
  #process: KeptProcess | undefined;
  #wasKilled = false;

  constructor(
    private readonly program: Program,
    private readonly folder: string,
    private readonly ports: { readonly port: number; readonly group: number; readonly transfer: number },
    /** An administrator's mysql:// URL without a database. */
    readonly url: string,
    private readonly options: readonly string[],
  ) {}

  get port(): number {
    return this.ports.port;
  }

  /** Starts it, also after a kill, and waits until it has all data. `isFirst`: no other node runs. */
  async start({ isFirst = false }: { isFirst?: boolean } = {}): Promise<void> {
    const state = join(this.folder, 'data', 'grastate.dat');
    if (isFirst && existsSync(state)) {
      writeFileSync(state, readFileSync(state, 'utf8').replace('safe_to_bootstrap: 0', 'safe_to_bootstrap: 1'));
    }
    writeTransferScript(join(this.folder, 'bin'));
    const position = this.#wasKilled ? await this.#recover() : undefined;
    const { group, transfer } = this.ports;
    const provider = [
      `gmcast.listen_addr=tcp://127.0.0.1:${group}`,
      `ist.recv_addr=127.0.0.1:${transfer}`,
      'gcache.size=64M',
      'evs.keepalive_period=PT0.5S',
      'evs.suspect_timeout=PT3S',
      'evs.inactive_timeout=PT6S',
      'evs.install_timeout=PT6S',
    ];
    this.#process = await sharedKeeper().start({
      name: 'MariaDB',
      command: this.program.path,
      args: [
        ...this.#arguments(),
        `--wsrep-provider-options=${provider.join(';')}`,
        `--wsrep-node-address=127.0.0.1:${group}`,
        '--wsrep-slave-threads=4',
        ...(position === undefined ? [] : [`--wsrep-start-position=${position}`]),
        ...(isFirst ? ['--wsrep-new-cluster'] : []),
      ],
      env: { ...this.program.env, PATH: [join(this.folder, 'bin'), process.env.PATH].join(delimiter) },
      logPath: join(this.folder, 'mariadb.log'),
      stopSignal: 'SIGKILL',
    });
    await this.untilSynced();
  }

  async untilSynced(): Promise<void> {
    await ready(async () => {
      const state = await this.state().catch((error: unknown) => String(error));
      if (state !== 'Synced') throw new Error(`the node is ${state}:\n${lastLines(join(this.folder, 'mariadb.log'))}`);
    }, readyWithinMs);
  }

  /** What it says of itself: `Synced` if it takes part. */
  async state(): Promise<string> {
    const connection = await createConnection({ uri: this.url, connectTimeout: 2_000 });
    try {
      const [rows] = await connection.query<RowDataPacket[]>("SHOW STATUS LIKE 'wsrep_local_state_comment'");
      return String(rows[0]?.Value);
    } finally {
      connection.destroy();
    }
  }

  /** Ends it as a crash would; the data stay. */
  async kill(): Promise<void> {
    await this.#process?.kill();
    this.#process = undefined;
    this.#wasKilled = true;
  }

  /** Ends it in order. */
  async stop(): Promise<void> {
    if (this.#process === undefined) return;
    process.kill(this.#process.pid, 'SIGTERM');
    const { code } = await this.#process.wait();
    this.#process = undefined;
    this.#wasKilled = code !== 0;
  }

  /** Stops it in the middle of what it does, until `thaw`. */
  freeze(): void {
    if (this.#process !== undefined) process.kill(this.#process.pid, 'SIGSTOP');
  }

  thaw(): void {
    if (this.#process !== undefined) process.kill(this.#process.pid, 'SIGCONT');
  }

  /** The last commit that its data have. */
  async #recover(): Promise<string> {
    const logPath = join(this.folder, 'recover.log');
    const args = [...this.#arguments(), '--wsrep-recover', '--skip-networking'];
    await sharedKeeper().run({ name: 'recovering', command: this.program.path, args, env: this.program.env, logPath });
    const position = /Recovered position: *(\S+)/.exec(readFileSync(logPath, 'utf8'))?.[1];
    if (position === undefined) throw new Error(`no position was recovered:\n${lastLines(logPath)}`);
    return position;
  }

  #arguments(): string[] {
    return [
      ...serverArguments(this.program, join(this.folder, 'data')),
      `--port=${this.ports.port}`,
      '--bind-address=127.0.0.1',
      `--socket=${join(this.folder, 'sock')}`,
      `--pid-file=${join(this.folder, 'mariadb.pid')}`,
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
 * the number of the last. Receiving all data anew is not needed here, and fails.
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
