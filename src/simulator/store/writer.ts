import { status } from '@grpc/grpc-js';
import { groupBy } from '../../kit/group.ts';
import type { Logger } from '../../kit/log.ts';
import { allocations, applications, documents } from '../back-office/tables.ts';
import { withdrawals } from '../back-office/withdrawal-tables.ts';
import { RpcError } from '../wire/rpc.ts';
import type { World } from '../world.ts';
import type { SimulatorDatabase, WriterConnection } from './database.ts';
import type { SimulatorTable } from './table.ts';
import { orders, refusals } from './tables.ts';
import { type Held, UnitOfWork } from './unit-of-work.ts';

/** How many changes may wait. Further ones are refused, so that a slow database shows. */
const maxWaiting = 20_000;
/** The most changes in one transaction. */
const maxPerCommit = 500;

/** The objects that a change needs, by the gateway's ids. */
export interface Needs {
  readonly orders?: readonly string[];
  readonly applications?: readonly string[];
  readonly allocations?: readonly string[];
  readonly withdrawals?: readonly string[];
}

/** A change of the exchange's state. It acts only through the unit, and throws only before it did anything. */
export type UnitOfChange<T> = (unit: UnitOfWork) => T;

interface Waiting {
  readonly needs: Needs;
  /** Runs the change and returns the step to run after the commit. */
  readonly apply: (unit: UnitOfWork) => () => void;
  readonly fail: (error: unknown) => void;
}

/**
 * The one queue of all changes. Numbers are dense in commit order, and a client order id is taken only once. Changes that
 * wait during a commit share the next one.
 */
export class SimulatorWriter {
  #waiting: Waiting[] = [];
  #working: Promise<void> | undefined;
  #connection: WriterConnection | undefined;
  #closed = false;

  constructor(
    private readonly database: SimulatorDatabase,
    private readonly world: World,
    private readonly log: Logger,
    /** Notified of every commit, in order, and of each reload after a commit with an unknown outcome. */
    private readonly watcher: { committed(unit: UnitOfWork): void; reloaded(): void },
  ) {}

  /** Connects and reads the world. Otherwise the first change does. */
  async open(): Promise<void> {
    await this.#connected();
  }

  /** Runs a change on the given orders, and resolves after its commit. */
  run<T>(orderIds: readonly string[], change: UnitOfChange<T>): Promise<T> {
    return this.runOn({ orders: orderIds }, change);
  }

  /** Runs a change on the given objects, and resolves after its commit. */
  runOn<T>(needs: Needs, change: UnitOfChange<T>): Promise<T> {
    if (this.#closed) return Promise.reject(new RpcError(status.UNAVAILABLE, 'The simulator is stopping.'));
    if (this.#waiting.length >= maxWaiting) {
      return Promise.reject(new RpcError(status.RESOURCE_EXHAUSTED, 'Too many changes wait to be written.'));
    }
    return new Promise((resolve, reject) => {
      const apply = (unit: UnitOfWork) => {
        const result = change(unit);
        return () => resolve(result);
      };
      this.#waiting.push({ needs, apply, fail: reject });
      this.#working ??= this.#work();
    });
  }

  /** Accepts no more changes, writes the waiting ones and releases the database. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#working;
    this.#drop();
  }

  /** Releases the database at once. Waiting changes fail. */
  abandon(): void {
    this.#closed = true;
    this.#drop();
  }

  async #work(): Promise<void> {
    // Changes made in one turn of the event loop share a commit.
    await new Promise(setImmediate);
    while (this.#waiting.length > 0) {
      const group = this.#waiting.splice(0, maxPerCommit);
      try {
        await this.#commit(group);
      } catch (error) {
        this.log.warn({ err: error, changes: group.length }, 'a commit failed; its outcome is unknown');
        this.#drop();
        for (const change of group) change.fail(new RpcError(status.UNAVAILABLE, 'The record could not be written.'));
      }
    }
    this.#working = undefined;
  }

  async #commit(group: readonly Waiting[]): Promise<void> {
    const connection = await this.#connected();
    const unit = new UnitOfWork(this.world, await readHeld(connection, this.world, group));
    const done: (() => void)[] = [];
    for (const change of group) {
      try {
        done.push(change.apply(unit));
      } catch (error) {
        done.push(() => change.fail(error));
      }
    }
    const statements = unit.statements();
    if (statements.length > 0) await connection.commit(statements);
    this.watcher.committed(unit);
    for (const settle of done) settle();
  }

  async #connected(): Promise<WriterConnection> {
    if (this.#connection?.lost === false) return this.#connection;
    this.#drop();
    const connection = await this.database.openWriter();
    try {
      await this.world.load(connection);
    } catch (error) {
      connection.destroy();
      throw error;
    }
    this.#connection = connection;
    this.watcher.reloaded();
    return connection;
  }

  #drop(): void {
    this.#connection?.destroy();
    this.#connection = undefined;
  }
}

async function readHeld(connection: WriterConnection, world: World, group: readonly Waiting[]): Promise<Held> {
  const idsOf = (kind: keyof Needs) => [...new Set(group.flatMap(({ needs }) => needs[kind] ?? []))];
  const held: Held = {
    orders: new Map(),
    refused: new Set(),
    applications: new Map(),
    files: new Map(),
    allocations: new Map(),
    withdrawals: new Map(),
  };
  const read = async <Model extends object>(table: SimulatorTable<Model>, key: string, ids: readonly string[]) => {
    if (ids.length === 0) return [];
    const rows = await connection.read(`SELECT ${table.columns} FROM ${table.name} WHERE ${key} IN (?)`, [ids]);
    return rows.map(table.fromRow);
  };
  const orderIds = idsOf('orders');
  for (const order of await read(orders, 'client_order_id', orderIds)) held.orders.set(order.clientOrderId, order);
  for (const id of orderIds) {
    // The order in the matching engine must be the same object, not another copy.
    const waiting = world.engine.order(id);
    if (waiting !== undefined) held.orders.set(id, waiting);
  }
  const applicationIds = idsOf('applications');
  const allocationIds = idsOf('allocations');
  const withdrawalIds = idsOf('withdrawals');
  const ids = [...orderIds, ...applicationIds, ...allocationIds, ...withdrawalIds];
  const refused = await read(refusals, 'client_id', ids);
  for (const { clientId } of refused) held.refused.add(clientId);
  for (const application of await read(applications, 'client_application_id', applicationIds)) {
    held.applications.set(application.clientApplicationId, application);
  }
  const files = await read(documents, 'client_application_id', applicationIds);
  for (const [id, group] of groupBy(files, (file) => file.clientApplicationId)) held.files.set(id, group);
  for (const allocation of await read(allocations, 'client_allocation_id', allocationIds)) {
    held.allocations.set(allocation.clientAllocationId, allocation);
  }
  for (const withdrawal of await read(withdrawals, 'client_withdrawal_id', withdrawalIds)) {
    held.withdrawals.set(withdrawal.clientWithdrawalId, withdrawal);
  }
  return held;
}
