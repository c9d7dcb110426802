import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { parseCalendar, parseDays, type Schedule, sessionStartAt } from '../../../src/fix-adapter/session/schedule.ts';
import { fc } from '../../support/properties.ts';

const plain: Schedule = { days: parseDays('mon-fri'), start: '00:00', end: '23:59:59', calendar: new Map() };

/** An instant in the time of Lagos. */
function lagos(text: string): number {
  return Date.parse(`${text.replace(' ', 'T')}+01:00`);
}

/** Each session with its first and last millisecond: it is the same one at both, and none one millisecond beside them. */
function assertSessions(schedule: Schedule, sessions: readonly (readonly [first: string, last: string])[]): void {
  for (const [first, last] of sessions) {
    const start = lagos(first);
    const end = lagos(`${last}.999`);
    const at = [start - 1, start, start + 1, end - 1, end, end + 1].map((now) => sessionStartAt(schedule, now));
    assert.deepEqual(at, [undefined, start, start, start, start, undefined], `${first} to ${last}`);
  }
}

describe("the session's hours", () => {
  it('are those of Lagos on its working days, to the millisecond', () => {
    const schedule = { ...plain, start: '08:30', end: '16:00' };
    assertSessions(schedule, [
      ['2026-11-23 08:30:00', '2026-11-23 16:00:00'],
      ['2026-11-27 08:30:00', '2026-11-27 16:00:00'],
    ]);
    for (const weekend of ['2026-11-22 11:00:00', '2026-11-28 11:00:00']) {
      assert.equal(sessionStartAt(schedule, lagos(weekend)), undefined, weekend);
    }
  });

  it('may be on any days of the week', () => {
    const schedule = { ...plain, days: parseDays('mon,wed,sat'), start: '10:00', end: '11:00' };
    assertSessions(schedule, [
      ['2026-11-23 10:00:00', '2026-11-23 11:00:00'],
      ['2026-11-25 10:00:00', '2026-11-25 11:00:00'],
      ['2026-11-28 10:00:00', '2026-11-28 11:00:00'],
    ]);
    for (const day of ['22', '24', '26', '27']) {
      assert.equal(sessionStartAt(schedule, lagos(`2026-11-${day} 10:30:00`)), undefined, day);
    }
  });

  it('last a whole day if they end when they begin, and belong to the session that began last', () => {
    const schedule = { ...plain, start: '08:00', end: '08:00' };
    const friday = lagos('2026-11-27 08:00:00');
    const cases: readonly [string, string | undefined][] = [
      ['2026-11-24 07:59:59.999', '2026-11-23 08:00:00'],
      ['2026-11-24 08:00:00.000', '2026-11-24 08:00:00'],
      ['2026-11-28 08:00:00.999', '2026-11-27 08:00:00'],
      ['2026-11-28 08:00:01.000', undefined],
    ];
    for (const [now, began] of cases) {
      assert.equal(sessionStartAt(schedule, lagos(now)), began === undefined ? undefined : lagos(began), now);
    }
    assert.equal(sessionStartAt(schedule, friday - 1), lagos('2026-11-26 08:00:00'));
  });

  it('end on the next day if they end before they begin, also when no session begins on that day', () => {
    const schedule = { ...plain, days: parseDays('sun-thu'), start: '18:00', end: '02:00' };
    assertSessions(schedule, [
      ['2026-11-22 18:00:00', '2026-11-23 02:00:00'],
      ['2026-11-26 18:00:00', '2026-11-27 02:00:00'],
    ]);
    assert.equal(sessionStartAt(schedule, lagos('2026-11-27 18:30:00')), undefined, 'Friday evening');
    assert.equal(sessionStartAt(schedule, lagos('2026-11-28 01:00:00')), undefined, 'the night behind it');
  });

  it('pass from one session to the next without a pause where one ends in the second before the other', () => {
    const schedule = { ...plain, days: parseDays('mon-sun'), start: '17:00', end: '16:59:59' };
    const start = lagos('2026-11-23 17:00:00');
    assert.equal(sessionStartAt(schedule, start - 1), lagos('2026-11-22 17:00:00'));
    assert.equal(sessionStartAt(schedule, start), start);
  });

  it('are none on a holiday, end earlier on a half day, and are what the calendar says on other days', () => {
    const usual = { start: '08:30', end: '16:00' };
    const calendar = parseCalendar(
      [
        '# 2026',
        '2026-12-25 closed',
        '',
        '2026-12-24 12:30',
        ' 2026-12-26   09:00-13:00',
        '2026-12-28 10:00-18:00:30',
      ].join('\n'),
      usual,
    );
    const schedule = { ...plain, ...usual, calendar };
    assertSessions(schedule, [
      ['2026-12-23 08:30:00', '2026-12-23 16:00:00'],
      ['2026-12-24 08:30:00', '2026-12-24 12:30:00'],
      ['2026-12-26 09:00:00', '2026-12-26 13:00:00'],
      ['2026-12-28 10:00:00', '2026-12-28 18:00:30'],
      ['2026-12-29 08:30:00', '2026-12-29 16:00:00'],
    ]);
    assert.equal(sessionStartAt(schedule, lagos('2026-12-25 12:00:00')), undefined);
  });

  it('may go over midnight on one day of the calendar only, and are closed by the day on which they begin', () => {
    const calendar = parseCalendar('2026-11-23 22:00-03:00\n2026-11-25 closed', { start: '20:00', end: '23:00' });
    const schedule = { ...plain, start: '20:00', end: '23:00', calendar };
    assertSessions(schedule, [['2026-11-23 22:00:00', '2026-11-24 03:00:00']]);
    const night = { ...plain, start: '20:00', end: '02:00', calendar };
    assert.equal(sessionStartAt(night, lagos('2026-11-25 01:00:00')), lagos('2026-11-24 20:00:00'));
    assert.equal(sessionStartAt(night, lagos('2026-11-25 20:00:00')), undefined);
    assert.equal(sessionStartAt(night, lagos('2026-11-26 01:00:00')), undefined);
  });

  it('begin on each of their days and at no other time', () => {
    const minute = 60_000;
    fc.assert(
      fc.property(
        fc.integer({ min: Date.parse('2026-01-01'), max: Date.parse('2030-01-01') }),
        fc.constantFrom('mon-fri', 'mon-sun'),
        fc.integer({ min: 0, max: 1_438 }),
        fc.integer({ min: 1, max: 1_439 }),
        (now, days, startMinute, length) => {
          const endMinute = Math.min(startMinute + length, 1_439);
          const clock = (at: number) => new Date(at * minute).toISOString().slice(11, 16);
          const found = sessionStartAt(
            { ...plain, days: parseDays(days), start: clock(startMinute), end: clock(endMinute) },
            now,
          );
          const lagos = new Intl.DateTimeFormat('en-GB', {
            ...{ timeZone: 'Africa/Lagos', weekday: 'short', hour: '2-digit', minute: '2-digit', second: '2-digit' },
          });
          const part = Object.fromEntries(lagos.formatToParts(now).map(({ type, value }) => [type, value]));
          const second = (Number(part.hour) * 60 + Number(part.minute)) * 60 + Number(part.second);
          const isDay = days === 'mon-sun' || !['Sat', 'Sun'].includes(part.weekday ?? '');
          const isOpen = isDay && second >= startMinute * 60 && second <= endMinute * 60;
          assert.equal(found !== undefined, isOpen);
          if (found === undefined) return;
          assert.ok(found <= now && now - found < 24 * 60 * minute);
          assert.ok(lagos.format(found).endsWith(`${clock(startMinute)}:00`));
        },
      ),
      { numRuns: 300 },
    );
  });

  it('can be whole days, each of which begins again at midnight in Lagos', () => {
    const always = { ...plain, days: parseDays('mon-sun') };
    assert.equal(sessionStartAt(always, Date.parse('2026-11-22T22:59:59.999Z')), Date.parse('2026-11-21T23:00:00Z'));
    assert.equal(sessionStartAt(always, Date.parse('2026-11-22T23:00:00Z')), Date.parse('2026-11-22T23:00:00Z'));
  });
});

