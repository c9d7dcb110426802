/** The outcomes that operators are told of objects that they have reconciled, by the broker's record. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ApiError } from '../../../../../src/gateway/edge/errors.ts';
import { acknowledgementCalls } from '../../../../../src/gateway/operators/calls/diagnostics/acknowledgements.ts';
import { reconcileCalls } from '../../../../../src/gateway/operators/calls/diagnostics/reconcile.ts';
import type { SqlRow, Statement } from '../../../../../src/gateway/store/statement.ts';
import { lookUps } from '../../../../../src/gateway/trading/submission/table.ts';
import { ReconcileOutcome } from '../../../../../src/gen/marina/admin/v1/diagnostics_pb.ts';
import { orderKind } from '../../../../support/kinds.ts';
import { plainOrder } from '../../../../support/plain-order.ts';
import { storedRow } from '../../../../support/stored-row.ts';

const { NOTHING_UNCLEAR, SETTLED, STILL_UNCLEAR, BEING_SENT, OTHER_VERSION } = ReconcileOutcome;
const [now, realNow] = [1_000_000, 500_000];
const call = { operator: 'ada', action: 'Diagnostics.ReconcileNow', requestId: 'r' } as never;
const id = (prefix: string, letter = 'a') => `${prefix}_${letter.repeat(20)}`;

interface Found {
  readonly before: string;
  readonly after: string;
  readonly asked: boolean;
  readonly isSettled: boolean;
  readonly isKnown: boolean;
}
const unclear: Found = { before: 'uncertain', after: 'uncertain', asked: true, isSettled: false, isKnown: true };
type Cancel = readonly [before: number | null, after: number | null, lookUp: string | undefined] | Error;

interface Answer {
  readonly objects: readonly {
    kind: string;
    id: string;
    outcome: ReconcileOutcome;
    lookUp: string;
    errorClass?: string;
  }[];
  readonly nextCursor: string | undefined;
}

function open({
  found = unclear,
  cancel = [null, null, undefined] as Cancel,
  pages = [[]] as readonly (readonly string[])[],
} = {}) {
  const state = { asked: [] as string[], written: 0, atOnce: 0, most: 0, afterAsk: async () => {} };
  const database = {
    read: async ({ sql }: Statement): Promise<SqlRow[]> => {
      if (sql.includes('FROM partners')) return [{ id: 'par_a' }];
      if (!sql.includes('FROM look_ups')) return [{ partner_id: 'par_a' }];
      const nothing = Object.fromEntries(lookUps.fields.map((field) => [field, null]));
      const row = {
        ...nothing,
        partnerId: 'par_a',
        objectId: 'x',
        lastAt: 1,
        asked: 2,
        outcome: 'absent',
        errorClass: 'e',
      };
      return [storedRow(lookUps, row as never)];
    },
    write: async () => {
      state.written += 1;
      return 1;
    },
  };
  const facts = (text: string) => ({ state: text });
  const ask = async (_: string, objectId: string) => {
    state.asked.push(objectId);
    state.atOnce += 1;
    state.most = Math.max(state.most, state.atOnce);
    await state.afterAsk();
    state.atOnce -= 1;
    return { ...found, before: facts(found.before), after: facts(found.after) };
  };
  const list = {
    read: async (_list: string, _kinds: unknown, filter: object, cursor: string) => {
      assert.deepEqual(filter, { partnerId: 'par_a' });
      const at = Number(cursor === '' ? 0 : cursor);
      const data = (pages[at] ?? []).map((one) => ({ kind: 'order', row: { id: one } }));
      return { data, nextCursor: at + 1 < pages.length ? String(at + 1) : undefined };
    },
  };
  const { reconcileNow } = reconcileCalls({
    ...{ database, clock: { now: () => now }, log: { warn: () => {} }, pages: list },
    ...Object.fromEntries(
      ['order', 'application', 'allocation', 'withdrawal'].map((kind) => [kind, { reconcileNow: ask }]),
    ),
    cancel: {
      async reconcileNow() {
        if (cancel instanceof Error) throw cancel;
        const [before, after, lookUp] = cancel;
        return {
          before: { state: 'pending', cancelUntil: before },
          after: { state: 'pending', cancelUntil: after },
          lookUp,
        };
      },
    },
  } as never);
  const make = (request: object) =>
    reconcileNow(
      { objectId: '', partnerId: '', cursor: '', reason: 'why', ...request } as never,
      call,
    ) as unknown as Promise<Answer>;
  return { state, make };
}

describe('an object that is reconciled', () => {
  it('an object that is reconciled is settled, unclear, or being sent, by what the look-up showed', async () => {
    for (const [found, outcome, lookUp] of [
      [{}, STILL_UNCLEAR, 'absent'],
      [{ asked: false }, BEING_SENT, ''],
      [{ isSettled: true, after: 'pending' }, SETTLED, 'absent'],
      [{ isSettled: true }, NOTHING_UNCLEAR, 'absent'],
      [{ isSettled: true, asked: false }, NOTHING_UNCLEAR, ''],
      [{ isKnown: false }, OTHER_VERSION, ''],
    ] as const) {
      const { make, state } = open({ found: { ...unclear, ...found } });
      const { objects, nextCursor } = await make({ objectId: id('wdr') });
      assert.deepEqual(
        objects.map((one) => [one.kind, one.outcome, one.lookUp]),
        [['withdrawal', outcome, lookUp]],
      );
      assert.deepEqual([nextCursor, state.written], [undefined, 1], 'with its audit entry');
    }
  });

  it('an object that is reconciled shows the cancel of an order if there is one, or if it could not be looked up', async () => {
    for (const [cancel, shown] of [
      [[null, null, undefined], undefined],
      [
        [5, null, 'found'],
        [SETTLED, 'found', undefined],
      ],
      [
        [5, 5, 'absent'],
        [STILL_UNCLEAR, 'absent', undefined],
      ],
      [
        [5, 5, undefined],
        [BEING_SENT, '', undefined],
      ],
      [new ApiError('exchange_unavailable'), [STILL_UNCLEAR, 'unanswered', 'exchange_unavailable']],
      [new Error('a defect'), [STILL_UNCLEAR, 'unanswered', 'failed']],
    ] as const) {
      const { objects } = await open({ cancel }).make({ objectId: id('ord') });
      assert.equal(objects[0]?.kind, 'order');
      const [, second] = objects;
      assert.deepEqual(second && [second.outcome, second.lookUp, second.errorClass], shown);
    }
  });

  it('an object that is reconciled is named, or its partner is, and not both', async () => {
    for (const request of [{}, { objectId: id('ord'), partnerId: 'par_a' }, { objectId: id('ord'), cursor: 'c' }]) {
      const { make, state } = open();
      await assert.rejects(make(request), /object_id|partner_id|cursor/);
      assert.equal(state.written, 0);
    }
  });

  it('an object that is reconciled is of one call at a time, and the next may begin when the one before has ended, however it did', async () => {
    const { make, state } = open();
    let goOn = () => {};
    const held = new Promise<void>((resolve) => {
      goOn = resolve;
    });
    state.afterAsk = () => held;
    const first = make({ objectId: id('wdr') });
    await assert.rejects(make({ objectId: id('wdr') }), /another call reconciles/);
    goOn();
    await first;
    state.afterAsk = async () => Promise.reject(new Error('away'));
    await assert.rejects(make({ objectId: id('wdr') }), /away/);
    state.afterAsk = async () => {};
    assert.equal((await make({ objectId: id('wdr') })).objects.length, 1);
  });
});

describe("a partner's objects that are reconciled", () => {
  const page = (number: number, count = 16) => Array.from({ length: count }, (_, at) => `ord_${number}_${at}`);

  it("a partner's objects that are reconciled are each asked about once, in their order, at most eight at once and about a hundred in a call", async () => {
    const pages = Array.from({ length: 9 }, (_, number) => page(number));
    const { make, state } = open({ pages });
    state.afterAsk = () => new Promise(setImmediate);
    const first = await make({ partnerId: 'par_a' });
    assert.deepEqual([first.objects.length, first.nextCursor, state.most], [96, '6', 8]);
    const rest = await make({ partnerId: 'par_a', cursor: first.nextCursor });
    assert.deepEqual([rest.objects.length, rest.nextCursor], [48, undefined]);
    assert.deepEqual(
      [...first.objects, ...rest.objects].map((one) => one.id),
      pages.flat(),
    );
  });

  it("a partner's objects that are reconciled are asked about for twenty seconds, and one page of them however long the broker takes", async (t) => {
    let at = 0;
    t.mock.method(performance, 'now', () => at);
    const { make, state } = open({ pages: [page(0, 1), page(1, 1), page(2, 1)] });
    state.afterAsk = async () => {
      at += 10_000;
    };
    const { objects, nextCursor } = await make({ partnerId: 'par_a' });
    assert.deepEqual([objects.length, nextCursor], [2, '2']);
    state.afterAsk = async () => {
      at += 90_000;
    };
    assert.deepEqual((await make({ partnerId: 'par_a' })).nextCursor, '1');
  });
});

describe('an acknowledgement of an unsettled object', () => {
  const acknowledge = async (hours: number, { checkAt = 5 as number | null, isThere = true, before = false } = {}) => {
    let written: readonly string[] = [];
    const row = isThere ? { ...plainOrder, id: id('ord'), partnerId: 'par_a', checkAt } : undefined;
    const database = {
      write: async () => 0,
      transaction: async (_: unknown, decide: (rows: SqlRow[][]) => { result: unknown }) =>
        decide([[{ partner_id: 'par_a' }]]).result,
      inPartnerTransaction: async (
        _: string,
        { decide }: { decide: (facts: object) => { writes: Statement[]; result: unknown } },
      ) => {
        const { writes, result } = decide({ row, before: before ? {} : undefined });
        written = writes.map(({ sql }) => sql.split(' ')[0] ?? '');
        return result;
      },
    };
    const parts = { database, clock: { now: () => now, realNow: () => realNow } };
    const kinds = { ofId: (objectId: string) => (objectId.startsWith('ord_') ? orderKind : undefined) };
    const calls = acknowledgementCalls(parts as never, kinds as never);
    const answer = await calls.acknowledgeUnsettled({ objectId: id('ord'), hours, reason: 'why' } as never, call);
    return { answer, written };
  };

  it('an acknowledgement of an unsettled object holds for some hours of real time from now on, and is taken back once', async () => {
    assert.deepEqual(await acknowledge(2), {
      answer: { changed: true, endsAt: realNow + 7_200_000 },
      written: ['INSERT', 'INSERT'],
    });
    assert.deepEqual(await acknowledge(0, { before: true }), {
      answer: { changed: true, endsAt: undefined },
      written: ['DELETE', 'INSERT'],
    });
    assert.deepEqual((await acknowledge(0)).answer, { changed: false, endsAt: undefined });
  });

  it('an acknowledgement of an unsettled object is refused if the outcome is known, and may be taken back then', async () => {
    await assert.rejects(acknowledge(1, { checkAt: null }), /its outcome is known: it is sending/);
    assert.equal((await acknowledge(0, { checkAt: null, before: true })).answer.changed, true);
    await assert.rejects(acknowledge(1, { isThere: false }), /no such object/);
  });
});
