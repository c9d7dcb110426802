import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { create } from '@bufbuild/protobuf';
import { ApiError } from '../../../../src/gateway/edge/errors.ts';
import { PartnerTransaction } from '../../../../src/gateway/store/partner-transaction.ts';
import { statement } from '../../../../src/gateway/store/statement.ts';
import type { Sent } from '../../../../src/gateway/trading/broker/broker.ts';
import { OrderKind } from '../../../../src/gateway/trading/orders/kind.ts';
import { orders, type StoredOrder } from '../../../../src/gateway/trading/orders/table.ts';
import type { Change } from '../../../../src/gateway/trading/submission/change.ts';
import { usage } from '../../../../src/gateway/trading/submission/day-limit.ts';
import { pausedBeforeSend } from '../../../../src/gateway/trading/submission/environment.ts';
import type { Precondition } from '../../../../src/gateway/trading/submission/kind.ts';
import { StartGate } from '../../../../src/gateway/trading/submission/start-gate.ts';
import { Submitter } from '../../../../src/gateway/trading/submission/submit.ts';
import { type Report, ReportKind, ReportSchema } from '../../../../src/gen/marina/broker/v1/orders_pb.ts';
import { lagosDay } from '../../../../src/kit/clock.ts';
import { KeyedDigest, onlyKey } from '../../../../src/kit/key-ring.ts';
import { createLogger } from '../../../../src/kit/log.ts';
import { plainOrder } from '../../../support/plain-order.ts';

const [submitTimeoutMs, clockSkewMs] = [5_000, 2_000];
const begin = plainOrder.createdAt;
/** As long as the partner's lock is waited for. */
const waitMs = 3_000;
const digest = (text: string) => new KeyedDigest(onlyKey(Buffer.alloc(32, 1)), (hmac) => hmac.update(text));
const [same, other] = [digest('this order'), digest('another order')];
const prior: StoredOrder = {
  ...plainOrder,
  ...{ id: 'ord_prior', partnerId: 'par_a', idempotencyKey: 'key 1', requestDigest: same.current },
  ...{ state: 'pending', firstAnswer: 'object' },
};
const report = (kind: ReportKind) => create(ReportSchema, { number: 1n, exchangeOrderId: 'X1', kind });
const accepted: Sent<Report> = { outcome: 'answered', answer: report(ReportKind.ACCEPTED) };

