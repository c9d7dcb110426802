import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { create } from '@bufbuild/protobuf';
import { ApiError } from '../../../../src/gateway/edge/errors.ts';
import { type Statement, statement } from '../../../../src/gateway/store/statement.ts';
import type { BrokerOrders, Cancelled, LookedUp } from '../../../../src/gateway/trading/broker/broker.ts';
import type { ClockAgreement } from '../../../../src/gateway/trading/broker/clock.ts';
import { type CancelJob, Canceller, type Ended } from '../../../../src/gateway/trading/orders/cancel.ts';
import { OrderKind } from '../../../../src/gateway/trading/orders/kind.ts';
import type { StoredOrder } from '../../../../src/gateway/trading/orders/table.ts';
import type { Change } from '../../../../src/gateway/trading/submission/change.ts';
import { type Report, ReportKind, ReportSchema } from '../../../../src/gen/marina/broker/v1/orders_pb.ts';
import { createLogger } from '../../../../src/kit/log.ts';
import { orderKind } from '../../../support/kinds.ts';
import { plainOrder } from '../../../support/plain-order.ts';

const now = plainOrder.createdAt + 60_000;
const [submitTimeoutMs, clockSkewMs] = [5_000, 2_000];
const pending: StoredOrder = {
  ...plainOrder,
  ...{ id: 'ord_a', partnerId: 'par_a', state: 'pending', exchangeOrderId: 'X1', lastReport: 1n, checkAt: null },
};

type OrderChange = Change<StoredOrder, Report>;
type Decide = (order: StoredOrder, rows: unknown) => OrderChange | undefined;

function report(number: bigint, kind: ReportKind, quantity = 0n): Report {
  const priceKobo = quantity === 0n ? 0n : 1_000n;
  return create(ReportSchema, { number, clientOrderId: pending.id, exchangeOrderId: 'X1', kind, quantity, priceKobo });
}

/** A canceller over orders in memory. A test sets what the exchange says, and what happens before it has said it. */
function open(...orders: StoredOrder[]) {
  const rows = new Map(orders.map((order) => [order.id, order]));
  const written: string[] = [];
  const said: string[] = [];
  const state = {
    sends: 0,
    /** The last instant at which a cancel that was sent may be under way. */
    notAfter: [] as number[],
    looks: 0,
    /** Fails each transaction from now on. */
    failure: undefined as Error | undefined,
    agreement: 'in_step' as ClockAgreement,
    cancel: async (): Promise<Cancelled> => assert.fail('nothing may be sent'),
    lookUp: async (): Promise<LookedUp<readonly Report[]>> => ({ found: true, answer: [] }),
  };
  const change = async (_kind: unknown, _partner: unknown, id: string, decide: Decide, extra?: unknown) => {
    if (state.failure !== undefined) throw state.failure;
    const row = rows.get(id) as StoredOrder;
    const decided = decide(row, extra === undefined ? undefined : 'the rows of the job');
    if (decided === undefined) return row;
    rows.set(id, decided.after);
    written.push(...decided.writes.map(({ sql }) => sql));
    said.push(...decided.steps.map(({ detail }) => detail));
    return decided.after;
  };
  const clock = { now: () => now, realNow: () => now };
  const canceller = new Canceller({
    ...{ submitTimeoutMs, clockSkewMs, clock, kind: new OrderKind({} as never, {} as never, clock) },
    clocks: { agreement: async () => state.agreement },
    broker: {
      cancelOrder: (_id, notAfterMs) => {
        state.sends += 1;
        state.notAfter.push(notAfterMs);
        return state.cancel();
      },
      lookUpOrder: () => {
        state.looks += 1;
        return state.lookUp();
      },
    } as Partial<BrokerOrders> as BrokerOrders,
    recorder: {
      change,
      changeCached: (kind: unknown, { partnerId, id }: StoredOrder, decide: Decide) =>
        change(kind, partnerId, id, decide),
    } as never,
  });
  const permission = { renew: async () => {}, isLatest: () => true };
  const log = createLogger({ name: 'test', level: 'silent' });
  /** The state of the order for the partner, or the code of an error. */
  const cancel = async (id = pending.id, more: object = {}): Promise<string> => {
    try {
      const call = { log, permission, origin: { partnerId: 'par_a', requestId: null, traceParent: null }, ...more };
      return (await canceller.cancel(rows.get(id) as StoredOrder, call)).state;
    } catch (error) {
      if (error instanceof ApiError) return error.code;
      throw error;
    }
  };
  return { canceller, cancel, state, rows, written, said, order: () => rows.get(pending.id) as StoredOrder };
}

const unclear: Cancelled = { outcome: 'unclear', evidence: 'no answer' };
const tooLate: Cancelled = { outcome: 'too-late' };
const cancelled: Cancelled = { outcome: 'cancelled', report: report(2n, ReportKind.CANCELLED) };

