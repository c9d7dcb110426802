import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { status } from '@grpc/grpc-js';
import { Side } from '../../../src/gen/marina/broker/v1/orders_pb.ts';
import {
  GetStatementRequestSchema,
  type GetStatementResponse,
  StatementSection,
} from '../../../src/gen/marina/broker/v1/statements_pb.ts';
import { Call, StatementLie, WireFault } from '../../../src/gen/marina/simulator/v1/controls_pb.ts';
import { statementsService } from '../../../src/simulator/statements/service.ts';
import { unanswered } from '../../../src/simulator/wire/rpc.ts';
import { dayMs, orderRequest, SimulatedBroker, wednesday } from '../../support/simulated-broker.ts';
import { refusalOf, simulatedServices, wireCall } from '../../support/simulated-services.ts';

const day = '2026-07-01';
const fromMs = Date.UTC(2026, 5, 30, 23);

async function start() {
  const broker = await SimulatedBroker.start();
  const parts = simulatedServices(broker);
  const service = statementsService({ ...parts, records: parts.statements });
  const ask = async (changes: { day?: string; section?: number; cursor?: string; limit?: number } = {}) => {
    const request = create(GetStatementRequestSchema, {
      day,
      section: StatementSection.ORDERS,
      limit: 1_000,
      ...changes,
    });
    const answer = await service.getStatement(request, wireCall());
    assert.ok(answer !== unanswered);
    return answer as Partial<GetStatementResponse>;
  };
  const orders = (count: number) =>
    broker.change({}, (unit) => {
      for (let at = 0; at < count; at += 1) {
        const clientOrderId = `ord_${String(at).padStart(4, '0')}`;
        unit.report(unit.addOrder(orderRequest({ clientOrderId }), true), 1);
      }
    });
  const lie = (kind: StatementLie, of = day) =>
    parts.lies.add({ lie: kind, day: of, clientId: '', account: '', symbol: '' });
  return { broker, ...parts, ask, orders, lie };
}

