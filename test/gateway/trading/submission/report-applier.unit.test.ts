import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ApiError } from '../../../../src/gateway/edge/errors.ts';
import { PartnerReports, type PartnerReportsParts } from '../../../../src/gateway/trading/submission/report-applier.ts';
import { DatabaseDiffersError } from '../../../../src/gateway/trading/submission/report-position.ts';
import { fc } from '../../../support/properties.ts';

interface Report {
  readonly number: bigint;
  readonly of: string;
}

/** An applier over a database that refuses each transaction about one of these objects, or fails as a test says. */
function begin({ damaged = new Set<string>(), error = new Error('damaged') as Error } = {}) {
  const calls: (readonly string[])[] = [];
  const noted: string[] = [];
  const changeMany = async (_: unknown, { ids }: { readonly ids: readonly string[] }) => {
    calls.push(ids);
    if (ids.some((id) => damaged.has(id))) throw error;
    return [];
  };
  const parts: PartnerReportsParts<never, Report> = {
    kind: { objectIdOf: ({ of }: Report) => of } as never,
    recorder: { changeMany } as never,
    clock: { now: () => 0, realNow: () => 0 } as never,
    stuck: { note: (_: string, ids: readonly string[]) => void noted.push(...ids) } as never,
    position: { factFor: () => undefined } as never,
    signal: new AbortController().signal,
  };
  const apply = (reports: readonly Report[]) => new PartnerReports(parts, 'p').apply(reports);
  return { apply, calls, noted };
}

interface Row {
  readonly id: string;
  readonly state: 'pending';
  readonly steps: number;
  readonly lastReport: bigint;
  readonly missedReport: bigint;
}

/** An applier over rows in memory. The transactions that fail are given in their order. */
function storing(fails: readonly boolean[]) {
  const rows = new Map<string, Row>();
  const applied = new Map<string, bigint[]>();
  let transactions = 0;
  interface Changing {
    readonly ids: readonly string[];
    decide(row: Row, stored: undefined): { readonly after: Row } | undefined;
  }
  const changeMany = async (_: unknown, { ids, decide }: Changing) => {
    transactions += 1;
    if (fails[transactions] ?? false) throw new Error('the transaction failed');
    for (const id of ids) {
      const row = rows.get(id) ?? { id, state: 'pending', steps: 0, lastReport: 0n, missedReport: 0n };
      const { after } = decide(row, undefined) ?? { after: row };
      rows.set(id, after);
    }
    return [];
  };
  const applyReport = (row: Row, { number, of }: Report) => {
    applied.set(of, [...(applied.get(of) ?? []), number]);
    return { row: { ...row, lastReport: number }, changed: false, inconsistent: false, detail: '' };
  };
  const parts = {
    kind: { objectIdOf: ({ of }: Report) => of, applyReport, reportStep: () => ({}) },
    recorder: { changeMany },
    clock: { now: () => 0, realNow: () => 0 },
    stuck: { note: () => undefined },
    position: { factFor: () => undefined, check: () => undefined },
    signal: new AbortController().signal,
  } as unknown as PartnerReportsParts<never, Report>;
  return { parts, rows, applied };
}

const reportsOf = (...objects: readonly string[]): Report[] =>
  objects.map((of, at) => ({ number: BigInt(at + 1), of }));
const numbersOf = (reports: readonly Report[] = []) => reports.map(({ number }) => number);

