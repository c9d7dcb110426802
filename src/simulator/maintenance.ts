import type { RowDataPacket } from 'mysql2/promise';
import { ReportKind } from '../gen/marina/broker/v1/orders_pb.ts';
import type { Logger } from '../lib/log.ts';
import type { Database } from './database.ts';
import { advance, end, goOn, isOpen } from './exchange.ts';
import type { Order } from './model.ts';
import { Plans } from './plans.ts';
import type { World } from './world.ts';
import type { Writer } from './writer.ts';

/** How often the market goes on, and day orders that ran out are looked for; a moved clock does it at once. */
const sweepEveryMs = 500;
const maxPerSweep = 1_000;

/** What the exchange does by itself: the steps planned for its orders, the market's, and the end of day orders. */
export class Maintenance {
  readonly #plans: Plans;
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
    const columns = { table: 'orders', id: 'client_order_id', at: 'plan_at_ms' };
    this.#plans = new Plans(database, world, columns, (id) =>
      writer.run([id], (unit) => {
        const order = unit.order(id);
        if (order !== undefined && isOpen(order)) advance(unit, order);
        return order?.planAtMs ?? null;
      }),
    );
  }

  /** Looks for day orders that ran out, from now on. */
  start(): void {
    this.#timer = setInterval(() => this.sweep(), sweepEveryMs);
    this.sweep();
  }

  /** Follows a committed change of an order. */
  follow(order: Order): void {
    this.#plans.follow(order.clientOrderId, order.planAtMs);
  }

  /** Finds all planned steps in the table again: after a start, and when more were planned than memory holds. */
  reload(): Promise<void> {
    return this.#plans.reload();
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
    this.#plans.close();
    await this.#sweeping;
  }

  async #sweep(): Promise<void> {
    if (this.#plans.isIncomplete) await this.reload();
    while (this.#sweepAgain && !this.#closed) {
      this.#sweepAgain = false;
      if (this.world.engine.hasOrders) await this.writer.run([], goOn);
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
}

interface ExpiredRow extends RowDataPacket {
  client_order_id: string;
}
