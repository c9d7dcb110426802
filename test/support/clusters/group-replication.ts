import { cpSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { explain } from '../../../src/sandbox/advice.ts';
import { sharedKeeper } from '../../../src/sandbox/keeper.ts';
import { findAsked, startMariaDb } from '../../../src/sandbox/mariadb.ts';
import { serverArguments } from '../../../src/sandbox/mariadb-data.ts';
import { freePort } from '../../../src/sandbox/ports.ts';
import type { Program } from '../../../src/sandbox/programs.ts';
import { eventually, ready } from '../eventually.ts';
import { temporaryFolder } from '../folders.ts';
import { patient } from '../patience.ts';
import { administratorUrl, makeAdministrator } from './galera.ts';
import { type Machine, oneMachine, TestNetwork } from './network.ts';
import { type ServerCluster, ServerNode } from './server-node.ts';

const group = '8a94f357-aab4-11df-86ab-c80aa9420000';

interface Options {
  /** Further arguments of the servers. */
  readonly further?: readonly string[];
  /** Whether each member gets a machine of its own, if that can be. */
  readonly apart?: boolean;
}

/** Three MySQL servers of a group, one of which is the primary and takes writes. */
export class GroupCluster implements ServerCluster {
  readonly name = 'Group Replication';
  readonly takesWritesEverywhere = false;

  private constructor(
    readonly nodes: readonly [GroupMember, GroupMember, GroupMember],
    private readonly network: TestNetwork | string,
  ) {}

  /** Starts one, or says why there can be none here. */
  static async start({ further = [], apart = false }: Options = {}): Promise<GroupCluster | string> {
    let program: Program;
    try {
      program = await findAsked('mysql', { source: 'packages' });
    } catch (error) {
      return explain(error);
    }
    const folder = temporaryFolder();
    sharedKeeper().removeAtEnd(folder);
    const place = (index: number) => join(folder, `member${index + 1}`);
    const single = await startMariaDb({ dataDir: place(0), server: 'mysql', source: 'packages' });
    await makeAdministrator(single.url);
    await single.stop();
    // A server makes the file with its identity again.
    rmSync(join(place(0), 'data', 'auto.cnf'));
    for (const copy of [join(place(1), 'data'), join(place(2), 'data'), join(folder, 'base')]) {
      cpSync(join(place(0), 'data'), copy, { recursive: true });
    }
    const network = apart ? await TestNetwork.start(3) : 'all members are on this machine';
    const machines = typeof network === 'string' ? [0, 1, 2].map(() => oneMachine(network)) : network.machines;
    const places = await Promise.all(machines.map(async (machine) => ({ machine, port: await freePort() })));
    const seeds = places.map(({ machine, port }) => `${machine.peers}:${port}`);
    const nodes: GroupMember[] = [];
    for (const [index, { machine }] of places.entries()) {
      const url = administratorUrl(single.url, machine, await freePort());
      const options = [
        `--server-id=${index + 1}`,
        `--group-replication-local-address=${seeds[index]}`,
        `--group-replication-group-seeds=${seeds.join(',')}`,
        ...further,
      ];
      nodes.push(new GroupMember(machine, program, place(index), url, options, join(folder, 'base')));
    }
    const cluster = new GroupCluster(nodes as [GroupMember, GroupMember, GroupMember], network);
    const [first, ...others] = cluster.nodes;
    await first.start({ isFirst: true });
    for (const node of others) await node.start();
    return cluster;
  }

  get whyNoNetwork(): string | undefined {
    return typeof this.network === 'string' ? this.network : undefined;
  }

  async makeWriter(node: ServerNode, until: () => Promise<void>): Promise<void> {
    const [own] = await node.ask('SELECT @@server_uuid AS id');
    // It waits for what the old primary has begun.
    await node.ask(`SELECT group_replication_set_as_primary('${own?.id}')`, patient(60_000));
    await until();
  }

  async isWriter(node: ServerNode): Promise<boolean> {
    const rows = await node
      .ask(
        `SELECT 1 FROM performance_schema.replication_group_members
         WHERE member_id = @@server_uuid AND member_state = 'ONLINE' AND member_role = 'PRIMARY'`,
      )
      .catch(() => []);
    return rows.length > 0;
  }

  async startAll(): Promise<void> {
    await Promise.all(this.nodes.map((node) => node.kill()));
    const [first, ...others] = this.nodes;
    // The transactions each node has executed decide which node may begin, so all are asked first.
    for (const node of this.nodes) await node.startAlone();
    const executed = await Promise.all(this.nodes.map((node) => node.executed()));
    let ahead: GroupMember = first;
    for (const [index, node] of others.entries()) {
      const [row] = await node.ask(
        `SELECT GTID_SUBSET('${executed[this.nodes.indexOf(ahead)]}', '${executed[index + 1]}') AS isAhead`,
      );
      if (Number(row?.isAhead) === 1) ahead = node;
    }
    await ahead.joinGroup({ isFirst: true });
    for (const node of this.nodes) if (node !== ahead) await node.joinGroup();
  }

  async stop(): Promise<void> {
    await Promise.all(this.nodes.map((node) => node.kill()));
    if (typeof this.network !== 'string') await this.network.stop();
  }
}

/** One server of a group. */
class GroupMember extends ServerNode {
  protected readonly takesPart = 'ONLINE';

  constructor(
    machine: Machine,
    program: Program,
    folder: string,
    url: string,
    private readonly options: readonly string[],
    /** The data with which the group began. */
    private readonly base: string,
  ) {
    super(machine, program, folder, url);
  }

  async start(options: { isFirst?: boolean } = {}): Promise<void> {
    await this.startAlone();
    await this.joinGroup(options);
  }

  /** Starts the server; it is not a member yet. */
  async startAlone(): Promise<void> {
    const { peers, clients } = this.machine;
    await this.launch([
      ...serverArguments(this.program, this.data).filter((each) => !each.includes('log-bin')),
      `--port=${this.port}`,
      `--bind-address=${clients === '127.0.0.1' ? '127.0.0.1' : '0.0.0.0'}`,
      `--report-host=${peers}`,
      `--socket=${join(this.folder, 'sock')}`,
      `--pid-file=${join(this.folder, 'server.pid')}`,
      '--performance-schema=ON',
      '--innodb-buffer-pool-size=64M',
      '--innodb-flush-log-at-trx-commit=2',
      '--sync-binlog=0',
      '--innodb-doublewrite=OFF',
      '--log-bin=binlog',
      '--gtid-mode=ON',
      '--enforce-gtid-consistency=ON',
      '--super-read-only=ON',
      '--plugin-load-add=group_replication.so',
      '--group-replication-start-on-boot=OFF',
      `--group-replication-group-name=${group}`,
      '--group-replication-ip-allowlist=127.0.0.0/8,10.0.0.0/8',
      '--group-replication-recovery-get-public-key=ON',
      '--group-replication-member-expel-timeout=0',
      '--group-replication-unreachable-majority-timeout=10',
      ...this.options,
    ]);
    await ready(() => this.ask('DO 1'), 60_000);
  }

  async joinGroup({ isFirst = false }: { isFirst?: boolean } = {}): Promise<void> {
    const { password } = new URL(this.url);
    await this.execute(
      `CHANGE REPLICATION SOURCE TO SOURCE_USER = 'root', SOURCE_PASSWORD = '${password}' FOR CHANNEL 'group_replication_recovery'`,
    );
    if (isFirst) await this.execute('SET GLOBAL group_replication_bootstrap_group = ON');
    // The others refuse it until they have given up the one that it was before.
    await eventually(() => this.execute('START GROUP_REPLICATION'), 60_000);
    if (isFirst) await this.execute('SET GLOBAL group_replication_bootstrap_group = OFF');
    await this.untilItTakesPart();
  }

  async state(): Promise<string> {
    const [own] = await this.ask(
      'SELECT member_state AS state FROM performance_schema.replication_group_members WHERE member_id = @@server_uuid',
    );
    return String(own?.state);
  }

  /** Everything that it has: what it has done, and what it has got from others and not done yet. */
  async executed(): Promise<string> {
    const [row] = await this.ask(
      `SELECT CONCAT(@@gtid_executed, ',', received_transaction_set) AS executed
       FROM performance_schema.replication_connection_status WHERE channel_name = 'group_replication_applier'`,
    );
    return String(row?.executed).replaceAll('\n', '');
  }

  wipe(): void {
    this.replaceData(this.base);
  }
}
