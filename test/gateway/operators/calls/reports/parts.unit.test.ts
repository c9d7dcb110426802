import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { status } from '@grpc/grpc-js';
import { askedDays, eachOf } from '../../../../../src/gateway/operators/calls/reports/days.ts';
import { firstEntryAt } from '../../../../../src/gateway/operators/calls/reports/ledger-part.ts';
import { ReportsUnderWay } from '../../../../../src/gateway/operators/calls/reports/parts.ts';
import type { Statement } from '../../../../../src/gateway/store/statement.ts';
import { ReportFormat } from '../../../../../src/gen/marina/admin/v1/reports_pb.ts';
import { fc } from '../../../../support/properties.ts';

const form = {
  columns: ['number'],
  toLines: (number: number) => [[String(number)]],
  toMessage: (lines: readonly number[]) => ({ lines }),
};
const goesOn = new AbortController().signal;

/** A report of pages of so many lines each, numbered from 0 on. */
async function* pages(...sizes: readonly number[]): AsyncGenerator<number[]> {
  let first = 0;
  for (const size of sizes) {
    yield Array.from({ length: size }, (_, at) => first + at);
    first += size;
  }
}

async function all<Part>(parts: AsyncIterable<Part>): Promise<Part[]> {
  const read: Part[] = [];
  for await (const part of parts) read.push(part);
  return read;
}

describe('reports under way', () => {
  it('a report has about 200 lines in a message, all of them once, and says at the end that it is complete', async () => {
    const reports = new ReportsUnderWay();
    for (const [sizes, messages] of [
      [[], []],
      [[0], []],
      [[199], [199]],
      [[200], [200]],
      [
        [199, 1, 1],
        [200, 1],
      ],
      [
        [150, 150, 0, 10],
        [300, 10],
      ],
    ] as const) {
      const lines = reports.messages({ operator: 'ada' }, ReportFormat.UNSPECIFIED, form, goesOn, () =>
        pages(...sizes),
      );
      const parts = (await all(lines)) as { lines?: number[]; complete?: boolean; count?: number }[];
      const last = parts.pop();
      const count = sizes.reduce((sum: number, size) => sum + size, 0);
      assert.deepEqual(last, { complete: true, count });
      assert.deepEqual(
        parts.map((part) => part.lines?.length),
        messages,
      );
      const numbers = parts.flatMap((part) => part.lines ?? []);
      assert.deepEqual(
        numbers,
        Array.from({ length: count }, (_, at) => at),
      );
    }
    const csv = reports.messages({ operator: 'ada' }, ReportFormat.CSV, form, goesOn, () => pages(2));
    assert.deepEqual(await all(csv), [{ text: 'number\r\n' }, { text: '0\r\n1\r\n' }, { complete: true, count: 2 }]);
  });

  it('a report that its caller ended does not say that it is complete', async () => {
    const reports = new ReportsUnderWay();
    for (const endsAfter of [1, 2, 3]) {
      const ending = new AbortController();
      const lines = async function* (signal: AbortSignal) {
        assert.equal(signal, ending.signal);
        for (let page = 1; page <= 3; page += 1) {
          if (page === endsAfter) ending.abort();
          if (page < 3) yield Array.from({ length: 200 }, () => page);
        }
      };
      const messages = reports.messages({ operator: 'ada' }, ReportFormat.UNSPECIFIED, form, ending.signal, lines);
      const parts = (await all(messages)) as { lines?: number[] }[];
      const seen = parts.map((part) => part.lines?.at(0));
      assert.deepEqual(seen, [1, 2].slice(0, endsAfter - 1), `it ended before page ${endsAfter}`);
    }
  });

  it('an operator has one report under way, all have two, and each makes room however it ends', async () => {
    const reports = new ReportsUnderWay();
    const refused = { status: status.RESOURCE_EXHAUSTED };
    const begin = async (operator: string, parts: () => AsyncIterable<number> = forever) => {
      const report = reports.bounded(operator, parts);
      await report.next();
      return report;
    };
    async function* forever() {
      for (;;) yield 1;
    }
    async function* failing() {
      yield 1;
      throw new Error('the database is away');
    }
    const first = await begin('ada');
    await assert.rejects(begin('Ada'), { ...refused, message: /a report of yours/ });
    const second = await begin('ben', failing);
    await assert.rejects(begin('cyn'), { ...refused, message: /2 other reports/ });
    await assert.rejects(begin('Ada'), { ...refused, message: /a report of yours/ });
    await assert.rejects(second.next(), /the database is away/);
    const third = await begin('cyn');
    await first.return();
    const again = await begin('ADA');
    await assert.rejects(begin('ben'), refused);
    await third.return();
    await again.return();
    for (const operator of ['ada', 'ben']) await begin(operator);
  });

  it('a report ends at the page with which its time is over, and makes room for another one', async (t) => {
    let now = 1_000;
    t.mock.method(performance, 'now', () => now);
    const reports = new ReportsUnderWay({ mostAtOnce: 1, longestMs: 500 });
    const took = (ms: number) => {
      now = 1_000;
      return async function* () {
        now += ms;
        yield [1];
      };
    };
    const read = (lines: () => AsyncIterable<number[]>) =>
      all(reports.messages({ operator: 'ada' }, ReportFormat.UNSPECIFIED, form, goesOn, lines));
    assert.equal((await read(took(499))).length, 2);
    await assert.rejects(read(took(500)), { status: status.DEADLINE_EXCEEDED });
    assert.equal((await read(took(0))).length, 2);
  });
});