describe('cancels of one order at once', () => {
  it('two cancels of one order at once are sent once and answered alike, and one after them is sent anew', async () => {
    const { cancel, state } = open(pending, { ...pending, id: 'ord_b' });
    let answer: (cancelled: Cancelled) => void = () => {};
    state.cancel = () => new Promise((resolve) => (answer = resolve));
    const both = Promise.all([cancel(), cancel()]);
    await new Promise(setImmediate);
    assert.equal(state.sends, 1);
    state.cancel = async () => tooLate;
    assert.equal(await cancel('ord_b'), 'order_not_cancelable', 'another order has a cancel of its own');
    answer(tooLate);
    assert.deepEqual(await both, ['order_not_cancelable', 'order_not_cancelable']);
    assert.equal(await cancel(), 'order_not_cancelable', 'the exchange is asked again');
    assert.equal(state.sends, 3);
  });
});

describe('the end of a cancel', () => {
  const newer = { cancelUntil: now + 9_999 };
  const ended: readonly [
    name: string,
    answer: Cancelled,
    meanwhile: Partial<StoredOrder>,
    record: readonly Report[] | undefined,
    shown: string,
    cancelUntil: number | null,
    step: string,
  ][] = [
    ['without a clear answer may be sent again', unclear, {}, [], 'cancel_unconfirmed', now, 'unconfirmed: no answer'],
    [
      'without a clear answer leaves a newer one under way',
      unclear,
      newer,
      [],
      'cancel_unconfirmed',
      now + 9_999,
      'unconfirmed',
    ],
    [
      'that was too late leaves a newer one under way',
      tooLate,
      newer,
      [],
      'order_not_cancelable',
      now + 9_999,
      'too late',
    ],
    ['that was too late is over', tooLate, {}, [], 'order_not_cancelable', null, 'too late to cancel'],
    [
      'without a clear answer is over if its order has ended meanwhile',
      unclear,
      { state: 'filled' },
      [],
      'order_not_cancelable',
      null,
      'unconfirmed',
    ],
    [
      'that was taken ends its order',
      cancelled,
      {},
      [report(2n, ReportKind.CANCELLED)],
      'cancelled',
      null,
      'what had not traded',
    ],
    [
      'that was taken is unclear while the record of its order cannot be read',
      cancelled,
      {},
      undefined,
      'cancel_unconfirmed',
      now,
      'could not be read',
    ],
    [
      'that was taken applies no reports behind some that its order has lost meanwhile',
      ...([cancelled, { lastReport: 0n }, [report(2n, ReportKind.CANCELLED)]] as const),
      ...(['cancel_unconfirmed', null, 'confirmed the cancel'] as const),
    ],
  ];
  for (const [name, answer, meanwhile, record, shown, cancelUntil, step] of ended) {
    it(`a cancel ${name}`, async () => {
      const { cancel, state, rows, order, said } = open(pending);
      state.cancel = async () => {
        assert.equal(order().cancelUntil, now + submitTimeoutMs, 'it is stored before it is sent');
        rows.set(pending.id, { ...order(), ...meanwhile });
        return answer;
      };
      state.lookUp = async () => {
        if (record === undefined) throw new ApiError('exchange_unavailable');
        return { found: true, answer: record };
      };
      assert.equal(await cancel(), shown);
      assert.deepEqual([state.sends, order().cancelUntil], [1, cancelUntil]);
      assert.deepEqual(state.notAfter, [now + submitTimeoutMs], 'it has the time that was stored');
      assert.ok(said.at(-1)?.includes(step), said.at(-1));
      assert.equal(order().lastReport, shown === 'cancelled' ? 2n : (meanwhile.lastReport ?? 1n));
    });
  }

  it('a cancel whose outcome cannot be stored is unconfirmed, and its time stays', async () => {
    const { cancel, state, order } = open(pending);
    state.cancel = async () => {
      state.failure = new Error('the database is away');
      return cancelled;
    };
    assert.equal(await cancel(), 'cancel_unconfirmed');
    assert.equal(order().cancelUntil, now + submitTimeoutMs);
  });
});