/** A submitter over orders in memory: what a test says is stored and in force, and what the exchange answers. */
function open() {
  const gate = new StartGate();
  gate.open();
  const state = {
    now: begin,
    /** The orders of the key: as it is looked up, and as the transaction finds it. */
    known: undefined as StoredOrder | undefined,
    isUsed: false,
    isPaused: false,
    /** As the transaction finds it, before this process hears of it. */
    isPausedThere: false,
    isCached: true,
    met: true,
    mustWait: false,
    usedKobo: 0n,
    isLatest: true,
    obstacle: undefined as typeof pausedBeforeSend | undefined,
    recording: undefined as Error | undefined,
    answer: accepted,
  };
  const events: string[] = [];
  const rows: StoredOrder[] = [];
  const clock = { now: () => state.now, realNow: () => state.now };
  const table = {
    ...{ name: 'orders', fields: orders.fields, all: { read: (row: unknown) => row } },
    ...{ find: () => statement('FIND'), where: () => statement('WHERE'), insert: () => statement('INSERT') },
  };
  const precondition: Precondition = {
    ...{ mustBe: true, otherwise: () => new ApiError('similar_order_unresolved') },
    fact: { reads: [], value: () => true },
  };
  const kind = Object.assign(new OrderKind({} as never, {} as never, clock), {
    ...{ table, preconditions: () => [precondition], mustWait: () => ({ reads: [], value: () => false }) },
    prepare: () => {
      const { account, symbol, side, type, timeInForce, quantity, priceKobo, clientReference, countedPriceKobo } =
        plainOrder;
      const draft = {
        account,
        symbol,
        side,
        type,
        timeInForce,
        quantity,
        priceKobo,
        clientReference,
        countedPriceKobo,
      };
      const prepare = async () => {
        events.push('prepared');
        return draft;
      };
      return { draft: state.isCached ? draft : undefined, reads: [], prepare };
    },
    send: async (row: StoredOrder) => {
      events.push('sent');
      assert.deepEqual(row, rows[0], 'what is sent is what was stored');
      return state.answer;
    },
  });
  const found = () => (state.known === undefined ? [] : [state.known]);
  const database = {
    readAll: async () => {
      events.push('looked up');
      return [found()];
    },
    transaction: async (_: unknown, decide: (rows: unknown[]) => { result: unknown }) => decide([found()]).result,
    inPartnerTransaction: async (partnerId: string, { decide }: { decide: (...args: unknown[]) => never }) => {
      state.now += waitMs;
      const day = usage(partnerId, lagosDay(begin), 'orders').name;
      const row = { id: partnerId, version: '1', orders_kobo_per_day: '200000', allocations_kobo_per_day: '0' };
      const partner = new PartnerTransaction({ row, shared: new Map([[day, state.usedKobo]]) });
      const inForce = { paused: state.isPausedThere, stops: [] };
      const facts = {
        isUsed: state.isUsed,
        inForce,
        mustWait: state.mustWait,
        met: { 0: state.met },
        shared: undefined,
      };
      const { writes, result }: { writes: unknown[]; result: StoredOrder } = decide(facts, partner);
      if (writes.length > 0) rows.push(result);
      events.push(writes.length > 0 ? 'stored' : 'not stored');
      return result;
    },
  };
  const changeCached = async (_: unknown, row: StoredOrder, decide: (row: StoredOrder) => Change<StoredOrder>) => {
    if (state.recording !== undefined) throw state.recording;
    events.push('recorded');
    return decide(row).after;
  };
  const submitter = new Submitter({
    ...{ database: database as never, recorder: { changeCached } as never, clock, submitTimeoutMs, clockSkewMs, gate },
    ids: { object: () => 'ord_new' } as never,
    notes: { checkLength: () => {}, write: () => Buffer.alloc(0) } as never,
    environment: {
      get paused() {
        return state.isPaused;
      },
      ...{ stops: [], stopsVersion: 0n, obstacleTo: () => state.obstacle },
    },
  });
  let renewals = 0;
  const renew = async () => {
    renewals += 1;
    if (renewals > 1) throw new ApiError('unauthorized');
  };
  /** The order, with whether it was there before; or the error. */
  const submit = async (given = same) => {
    try {
      return await submitter.submit(kind as never, {
        origin: { partnerId: 'par_a', requestId: 'req', traceParent: null },
        ...{ keyId: 'key_a', idempotencyKey: 'key 1', digest: given, request: {} },
        permission: { renew, isLatest: () => state.isLatest },
        log: () => createLogger({ name: 'test', level: 'silent' }),
      });
    } catch (error) {
      if (error instanceof ApiError) return error;
      throw error;
    }
  };
  return { submit, state, events, rows, gate };
}

/** The code of an error; the id of an order. */
const answerOf = (answer: Awaited<ReturnType<ReturnType<typeof open>['submit']>>) =>
  answer instanceof ApiError ? answer.code : `${(answer.row as StoredOrder).id}${answer.replayed ? ' again' : ''}`;