describe('the days of a session', () => {
  it('are names and ranges, also over the end of the week', () => {
    for (const [text, days] of [
      ['mon-fri', [1, 2, 3, 4, 5]],
      ['mon-sun', [0, 1, 2, 3, 4, 5, 6]],
      ['mon,tue,thu', [1, 2, 4]],
      ['sun-thu', [0, 1, 2, 3, 4]],
      ['fri-mon,wed', [0, 1, 3, 5, 6]],
      ['sat', [6]],
    ] as const) {
      assert.deepEqual([...parseDays(text)].sort(), [...days], text);
    }
  });

  it('are nothing else', () => {
    for (const wrong of ['', 'mon-', '-fri', 'mon-tue-wed', 'monday', 'mon,', 'mon,mon', 'mon-wed,tue', 'Mon', '1-5']) {
      assert.throws(() => parseDays(wrong), /must/, wrong);
    }
  });
});

describe('the calendar of a session', () => {
  const usual = { start: '08:30', end: '16:00' };

  it('has a line for each day', () => {
    assert.deepEqual(
      [...parseCalendar('2026-12-25 closed\n2026-12-24 12:30\n', usual)],
      [
        ['2026-12-25', 'closed'],
        ['2026-12-24', { start: '08:30', end: '12:30' }],
      ],
    );
  });

  for (const [what, line, expected] of [
    ['a date that is none', '2026-02-30 closed', /line 1 must begin with a date/],
    ['a date that is named again', '2026-12-25 closed\n2026-12-25 12:00', /line 2 must not name a date again/],
    ['another word', '2026-12-25 shut', /line 1 must be as/],
    ['a time that is none', '2026-12-25 25:00', /line 1 must be as/],
    ['an end before the begin', '2026-12-25 08:00', /line 1 must end after the session begins/],
    ['an end at the begin', '2026-12-25 08:30', /line 1 must not end when it begins/],
    ['hours that are none', '2026-12-25 10:00-10:00', /line 1 must not end when it begins/],
    ['a range of days', '2026-12-25-2026-12-26 closed', /line 1 must be as/],
  ] as const) {
    it(`refuses ${what}`, () => assert.throws(() => parseCalendar(line, usual), expected));
  }
});
