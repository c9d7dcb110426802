import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { AccountStatus, ReportKind, Side, TimeInForce } from '../../../src/gen/marina/broker/v1/orders_pb.ts';
import { WithdrawalDestination, WithdrawalReportKind } from '../../../src/gen/marina/broker/v1/withdrawals_pb.ts';
import { WithdrawalOutcome } from '../../../src/gen/marina/simulator/v1/controls_pb.ts';
import { submit } from '../../../src/simulator/exchange/exchange.ts';
import { onTickBelow } from '../../../src/simulator/market/prices.ts';
import { Maintenance } from '../../../src/simulator/store/maintenance.ts';
import { eventually } from '../../support/eventually.ts';
import { silentLog } from '../../support/silent-log.ts';
import { dayMs, orderRequest, SimulatedBroker, wednesday } from '../../support/simulated-broker.ts';

const dayEndsAt = Date.UTC(2026, 6, 1, 23);

async function start(funds?: { startCashKobo: bigint; sharesElsewhere: bigint }) {
  const broker = await SimulatedBroker.start(funds);
  const maintenance = new Maintenance(broker.database.asDatabase, broker.world, broker.writer, silentLog);
  await broker.change({}, (unit) => unit.setAccount('A1', AccountStatus.ACTIVE));
  return { broker, maintenance };
}

/** Sweeps with a maintenance of its own, because one that was closed does nothing. */
async function sweepOnce(broker: SimulatedBroker): Promise<void> {
  const maintenance = new Maintenance(broker.database.asDatabase, broker.world, broker.writer, silentLog);
  const before = broker.database.statements.length;
  maintenance.sweep();
  await eventually(() => {
    const statements = broker.database.statements.slice(before);
    assert.ok(statements.some((each) => each.includes('return_at_ms <=')));
  });
  await maintenance.close();
}

const settings = (broker: SimulatedBroker) => ({ fillDelay: { min: 0, max: 0 }, directives: broker.directives });
const kindsOf = (broker: SimulatedBroker, table: string, id: string) =>
  broker.database
    .rows(table)
    .filter((row) => Object.values(row).includes(id))
    .map(({ kind }) => kind);

