import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { status } from '@grpc/grpc-js';
import { AccountStatus, ReportKind } from '../../../src/gen/marina/broker/v1/orders_pb.ts';
import { SimulatorWriter } from '../../../src/simulator/store/writer.ts';
import { RpcError } from '../../../src/simulator/wire/rpc.ts';
import { World } from '../../../src/simulator/world.ts';
import { MemoryDatabase } from '../../support/memory-database.ts';
import { silentLog } from '../../support/silent-log.ts';
import { orderRequest, SimulatedBroker } from '../../support/simulated-broker.ts';

const isCode = (code: status) => (error: unknown) => error instanceof RpcError && error.code === code;

describe('the writer of the simulator', () => {
  it('changes that come together share a commit, in their order, and each sees those before it', async () => {
    const broker = await SimulatedBroker.start();
    const seen: (number | undefined)[] = [];
    const add = (id: string) =>
      broker.change({ orders: ['ord_1', 'ord_2'] }, (unit) => {
        seen.push(unit.order('ord_1')?.sequence);
        return unit.addOrder(orderRequest({ clientOrderId: id }), true).sequence;
      });
    assert.deepEqual(await Promise.all([add('ord_1'), add('ord_2')]), [1, 2]);
    assert.deepEqual([seen, broker.committed.length], [[undefined, 1], 1]);
  });

  it('no more than 500 changes share a commit', async () => {
    const broker = await SimulatedBroker.start();
    const counts = new Map<unknown, number>();
    await Promise.all(
      Array.from({ length: 1_001 }, () =>
        broker.change({}, (unit) => void counts.set(unit, (counts.get(unit) ?? 0) + 1)),
      ),
    );
    assert.deepEqual([...counts.values()], [500, 500, 1]);
  });

  it('a change that throws fails alone', async () => {
    const broker = await SimulatedBroker.start();
    const good = broker.change({}, (unit) => unit.setAccount('A1', AccountStatus.ACTIVE));
    const bad = broker.change({}, () => {
      throw new Error('no');
    });
    const later = broker.change({}, (unit) => unit.setAccount('A2', AccountStatus.ACTIVE));
    await assert.rejects(bad, /^Error: no$/);
    await Promise.all([good, later]);
    assert.deepEqual(
      broker.database.rows('accounts').map(({ account }) => account),
      ['A1', 'A2'],
    );
  });

  it('a change has the objects that it names as they are stored, and no others', async () => {
    const broker = await SimulatedBroker.start();
    await broker.change({}, (unit) => {
      for (const id of ['ord_1', 'ord_2']) unit.addOrder(orderRequest({ clientOrderId: id }), true);
      const application = { course: 1, decideAfterMs: 5, magicName: '' };
      for (const id of ['app_1', 'app_2']) {
        unit.backOffice.addApplication({ clientApplicationId: id, ...application }, true);
        unit.backOffice.receiveFile(id, 1, Buffer.from(id));
      }
      for (const id of ['alc_1', 'alc_2'])
        unit.backOffice.addAllocation({ clientAllocationId: id, account: 'A1', amountKobo: 5 }, 1);
      const withdrawal = {
        account: 'A1',
        amountKobo: 5,
        destination: 1,
        course: 0,
        state: 0,
        rejectReason: 0,
        dutyKobo: 0,
      };
      for (const id of ['wdr_1', 'wdr_2']) {
        unit.withdrawals.add({ clientWithdrawalId: id, ...withdrawal, decideAtMs: null, returnAtMs: null }, true);
      }
      for (const id of ['ord_3', 'app_3', 'alc_3', 'wdr_3']) unit.refuse(id);
    });
    const needs = {
      ...{ orders: ['ord_1', 'ord_3'], applications: ['app_1', 'app_3'] },
      ...{ allocations: ['alc_1', 'alc_3'], withdrawals: ['wdr_1', 'wdr_3'] },
    };
    await broker.change(needs, (unit) => {
      const has = (count: number) => [
        ...[
          unit.order(`ord_${count}`),
          unit.backOffice.application(`app_${count}`),
          unit.backOffice.files(`app_${count}`)[0],
        ],
        ...[unit.backOffice.allocation(`alc_${count}`), unit.withdrawals.withdrawal(`wdr_${count}`)],
      ];
      assert.ok(
        has(1).every((each) => each !== undefined),
        'those that are named',
      );
      assert.ok(
        has(2).every((each) => each === undefined),
        'others',
      );
      for (const kind of ['ord', 'app', 'alc', 'wdr']) {
        assert.deepEqual([unit.isRefused(`${kind}_3`), unit.isRefused(`${kind}_1`)], [true, false], kind);
      }
      assert.deepEqual([unit.order('ord_1')?.quantity, unit.backOffice.files('app_1').length], [100, 1]);
    });
  });

  it('an order that waits in the engine is the same object for each change', async () => {
    const broker = await SimulatedBroker.start();
    const placed = await broker.change({ orders: ['ord_1'] }, (unit) => {
      const order = unit.addOrder(orderRequest({ symbol: 'UBA', priceKobo: 1 }), true);
      unit.world.engine.place(order, broker.nowMs, { trade: () => {}, expire: () => {}, waits: () => {} });
      return order;
    });
    assert.ok(placed.inBook);
    await broker.change({ orders: ['ord_1'] }, (unit) => assert.equal(unit.order('ord_1'), placed));
  });

  it('nobody knows of a change before its commit', async () => {
    const broker = await SimulatedBroker.start();
    const order: string[] = [];
    const { database } = broker;
    const run = database.run.bind(database);
    database.run = (statements) => {
      order.push(`commit, ${broker.committed.length} told`);
      run(statements);
    };
    await broker.change({}, (unit) => unit.setAccount('A1', AccountStatus.ACTIVE)).then(() => order.push('answer'));
    assert.deepEqual([order, broker.committed.length], [['commit, 0 told', 'answer'], 1]);
  });

  it('a failed commit fails its changes, and the next change reads the world as it was really stored', async () => {
    for (const failure of ['before', 'after'] as const) {
      const broker = await SimulatedBroker.start();
      broker.database.failures.push(failure);
      const add = (id: string) =>
        broker.change({ orders: [id] }, (unit) => unit.addOrder(orderRequest({ clientOrderId: id }), true).sequence);
      const failed = [add('ord_1'), add('ord_2')];
      for (const each of failed) await assert.rejects(each, isCode(status.UNAVAILABLE));
      assert.equal(broker.committed.length, 0);
      const isStored = failure === 'after';
      assert.equal(await add('ord_3'), isStored ? 3 : 1);
      assert.equal(broker.database.rows('orders').length, isStored ? 3 : 1);
      assert.deepEqual([broker.database.writersOpened, broker.reloads], [2, 2]);
      assert.equal(await add('ord_4'), isStored ? 4 : 2);
      assert.equal(broker.database.writersOpened, 2);
    }
  });

  it('a second failure in a row fails only its own changes', async () => {
    const broker = await SimulatedBroker.start();
    const add = () =>
      broker.change(
        {},
        (unit) =>
          unit.report(
            unit.addOrder(orderRequest({ clientOrderId: `ord_${unit.world.lastSequence}` }), true),
            ReportKind.ACCEPTED,
          ).number,
      );
    broker.database.failures.push('before');
    await assert.rejects(add());
    // The first commit of a new connection is that of the world's list of instruments.
    broker.database.failures.push(undefined, undefined, 'before');
    await assert.rejects(add());
    assert.equal(await add(), 1);
  });

  it('a connection that was lost while nothing was written is replaced before the next commit', async () => {
    const broker = await SimulatedBroker.start();
    const { database } = broker;
    const opened: { destroy(): void }[] = [];
    const open = database.openWriter.bind(database);
    database.openWriter = async () => {
      const connection = await open();
      opened.push(connection);
      return connection;
    };
    const writer = new SimulatorWriter(database.asDatabase, broker.world, silentLog, {
      committed: () => {},
      reloaded: () => {},
    });
    await writer.run([], (unit) => unit.setAccount('A1', AccountStatus.ACTIVE));
    opened[0]?.destroy();
    await writer.run([], (unit) => unit.setAccount('A2', AccountStatus.ACTIVE));
    assert.equal(opened.length, 2);
    assert.equal(database.rows('accounts').length, 2);
  });

  it('a world that cannot be read fails the changes, gives its connection back, and is read again for the next', async () => {
    const database = new MemoryDatabase();
    const world = new World(7);
    let destroyed = 0;
    let failures = 1;
    const open = database.openWriter.bind(database);
    database.openWriter = async () => {
      const connection = await open();
      const { read, destroy } = connection;
      connection.read = async (sql, values) => {
        if (failures > 0) {
          failures -= 1;
          throw new Error('The server is away');
        }
        return (await read(sql, values)) as never;
      };
      connection.destroy = () => {
        destroyed += 1;
        destroy();
      };
      return connection;
    };
    const writer = new SimulatorWriter(database.asDatabase, world, silentLog, {
      committed: () => {},
      reloaded: () => {},
    });
    await assert.rejects(
      writer.run([], () => 1),
      isCode(status.UNAVAILABLE),
    );
    assert.equal(destroyed, 1);
    assert.equal(await writer.run([], () => 2), 2);
  });

  it('20,000 changes may wait, and one more is refused', async () => {
    const broker = await SimulatedBroker.start();
    const done: number[] = [];
    const all = Array.from({ length: 20_000 }, () => broker.change({}, () => void done.push(1)));
    await assert.rejects(
      broker.change({}, () => {}),
      isCode(status.RESOURCE_EXHAUSTED),
    );
    await Promise.all(all);
    assert.equal(done.length, 20_000);
    await broker.change({}, () => {});
  });

  it('a writer that closes writes what waits and takes nothing more', async () => {
    const broker = await SimulatedBroker.start();
    const last = broker.change({}, (unit) => unit.setAccount('A1', AccountStatus.ACTIVE));
    const closing = broker.writer.close();
    await assert.rejects(
      broker.change({}, () => {}),
      isCode(status.UNAVAILABLE),
    );
    await closing;
    await last;
    assert.equal(broker.database.rows('accounts').length, 1);
  });

  it('a change that writes nothing makes no commit, and is told of all the same', async () => {
    const broker = await SimulatedBroker.start();
    broker.database.failures.push('before');
    assert.equal(await broker.change({}, () => 5), 5);
    assert.equal(broker.committed.length, 1);
  });
});
