import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Side } from '../../../src/gen/marina/broker/v1/orders_pb.ts';
import type { Order } from '../../../src/simulator/model.ts';
import { dayMs, orderRequest, SimulatedBroker, wednesday } from '../../support/simulated-broker.ts';

const terms = { account: 'A1', clientOrderId: 'ord_1', symbol: 'UBA', name: 'UBA', side: Side.BUY };

/** Books executions, of one order if they are given one. */
async function booked(
  executions: readonly (readonly [quantity: number, atMs: number, side?: Side])[],
  isOrder: boolean,
) {
  const broker = await SimulatedBroker.start();
  const order = await broker.change({ orders: ['ord_1'] }, (unit) => {
    const found = isOrder ? unit.addOrder(orderRequest(), true) : undefined;
    for (const [quantity, executedAtMs, side = Side.BUY] of executions) {
      unit.clearing.book({ ...terms, side, quantity, priceKobo: 997, executedAtMs }, found);
    }
    return found;
  });
  return { broker, order };
}

const sumOf = (broker: SimulatedBroker, column: string) =>
  broker.database.rows('deals').reduce((sum, row) => sum + Number(row[column]), 0);

describe('the executions that clearing books', () => {
  it('the executions of an order on one day bear the charges of one, and those of another day begin anew', async () => {
    const charges = ['commission_kobo', 'statutory_kobo', 'other_kobo', 'consideration_kobo'];
    const whole = await booked([[9, wednesday]], true);
    const parts = await booked(
      [2, 3, 4].map((quantity) => [quantity, wednesday] as const),
      true,
    );
    for (const column of charges) assert.equal(sumOf(parts.broker, column), sumOf(whole.broker, column), column);
    const twoDays = await booked(
      [
        [2, wednesday],
        [3, wednesday + dayMs],
        [4, wednesday + dayMs],
      ],
      true,
    );
    const { tradedOn, tradedKobo } = twoDays.order as Order;
    assert.deepEqual([tradedOn, tradedKobo], ['2026-07-02', 7n * 997n]);
  });

  it('an execution at an impossible price is not cleared, and one at the highest price is', async () => {
    const broker = await SimulatedBroker.start();
    await broker.change({}, (unit) => {
      for (const priceKobo of [10_000_000_001, 10_000_000_000]) {
        unit.clearing.book({ ...terms, quantity: 1, priceKobo, executedAtMs: wednesday });
      }
    });
    assert.deepEqual(
      broker.database.rows('deals').map(({ number, price_kobo: price }) => [number, price]),
      [[1, 10_000_000_000]],
    );
  });

  it('a holding has the cost of its buys, and a sale takes its share of that', async () => {
    const { BUY, SELL } = Side;
    for (const [executions, expected] of [
      [
        [
          [10, BUY],
          [10, BUY],
        ],
        [20, 19_940],
      ],
      [
        [
          [10, BUY],
          [4, SELL],
        ],
        [6, 5_982],
      ],
      [
        [
          [10, BUY],
          [10, SELL],
        ],
        [0, 0],
      ],
      [[[4, SELL]], [-4, 0]],
      [
        [
          [4, SELL],
          [3, BUY],
        ],
        [-1, 0],
      ],
      [
        [
          [4, SELL],
          [10, BUY],
        ],
        [6, 5_982],
      ],
      [
        [
          [10, BUY],
          [12, SELL],
          [2, BUY],
        ],
        [0, 0],
      ],
    ] as const) {
      const { broker } = await booked(
        executions.map(([quantity, side]) => [quantity, wednesday, side] as const),
        false,
      );
      const [holding] = broker.database.rows('holdings');
      assert.deepEqual([holding?.quantity, holding?.cost_kobo], expected, executions.join(' '));
    }
  });

  it('settlements of one account or of all come no later than the day', async () => {
    const { broker } = await booked([[1, wednesday]], false);
    await broker.change({}, (unit) =>
      unit.clearing.book({ ...terms, account: 'A2', quantity: 1, priceKobo: 1, executedAtMs: wednesday - 9 * dayMs }),
    );
    const dates = () => broker.database.rows('deals').map(({ settlement_date: date }) => date);
    const [, earlier] = dates();
    await broker.change({}, (unit) => unit.clearing.settle('A2', '2026-07-01'));
    assert.deepEqual(dates(), ['2026-07-02', earlier]);
    await broker.change({}, (unit) => unit.clearing.settle('', '2026-07-01'));
    assert.deepEqual(dates(), ['2026-07-01', earlier]);
  });
});