describe('the statements of the simulated broker', () => {
  it('a statement is of a Lagos day, and complete when that is over', async () => {
    const { broker, ask } = await start();
    for (const [nowMs, isComplete] of [
      [wednesday, false],
      [fromMs + dayMs - 1, false],
      [fromMs + dayMs, true],
    ] as const) {
      broker.nowMs = nowMs;
      const answer = await ask();
      assert.deepEqual(
        [answer.day, answer.isComplete, answer.from, answer.to],
        [...[day, isComplete, timestampFromMs(fromMs), timestampFromMs(fromMs + dayMs)]],
      );
    }
  });

  it('a lie says that a day is complete, or that it is not, which is believed first', async () => {
    const { broker, ask, lie } = await start();
    lie(StatementLie.COMPLETE);
    lie(StatementLie.INCOMPLETE, '2026-06-30');
    assert.equal((await ask()).isComplete, true);
    broker.nowMs = fromMs + dayMs;
    assert.equal((await ask({ day: '2026-06-30' })).isComplete, false);
    lie(StatementLie.INCOMPLETE);
    assert.equal((await ask()).isComplete, false);
  });

  it('a request that makes no sense is refused by its field', async () => {
    const { ask } = await start();
    const cases: [Parameters<typeof ask>[0], string | undefined][] = [
      [{ day: '2026-02-30' }, 'day'],
      [{ section: StatementSection.UNSPECIFIED }, 'section'],
      [{ section: 99 }, 'section'],
      [{ cursor: 'x'.repeat(200) }, undefined],
      [{ cursor: 'x'.repeat(201) }, 'cursor'],
      [{ limit: 0 }, 'limit'],
      [{ limit: 1 }, undefined],
      [{ limit: 1_001 }, 'limit'],
    ];
    for (const [changes, field] of cases) {
      const refused = await refusalOf(() => ask(changes));
      if (field === undefined) assert.equal(refused, undefined);
      else
        assert.deepEqual(
          [refused?.code, refused?.message.includes(`of ${field} is`)],
          [status.INVALID_ARGUMENT, true],
          field,
        );
    }
  });

  it('a page has room for records that lies add, and names the place behind its last one if more follow', async () => {
    const { ask, orders } = await start();
    await orders(60);
    const first = await ask({ limit: 100 });
    assert.deepEqual([first.orders?.length, first.nextCursor], [50, 'ord_0049']);
    const second = await ask({ limit: 100, cursor: first.nextCursor ?? '' });
    assert.deepEqual([second.orders?.length, second.nextCursor], [10, '']);
    assert.deepEqual([(await ask({ limit: 20 })).orders?.length, (await ask({ limit: 51 })).orders?.length], [1, 1]);
    assert.equal((await ask({ limit: 52 })).orders?.length, 2);
  });

  it('each section has its own records', async () => {
    const { broker, ask, orders } = await start();
    await orders(1);
    await broker.change({}, (unit) => {
      const terms = {
        account: 'A1',
        clientOrderId: '',
        name: 'UBA',
        quantity: 5,
        priceKobo: 100,
        executedAtMs: wednesday,
      };
      unit.clearing.book({ ...terms, symbol: 'UBA', side: Side.BUY });
      for (const side of [Side.BUY, Side.SELL]) unit.clearing.book({ ...terms, symbol: 'GTCO', side });
      unit.backOffice.addAllocation({ clientAllocationId: 'alc_1', account: 'A1', amountKobo: 700 }, 1);
      const withdrawal = {
        clientWithdrawalId: 'wdr_1',
        account: 'A1',
        amountKobo: 5,
        destination: 1,
        course: 0,
        state: 0,
      };
      const rest = { rejectReason: 0, dutyKobo: 0, decideAtMs: null, returnAtMs: null };
      unit.withdrawals.report(unit.withdrawals.add({ ...withdrawal, ...rest }, true), 1);
    });
    const { ORDERS, TRADES, ALLOCATIONS, WITHDRAWALS, POSITIONS, CASH } = StatementSection;
    for (const [section, member, count] of [
      [ORDERS, 'orders', 1],
      [TRADES, 'trades', 3],
      [ALLOCATIONS, 'allocations', 1],
      [WITHDRAWALS, 'withdrawals', 1],
      // A position of no shares is none.
      [POSITIONS, 'positions', 1],
      [CASH, 'cash', 1],
    ] as const) {
      const { [member]: list, day: of, isComplete, from, to, nextCursor, ...others } = await ask({ section });
      assert.deepEqual([list?.length, others], [count, {}], member);
    }
  });

  it('endless orders are a full page of orders that nobody sent, and another behind it', async () => {
    const { ask, lie } = await start();
    lie(StatementLie.ENDLESS_ORDERS);
    const first = await ask({ limit: 3 });
    const second = await ask({ limit: 3, cursor: first.nextCursor ?? '' });
    const ids = [...(first.orders ?? []), ...(second.orders ?? [])].map(({ clientOrderId }) => clientOrderId);
    assert.deepEqual([ids.length, new Set(ids).size, [...ids].sort()], [6, 6, ids]);
    assert.notEqual(second.nextCursor, first.nextCursor);
    assert.equal((await ask({ section: StatementSection.TRADES })).trades?.length, 0);
    assert.equal((await ask({ day: '2026-06-30' })).orders?.length, 0);
  });

  it('an endless page comes again and again, of orders alone', async () => {
    const { ask, lie, orders } = await start();
    await orders(2);
    lie(StatementLie.ENDLESS_PAGE);
    for (const cursor of ['', 'again']) {
      const answer = await ask({ cursor });
      assert.deepEqual([answer.orders?.length, answer.nextCursor], [2, 'again']);
    }
    assert.equal((await ask({ section: StatementSection.CASH })).nextCursor, '');
  });

  it('a broker that offers no statement of a day says so, and faults meet the call', async () => {
    const { ask, lie, directives } = await start();
    lie(StatementLie.NOT_OFFERED);
    assert.equal((await refusalOf(() => ask()))?.code, status.UNIMPLEMENTED);
    assert.equal(await refusalOf(() => ask({ day: '2026-06-30' })), undefined);
    const fault = { call: Call.GET_STATEMENT, account: '', clientId: '', delayMs: 0 };
    directives.addFault({ ...fault, wire: WireFault.UNAVAILABLE_BEFORE }, 1);
    assert.equal((await refusalOf(() => ask({ day: '2026-06-30' })))?.code, status.UNAVAILABLE);
    directives.addFault({ ...fault, wire: WireFault.NONSENSE }, 1);
    assert.notEqual((await ask({ day: '2026-06-30' })).day, '2026-06-30');
  });
});
