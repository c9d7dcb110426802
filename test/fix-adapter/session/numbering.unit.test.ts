import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type NumberingFacts, nextNumbering } from '../../../src/fix-adapter/session/numbering.ts';
import type { Numbers } from '../../../src/fix-adapter/session/types.ts';
import { fc } from '../../support/properties.ts';

const dayStartedAt = 1_000_000;
const now = dayStartedAt + 5_000;
const stored: Numbers = { startedAt: dayStartedAt, nextOut: 9, nextIn: 7 };
const facts: NumberingFacts = { dayStartedAt, now, resetsByLogon: false, resetsOnLogon: false };

describe('the numbers of a connection', () => {
  const cases: readonly [string, Partial<Numbers>, Partial<NumberingFacts>, number | undefined, boolean][] = [
    ['go on within a session day', {}, {}, undefined, false],
    ['begin on a new session day', { startedAt: dayStartedAt - 1 }, {}, dayStartedAt, false],
    ['begin on a new session day with a reset', { startedAt: 0 }, { resetsByLogon: true }, dayStartedAt, true],
    ['go on within a day that began with a reset', {}, { resetsByLogon: true }, undefined, false],
    ['begin again after a Logon without an answer', { nextIn: 1 }, { resetsByLogon: true }, dayStartedAt, true],
    ['are reset by a Logon that was never sent', { nextIn: 1, nextOut: 1 }, { resetsByLogon: true }, undefined, true],
    ['go on after a Logon without an answer where none resets them', { nextIn: 1 }, {}, undefined, false],
    ['begin with each Logon where each resets them', {}, { resetsOnLogon: true }, now, true],
    [
      'begin with a time of their own within one millisecond',
      { startedAt: now },
      { resetsOnLogon: true },
      now + 1,
      true,
    ],
    [
      'begin with a time of their own although the clock went back',
      { startedAt: now + 60_000 },
      { resetsOnLogon: true },
      now + 60_001,
      true,
    ],
  ];
  for (const [name, numbers, more, startedAt, resets] of cases) {
    it(name, () =>
      assert.deepEqual(nextNumbering({ ...stored, ...numbers }, { ...facts, ...more }), { startedAt, resets }),
    );
  }

  it('name a numbering by a time that no earlier one has, over any Logons that each reset them', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: -3, max: 3 }), { maxLength: 30 }), (steps) => {
        let last = stored;
        let clock = now;
        for (const step of steps) {
          clock += step;
          const { startedAt } = nextNumbering(last, { ...facts, now: clock, resetsOnLogon: true });
          assert.ok(startedAt !== undefined && startedAt > last.startedAt);
          last = { startedAt, nextOut: 2, nextIn: 2 };
        }
      }),
    );
  });
});
