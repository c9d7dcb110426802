import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { ApiError } from '../../../../src/gateway/edge/errors.ts';
import { firstBroker, type LookedUp } from '../../../../src/gateway/trading/broker/broker.ts';
import type { ClockAgreement } from '../../../../src/gateway/trading/broker/clock.ts';
import { OrderKind } from '../../../../src/gateway/trading/orders/kind.ts';
import type { StoredOrder } from '../../../../src/gateway/trading/orders/table.ts';
import type { Change } from '../../../../src/gateway/trading/submission/change.ts';
import { Reconciler } from '../../../../src/gateway/trading/submission/reconcile.ts';
import { type Report, ReportKind, ReportSchema } from '../../../../src/gen/marina/broker/v1/orders_pb.ts';
import { createLogger } from '../../../../src/kit/log.ts';
import { plainOrder } from '../../../support/plain-order.ts';

const skewMs = 2_000;
/** The first instant at which the time to send is over for each replica. */
const over = plainOrder.notAfter + skewMs;
const accepted = create(ReportSchema, {
  ...{ number: 2n, exchangeOrderId: 'X1', kind: ReportKind.ACCEPTED, at: timestampFromMs(plainOrder.createdAt) },
});
const unclear: StoredOrder = {
  ...plainOrder,
  ...{ id: 'ord_a', partnerId: 'par_a', state: 'uncertain', firstAnswer: 'object', checkAt: over },
};

/** A reconciler over one order in memory, and a record that a test answers for. */
function open(stored: StoredOrder, now: number) {
  const events: string[] = [];
  const state = {
    row: stored,
    agreement: 'in_step' as ClockAgreement,
    record: { found: false, brokerTime: now } as LookedUp<readonly Report[]>,
    failure: undefined as Error | undefined,
    /** Called when the record is asked. */
    meanwhile: () => {},
    /** Thrown by the next transaction that stores the answer. */
    storing: undefined as Error | undefined,
  };
  const clock = { now: () => now, realNow: () => now };
  const kind = Object.assign(new OrderKind({} as never, {} as never, clock), {
    lookUp: async () => {
      events.push('asked');
      state.meanwhile();
      if (state.failure !== undefined) throw state.failure;
      return state.record;
    },
  });
  type Decide = (row: StoredOrder) => Change<StoredOrder, Report> | undefined;
  const change = async (_kind: unknown, _partner: unknown, _id: unknown, decide: Decide) => {
    const decided = decide(state.row);
    if (decided === undefined) return state.row;
    if (state.storing !== undefined && events.includes('asked')) {
      const error = state.storing;
      state.storing = undefined;
      throw error;
    }
    const lookUp = decided.writes.find(({ sql }) => sql.includes('look_ups'));
    if (lookUp !== undefined)
      events.push(['found', 'missing', 'unanswered'].find((one) => lookUp.values.flat(3).includes(one)) ?? '');
    state.row = decided.after;
    return decided.after;
  };
  const reconciler = new Reconciler<StoredOrder, Report>({
    ...{ broker: firstBroker, kind, clock, clockSkewMs: skewMs, holder: 'a', stuck: {} as never },
    ...{ database: {} as never, recorder: { change } as never, honoursNotAfter: async () => true },
    clocks: {
      agreement: async () => {
        events.push('compared');
        return state.agreement;
      },
    },
    log: createLogger({ name: 'test', level: 'silent' }),
  });
  const reconcile = async () => {
    const { after, asked, isSettled } = await reconciler.reconcileNow('par_a', 'ord_a');
    return { state: after.state, asked, isSettled };
  };
  return { reconcile, state, events };
}

