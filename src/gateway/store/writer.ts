import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from '../../kit/log.ts';
import { Refusal } from '../../kit/refusal.ts';
import { periodic, type Worker } from '../../kit/worker.ts';
import { isGuardFalse, isNotWriter, isRetryable, lacksRight } from './errors.ts';
import { guard, type SqlRow, type Statement, statement, toBigInt } from './statement.ts';

/** How often a gateway shows that it writes through its node. */
const beatEveryMs = 1_000;
/** Without a sign for so long, nobody writes through the other node any more. By this process's own clock. */
const quietMs = 5_000;
/** How long a process that starts waits to be the writer: for the quiet, and what it takes to see and end it. */
const settleMs = 2 * quietMs;

/** A node of a cluster, through one connection. */
export interface ClusterNode {
  readonly name: string;
  ask(query: Statement): Promise<SqlRow[]>;
  /** One transaction. It fails unless gateways write through this node. */
  write(statements: readonly Statement[]): Promise<void>;
  writeUnchecked(statements: readonly Statement[]): Promise<void>;
}

/** What a look at a node found: whether gateways write through it, and if not, through which one. */
export interface NodeStanding {
  readonly isWriter: boolean;
  readonly node: string;
  readonly writer: string;
}

/**
 * Keeps all gateways writing through one node of a Galera cluster. Each transaction checks that its node is the one in the
 * table `writer` (`gateway/store/transaction`), so a gateway that an old address or proxy leads elsewhere is refused. When no gateway has
 * written through that node for five seconds, another node takes its place.
 */
export class WriterNode {
  readonly worker: Worker;
  #seen: { readonly sign: string; readonly atMs: number } | undefined;
  #said = '';

  constructor(
    private readonly database: {
      atNode<T>(work: (node: ClusterNode) => Promise<T>): Promise<T | undefined>;
      /** Gateways write through this node: a write that began at `beganAt` was committed there. */
      keepTo(node: string, beganAt: number): void;
    },
    private readonly log?: Logger,
    private readonly now: () => number = () => performance.now(),
  ) {
    this.worker = periodic('writer', beatEveryMs, async () => {
      try {
        await this.renew();
      } catch (error) {
        // A database that is away has its own report.
        if (!(error instanceof Refusal)) throw error;
      }
    });
  }

  /**
   * Shows that this process writes, takes the place of a node that nobody writes through, or finds that it may not write.
   * Undefined: the server is no node of a cluster in which each takes writes.
   */
  async renew(): Promise<NodeStanding | undefined> {
    try {
      const beganAt = this.now();
      const standing = await this.database.atNode((node) => this.#renewAt(node));
      if (standing !== undefined) this.#say(standing);
      // Reads go on there (`ReadLease`). A proxy that moved leaves old connections to the former node, which would go on reading there.
      if (standing?.isWriter) this.database.keepTo(standing.node, beganAt);
      return standing;
    } catch (error) {
      const cause = (error as Error).cause ?? error;
      // Another gateway was quicker, which the next call shows.
      if (lacksRight(cause)) throw error;
      if (!isNotWriter(cause) && !isGuardFalse(cause) && !isRetryable(cause)) throw error;
      return { isWriter: false, node: 'of this connection', writer: 'another one' };
    }
  }

  /** Waits until this process may write. Throws if gateways write through another node. */
  async settle(): Promise<void> {
    const end = this.now() + settleMs;
    for (;;) {
      const standing = await this.renew();
      if (standing === undefined || standing.isWriter) return;
      if (this.now() > end) {
        const { node, writer } = standing;
        throw new Error(`the database's node ${node} takes no writes of gateways, which write through ${writer}`);
      }
      await delay(250);
    }
  }

  async #renewAt(node: ClusterNode): Promise<NodeStanding> {
    const [row] = await node.ask(standingOf);
    if (row === undefined)
      throw new Error('the table writer has lost its row: restore it from a backup of this database');
    const writer = String(row.node);
    const standing = { node: node.name, writer, isWriter: writer === node.name };
    if (standing.isWriter) {
      this.#seen = undefined;
      await node.write([beat]);
      return standing;
    }
    const [fence, beats] = [toBigInt(row.fence), toBigInt(row.beat)];
    if (writer !== '' && !this.#isQuiet(`${fence} ${beats}`)) return standing;
    await node.writeUnchecked(takeOver(node.name, fence, beats));
    this.#seen = undefined;
    return { ...standing, isWriter: true };
  }

  /** Whether no gateway has shown for long enough that it writes through the other node. */
  #isQuiet(sign: string): boolean {
    if (this.#seen?.sign !== sign) this.#seen = { sign, atMs: this.now() };
    return this.now() - this.#seen.atMs >= quietMs;
  }

  #say({ isWriter, node, writer }: NodeStanding): void {
    const said = isWriter ? node : `${node} ${writer}`;
    if (said === this.#said) return;
    this.#said = said;
    if (isWriter)
      this.log?.info({ node, former: writer === node ? undefined : writer }, 'gateways write through this node');
    else this.log?.warn({ node, writer }, 'this node takes no writes: gateways write through another one');
  }
}

const standingOf = statement(
  'SELECT w.node, w.fence, b.beat FROM writer w JOIN writer_beats b ON b.id = w.id WHERE w.id = 1',
);

const beat = statement('UPDATE writer_beats SET beat = beat + 1 WHERE id = 1');

/** Fails if a gateway has shown meanwhile that it writes. At another node that is found when both are committed. */
function takeOver(node: string, fence: bigint, beats: bigint): Statement[] {
  return [
    guard([
      statement('EXISTS (SELECT 1 FROM writer WHERE id = 1 AND fence = ? FOR UPDATE)', fence),
      statement('EXISTS (SELECT 1 FROM writer_beats WHERE id = 1 AND beat = ? FOR UPDATE)', beats),
    ]),
    statement('UPDATE writer SET node = ?, fence = fence + 1, since = NOW(3) WHERE id = 1', node),
    beat,
  ];
}
