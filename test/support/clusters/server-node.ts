import { cpSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { createConnection, type RowDataPacket } from 'mysql2/promise';
import { lastLines } from '../../../src/sandbox/exits.ts';
import { type KeptProcess, sharedKeeper } from '../../../src/sandbox/keeper.ts';
import type { Program } from '../../../src/sandbox/programs.ts';
import { ready } from '../eventually.ts';
import { execute } from '../servers.ts';
import type { Machine } from './network.ts';

const readyWithinMs = 60_000;

/** Three database servers with the same data. They end with this process. */
export interface ServerCluster {
  readonly name: string;
  readonly nodes: readonly [ServerNode, ServerNode, ServerNode];
  /** Whether each node takes writes, and tables can be changed at any. */
  readonly takesWritesEverywhere: boolean;
  /** Why no node can be cut off from the others. Undefined: it can. */
  readonly whyNoNetwork: string | undefined;
  /** Makes gateways that know all nodes write through this one, while the former one lives. `until` they do. */
  makeWriter(node: ServerNode, until: () => Promise<void>): Promise<void>;
  /** Whether gateways write through it now, as it says itself. Not if it does not answer. */
  isWriter(node: ServerNode): Promise<boolean>;
  /** Kills those that run, and starts all, first the one that has everything. */
  startAll(): Promise<void>;
  /** Ends it as a crash would. */
  stop(): Promise<void>;
}

/** One server of a cluster. */
export abstract class ServerNode {
  #process: KeptProcess | undefined;
  #wasKilled = false;

  constructor(
    readonly machine: Machine,
    protected readonly program: Program,
    protected readonly folder: string,
    /** An administrator's mysql:// URL without a database. */
    readonly url: string,
  ) {}

  /** Starts it, also after a kill, and waits until it takes part. `isFirst`: no other node runs. */
  abstract start(options?: { isFirst?: boolean }): Promise<void>;

  /** The node's own name for its state; `takesPart` is the name for a node that has all data and takes part. */
  abstract state(): Promise<string>;
  /** Gives it the data of the cluster's beginning, while it does not run. It gets what it lacks when it joins. */
  abstract wipe(): void;
  protected abstract readonly takesPart: string;

  /** Where clients reach it, as in `127.0.0.1:3306`. */
  get host(): string {
    return new URL(this.url).host;
  }

  get port(): number {
    return Number(new URL(this.url).port);
  }

  get runs(): boolean {
    return this.#process !== undefined;
  }

  protected get wasKilled(): boolean {
    return this.#wasKilled;
  }

  protected get logPath(): string {
    return join(this.folder, 'server.log');
  }

  protected get data(): string {
    return join(this.folder, 'data');
  }

  protected async launch(args: readonly string[], env = this.program.env): Promise<void> {
    this.#process = await sharedKeeper().start({
      name: 'a database server of a cluster',
      ...this.machine.command(this.program.path, args),
      env,
      logPath: this.logPath,
      stopSignal: 'SIGKILL',
    });
  }

  async untilItTakesPart(): Promise<void> {
    await ready(async () => {
      const state = await this.state().catch((error: unknown) => String(error));
      if (state !== this.takesPart) throw new Error(`the node is ${state}:\n${lastLines(this.logPath)}`);
    }, readyWithinMs);
  }

  async ask(sql: string, withinMs = 10_000): Promise<RowDataPacket[]> {
    const connection = await createConnection({ uri: this.url, connectTimeout: 2_000 });
    try {
      return (await connection.query<RowDataPacket[]>({ sql, timeout: withinMs }))[0];
    } finally {
      connection.destroy();
    }
  }

  execute(sql: string): Promise<void> {
    return execute(this.url, sql);
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

  /** Gives it, while it does not run, the data of another folder in place of its own. */
  replaceData(folder: string): void {
    rmSync(this.data, { recursive: true, force: true });
    cpSync(folder, this.data, { recursive: true });
    this.#wasKilled = false;
  }
}

/** The hosts of a cluster as a database's URL names them. */
export function hostsOf({ nodes }: ServerCluster): string {
  return nodes.map(({ host }) => host).join(',');
}
