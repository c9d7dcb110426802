import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { calendarRange } from '../../../../src/gateway/partners/reference/calendar.ts';
import { daysAfter } from '../../../../src/kit/clock.ts';

/** 00:30 in Lagos on 3 March, and still 2 March in UTC. */
const now = Date.parse('2026-03-03T00:30:00+01:00');

describe('the days of a calendar that a partner asks for', () => {
  it('a partner gets the days from today in Lagos and 30 days on, unless he says otherwise', () => {
    assert.deepEqual(calendarRange({}, now), { from: '2026-03-03', to: '2026-04-02' });
    assert.deepEqual(calendarRange({}, now - 30 * 60_000 - 1), { from: '2026-03-02', to: '2026-04-01' });
    assert.deepEqual(calendarRange({ from: '2026-02-28' }, now), { from: '2026-02-28', to: '2026-03-30' });
  });

  it('a calendar may be asked for one day, and not for an end before its beginning', () => {
    assert.deepEqual(calendarRange({ to: '2026-03-03' }, now), { from: '2026-03-03', to: '2026-03-03' });
    assert.throws(() => calendarRange({ to: '2026-03-02' }, now), /must not be before today/);
    assert.throws(() => calendarRange({ from: '2026-03-03', to: '2026-03-02' }, now), /must not be after/);
  });

  it('a calendar may be asked for as many days as one range may have, and not for one more', () => {
    const from = '2026-03-03';
    const to = (count: number) => daysAfter(from, count - 1);
    const most = 366;
    assert.doesNotThrow(() => calendarRange({ from, to: to(most) }, now));
    assert.throws(() => calendarRange({ from, to: to(most + 1) }, now), /more than 366 days/);
  });
});
