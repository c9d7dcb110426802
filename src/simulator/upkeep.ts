import type { RowDataPacket } from 'mysql2/promise';
import { ReportKind } from '../gen/marina/broker/v1/orders_pb.ts';
import type { Logger } from '../lib/log.ts';
import type { Database } from './database.ts';
import { advance, end, goOn, isOpen } from './exchange.ts';
import type { Order } from './model.ts';
import { Scheduler } from './scheduler.ts';
import type { World } from './world.ts';
import type { Writer } from './writer.ts';

/** How often the market goes on, and day orders that ran out are looked for; a moved clock does it at once. */
const sweepEveryMs = 500;
const maxPerSweep = 1_000;
/** When a step that could not be written is tried again. */
const retryMs = 500;

/** What the exchange does by itself: the steps planned for its orders, the market's, and the end of day orders. */
export class Upkeep {
  readonly #scheduler: Scheduler;
  #timer: NodeJS.Timeout | undefined;
  #sweeping: Promise<void> | undefined;
  #sweepAgain = false;
  #closed = false;

  constructor(
    private readonly database: Database,
    private readonly world: World,
    private readonly writer: Writer,
    private readonly log: Logger,
  ) {
    this.#scheduler = new Scheduler(
      () => world.clock.realNow(),
      (ids) => {
        for (const id of ids) this.#advance(id);
      },
    );
  }

  /** Looks for day orders that ran out, from now on. */
  start(): void {
    this.#timer = setInterval(() => this.sweep(), sweepEveryMs);
    this.sweep();
  }

  /** Follows a committed change of an order. */
  follow(order: Order): void {
    this.#scheduler.set(order.clientOrderId, order.planAtMs);
  }

  /** Finds all planned steps in the table again: after a start, and when more were planned than memory holds. */
  async reload(): Promise<void> {
    let after = 0;
    this.#scheduler.overflowed = false;
    while (!this.#closed && !this.#scheduler.overflowed) {
      const rows = await this.database.read<PlannedRow>(
        'SELECT sequence, client_order_id, plan_at_ms FROM orders ' +
          'WHERE plan_at_ms IS NOT NULL AND sequence > ? ORDER BY sequence LIMIT ?',
        [after, maxPerSweep],
      );
      for (const row of rows) this.#scheduler.set(row.client_order_id, row.plan_at_ms);
      const last = rows.at(-1);
      if (last === undefined || rows.length < maxPerSweep) return;
      after = last.sequence;
    }
  }

  /** Ends the day orders that ran out by the business clock. */
  sweep(): void {
    if (this.#closed) return;
    this.#sweepAgain = true;
    this.#sweeping ??= this.#sweep()
      .catch((error: unknown) => this.log.warn({ err: error }, 'day orders could not be looked for'))
      .finally(() => {
        this.#sweeping = undefined;
      });
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearInterval(this.#timer);
    this.#scheduler.close();
    await this.#sweeping;
  }

  async #sweep(): Promise<void> {
    if (this.#scheduler.overflowed && this.#scheduler.size === 0) await this.reload();
    while (this.#sweepAgain && !this.#closed) {
      this.#sweepAgain = false;
      if (this.world.floor.hasOrders) await this.writer.run([], goOn);
      const now = this.world.clock.now();
      const rows = await this.database.read<ExpiredRow>(
        'SELECT client_order_id FROM orders WHERE expires_at_ms <= ? ORDER BY expires_at_ms, sequence LIMIT ?',
        [now, maxPerSweep],
      );
      await Promise.all(rows.map((row) => this.#expire(row.client_order_id)));
      if (rows.length === maxPerSweep) this.#sweepAgain = true;
    }
  }

  async #expire(id: string): Promise<void> {
    await this.writer.run([id], (unit) => {
      const order = unit.order(id);
      if (order?.expiresAtMs != null && order.expiresAtMs <= unit.world.clock.now()) end(unit, id, ReportKind.EXPIRED);
    });
  }

  #advance(id: string): void {
    this.writer
      .run([id], (unit) => {
        const order = unit.order(id);
        if (order !== undefined && isOpen(order)) advance(unit, order);
        return order?.planAtMs ?? null;
      })
      .then((planAtMs) => this.#scheduler.set(id, planAtMs))
      .catch(() => {
        // The step stays in the table; it only comes later. A step that was written all the same is done already.
        this.#scheduler.set(id, this.world.clock.realNow() + retryMs);
      });
  }
}

interface PlannedRow extends RowDataPacket {
  sequence: number;
  client_order_id: string;
  plan_at_ms: number;
}

interface ExpiredRow extends RowDataPacket {
  client_order_id: string;
}
