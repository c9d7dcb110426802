import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { type Connection, createConnection } from 'mysql2/promise';
import {
  AccountStatus,
  Orders,
  OrderType,
  ReportKind,
  Side,
  TimeInForce,
} from '../../src/gen/marina/broker/v1/orders_pb.ts';
import { Controls } from '../../src/gen/marina/simulator/v1/controls_pb.ts';
import { createGrpcClient } from '../../src/kit/grpc-client.ts';
import { startSimulator } from '../../src/simulator/simulator.ts';
import { SimulatorDatabase } from '../../src/simulator/store/database.ts';
import { createTestDatabase } from '../support/servers.ts';

const held = 1_000_000;
const perStatement = 10_000;
const idOf = (number: number) => `ord_${String(number).padStart(20, '0')}`;

/** Writes a million orders that rest, each with its report, as the simulator would have. */
async function fillRecord(url: string): Promise<void> {
  const connection = await createConnection(url);
  try {
    await connection.query('CREATE TABLE numbers (number INT NOT NULL PRIMARY KEY)');
    const numbers = Array.from({ length: perStatement }, (_, index) => [index + 1]);
    await connection.query('INSERT INTO numbers VALUES ?', [numbers]);
    for (let before = 0; before < held; before += perStatement) await fillPart(connection, before);
  } finally {
    await connection.end();
  }
}

async function fillPart(connection: Connection, before: number): Promise<void> {
  const id = `CONCAT('ord_', LPAD(number + ${before}, 20, '0')), CONCAT('NGX', LPAD(number + ${before}, 12, '0'))`;
  await connection.query(
    `INSERT INTO orders (sequence, client_order_id, exchange_order_id, account, symbol, side, type, time_in_force,
       quantity, price_kobo, filled, ended_by)
     SELECT number + ?, ${id}, 'ACC1', 'SIM-REST', ?, ?, ?, 10, 1000, 0, 0 FROM numbers`,
    [before, Side.BUY, OrderType.LIMIT, TimeInForce.GTC],
  );
  await connection.query(
    `INSERT INTO reports (number, client_order_id, exchange_order_id, kind, at_ms, quantity, price_kobo, reject_reason)
     SELECT number + ?, ${id}, ?, 1700000000000, 0, 0, 0 FROM numbers`,
    [before, ReportKind.ACCEPTED],
  );
}

describe('the simulator’s record at a million orders', () => {
  it('is opened in seconds, answers a look-up and takes an order in milliseconds, and is not held in memory', async () => {
    const database = await createTestDatabase();
    after(() => database.drop());
    await (await SimulatorDatabase.open(database.url)).close();
    await fillRecord(database.url);

    const heapBefore = process.memoryUsage().heapUsed;
    const began = performance.now();
    const simulator = await startSimulator({ databaseUrl: database.url, port: 0 });
    const openedMs = performance.now() - began;
    const orders = createGrpcClient(Orders, `127.0.0.1:${simulator.port}`);
    const controls = createGrpcClient(Controls, `127.0.0.1:${simulator.port}`);
    after(async () => {
      orders.close();
      controls.close();
      await simulator.close();
    });
    assert.ok(openedMs < 10_000, `opened in ${openedMs} ms`);
    await controls.setAccount({ account: 'ACC1', status: AccountStatus.ACTIVE }, { timeoutMs: 10_000 });

    const took: number[] = [];
    for (let count = 0; count < 300; count += 1) {
      const clientOrderId = idOf(1 + ((count * 7_919_773) % held));
      const asked = performance.now();
      const answer = await orders.lookUpOrder({ clientOrderId }, { timeoutMs: 10_000 });
      took.push(performance.now() - asked);
      assert.ok(answer.found && answer.reports[0]?.clientOrderId === clientOrderId);
    }
    const placed: number[] = [];
    for (let count = 0; count < 100; count += 1) {
      const order = {
        clientOrderId: `new_${count}`,
        account: 'ACC1',
        symbol: 'SIM-REST',
        side: Side.BUY,
        quantity: 1n,
      };
      const asked = performance.now();
      await orders.submitOrder(
        { ...order, type: OrderType.LIMIT, timeInForce: TimeInForce.DAY, priceKobo: 1_000n },
        { timeoutMs: 10_000 },
      );
      placed.push(performance.now() - asked);
    }
    const median = (times: number[]) => times.sort((one, other) => one - other)[times.length >> 1] ?? 0;
    assert.ok(median(took) < 50, `a look-up took ${median(took)} ms`);
    assert.ok(median(placed) < 100, `an order took ${median(placed)} ms`);
    const grownBy = process.memoryUsage().heapUsed - heapBefore;
    assert.ok(grownBy < 100_000_000, `${grownBy} bytes more`);
  });
});
