import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { PartnerTransaction } from '../../../../src/gateway/store/partner-transaction.ts';
import type { Statement } from '../../../../src/gateway/store/statement.ts';
import { OrderKind } from '../../../../src/gateway/trading/orders/kind.ts';
import type { StoredOrder } from '../../../../src/gateway/trading/orders/table.ts';
import { usage } from '../../../../src/gateway/trading/submission/day-limit.ts';
import { keyKeptMs } from '../../../../src/gateway/trading/submission/key-retention.ts';
import { Recorder, type RecorderParts } from '../../../../src/gateway/trading/submission/record.ts';
import { StartGate } from '../../../../src/gateway/trading/submission/start-gate.ts';
import { ReportKind, ReportSchema } from '../../../../src/gen/marina/broker/v1/orders_pb.ts';
import { plainOrder } from '../../../support/plain-order.ts';

const now = plainOrder.createdAt + 60_000;
const pending: StoredOrder = {
  ...plainOrder,
  ...{ id: 'ord_a', partnerId: 'par_a', state: 'pending', exchangeOrderId: 'X1', lastReport: 1n, checkAt: null },
  ...{ idempotencyKey: 'key 1', firstAnswer: 'object' },
};

function report(number: bigint, kind: ReportKind, at = now, quantity = 0n) {
  const priceKobo = quantity === 0n ? 0n : 1_000n;
  return create(ReportSchema, { number, exchangeOrderId: 'X1', kind, quantity, priceKobo, at: timestampFromMs(at) });
}

/** A recorder over orders in memory, and what it writes and tells. */
function open(rows: readonly StoredOrder[], at = now) {
  const clock = { now: () => at, realNow: () => at };
  const kind = new OrderKind({} as never, {} as never, clock);
  const gate = new StartGate();
  gate.open();
  const told = { notified: 0, reported: [] as [number, number][], contradictions: 0, falseRefusals: 0, logged: 0 };
  const count = (name: 'notified' | 'contradictions' | 'falseRefusals' | 'logged') => () => {
    told[name] += 1;
  };
  const state = { failure: undefined as Error | undefined, touched: [] as readonly string[] };
  let written: readonly Statement[] = [];
  const used = usage('par_a', plainOrder.countedDay, 'orders');
  const partner = new PartnerTransaction({
    row: { id: 'par_a', version: '7' },
    shared: new Map([[used.name, 1_000_000n]]),
  });
  type Work = { readonly touches: readonly string[]; decide(facts: object, partner: PartnerTransaction): never };
  const parts: RecorderParts = {
    database: {
      inPartnerTransaction: async (_: string, { touches, decide }: Work) => {
        state.touched = touches;
        const { writes, result }: { writes: Statement[]; result: unknown } = decide({ rows, extra: 'extra' }, partner);
        if (state.failure !== undefined) throw state.failure;
        written = writes;
        return result;
      },
    } as never,
    ...{ clock, gate, ids: { event: () => 'evt_1' } as never, relay: { notify: count('notified') } },
    clocks: { reported: (afterMs, aheadMs = 0) => void told.reported.push([afterMs, aheadMs]) },
    log: { error: count('logged') } as never,
    metrics: {
      partner: (id: string) => id,
      contradictions: { inc: count('contradictions') },
      falseRefusals: { inc: count('falseRefusals') },
    } as never,
  };
  const verbs = () => written.map(({ sql }) => /^(?:INSERT INTO|UPDATE|DELETE FROM)\s+(\w+)/.exec(sql)?.[1]);
  const withGate = (other: StartGate) => new Recorder({ ...parts, gate: other });
  return {
    recorder: new Recorder(parts),
    withGate,
    kind,
    told,
    state,
    verbs,
    written: () => written,
    usedKobo: () => partner.get(used),
    partner,
  };
}