describe('the days of a report', () => {
  it('days begin and end at midnight in Lagos, and follow each other without a gap', () => {
    const days = askedDays({ fromDay: '2026-02-28', toDay: '2026-03-02' });
    assert.deepEqual([days.from, days.until], [Date.UTC(2026, 1, 27, 23), Date.UTC(2026, 2, 2, 23)]);
    const each = eachOf(days);
    assert.deepEqual(
      each.map(({ first, last }) => [first, last]),
      ['2026-02-28', '2026-03-01', '2026-03-02'].map((day) => [day, day]),
    );
    for (const [at, { from }] of each.entries()) assert.equal(from, each[at - 1]?.until ?? days.from);
    assert.equal(each.at(-1)?.until, days.until);
    for (const toDay of ['', '2026-03-02']) {
      assert.equal(askedDays({ fromDay: '2026-03-02', toDay }).last, '2026-03-02');
    }
  });

  it('a report has as many days as it may, and not one more', () => {
    assert.equal(eachOf(askedDays({ fromDay: '2026-03-01', toDay: '2026-03-31' })).length, 31);
    for (const [fromDay, toDay, param] of [
      ['2026-03-01', '2026-04-01', 'to_day'],
      ['2026-03-02', '2026-03-01', 'to_day'],
      ['2026-02-29', '', 'from_day'],
      ['2026-03-01', '2026-03-32', 'to_day'],
    ] as const) {
      assert.throws(() => askedDays({ fromDay, toDay }), { param }, `${fromDay} to ${toDay}`);
    }
  });
});

describe('the first entry of a ledger at an instant', () => {
  /** A ledger whose entries have these instants, and how often it is read. */
  function ledger(instants: readonly number[]) {
    const state = { reads: 0 };
    const read = async ({ sql, values }: Statement) => {
      state.reads += 1;
      const from = Number(values.at(-1));
      const most = Number(/LIMIT (\d+)/.exec(sql)?.[1]);
      return instants
        .map((at, index) => ({ sequence: index + 1, created_at: new Date(at) }))
        .slice(from - 1, from - 1 + most);
    };
    const first = (atMs: number, from = 1n) =>
      firstEntryAt({ read } as never, 'par_a', atMs, { from, last: BigInt(instants.length) });
    return { first, state };
  }

  it('the first entry of a day is the first one that is not before it, wherever clocks differed by less than a minute', async () => {
    const gap = fc.integer({ min: 0, max: 90_000 });
    await fc.assert(
      fc.asyncProperty(
        fc.array(gap, { maxLength: 300 }),
        fc.array(fc.nat(59_999)),
        fc.nat(),
        async (gaps, late, at) => {
          let now = 1_000_000;
          const instants = gaps.map((gap, index) => {
            now += gap;
            return now - (late[index] ?? 0);
          });
          const atMs = 900_000 + (at % (now - 800_000));
          const found = instants.findIndex((instant) => instant >= atMs);
          const expected = found === -1 ? BigInt(instants.length) + 1n : BigInt(found) + 1n;
          assert.equal(await ledger(instants).first(atMs), expected);
        },
      ),
      { numRuns: 200 },
    );
  });

  it('the first entry of a day is found by few reads, also if hundreds of entries are a moment older', async () => {
    const before = Array.from({ length: 1_000 }, (_, at) => at * 1_000);
    const older = (count: number, ms: number) => Array.from({ length: count }, () => 1_060_000 - ms);
    const { first, state } = ledger([...before, ...older(200, 1), 1_060_000]);
    assert.equal(await first(1_060_000), 1_201n);
    assert.ok(state.reads <= 11 + 3, `${state.reads} reads`);
    const behind = ledger([...before, 1_060_000, ...older(450, 60_000), 1_060_001]);
    assert.equal(await behind.first(1_060_000), 1_001n, 'entries behind it may be up to a minute older');
    assert.equal(await ledger([]).first(0), 1n);
    assert.equal(await ledger([1, 2, 3]).first(2, 3n), 3n, 'it begins where it is known to be no earlier');
  });
});