describe('the begin of a cancel', () => {
  for (const [name, change, shown, sends] of [
    ['that is cancelled is its answer', { state: 'cancelled' }, 'cancelled', 0],
    ['that has ended is too late', { state: 'expired' }, 'order_not_cancelable', 0],
    ['that is being sent waits', { state: 'sending' }, 'order_not_cancelable', 0],
    ['with an unknown outcome waits', { state: 'uncertain' }, 'order_not_cancelable', 0],
    ['with a cancel under way waits', { cancelUntil: now + 1 }, 'cancel_unconfirmed', 0],
    ['with one for as long as any takes waits', { cancelUntil: now + 300_000 }, 'cancel_unconfirmed', 0],
    ['with one by a wrong clock does not wait', { cancelUntil: now + 300_001 }, 'order_not_cancelable', 1],
    ['with one whose time is over does not wait', { cancelUntil: now }, 'order_not_cancelable', 1],
    ['that traded in part is sent', { state: 'partially_filled', filledQuantity: 1n }, 'order_not_cancelable', 1],
  ] as const) {
    it(`a cancel of an order ${name}`, async () => {
      const { cancel, state, order } = open({ ...pending, ...change });
      if (sends > 0) state.cancel = async () => tooLate;
      assert.deepEqual([await cancel(), state.sends], [shown, sends]);
      if (sends === 0) assert.deepEqual(order(), { ...pending, ...change }, 'nothing is stored');
    });
  }

  it('a cancel is decided again, and not sent, when its caller may have lost its key meanwhile', async () => {
    const { cancel, state } = open(pending);
    let renewals = 0;
    const isLatest = () => renewals > 1;
    const renew = async () => {
      renewals += 1;
      if (renewals === 2) throw new ApiError('unauthorized');
    };
    assert.equal(await cancel(pending.id, { permission: { isLatest, renew } }), 'unauthorized');
    assert.deepEqual([renewals, state.sends], [2, 0]);
  });

  it('the rows of a job are stored with its cancel and with the end of it, and a job that may not send sends nothing', async () => {
    const [begun, end] = [statement('INSERT begun'), statement('INSERT ended')];
    const outcomes: [Ended['outcome'], StoredOrder['state']][] = [];
    const job = (mayBegin: boolean): CancelJob => ({
      ...{ id: 'blk_a', rows: {} as never },
      begun(rows): Statement[] {
        assert.equal(rows, 'the rows of the job');
        if (!mayBegin) throw new ApiError('service_unavailable');
        return [begun];
      },
      ended(_, { outcome }, after): Statement[] {
        outcomes.push([outcome, after.state]);
        return [end];
      },
    });
    const { cancel, state, written } = open(pending);
    assert.equal(await cancel(pending.id, { job: job(false) }), 'service_unavailable');
    assert.deepEqual([state.sends, written], [0, []]);
    state.cancel = async () => cancelled;
    state.lookUp = async () => ({ found: true, answer: [report(2n, ReportKind.CANCELLED)] });
    assert.equal(await cancel(pending.id, { job: job(true) }), 'cancelled');
    assert.deepEqual(outcomes, [['cancelled', 'cancelled']], 'it is told of the order as it is then');
    const own = written.filter((sql) => sql === begun.sql || sql === end.sql);
    assert.deepEqual(own, [begun.sql, end.sql]);
  });
});

describe('a cancel with an unknown outcome', () => {
  const over = now - clockSkewMs;
  const end = report(2n, ReportKind.CANCELLED);
  const cases: readonly [
    name: string,
    cancelUntil: number | null,
    record: readonly Report[] | undefined,
    agreement: ClockAgreement,
    looks: number,
    left: number | null,
  ][] = [
    ['that there is none of is not asked about', null, [], 'in_step', 0, null],
    ['is not asked about while clocks can make it one under way', over + 1, [], 'in_step', 0, over + 1],
    ['was not taken if the record goes on after its time', over, [], 'in_step', 1, null],
    ['was not taken if nothing is known of the clocks', over, [], 'unknown', 1, null],
    ['stays so while the clocks are apart', over, [], 'apart', 1, over],
    ['stays so while the record does not have the order', over, undefined, 'in_step', 1, over],
    ['was taken if the record says so, also by a wrong clock', over, [end], 'apart', 1, null],
  ];
  for (const [name, cancelUntil, record, agreement, looks, left] of cases) {
    it(`a cancel ${name}`, async () => {
      const { canceller, state, order } = open({ ...pending, cancelUntil });
      state.agreement = agreement;
      state.lookUp = async () => (record === undefined ? { found: false } : { found: true, answer: record }) as never;
      const { after, lookUp } = await canceller.reconcileNow('par_a', pending.id);
      assert.deepEqual([state.looks, order().cancelUntil], [looks, left]);
      assert.equal(lookUp, looks === 0 ? undefined : record === undefined ? 'missing' : 'found');
      assert.equal(after.state, record?.includes(end) ? 'cancelled' : 'pending');
    });
  }

  it('a cancel that was sent while the record was read stays under way, whatever the record says', async () => {
    const { canceller, state, rows, order } = open({ ...pending, cancelUntil: over });
    const newer = { ...pending, cancelUntil: now + submitTimeoutMs };
    state.lookUp = async () => {
      rows.set(pending.id, newer);
      return { found: true, answer: [] };
    };
    await canceller.reconcileNow('par_a', pending.id);
    assert.deepEqual(order(), newer);
  });
});

describe('the list of open cancels', () => {
  it('the list of open cancels has an order from its first cancel until none is unclear any more', () => {
    const kind = new OrderKind({} as never, {} as never, { now: () => now, realNow: () => now });
    const change = (before: number | null, after: number | null) =>
      kind
        .settle({ ...pending, cancelUntil: before }, { ...pending, cancelUntil: after })
        .map(({ sql }) => sql.split(' ', 1)[0]);
    assert.deepEqual(change(null, 1), ['INSERT']);
    assert.deepEqual(change(1, null), ['DELETE']);
    assert.deepEqual([change(1, 2), change(null, null)], [[], []]);
    assert.equal(orderKind.cleared?.({ ...pending, cancelUntil: 1 }).cancelUntil, 1);
    assert.equal(orderKind.cleared?.({ ...pending, state: 'expired', cancelUntil: 1 }).cancelUntil, null);
  });
});