describe('a change of orders that is stored', () => {
  it('a change with an event is stored with it and with its history, counted for the day, and published', async () => {
    const { recorder, kind, told, verbs, usedKobo, partner, state } = open([pending]);
    const ends = [report(2n, ReportKind.TRADE, now, 40n), report(3n, ReportKind.CANCELLED)];
    const after = await recorder.change(kind, 'par_a', 'ord_a', (row) => kind.begin(row).reports(ends));
    assert.deepEqual([after.state, after.filledQuantity], ['cancelled', 40n]);
    assert.deepEqual(verbs(), ['orders', 'order_steps', 'outbox', 'feed_events']);
    assert.equal(usedKobo(), 1_000_000n - 60n * pending.countedPriceKobo, 'what did not trade is given back');
    assert.deepEqual([partner.version, told.notified, state.touched], [9n, 1, ['ord_a']]);
    assert.deepEqual(told.reported, [[now - pending.createdAt, pending.createdAt - now]]);
  });

  it('nothing is written, counted or published of an order that does not change, or that is not there', async () => {
    const { recorder, kind, told, verbs, usedKobo } = open([pending]);
    assert.equal(await recorder.change(kind, 'par_a', 'ord_a', () => undefined), pending);
    assert.deepEqual([verbs(), usedKobo(), told.notified, told.reported], [[], 1_000_000n, 0, []]);
    const decide = () => assert.fail('there is nothing to decide about');
    await assert.rejects(open([]).recorder.change(kind, 'par_a', 'ord_a', decide), /ord_a is not stored/);
    await assert.rejects(open([]).recorder.changeCached(kind, pending, decide), /ord_a is not stored/);
  });

  it('a step without an event is stored, and nothing is published', async () => {
    const { recorder, kind, told, verbs, partner } = open([pending]);
    await recorder.change(kind, 'par_a', 'ord_a', (row) => kind.begin(row).step('cancel', 'a cancel is sent'));
    assert.deepEqual([verbs(), told.notified, partner.version], [['orders', 'order_steps'], 0, 7n]);
  });

  it('nothing is told of a change that is not known to be stored', async () => {
    const { recorder, kind, told, state } = open([pending]);
    state.failure = new Error('no answer to COMMIT');
    const changing = recorder.change(kind, 'par_a', 'ord_a', (row) =>
      kind.begin(row).reports([report(2n, ReportKind.EXPIRED)]),
    );
    await assert.rejects(changing, /no answer/);
    assert.deepEqual([told.notified, told.reported], [0, []]);
  });

  it('an order of another version is left as it is, unless it is noted that it is behind', async () => {
    const unknown = { ...pending, state: 'amended' as never };
    const { recorder, kind, verbs } = open([unknown, { ...pending, id: 'ord_b' }]);
    const ids = ['ord_a', 'ord_b'];
    const decided: string[] = [];
    const decide = (row: StoredOrder) => {
      decided.push(row.id);
      return undefined;
    };
    const rows = await recorder.changeMany(kind, { partnerId: 'par_a', ids, decide });
    assert.deepEqual([rows[0], decided, verbs()], [unknown, ['ord_b'], []]);
    const decideUnknown = (row: StoredOrder) => kind.begin(row).note({ missedReport: 9n });
    const [behind] = await recorder.changeMany(kind, { partnerId: 'par_a', ids, decide, decideUnknown });
    assert.deepEqual([behind?.missedReport, decided], [9n, ['ord_b', 'ord_b']]);
  });

  it('each contradiction is alarmed, and twice if the partner was told that the order had never arrived', async () => {
    for (const [state, falseRefusals] of [
      ['filled', 0],
      ['refused', 1],
    ] as const) {
      const { recorder, kind, told } = open([{ ...pending, state }]);
      const impossible = [report(2n, ReportKind.REJECTED), report(3n, ReportKind.REJECTED)];
      await recorder.change(kind, 'par_a', 'ord_a', (row) => kind.begin(row).reports(impossible));
      assert.deepEqual([told.contradictions, told.falseRefusals], [2, 2 * falseRefusals], state);
      assert.equal(told.logged, 2 + 2 * falseRefusals);
    }
  });

  it('the key of an order that ends is freed if it is older than thirty days, and not before or while it is open', async () => {
    for (const [ageMs, kindOfReport, frees] of [
      [keyKeptMs + 1, ReportKind.EXPIRED, true],
      [keyKeptMs, ReportKind.EXPIRED, false],
      [keyKeptMs + 1, ReportKind.TRADE, false],
    ] as const) {
      const { recorder, kind, written } = open([pending], pending.createdAt + ageMs);
      const one = report(2n, kindOfReport, now, 1n);
      await recorder.change(kind, 'par_a', 'ord_a', (row) => kind.begin(row).reports([one]));
      assert.equal(
        written().some(({ sql }) => sql.includes('idempotency_key = IF')),
        frees,
        `${ageMs - keyKeptMs} ms`,
      );
    }
  });

  it('no order is changed before the start has found what was lost', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const { withGate, kind, state } = open([pending]);
    const changing = assert.rejects(
      withGate(new StartGate()).change(kind, 'par_a', 'ord_a', () => undefined),
      { code: 'exchange_unavailable' },
    );
    t.mock.timers.tick(3_000);
    await changing;
    assert.deepEqual(state.touched, []);
  });
});