describe('an order on its way', () => {
  it('an order is stored, sent and recorded, and its time to be sent begins when it has the lock of its partner', async () => {
    const { submit, events, rows } = open();
    assert.equal(answerOf(await submit()), 'ord_new');
    assert.deepEqual(events, ['stored', 'sent', 'recorded']);
    const [row] = rows;
    assert.deepEqual([row?.createdAt, row?.notAfter], [begin, begin + waitMs + submitTimeoutMs]);
    assert.equal(row?.checkAt, begin + waitMs + submitTimeoutMs + clockSkewMs);
    assert.deepEqual([row?.keyId, row?.idempotencyKey, row?.requestId], ['key_a', 'key 1', 'req']);
  });

  for (const [name, change, expected, events] of [
    [
      'a key whose use only the transaction finds is answered with its order, and nothing is stored',
      { isUsed: true, known: prior },
      'ord_prior again',
      ['not stored'],
    ],
    [
      'an order is not stored while its partner has too little left of the day',
      { usedKobo: 100_001n },
      'limit_exceeded',
      [],
    ],
    ['an order is not stored while one like it holds it back', { met: false }, 'similar_order_unresolved', []],
    [
      'an order that is held back is told so also if its partner has used up the day',
      { met: false, usedKobo: 200_000n },
      'similar_order_unresolved',
      [],
    ],
    [
      'an order is not stored for a key that was revoked while it waited for the lock',
      { isLatest: false },
      'unauthorized',
      [],
    ],
    [
      'an order is not stored behind a pause that only the transaction finds, whatever else is in its way',
      ...([{ isPausedThere: true, met: false }, 'trading_paused', []] as const),
    ],
    ['an order that must be released is stored, and not sent', { mustWait: true }, 'ord_new', ['stored']],
    [
      'a repeated order is answered while trading is paused, also if the cache knows enough',
      { isPaused: true, known: prior },
      ...(['ord_prior again', ['looked up']] as const),
    ],
    [
      'a new order is refused while trading is paused, before the broker is asked about it',
      { isPaused: true },
      'trading_paused',
      ['looked up'],
    ],
    [
      'a repeated order is answered before the broker is asked about it',
      { isCached: false, known: prior },
      'ord_prior again',
      ['looked up'],
    ],
  ] as const) {
    it(name, async () => {
      const { submit, state, events: seen } = open();
      Object.assign(state, change);
      assert.equal(answerOf(await submit()), expected);
      assert.deepEqual(seen, events);
    });
  }

  it('an order that comes exactly to the limit of the day is sent', async () => {
    const { submit, state } = open();
    state.usedKobo = 100_000n;
    assert.equal(answerOf(await submit()), 'ord_new');
  });

  it('a used key with another order is refused, whether it was looked up or found in the transaction', async () => {
    for (const isCached of [true, false]) {
      const { submit, state, rows } = open();
      Object.assign(state, { isCached, known: prior, isUsed: true });
      const refusal = await submit(other);
      assert.ok(refusal instanceof ApiError);
      assert.deepEqual([refusal.code, refusal.param, rows.length], ['duplicate_order', 'Idempotency-Key', 0]);
    }
  });

  it('an order that waits for its release has its answer, no time to be sent yet, and nobody asks about it', async () => {
    const { submit, state, rows } = open();
    state.mustWait = true;
    await submit();
    const [row] = rows as (StoredOrder & { heldUntil: number })[];
    assert.deepEqual([row?.heldUntil, row?.checkAt, row?.firstAnswer], [begin + 7 * 86_400_000, null, 'object']);
  });

  it('an order is not sent if trading is paused after it was stored, and its partner is told that it never left', async () => {
    const { submit, state, events } = open();
    state.obstacle = pausedBeforeSend;
    const refusal = await submit();
    assert.ok(refusal instanceof ApiError);
    assert.deepEqual([refusal.code, refusal.location], ['order_not_sent', '/v1/orders/ord_new']);
    assert.deepEqual(events, ['stored', 'recorded']);
  });

  it('an order whose outcome cannot be stored is named, so that its partner can ask for it', async () => {
    const { submit, state, events } = open();
    state.recording = new Error('the database is away');
    const refusal = await submit();
    assert.ok(refusal instanceof ApiError);
    assert.deepEqual([refusal.code, refusal.location], ['outcome_not_recorded', '/v1/orders/ord_new']);
    assert.deepEqual(events, ['stored', 'sent']);
  });

  it('a rejection is told at once and again, and not once the broker has said otherwise', async () => {
    const { submit, state } = open();
    state.answer = { outcome: 'answered', answer: report(ReportKind.REJECTED) };
    const first = await submit();
    assert.ok(first instanceof ApiError);
    assert.deepEqual([first.code, first.location], ['order_rejected', '/v1/orders/ord_new']);
    const reason = 'The market is closed.';
    const rejected = {
      ...prior,
      state: 'rejected',
      firstAnswer: 'rejected',
      reason,
      rejectReason: 'market_closed',
    } as const;
    for (const [known, says] of [
      [rejected, true],
      [{ ...rejected, state: 'filled' as const }, false],
      [{ ...rejected, reason: null }, false],
    ] as const) {
      state.known = known;
      state.isCached = false;
      const again = await submit();
      assert.ok(again instanceof ApiError);
      assert.equal(again.code, 'order_rejected');
      assert.equal(again.message.includes(reason), says, known.state);
    }
  });

  it('an order is not stored while lost ones of its partner are looked for, also if the cache knows enough', async () => {
    const { submit, state, events, gate } = open();
    gate.hold([{ kind: 'order', partnerId: 'par_a' }]);
    assert.equal(answerOf(await submit()), 'exchange_unavailable');
    assert.deepEqual(events, ['looked up', 'prepared']);
    state.known = prior;
    assert.equal(answerOf(await submit()), 'ord_prior again', 'a repeated one is answered');
  });
});
