import { OrderType, Side, TimeInForce } from '../../src/gen/marina/broker/v1/orders_pb.ts';
import type { FundsSettings } from '../../src/simulator/clearing/funds.ts';
import type { OrderRequest } from '../../src/simulator/model.ts';
import type { UnitOfWork } from '../../src/simulator/store/unit-of-work.ts';
import { type Needs, SimulatorWriter } from '../../src/simulator/store/writer.ts';
import { Directives } from '../../src/simulator/wire/directives.ts';
import { World } from '../../src/simulator/world.ts';
import { MemoryDatabase } from './memory-database.ts';
import { silentLog } from './silent-log.ts';

/** A Wednesday, 10:00 in Lagos. */
export const wednesday = Date.UTC(2026, 6, 1, 9);
export const dayMs = 86_400_000;

/** A simulator without servers: its world and writer over tables in memory, at a time that a test sets. */
export class SimulatedBroker {
  readonly database = new MemoryDatabase();
  readonly world: World;
  readonly directives: Directives;
  readonly writer: SimulatorWriter;
  /** The units that were committed, in order. */
  readonly committed: UnitOfWork[] = [];
  /** Business time and real time, which a test may part. */
  nowMs = wednesday;
  realNowMs = wednesday;
  reloads = 0;

  private constructor(funds?: FundsSettings) {
    this.world = new World(7, undefined, funds);
    this.world.clock.now = () => this.nowMs;
    this.world.clock.realNow = () => this.realNowMs;
    this.directives = new Directives(() => this.realNowMs);
    this.writer = new SimulatorWriter(this.database.asDatabase, this.world, silentLog, {
      committed: (unit) => void this.committed.push(unit),
      reloaded: () => {
        this.reloads += 1;
      },
    });
  }

  static async start(funds?: FundsSettings): Promise<SimulatedBroker> {
    const broker = new SimulatedBroker(funds);
    await broker.writer.open();
    return broker;
  }

  /** Moves both times on. */
  passTime(ms: number): void {
    this.nowMs += ms;
    this.realNowMs += ms;
  }

  change<T>(needs: Needs, change: (unit: UnitOfWork) => T): Promise<T> {
    return this.writer.runOn(needs, change);
  }

  /** Reads everything again from the tables, as after a restart. */
  async reload(): Promise<void> {
    await this.world.load(await this.database.openWriter());
  }
}

/** A day order to buy 100 shares at a limit. */
export function orderRequest(changes: Partial<OrderRequest> = {}): OrderRequest {
  return {
    ...{ clientOrderId: 'ord_1', account: 'A1', symbol: 'SIM-REST', side: Side.BUY, type: OrderType.LIMIT },
    ...{ timeInForce: TimeInForce.DAY, quantity: 100, priceKobo: 1_000 },
    ...changes,
  };
}