describe('the reports of a partner', () => {
  it('are applied in one transaction if nothing fails', async () => {
    const { apply, calls } = begin();
    assert.equal(await apply(reportsOf('a', 'b', 'a')), undefined);
    assert.deepEqual(calls, [['a', 'b']]);
  });

  it('remain in the order of their numbers if their objects are damaged, and all others are applied', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.constantFrom('a', 'b', 'c', 'd', 'e'), { maxLength: 30 }),
        fc.uniqueArray(fc.constantFrom('a', 'b', 'c', 'd', 'e')),
        async (objects, some) => {
          const damaged = new Set<string>(some);
          const { apply, calls, noted } = begin({ damaged });
          const reports = reportsOf(...objects);
          const unapplied = await apply(reports);
          const expected = reports.filter(({ of }) => damaged.has(of));
          assert.deepEqual(numbersOf(unapplied?.reports), numbersOf(expected));
          assert.deepEqual(new Set(noted), new Set(expected.map(({ of }) => of)));
          const applied = new Set(calls.filter((ids) => !ids.some((id) => damaged.has(id))).flat());
          assert.deepEqual(applied, new Set(objects.filter((of) => !damaged.has(of))));
        },
      ),
    );
  });

  it('reports of one object are applied in the order of their numbers and without a gap, whichever transactions fail', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.constantFrom('a', 'b', 'c'), { minLength: 1, maxLength: 12 }),
        fc.array(fc.boolean(), { minLength: 40, maxLength: 40 }),
        async (objects, fails) => {
          const { parts, rows, applied } = storing(fails);
          const reports = reportsOf(...objects);
          const unapplied = await new PartnerReports(parts, 'p').apply(reports);
          for (const id of new Set(objects)) {
            const own = numbersOf(reports.filter(({ of }) => of === id));
            const done = applied.get(id) ?? [];
            assert.deepEqual(done, own.slice(0, done.length), `${done} of ${own} are applied`);
            const left = numbersOf(unapplied?.reports.filter(({ of }) => of === id));
            const isLookedUp = (rows.get(id)?.missedReport ?? 0n) > (rows.get(id)?.lastReport ?? 0n);
            assert.ok(isLookedUp || done.length + left.length === own.length, 'none is forgotten');
          }
        },
      ),
    );
  });

  it('are halved at most 64 times, and those that are left are passed over together', async () => {
    const objects = Array.from({ length: 1_000 }, (_, at) => `o${at}`);
    const { apply, calls } = begin({ damaged: new Set(objects) });
    const unapplied = await apply(reportsOf(...objects));
    assert.equal(unapplied?.reports.length, 1_000);
    // One transaction for all, two for each halving, and one that notes each object as behind.
    assert.equal(calls.length, 1 + 2 * 64 + 1_000);
  });

  it('are not halved if the database cannot serve or has lost what it had', async () => {
    for (const error of [new ApiError('internal_error'), new DatabaseDiffersError('lost')]) {
      const { apply, calls, noted } = begin({ damaged: new Set(['a']), error });
      await assert.rejects(apply(reportsOf('a', 'b')), error);
      assert.deepEqual([calls.length, noted], [1, []]);
    }
  });

  /** Reports 1 and 2 about an object, in a transaction that decides on this row as a test says. */
  async function applyTo(row: object, change: object = {}, isKnown = true) {
    const { parts } = storing([]);
    const decided: ({ readonly after: Row & { checkAt: number } } | undefined)[] = [];
    type Decide = (row: object, stored: unknown) => (typeof decided)[number];
    const changeMany = async (_: unknown, { decide, decideUnknown }: { decide: Decide; decideUnknown: Decide }) => {
      decided.push((isKnown ? decide : decideUnknown)(row, 'stored'));
      return [];
    };
    const own = { ...parts, recorder: { changeMany }, clock: { now: () => 5, realNow: () => 7 }, ...change };
    const unapplied = await new PartnerReports(own as never, 'p').apply(reportsOf('a', 'a'));
    return { unapplied, after: decided[0]?.after };
  }
  const pending = { id: 'a', state: 'pending', steps: 0, checks: 0, lastReport: 0n, missedReport: 0n, checkAt: null };

  it('reports are not applied by a transaction that decides after they are to be read again', async () => {
    const signal = AbortSignal.abort();
    await assert.rejects(applyTo(pending, { signal }), DatabaseDiffersError);
  });

  it('reports are not applied to a row of a database that lacks earlier ones', async () => {
    const seen: unknown[] = [];
    const check = (...args: unknown[]) => {
      seen.push(args);
      throw new DatabaseDiffersError('it lacks a report');
    };
    await assert.rejects(applyTo(pending, { position: { factFor: () => undefined, check } }), /it lacks a report/);
    assert.deepEqual(seen, [['stored', pending]]);
  });

  it('reports are noted of an object that another version stored, which is looked up when it was to be, or else now', async () => {
    const state = 'amended' as never;
    for (const [checkAt, expected] of [
      [9, 9],
      [null, 7],
    ] as const) {
      const { after } = await applyTo({ ...pending, state, checkAt }, {}, false);
      assert.deepEqual([after?.missedReport, after?.lastReport, after?.checkAt], [2n, 0n, expected]);
    }
    const { after } = await applyTo({ ...pending, state, missedReport: 2n }, {}, false);
    assert.equal(after, undefined, 'they are noted already');
  });

  it('reports change nothing of an object that has them', async () => {
    const applyReport = () => undefined;
    const kind = { objectIdOf: ({ of }: Report) => of, applyReport, reportStep: () => ({}) };
    const { unapplied, after } = await applyTo({ ...pending, lastReport: 2n }, { kind });
    assert.deepEqual([unapplied, after], [undefined, undefined]);
  });

  it('reports say nothing against their partner if a guard failed, and are left if the database goes away while they are noted', async () => {
    const guard = Object.assign(new Error('CONSTRAINT `marina_guard` failed'), { errno: 4025 });
    const first = begin({ damaged: new Set(['a']), error: guard });
    await first.apply(reportsOf('a'));
    assert.deepEqual(first.noted, []);
    for (const away of [new ApiError('internal_error'), new DatabaseDiffersError('lost')]) {
      const { parts } = storing([]);
      let calls = 0;
      const changeMany = async () => {
        calls += 1;
        throw calls === 1 ? new Error('damaged') : away;
      };
      const applying = new PartnerReports({ ...parts, recorder: { changeMany } as never }, 'p').apply(reportsOf('a'));
      await assert.rejects(applying, away);
    }
  });
});