describe('an order that is reconciled', () => {
  it('an order is left alone until the time to send it is over for each replica', async () => {
    for (const [now, expected] of [
      [over - 1, { state: 'sending', asked: false, isSettled: false }],
      [over, { state: 'uncertain', asked: true, isSettled: false }],
    ] as const) {
      const { reconcile } = open({ ...unclear, state: 'sending', firstAnswer: null }, now);
      assert.deepEqual(await reconcile(), expected);
    }
  });

  const found: LookedUp<readonly Report[]> = { found: true, answer: [accepted] };
  const missing: LookedUp<readonly Report[]> = { found: false, brokerTime: over + 1 } as never;
  const past = { ...unclear, missingSince: over - 1, checks: 3 };
  for (const [name, before, record, more, expected] of [
    ['is settled by its report', unclear, found, {}, { state: 'pending', lookUp: 'found', checks: 0 }],
    ['is asked about again if the record has nothing new', unclear, { ...found, answer: [] }, {}, again('found', 0)],
    ['is missing from the first time on', unclear, missing, {}, { ...again('missing', 0), missingSince: over + 1 }],
    ['never arrived if it is missing again', past, missing, {}, { state: 'refused', lookUp: 'missing', checks: 4 }],
    ['may have arrived while clocks are apart', past, missing, { agreement: 'apart' }, again('missing', 3)],
    [
      'may have arrived while nothing is known of the clocks',
      past,
      missing,
      { agreement: 'unknown' },
      again('missing', 3),
    ],
    [
      'that has reports is not refused because it is missing',
      ...([{ ...unclear, state: 'pending', lastReport: 1n, missedReport: 2n }, missing, {}] as const),
      { state: 'pending', lookUp: 'missing', checks: 1, missingSince: null },
    ],
    [
      'that is behind is settled by what it missed',
      ...([{ ...unclear, state: 'pending', lastReport: 1n, missedReport: 2n }, found, {}] as const),
      { state: 'pending', lookUp: 'found', checks: 0, lastReport: 2n },
    ],
    [
      'is asked about again without an answer, later each time',
      ...([{ ...unclear, checks: 2 }, missing, { failure: new ApiError('exchange_unavailable') }] as const),
      { ...again('unanswered', 2), checkAt: over + 1 + 2_000 },
    ],
    [
      'whose answer cannot be stored is asked about again, and keeps what was answered',
      ...([unclear, found, { storing: new Error('the wallet has no right seal') }] as const),
      again('found', 0),
    ],
  ] as const) {
    it(`an order ${name}`, async () => {
      const { reconcile, state, events } = open(before as StoredOrder, over + 1);
      Object.assign(state, { record, ...more });
      const { isSettled } = await reconcile();
      const { lookUp, ...fields } = expected as { lookUp: string } & Partial<StoredOrder>;
      for (const [field, value] of Object.entries(fields)) {
        assert.deepEqual(state.row[field as keyof StoredOrder], value, field);
      }
      assert.equal(
        isSettled,
        fields.state !== 'uncertain' && (state.row.missedReport ?? 0n) <= (state.row.lastReport ?? 0n),
      );
      const isAnswered = lookUp !== 'unanswered';
      assert.deepEqual(
        events,
        isAnswered ? ['asked', 'compared', lookUp] : ['asked', lookUp],
        'clocks are compared after it',
      );
    });
  }

  it('an order is not changed by a record that was read before a report, or before a failover took reports from it', async () => {
    const settled = { ...unclear, state: 'filled', lastReport: 5n, checkAt: null } as const;
    for (const failure of [undefined, new Error('the broker is away')]) {
      const { state, reconcile } = open(unclear, over + 1);
      state.failure = failure;
      state.meanwhile = () => {
        state.row = settled;
      };
      assert.deepEqual(await reconcile(), { state: 'filled', asked: true, isSettled: true });
      assert.deepEqual(state.row, settled, 'a report settled it');
    }
    const { state, reconcile } = open({ ...unclear, lastReport: 1n }, over + 1);
    state.record = found;
    state.meanwhile = () => {
      state.row = { ...state.row, lastReport: 0n };
    };
    await reconcile();
    assert.deepEqual([state.row.state, state.row.lastReport, state.row.checks], ['uncertain', 0n, 1]);
  });
});

/** The fields of an order whose outcome stays unknown. */
function again(lookUp: string, checks: number) {
  return { state: 'uncertain', lookUp, checks: checks + 1 };
}
