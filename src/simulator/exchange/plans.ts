import type { RowDataPacket } from 'mysql2/promise';
import type { Logger } from '../../kit/log.ts';
import type { SimulatorDatabase } from '../store/database.ts';
import type { World } from '../world.ts';
import { Scheduler } from './scheduler.ts';

/** How many plans are read at once, and how often memory that overflowed is checked. */
const maxPerRead = 1_000;
const checkEveryMs = 1_000;
/** The wait before a step that could not be written is retried. */
const retryMs = 500;

/** The plans of objects of one kind. Each step runs when its time comes. */
export class Plans {
  readonly #scheduler: Scheduler;
  #timer: NodeJS.Timeout | undefined;
  #reading: Promise<void> | undefined;
  /** Whether the table must be read, or read again. */
  #isStale = false;
  #isClosed = false;

  constructor(
    private readonly database: SimulatorDatabase,
    world: World,
    private readonly log: Logger,
    /** Their table, its column of the gateway's ids, and its column of the next step's time, null without one. */
    private readonly columns: { readonly table: string; readonly id: string; readonly at: string },
    /** Runs the due step. Returns when the next one is due; null: no further step. */
    step: (id: string) => Promise<number | null>,
  ) {
    const now = () => world.clock.realNow();
    const take = (id: string) =>
      step(id).then(
        (nextAtMs) => this.#scheduler.set(id, nextAtMs),
        // The step stays in the table and is only delayed. If it was written after all, it is done already.
        () => this.#scheduler.set(id, now() + retryMs),
      );
    this.#scheduler = new Scheduler(now, (ids) => {
      for (const id of ids) void take(id);
    });
  }

  follow(id: string, atMs: number | null): void {
    this.#scheduler.set(id, atMs);
  }

  start(): void {
    this.#timer = setInterval(() => {
      if (this.#scheduler.overflowed && this.#scheduler.size === 0) this.reload();
    }, checkEveryMs);
  }

  /** Reads all plans from the table: after a start, and after more plans than memory holds. */
  reload(): void {
    this.#isStale = true;
    this.#reading ??= this.#read()
      .catch((error: unknown) => this.log.warn({ err: error, table: this.columns.table }, 'plans could not be read'))
      .finally(() => {
        this.#reading = undefined;
      });
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearInterval(this.#timer);
    this.#scheduler.close();
    await this.#reading;
  }

  async #read(): Promise<void> {
    while (this.#isStale && !this.#isClosed) {
      this.#isStale = false;
      await this.#readAll();
    }
  }

  async #readAll(): Promise<void> {
    const { table, id, at } = this.columns;
    let after = 0;
    this.#scheduler.overflowed = false;
    while (!this.#isClosed && !this.#scheduler.overflowed) {
      const rows = await this.database.read<RowDataPacket & { sequence: number; id: string; at: number }>(
        `SELECT sequence, ${id} AS id, ${at} AS at FROM ${table}
         WHERE ${at} IS NOT NULL AND sequence > ? ORDER BY sequence LIMIT ?`,
        [after, maxPerRead],
      );
      for (const row of rows) this.#scheduler.set(row.id, row.at);
      const last = rows.at(-1);
      if (last === undefined || rows.length < maxPerRead) return;
      after = last.sequence;
    }
  }
}