describe('the simulator’s work of the business clock', () => {
  it('a day order expires at the end of its day, not a millisecond earlier, and once', async () => {
    const { broker } = await start();
    for (const [id, timeInForce] of [
      ['ord_1', TimeInForce.DAY],
      ['ord_2', TimeInForce.GTC],
    ] as const) {
      await broker.change({ orders: [id] }, (unit) =>
        submit(unit, orderRequest({ clientOrderId: id, timeInForce }), undefined, settings(broker)),
      );
    }
    broker.nowMs = dayEndsAt - 1;
    await sweepOnce(broker);
    assert.deepEqual(kindsOf(broker, 'reports', 'ord_1'), [ReportKind.ACCEPTED]);
    broker.nowMs = dayEndsAt;
    for (let times = 0; times < 2; times += 1) await sweepOnce(broker);
    assert.deepEqual(kindsOf(broker, 'reports', 'ord_1'), [ReportKind.ACCEPTED, ReportKind.EXPIRED]);
    assert.deepEqual(kindsOf(broker, 'reports', 'ord_2'), [ReportKind.ACCEPTED]);
  });

  it('a withdrawal returns when its time has come, not a millisecond earlier, and once', async () => {
    const { broker } = await start();
    const { PAID, RETURNED } = WithdrawalReportKind;
    await broker.change({}, (unit) => {
      const terms = { account: 'A1', amountKobo: 300, destination: WithdrawalDestination.BANK_ACCOUNT, dutyKobo: 0 };
      const rest = { course: WithdrawalOutcome.RETURN, state: 0, rejectReason: 0, decideAtMs: null };
      for (const [id, returnAtMs] of [
        ['wdr_1', wednesday + dayMs],
        ['wdr_2', null],
      ] as const) {
        unit.withdrawals.report(
          unit.withdrawals.add({ clientWithdrawalId: id, ...terms, ...rest, returnAtMs }, true),
          PAID,
        );
      }
    });
    broker.nowMs = wednesday + dayMs - 1;
    await sweepOnce(broker);
    assert.deepEqual(kindsOf(broker, 'withdrawal_reports', 'wdr_1'), [PAID]);
    broker.nowMs += 1;
    for (let times = 0; times < 2; times += 1) await sweepOnce(broker);
    assert.deepEqual(kindsOf(broker, 'withdrawal_reports', 'wdr_1'), [PAID, RETURNED]);
    assert.deepEqual(kindsOf(broker, 'withdrawal_reports', 'wdr_2'), [PAID]);
  });

  it('more than 1,000 expired orders are all ended by one sweep', async () => {
    const { broker } = await start();
    await broker.change({}, (unit) => {
      for (let at = 0; at < 1_001; at += 1) {
        const order = unit.addOrder(orderRequest({ clientOrderId: `ord_${at}` }), true);
        order.expiresAtMs = wednesday - 1;
      }
    });
    const maintenance = new Maintenance(broker.database.asDatabase, broker.world, broker.writer, silentLog);
    maintenance.sweep();
    await eventually(() => assert.equal(broker.database.rows('reports').length, 1_001));
    await maintenance.close();
  });

  it('the market advances for the orders in its books', async () => {
    const { broker } = await start();
    const priceKobo = onTickBelow(Math.round((broker.world.instrument('UBA')?.quoteKobo ?? 0) * 0.97));
    const order = orderRequest({ symbol: 'UBA', priceKobo });
    await broker.change({ orders: ['ord_1'] }, (unit) => submit(unit, order, undefined, settings(broker)));
    assert.deepEqual(kindsOf(broker, 'reports', 'ord_1'), [ReportKind.ACCEPTED]);
    broker.world.venue.move('UBA', -800, broker.nowMs);
    broker.passTime(60_000);
    await sweepOnce(broker);
    assert.ok(kindsOf(broker, 'reports', 'ord_1').includes(ReportKind.TRADE));
  });

  it('sales that have settled directly are paid out on their day', async () => {
    const { broker } = await start({ startCashKobo: 0n, sharesElsewhere: 0n });
    await broker.change({}, (unit) => {
      unit.clearing.directSales.setOn(true);
      const terms = { account: 'A1', clientOrderId: '', symbol: 'UBA', name: 'UBA', executedAtMs: wednesday };
      unit.clearing.book({ ...terms, side: Side.SELL, quantity: 100, priceKobo: 1_000 });
    });
    const [sale] = broker.database.rows('deals');
    broker.nowMs = dayEndsAt - 1;
    await sweepOnce(broker);
    assert.equal(broker.world.cash.get('A1'), undefined);
    broker.nowMs = dayEndsAt;
    for (let times = 0; times < 2; times += 1) await sweepOnce(broker);
    assert.equal(broker.world.cash.get('A1'), -Number(sale?.consideration_kobo));
  });

  it('sweeps come at once and every half second until the end', async (context) => {
    context.mock.timers.enable({ apis: ['setInterval'] });
    const { broker, maintenance } = await start();
    const sweeps = () => broker.database.statements.filter((each) => each.includes('return_at_ms <=')).length;
    const settled = async () => {
      for (let times = 0; times < 5; times += 1) await broker.change({}, () => {});
      return sweeps();
    };
    maintenance.start();
    assert.equal(await settled(), 1);
    context.mock.timers.tick(499);
    assert.equal(await settled(), 1);
    context.mock.timers.tick(1);
    assert.equal(await settled(), 2);
    await maintenance.close();
    context.mock.timers.tick(5_000);
    assert.equal(await settled(), 2);
  });

  it('a sweep that fails is tried again by the next, and one that is closed does nothing', async () => {
    const { broker, maintenance } = await start();
    const { read } = broker.database;
    let reads = 0;
    broker.database.read = async () => {
      reads += 1;
      throw new Error('The server is away');
    };
    for (const expected of [1, 2]) {
      await eventually(() => {
        maintenance.sweep();
        assert.ok(reads >= expected);
      });
    }
    broker.database.read = read;
    await maintenance.close();
    const before = broker.database.statements.length;
    maintenance.sweep();
    await broker.change({}, () => {});
    assert.equal(broker.database.statements.length, before);
  });

  it('a sweep that is asked for during another one follows it, once', async () => {
    const { broker, maintenance } = await start();
    const sweeps = () => broker.database.statements.filter((each) => each.includes('return_at_ms <=')).length;
    for (let times = 0; times < 3; times += 1) maintenance.sweep();
    await eventually(() => assert.equal(sweeps(), 2));
    for (let times = 0; times < 3; times += 1) await broker.change({}, () => {});
    assert.equal(sweeps(), 2);
    await maintenance.close();
  });
});
