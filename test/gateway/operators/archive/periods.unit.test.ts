import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { duePeriods, missingMonths } from '../../../../src/gateway/operators/archive/periods.ts';

describe('the periods that the archive writes', () => {
  const names = (first: string, now: string, months = 13) =>
    duePeriods(new Date(first), new Date(now), months).map(({ name }) => name);

  it('are whole months that ended so many months ago, from the first partner on', () => {
    const due = names('2025-06-15T12:00:00Z', '2026-11-22T10:00:00Z').filter((name) => name.length === 7);
    assert.deepEqual(due, ['2025-06', '2025-07', '2025-08', '2025-09']);
    const september = duePeriods(new Date('2025-09-30'), new Date('2026-11-01'), 13).at(-1);
    assert.equal(september?.from.toISOString(), '2025-09-01T00:00:00.000Z');
    assert.equal(september?.to.toISOString(), '2025-10-01T00:00:00.000Z');
  });

  it('are noticed if one is missing between others', () => {
    assert.deepEqual(missingMonths(['2025-12', '2026-03', '2026-11-01']), ['2026-01', '2026-02']);
    assert.deepEqual(missingMonths(['2025-12', '2026-01']), []);
    assert.deepEqual(missingMonths([]), []);
  });

  it('are days that nothing is delivered of any more and that are whole in the database', () => {
    const due = names('2020-01-01T00:00:00Z', '2026-11-22T10:00:00Z', 100);
    assert.equal(due.length, 26);
    assert.deepEqual([due[0], due.at(-1)], ['2026-10-25', '2026-11-19']);
    assert.deepEqual(names('2026-11-18T23:00:00Z', '2026-11-22T10:00:00Z'), ['2026-11-18', '2026-11-19']);
  });

  it('the days of the archive begin with the day of the first partner, and not with the day that ended when he came', () => {
    for (const [first, day] of [
      ['2026-11-17T23:59:59.999Z', '2026-11-17'],
      ['2026-11-18T00:00:00.000Z', '2026-11-18'],
      ['2026-11-18T00:00:00.001Z', '2026-11-18'],
    ] as const) {
      assert.equal(names(first, '2026-11-22T10:00:00Z')[0], day, first);
    }
  });

  it('the days of the archive move on at midnight in UTC, and a day ends where the next begins', () => {
    for (const [now, from, to] of [
      ['2026-11-21T23:59:59.999Z', '2026-10-24', '2026-11-18'],
      ['2026-11-22T00:00:00.000Z', '2026-10-25', '2026-11-19'],
    ] as const) {
      const due = duePeriods(new Date('2020-01-01'), new Date(now), 100);
      assert.deepEqual([due[0]?.name, due.at(-1)?.name], [from, to], now);
      for (const [at, day] of due.entries()) {
        assert.equal(day.to.getTime() - day.from.getTime(), 86_400_000, day.name);
        if (at > 0) assert.deepEqual(day.from, due[at - 1]?.to, day.name);
      }
    }
  });

  it('days are urgent for the archive on the last three days on which the database holds them', () => {
    const due = duePeriods(new Date('2020-01-01'), new Date('2026-11-22T10:00:00Z'), 100);
    const urgent = due.filter(({ isUrgent }) => isUrgent).map(({ name }) => name);
    assert.deepEqual(urgent, ['2026-10-25', '2026-10-26', '2026-10-27']);
  });

  it('days of the archive become a month at the first instant of the month that is so many months later', () => {
    for (const [now, last] of [
      ['2026-10-31T23:59:59.999Z', '2025-08'],
      ['2026-11-01T00:00:00.000Z', '2025-09'],
    ] as const) {
      const due = names('2025-06-15T12:00:00Z', now).filter((name) => name.length === 7);
      assert.equal(due.at(-1), last, now);
    }
  });
});
