import type { RowDataPacket } from 'mysql2/promise';
import { ReportKind } from '../../gen/marina/broker/v1/orders_pb.ts';
import { lagosDay } from '../../kit/clock.ts';
import type { Logger } from '../../kit/log.ts';
import { returnWithdrawalIfDue } from '../back-office/withdrawals.ts';
import { advanceMarket, end } from '../exchange/exchange.ts';
import type { World } from '../world.ts';
import type { SimulatorDatabase } from './database.ts';
import type { SimulatorWriter } from './writer.ts';

/** How often the market advances, expired day orders end and withdrawals return. A moved clock does all at once. */
const sweepEveryMs = 500;
const maxPerSweep = 1_000;

/** The work that the business clock brings: the market advances, day orders end, and banks return withdrawals. */
export class Maintenance {
  #timer: NodeJS.Timeout | undefined;
  #sweeping: Promise<void> | undefined;
  #sweepAgain = false;
  #closed = false;

  constructor(
    private readonly database: SimulatorDatabase,
    private readonly world: World,
    private readonly writer: SimulatorWriter,
    private readonly log: Logger,
  ) {}

  start(): void {
    this.#timer = setInterval(() => this.sweep(), sweepEveryMs);
    this.sweep();
  }

  /** Does the work that is due by the business clock. */
  sweep(): void {
    if (this.#closed) return;
    this.#sweepAgain = true;
    this.#sweeping ??= this.#sweep()
      .catch((error: unknown) => this.log.warn({ err: error }, 'what is due could not be done'))
      .finally(() => {
        this.#sweeping = undefined;
      });
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearInterval(this.#timer);
    await this.#sweeping;
  }

  async #sweep(): Promise<void> {
    while (this.#sweepAgain && !this.#closed) {
      this.#sweepAgain = false;
      if (this.world.engine.hasOrders) await this.writer.run([], advanceMarket);
      const now = this.world.clock.now();
      if (this.world.directSales.hasSettled(lagosDay(now))) await this.writer.run([], (unit) => unit.payOutSales());
      const rows = await this.database.read<ExpiredRow>(
        'SELECT client_order_id FROM orders WHERE expires_at_ms <= ? ORDER BY expires_at_ms, sequence LIMIT ?',
        [now, maxPerSweep],
      );
      await Promise.all(rows.map((row) => this.#expire(row.client_order_id)));
      const returning = await this.database.read<ReturningRow>(
        'SELECT client_withdrawal_id FROM withdrawals WHERE return_at_ms <= ? ORDER BY return_at_ms, sequence LIMIT ?',
        [now, maxPerSweep],
      );
      await Promise.all(returning.map((row) => this.#return(row.client_withdrawal_id)));
      if (rows.length === maxPerSweep || returning.length === maxPerSweep) this.#sweepAgain = true;
    }
  }

  async #return(id: string): Promise<void> {
    await this.writer.runOn({ withdrawals: [id] }, (unit) => returnWithdrawalIfDue(unit, id));
  }

  async #expire(id: string): Promise<void> {
    await this.writer.run([id], (unit) => {
      const order = unit.order(id);
      if (order?.expiresAtMs != null && order.expiresAtMs <= unit.world.clock.now()) end(unit, id, ReportKind.EXPIRED);
    });
  }
}

interface ReturningRow extends RowDataPacket {
  client_withdrawal_id: string;
}

interface ExpiredRow extends RowDataPacket {
  client_order_id: string;
}
